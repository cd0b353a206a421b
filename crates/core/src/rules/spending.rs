//! Money: what a start sets aside, when it is refused, and what each step of a job does to the row of its run (G6). The
//! table "Money" of docs/spending.md says the same in words.

use std::time::Duration;

use crate::{
    BudgetLimit, BudgetRefusal, ChargeState, Checkpoint, Cost, Day, Job, JobId, JobState,
    LedgerRow, NanoUsd, OwnerId, RemoteStop, Reservation, Timestamp,
};

/// The first day whose rows are kept: 400 days are.
pub fn ledger_begins(now: Timestamp) -> Day {
    now.before(Duration::from_secs(400 * 86_400)).day()
}

/// What is set aside for a run: its whole budget where the provider stops it there, else what such a run usually costs.
pub fn set_aside(reservation: &Reservation) -> Option<NanoUsd> {
    match reservation.budget {
        Some(budget) if reservation.provider_caps => Some(budget),
        Some(_) | None => reservation.typical,
    }
}

/// Whether a job may be started whose owner's runs of this day count for `counted`: what was spent, may have been spent, or
/// is set aside. A limit of nothing refuses everything; where there is a limit, a cost that is not known is refused.
pub fn may_spend(
    reservation: &Reservation,
    counted: NanoUsd,
    now: Timestamp,
) -> Result<(), BudgetRefusal> {
    let planned = set_aside(reservation);
    let fits = |limit: Option<NanoUsd>, counted: NanoUsd| match (limit, planned) {
        (None, _) => true,
        (Some(_), None) | (Some(NanoUsd(0)), _) => false,
        (Some(limit), Some(planned)) => counted.0.saturating_add(planned.0) <= limit.0,
    };
    let refused = |limit, allowed: Option<NanoUsd>, counted| BudgetRefusal {
        limit,
        allowed: allowed.unwrap_or_default(),
        planned,
        counted,
        next_day: None,
    };
    let limits = reservation.limits;
    let none = NanoUsd::default();
    if !fits(reservation.budget, none) {
        return Err(refused(BudgetLimit::Ask, reservation.budget, none));
    }
    if !fits(limits.per_job, none) {
        return Err(refused(BudgetLimit::Job, limits.per_job, none));
    }
    if !fits(limits.per_day, counted) {
        let next_day = fits(limits.per_day, none).then(|| now.day().next().begins().since(now));
        return Err(BudgetRefusal {
            next_day,
            ..refused(BudgetLimit::Day, limits.per_day, counted)
        });
    }
    Ok(())
}

/// The row of a job's first run.
pub fn reserve(
    reservation: &Reservation,
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
        reserved: set_aside(reservation),
        cost: Cost::Unknown,
        state: ChargeState::Reserved,
        remote: None,
    }
}

/// What became of the money for the latest run of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCharge {
    /// Whether it was paid for.
    pub state: ChargeState,
    /// What it cost, where that is known.
    pub cost: Cost,
    /// The model that did the work, where that is known.
    pub model: Option<String>,
    /// The provider's name of the run, for a job that takes it up.
    pub remote: Option<String>,
    /// Whether a run of its own follows, which is set aside for anew.
    pub another_follows: bool,
}

impl RunCharge {
    /// The row from now on, and the row of the run that follows it.
    pub fn applied(&self, row: &LedgerRow, now: Timestamp) -> (LedgerRow, Option<LedgerRow>) {
        let Self { state, cost, model, remote, another_follows } = self.clone();
        let next = another_follows.then(|| LedgerRow { run: row.run + 1, at: now, ..row.clone() });
        let model = model.or_else(|| row.model.clone());
        (LedgerRow { state, cost, model, remote, ..row.clone() }, next)
    }
}

/// What a step of a job means for the money of its latest run; `None` where nothing new is known of it. `before` is the
/// checkpoint that the step found.
pub fn charge(before: &Checkpoint, job: &Job) -> Option<RunCharge> {
    let had_a_run = matches!(before, Checkpoint::Running(_));
    match &job.state {
        // The run has ended without a result, and whether it is paid for only the provider knows.
        JobState::Queued { .. } if had_a_run && job.checkpoint == Checkpoint::NotBegun => {
            Some(RunCharge { another_follows: true, ..maybe() })
        }
        JobState::Queued { .. } | JobState::Running { .. } => None,
        JobState::Succeeded { output, .. } => {
            let (cost, model) = (output.cost, output.model.clone());
            Some(match cost.amount() {
                Some(_) => RunCharge { state: ChargeState::Spent, cost, model, ..maybe() },
                None => RunCharge { model, ..maybe() },
            })
        }
        // Where a request may have been accepted, the job needs consent; every other one without a run was refused, or
        // never sent.
        JobState::Failed { .. } if had_a_run || job.needs_consent() => {
            Some(RunCharge { remote: job.run_left().map(|run| run.id.clone()), ..maybe() })
        }
        JobState::Failed { .. } | JobState::Cancelled { remote: RemoteStop::NotNeeded, .. } => {
            Some(RunCharge { state: ChargeState::Released, ..maybe() })
        }
        JobState::Cancelled {
            remote:
                RemoteStop::MaybeBegun | RemoteStop::Owed | RemoteStop::Done | RemoteStop::Unsupported,
            ..
        } => Some(maybe()),
    }
}

fn maybe() -> RunCharge {
    RunCharge {
        state: ChargeState::Maybe,
        cost: Cost::Unknown,
        model: None,
        remote: None,
        another_follows: false,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rules::tests::{NOW, failure, output, remote, running};
    use crate::rules::{cancel, record_stop, rescue, restore, settle};
    use crate::{Again, Code, Failure, Nature, Output, Resumes, Settlement, SpendLimits};

    const CENT: u64 = 10_000_000;

    fn usd(cents: u64) -> NanoUsd {
        NanoUsd(cents * CENT)
    }

    fn asked(typical: Option<u64>, budget: Option<u64>, provider_caps: bool) -> Reservation {
        Reservation {
            provider: "perplexity".to_owned(),
            model: None,
            typical: typical.map(usd),
            budget: budget.map(usd),
            provider_caps,
            limits: SpendLimits::default(),
        }
    }

    /// G6: cents, of the typical cost, the limit of a job, that of a day, and what counts already.
    #[test]
    fn g6_a_start_that_would_pass_a_limit_is_refused() {
        use BudgetLimit::{Day, Job};
        let table = [
            (Some(50), None, None, 1_000_000, None),
            (None, None, None, 0, None),
            (Some(50), Some(50), None, 0, None),
            (Some(50), Some(49), None, 0, Some(Job)),
            (None, Some(1_000), None, 0, Some(Job)),
            (Some(50), None, Some(100), 50, None),
            (Some(50), None, Some(100), 51, Some(Day)),
            (None, None, Some(100), 0, Some(Day)),
            (Some(50), Some(49), Some(49), 0, Some(Job)),
            (Some(0), Some(0), None, 0, Some(Job)),
            (Some(0), None, Some(0), 0, Some(Day)),
            (Some(0), None, Some(100), 100, None),
        ];
        for (typical, per_job, per_day, counted, expected) in table {
            let limits = SpendLimits { per_job: per_job.map(usd), per_day: per_day.map(usd) };
            let reservation = Reservation { limits, ..asked(typical, None, false) };
            let got = may_spend(&reservation, usd(counted), NOW).err().map(|refused| refused.limit);
            assert_eq!(got, expected, "{typical:?} {per_job:?} {per_day:?} {counted}");
        }
    }

    /// G6: a budget refuses where the provider does not stop at it; where it does, all of it is set aside.
    #[test]
    fn g6_a_budget_below_the_typical_cost_is_refused_unless_the_provider_stops_at_it() {
        let table = [
            (Some(50), Some(50), false, Ok(Some(50))),
            (Some(50), Some(80), false, Ok(Some(50))),
            (Some(50), Some(49), false, Err(())),
            (None, Some(49), false, Err(())),
            (Some(50), Some(49), true, Ok(Some(49))),
            (Some(50), Some(80), true, Ok(Some(80))),
            (None, Some(49), true, Ok(Some(49))),
            (Some(50), None, true, Ok(Some(50))),
        ];
        for (typical, budget, caps, expected) in table {
            let reservation = asked(typical, budget, caps);
            let got = may_spend(&reservation, NanoUsd(0), NOW);
            let got = got.map(|()| set_aside(&reservation)).map_err(|refused| {
                assert_eq!(refused.limit, BudgetLimit::Ask);
            });
            assert_eq!(got, expected.map(|cents| cents.map(usd)), "{typical:?} {budget:?} {caps}");
        }
    }

    /// G6: trying again helps where the run would fit into a day of its own.
    #[test]
    fn g6_the_next_day_helps_only_where_the_limit_is_larger_than_the_run() {
        for (typical, waits) in [(50, true), (101, false)] {
            let limits = SpendLimits { per_job: None, per_day: Some(usd(100)) };
            let reservation = Reservation { limits, ..asked(Some(typical), None, false) };
            let refused = may_spend(&reservation, usd(60), NOW).unwrap_err();
            let rest = NOW.day().next().begins().since(NOW);
            assert_eq!(refused.next_day, waits.then_some(rest), "{typical}");
        }
    }

    fn ended(checkpoint: Checkpoint, settlement: &Settlement) -> Option<ChargeState> {
        let (mut record, lease) = running(checkpoint.clone());
        settle(&mut record, &lease, settlement, NOW).unwrap();
        charge(&checkpoint, &record.job).map(|charge| charge.state)
    }

    /// G6: what each settlement does to the row.
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

    /// G6: a cancel releases only what was certainly not begun; what is known later counts.
    #[test]
    fn g6_a_cancel_keeps_what_may_have_been_spent() {
        use ChargeState::{Maybe, Released};
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let state = |record: &crate::Record| {
            charge(&record.job.checkpoint, &record.job).map(|charge| charge.state)
        };
        let table = [
            (Checkpoint::NotBegun, None, Released),
            (beginning.clone(), None, Maybe),
            (beginning.clone(), Some(RemoteStop::NotNeeded), Released),
            (beginning, Some(RemoteStop::MaybeBegun), Maybe),
            (Checkpoint::Running(remote()), None, Maybe),
            (Checkpoint::Running(remote()), Some(RemoteStop::Done), Maybe),
            (Checkpoint::Running(remote()), Some(RemoteStop::Unsupported), Maybe),
        ];
        for (checkpoint, stop, expected) in table {
            let (mut record, _) = running(checkpoint.clone());
            cancel(&mut record, NOW);
            if let Some(stop) = stop {
                record_stop(&mut record, stop, NOW).unwrap();
            }
            assert_eq!(state(&record), Some(expected), "{checkpoint:?} {stop:?}");
        }
    }

    #[test]
    fn g6_a_rescue_changes_nothing_and_a_restore_ends_what_may_have_been_paid_for() {
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let (mut record, _) = running(beginning.clone());
        rescue(&mut record, NOW);
        assert_eq!(charge(&beginning, &record.job), None);
        let never = Nature { again: Again::Never, resumes: Resumes::Always, stops: true };
        restore(&mut record, Some(never), NOW);
        let charge = charge(&beginning, &record.job).unwrap();
        assert_eq!(charge.state, ChargeState::Maybe);
    }

    /// G6: a run begun anew is a further row, on the day it is begun.
    #[test]
    fn g6_a_run_begun_anew_is_a_further_row() {
        let (mut record, lease) = running(Checkpoint::Running(remote()));
        let before = record.job.checkpoint.clone();
        let checkpoint = Checkpoint::NotBegun;
        let retry = Settlement::Retry { failure: failure(), wait: Duration::ZERO, checkpoint };
        settle(&mut record, &lease, &retry, NOW).unwrap();
        let owner = OwnerId::new("ann");
        let first = reserve(&asked(Some(50), None, false), record.job.id, &owner, NOW);
        let later = NOW.after(Duration::from_secs(86_400));
        let (first, second) = charge(&before, &record.job).unwrap().applied(&first, later);
        let second = second.unwrap();
        assert_eq!((first.state, first.counts(), first.run), (ChargeState::Maybe, usd(50), 1));
        assert_eq!(
            (second.state, second.counts(), second.run),
            (ChargeState::Reserved, usd(50), 2)
        );
        assert_eq!(second.at.day(), NOW.day().next());
    }

    /// G6: another job can take the run up by its name; a success tells model and cost.
    #[test]
    fn g6_what_is_left_of_a_run_is_found_by_its_name() {
        let (mut record, _) = running(Checkpoint::Running(remote()));
        record.job.state = JobState::Failed { at: NOW };
        record.job.failures = vec![Failure { run_goes_on: true, ..failure() }];
        let under_way = Checkpoint::Running(remote());
        let left = charge(&under_way, &record.job).unwrap();
        assert_eq!((left.state, left.remote.as_deref()), (ChargeState::Maybe, Some("resp_1")));
        let cost = Cost::Reported(usd(41));
        let output = Output { cost, model: Some("m".to_owned()), ..(*output()).clone() };
        record.job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        let row = reserve(&asked(Some(50), None, false), record.job.id, &OwnerId::new("ann"), NOW);
        let (spent, next) = charge(&under_way, &record.job).unwrap().applied(&row, NOW);
        assert_eq!((spent.counts(), spent.model.as_deref(), next), (usd(41), Some("m"), None));
        assert_eq!(left.applied(&row, NOW).0.remote.as_deref(), Some("resp_1"));
    }

    /// G6: the model that did the work is known where its price is not.
    #[test]
    fn g6_a_success_of_unknown_cost_tells_its_model() {
        let (mut record, _) = running(Checkpoint::Running(remote()));
        let output = Output { model: Some("m".to_owned()), ..(*output()).clone() };
        record.job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        let told = charge(&Checkpoint::Running(remote()), &record.job).unwrap();
        assert_eq!((told.state, told.model.as_deref()), (ChargeState::Maybe, Some("m")));
    }

    #[test]
    fn g6_the_ledger_is_kept_for_400_days() {
        let day =
            |day: u64| Timestamp::from_millis(1_000_000).after(Duration::from_secs(day * 86_400));
        assert_eq!(ledger_begins(day(1_000)), day(600).day());
    }
}
