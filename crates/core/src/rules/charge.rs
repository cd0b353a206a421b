//! The charge for a paid run: the row of the ledger that reserves its cost, and the effect of each step of a job on that
//! row (G6). The table "Money" of docs/spending.md states the same in words.

use super::cap::reserved_amount;
use crate::{
    ChargeState, Checkpoint, Cost, Job, JobId, JobState, LedgerRow, NanoUsd, OwnerId, Profile,
    RemoteStop, Reservation, RunAllowance, RunStatus, StepCosts, Timestamp,
};

/// Returns the ledger row of a job's first run.
pub(super) fn reserve(
    reservation: &Reservation,
    allowance: &RunAllowance,
    job: JobId,
    owner: &OwnerId,
    now: Timestamp,
) -> LedgerRow {
    LedgerRow {
        job,
        run: 1,
        owner: owner.clone(),
        provider: reservation.provider.clone(),
        model: reservation.model.clone(),
        at: now,
        reserved: reserved_amount(allowance),
        cost: Cost::Unknown,
        state: ChargeState::Reserved,
        remote: None,
        run_id: None,
    }
}

/// The effect of a step on the ledger row of a job's latest run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCharge {
    /// The payment state of the run.
    pub state: ChargeState,
    /// Its cost, if that is known.
    pub cost: Cost,
    /// The model that did the work, if it is known.
    pub model: Option<String>,
    /// The amount that may have been spent, if it is not the reserved one.
    pub maybe: Option<NanoUsd>,
    /// The provider's id of the run, if another job can resume it.
    pub remote: Option<String>,
    /// The provider's id of the run.
    pub run_id: Option<String>,
    /// True if another run follows, with its own reservation.
    pub another_follows: bool,
}

impl RunCharge {
    /// Returns the new row, and the row of the run that follows it. A spent amount stays spent: a job that only
    /// fetches the report of such a run does not change its cost.
    pub fn apply(
        &self,
        row: &LedgerRow,
        allowance: Option<&RunAllowance>,
        now: Timestamp,
    ) -> (LedgerRow, Option<LedgerRow>) {
        let Self { state, cost, model, maybe, remote, run_id, another_follows } = self.clone();
        let reserved = allowance.map_or(row.reserved, reserved_amount);
        let next = another_follows.then(|| LedgerRow {
            run: row.run + 1,
            at: now,
            reserved,
            state: ChargeState::Reserved,
            cost: Cost::Unknown,
            remote: None,
            run_id: None,
            ..row.clone()
        });
        if row.state == ChargeState::Spent && state != ChargeState::Spent {
            return (row.clone(), next);
        }
        let model = model.or_else(|| row.model.clone());
        let run_id = run_id.or_else(|| row.run_id.clone());
        let reserved = maybe.or(row.reserved);
        (LedgerRow { state, cost, model, reserved, remote, run_id, ..row.clone() }, next)
    }
}

/// Returns the effect of a step of a job on the row of its latest run; `None` if nothing new is known of the run.
/// `before` is the checkpoint that the step found. `steps` is the cost of the run by its journal, if that is complete; see
/// [`is_charged_by_steps`].
pub fn charge(before: &Checkpoint, job: &Job, steps: Option<StepCosts>) -> Option<RunCharge> {
    let run = match (before, &job.checkpoint) {
        (Checkpoint::Running(run), _) | (_, Checkpoint::Running(run)) => Some(run),
        (Checkpoint::NotBegun | Checkpoint::Beginning { .. }, _) => None,
    };
    let had_a_run = matches!(before, Checkpoint::Running(_));
    let run_id = run.map(|run| run.id.clone());
    let remote = job.run_left().map(|run| run.id.clone());
    match &job.state {
        // The run has ended without a result. Only the provider knows whether it is paid for.
        JobState::Queued { .. } if had_a_run && job.checkpoint == Checkpoint::NotBegun => {
            let charge = steps.map_or_else(|| charge_of_failed_run(job), charge_of_steps);
            Some(RunCharge { another_follows: true, run_id, ..charge })
        }
        JobState::Queued { .. } | JobState::Running { .. } => None,
        JobState::Failed { .. } | JobState::Cancelled { .. } if let Some(steps) = steps => {
            Some(RunCharge { remote, run_id, ..charge_of_steps(steps) })
        }
        JobState::Succeeded { output, .. } => {
            let (cost, model) = (output.cost, output.model.clone());
            Some(match cost.amount() {
                Some(_) => RunCharge { model, run_id, ..spend(cost) },
                None => RunCharge { model, run_id, ..maybe() },
            })
        }
        // If a request may have been accepted, the job needs consent. Every other request without a run was refused,
        // or never sent.
        JobState::Failed { .. } if had_a_run || job.needs_consent() => {
            Some(RunCharge { remote, run_id, ..charge_of_failed_run(job) })
        }
        JobState::Failed { .. } | JobState::Cancelled { remote: RemoteStop::NotNeeded, .. } => {
            Some(release())
        }
        JobState::Cancelled { remote: RemoteStop::Completed, cost, .. }
            if cost.amount().is_some() =>
        {
            Some(RunCharge { remote, run_id, ..spend(*cost) })
        }
        JobState::Cancelled { remote: RemoteStop::Ended, cost, .. } if cost.is_known() => {
            Some(RunCharge { remote, run_id, ..spend(*cost) })
        }
        JobState::Cancelled {
            remote:
                RemoteStop::MaybeBegun
                | RemoteStop::Owed
                | RemoteStop::Told
                | RemoteStop::Ended
                | RemoteStop::Completed
                | RemoteStop::GoesOn
                | RemoteStop::Unsupported,
            ..
        } => Some(RunCharge { remote, run_id, ..maybe() }),
    }
}

/// Returns the charge for the run that the last failure describes.
fn charge_of_failed_run(job: &Job) -> RunCharge {
    match job.failures.last().map(|failure| failure.run) {
        Some(RunStatus::Ended(cost)) if cost.is_known() => spend(cost),
        Some(RunStatus::NotCharged) if !job.needs_consent() => release(),
        Some(RunStatus::Unknown | RunStatus::NotCharged | RunStatus::Ended(_)) | None => maybe(),
    }
}

/// Returns the charge for a run that has a journal: the sum of its steps. Only its open steps may have been spent.
fn charge_of_steps(StepCosts { spent, open }: StepCosts) -> RunCharge {
    match (spent, open) {
        (NanoUsd(0), NanoUsd(0)) => release(),
        (spent, NanoUsd(0)) => spend(Cost::Computed(spent)),
        (spent, open) => RunCharge { maybe: Some([spent, open].into_iter().sum()), ..maybe() },
    }
}

/// Returns whether the journal of the job decides its charge: the job has ended without a result, or its run has.
pub fn is_charged_by_steps(before: &Checkpoint, job: &Job) -> bool {
    let is_over = match &job.state {
        JobState::Failed { .. } | JobState::Cancelled { .. } => true,
        JobState::Queued { .. } => {
            matches!(before, Checkpoint::Running(_)) && job.checkpoint == Checkpoint::NotBegun
        }
        JobState::Running { .. } | JobState::Succeeded { .. } => false,
    };
    is_over && job.new.profile.provider() == Profile::RESEARCHER
}

fn spend(cost: Cost) -> RunCharge {
    RunCharge { state: ChargeState::Spent, cost, ..maybe() }
}

fn release() -> RunCharge {
    RunCharge { state: ChargeState::Released, ..maybe() }
}

fn maybe() -> RunCharge {
    RunCharge {
        state: ChargeState::Maybe,
        cost: Cost::Unknown,
        model: None,
        maybe: None,
        remote: None,
        run_id: None,
        another_follows: false,
    }
}

/// Returns the amount that may have been spent on a job whose cost is not known.
pub fn maybe_spent(job: &Job) -> NanoUsd {
    let is_maybe = charge(&job.checkpoint, job, None)
        .is_some_and(|charge| matches!(charge.state, ChargeState::Maybe));
    match &job.allowance {
        Some(allowance) if is_maybe => reserved_amount(allowance).unwrap_or_default(),
        Some(_) | None => NanoUsd::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, failure, output, remote, running};
    use crate::rules::{cancel, record_stop, rescue, restore, settle};
    use crate::{
        Code, Failure, Output, RecoverySemantics, ResendPolicy, ResumePolicy, Settlement,
        SpendTerms,
    };

    fn usd(cents: u64) -> NanoUsd {
        NanoUsd(cents * 10_000_000)
    }

    fn asked(cents: u64) -> Reservation {
        Reservation {
            provider: "perplexity".to_owned(),
            model: None,
            terms: SpendTerms { typical: Some(usd(cents)), ..SpendTerms::default() },
        }
    }

    fn uncapped(terms: &SpendTerms) -> RunAllowance {
        RunAllowance { cap: None, terms: *terms }
    }

    fn ended(checkpoint: Checkpoint, settlement: &Settlement) -> Option<ChargeState> {
        let (mut record, lease) = running(checkpoint.clone());
        settle(&mut record, &lease, settlement, NOW).unwrap();
        charge(&checkpoint, &record.job, None).map(|charge| charge.state)
    }

    /// G6: the effect of each settlement on the row.
    #[test]
    fn g6_each_end_of_a_try_settles_what_was_set_aside() {
        use ChargeState::{Maybe, Released, Spent};
        let beginning = || Checkpoint::Beginning { key: "k".to_owned() };
        let under_way = || Checkpoint::Running(remote());
        let fail = |code| Settlement::Fail { failure: Failure { code, ..failure() }, raw: None };
        let retry =
            |checkpoint| Settlement::Retry { failure: failure(), wait: Duration::ZERO, checkpoint };
        let cost = |cost| Settlement::Succeed {
            output: Arc::new(Output { cost, ..(*output()).clone() }),
            raw: None,
        };
        let table = [
            (under_way(), cost(Cost::Reported(usd(40))), Some(Spent)),
            (under_way(), cost(Cost::Computed(usd(40))), Some(Spent)),
            (under_way(), cost(Cost::Estimate(usd(40))), Some(Spent)),
            (under_way(), cost(Cost::Unknown), Some(Maybe)),
            (Checkpoint::NotBegun, fail(Code::Timeout), Some(Released)),
            (beginning(), fail(Code::Unauthorized), Some(Released)),
            (beginning(), fail(Code::RateLimited), Some(Released)),
            (beginning(), fail(Code::SubmitUnknown), Some(Maybe)),
            (under_way(), fail(Code::RunLost), Some(Maybe)),
            (under_way(), fail(Code::SubmitUnknown), Some(Maybe)),
            (under_way(), fail(Code::ExecutionError), Some(Maybe)),
            (under_way(), fail(Code::Timeout), Some(Maybe)),
            (beginning(), retry(Checkpoint::NotBegun), None),
            (beginning(), retry(beginning()), None),
            (under_way(), retry(under_way()), None),
            (under_way(), retry(Checkpoint::NotBegun), Some(Maybe)),
            (beginning(), Settlement::Release, None),
            (under_way(), Settlement::Release, None),
        ];
        for (checkpoint, settlement, expected) in table {
            let got = ended(checkpoint.clone(), &settlement);
            assert_eq!(got, expected, "{checkpoint:?} {settlement:?}");
        }
    }

    /// G6: a cancel releases only a run that was certainly not begun; later knowledge counts.
    #[test]
    fn g6_a_cancel_keeps_what_may_have_been_spent() {
        use ChargeState::{Maybe, Released};
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let state = |record: &crate::Record| {
            charge(&record.job.checkpoint, &record.job, None).map(|charge| charge.state)
        };
        let table = [
            (Checkpoint::NotBegun, None, Released),
            (beginning.clone(), None, Maybe),
            (beginning.clone(), Some(RemoteStop::NotNeeded), Released),
            (beginning, Some(RemoteStop::MaybeBegun), Maybe),
            (Checkpoint::Running(remote()), None, Maybe),
            (Checkpoint::Running(remote()), Some(RemoteStop::Ended), Maybe),
            (Checkpoint::Running(remote()), Some(RemoteStop::Unsupported), Maybe),
        ];
        for (checkpoint, stop, expected) in table {
            let (mut record, _) = running(checkpoint.clone());
            cancel(&mut record, NOW);
            if let Some(stop) = stop {
                record_stop(&mut record, stop, Cost::Unknown, NOW).unwrap();
            }
            assert_eq!(state(&record), Some(expected), "{checkpoint:?} {stop:?}");
        }
    }

    #[test]
    fn g6_a_rescue_changes_nothing_and_a_restore_ends_what_may_have_been_paid_for() {
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let (mut record, _) = running(beginning.clone());
        rescue(&mut record, NOW);
        assert_eq!(charge(&beginning, &record.job, None), None);
        let never = RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        };
        restore(&mut record, Some(never), NOW);
        let charge = charge(&beginning, &record.job, None).unwrap();
        assert_eq!(charge.state, ChargeState::Maybe);
    }

    /// G6: a run that is begun again gets its own row, on the day when it begins.
    #[test]
    fn g6_a_run_begun_again_is_a_further_row() {
        let (mut record, lease) = running(Checkpoint::Running(remote()));
        let before = record.job.checkpoint.clone();
        let checkpoint = Checkpoint::NotBegun;
        let retry = Settlement::Retry { failure: failure(), wait: Duration::ZERO, checkpoint };
        settle(&mut record, &lease, &retry, NOW).unwrap();
        let owner = OwnerId::new("ann");
        let reservation = asked(50);
        let allowance = uncapped(&reservation.terms);
        let first = reserve(&reservation, &allowance, record.job.id, &owner, NOW);
        let later = NOW.after(Duration::from_secs(86_400));
        let (first, second) =
            charge(&before, &record.job, None).unwrap().apply(&first, Some(&allowance), later);
        let second = second.unwrap();
        assert_eq!((first.state, first.counts(), first.run), (ChargeState::Maybe, usd(50), 1));
        assert_eq!(
            (second.state, second.counts(), second.run),
            (ChargeState::Reserved, usd(50), 2)
        );
        assert_eq!(second.at.day(), NOW.day().next());
    }

    /// G6: another job can resume the run by its id; a success reports model and cost.
    #[test]
    fn g6_what_is_left_of_a_run_is_found_by_its_name() {
        let (mut record, _) = running(Checkpoint::Running(remote()));
        record.job.state = JobState::Failed { at: NOW };
        record.job.failures = vec![Failure { run_goes_on: true, ..failure() }];
        let under_way = Checkpoint::Running(remote());
        let left = charge(&under_way, &record.job, None).unwrap();
        assert_eq!((left.state, left.remote.as_deref()), (ChargeState::Maybe, Some("resp_1")));
        let cost = Cost::Reported(usd(41));
        let output = Output { cost, model: Some("m".to_owned()), ..(*output()).clone() };
        record.job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        let reservation = asked(50);
        let allowance = uncapped(&reservation.terms);
        let row = reserve(&reservation, &allowance, record.job.id, &OwnerId::new("ann"), NOW);
        let (spent, next) = charge(&under_way, &record.job, None).unwrap().apply(&row, None, NOW);
        assert_eq!((spent.counts(), spent.model.as_deref(), next), (usd(41), Some("m"), None));
        assert_eq!(left.apply(&row, None, NOW).0.remote.as_deref(), Some("resp_1"));
    }

    /// G6: the model that did the work is known even if its price is not.
    #[test]
    fn g6_a_success_of_unknown_cost_names_its_model() {
        let (mut record, _) = running(Checkpoint::Running(remote()));
        let output = Output { model: Some("m".to_owned()), ..(*output()).clone() };
        record.job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        let told = charge(&Checkpoint::Running(remote()), &record.job, None).unwrap();
        assert_eq!((told.state, told.model.as_deref()), (ChargeState::Maybe, Some("m")));
    }

    /// G6: only for a run that may have been paid for, and all of its reserved amount.
    #[test]
    fn g6_what_may_have_been_spent_on_a_job_is_what_was_reserved() {
        let terms = SpendTerms { typical: Some(usd(40)), ..SpendTerms::default() };
        let table = [
            (Checkpoint::Beginning { key: "k".to_owned() }, Code::SubmitUnknown, 40),
            (Checkpoint::Beginning { key: "k".to_owned() }, Code::Unauthorized, 0),
            (Checkpoint::NotBegun, Code::Timeout, 0),
        ];
        for (checkpoint, code, cents) in table {
            let (mut record, lease) = running(checkpoint);
            record.job.allowance = Some(uncapped(&terms));
            assert_eq!(maybe_spent(&record.job), usd(0), "it has not ended");
            let fail = Settlement::Fail { failure: Failure { code, ..failure() }, raw: None };
            settle(&mut record, &lease, &fail, NOW).unwrap();
            assert_eq!(maybe_spent(&record.job), usd(cents), "{code:?}");
        }
    }
}
