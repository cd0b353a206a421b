//! Money: the amount that a start reserves, the reasons to refuse a start, and the effect of each step of a job on
//! the ledger row of its run (G6). The table "Money" of docs/spending.md states the same in words.

use crate::{
    BudgetLimit, BudgetRefusal, ChargeState, Checkpoint, Cost, CountedSpend, Day, Job, JobId,
    JobState, LedgerRow, NanoUsd, OwnerId, Record, RemoteStop, Reservation, RunAllowance,
    RunStatus, SpendTerms, Timestamp,
};

/// The number of days that a row of the ledger is kept.
const LEDGER_DAYS: i64 = 400;

/// The number of consecutive UTC days on which old rows must have been found before any is removed. One start with a
/// wrong clock must not erase the ledger.
const SWEEP_DAYS: i64 = 8;

/// Returns the last day whose rows are old enough to be removed one day. A sweep that finds such rows is recorded.
pub fn ledger_old_until(today: Day) -> Day {
    Day(today.0.saturating_sub(LEDGER_DAYS))
}

/// Returns the last day whose rows may be removed now; `None` if a day is missing. `sweeps` must record sweeps on
/// consecutive days up to this one, each long enough after that last day.
pub fn ledger_removable_until(sweeps: &[Day], today: Day) -> Option<Day> {
    let first = Day(today.0.saturating_sub(SWEEP_DAYS - 1));
    let mut days = (first.0..=today.0).map(Day);
    days.all(|day| sweeps.contains(&day)).then(|| ledger_old_until(first))
}

/// Returns the first day whose record of a sweep is still needed.
pub fn sweeps_needed_from(today: Day) -> Day {
    Day(today.0.saturating_sub(SWEEP_DAYS))
}

/// Returns the amount that may have been spent on a job whose cost is not known.
pub fn maybe_spent(job: &Job) -> NanoUsd {
    let is_maybe = charge(&job.checkpoint, job)
        .is_some_and(|charge| matches!(charge.state, ChargeState::Maybe));
    match &job.allowance {
        Some(allowance) if is_maybe => reserved_amount(allowance).unwrap_or_default(),
        Some(_) | None => NanoUsd::default(),
    }
}

/// One cent. The vendors that cap a run count in cents.
const CENT: u64 = 10_000_000;

/// Decides whether a paid run may begin and how much it may cost.
///
/// A limit refuses the run if less than the typical cost is left of it. A limit of zero always refuses, and so does
/// every limit if the typical cost is not known. Otherwise the cap is the smallest of the budget, the limits and the
/// provider's default, rounded down to a cent. A budget below the typical cost refuses the run only if the provider
/// cannot stop the run there.
pub(super) fn may_spend(
    terms: &SpendTerms,
    counted: CountedSpend,
    now: Timestamp,
) -> Result<RunAllowance, BudgetRefusal> {
    let SpendTerms { typical, budget, default_cap, limits } = *terms;
    let refused = |limit, allowed: Option<NanoUsd>, counted| BudgetRefusal {
        limit,
        allowed: allowed.unwrap_or_default(),
        typical,
        counted,
        next_day: None,
    };
    // A run that is stopped at its budget needs no more than its budget.
    let needed_of_budget = match default_cap {
        Some(_) => budget.map(|budget| budget.min(typical.unwrap_or(NanoUsd(CENT)))),
        None => typical,
    };
    if !has_left(budget, counted.job, needed_of_budget) {
        return Err(refused(BudgetLimit::Ask, budget, counted.job));
    }
    if !has_left(limits.per_job, counted.job, typical) {
        return Err(refused(BudgetLimit::Job, limits.per_job, counted.job));
    }
    if !has_left(limits.per_day, counted.day, typical) {
        let next_day = has_left(limits.per_day, NanoUsd::default(), typical)
            .then(|| now.day().next().begins().since(now));
        return Err(BudgetRefusal {
            next_day,
            ..refused(BudgetLimit::Day, limits.per_day, counted.day)
        });
    }
    let cap = default_cap.map(|default_cap| {
        let left = |limit: Option<NanoUsd>, counted| limit.map(|limit| left(limit, counted));
        let smaller = [
            left(budget, counted.job),
            left(limits.per_job, counted.job),
            left(limits.per_day, counted.day),
        ];
        whole_cents(smaller.into_iter().flatten().fold(default_cap, NanoUsd::min))
    });
    Ok(RunAllowance { cap, terms: *terms })
}

/// Returns the amount that is reserved for a run: its whole cap, otherwise its typical cost.
pub fn reserved_amount(allowance: &RunAllowance) -> Option<NanoUsd> {
    allowance.cap.or(allowance.terms.typical)
}

/// Returns the allowance of a job that resumes a paid run. Nothing is decided, because nothing is bought.
pub(super) fn allowance_of_resumed(terms: &SpendTerms) -> RunAllowance {
    RunAllowance { cap: lowest_cap(terms), terms: *terms }
}

/// Returns the cap of a job that an older version stored without one.
pub fn lowest_cap(terms: &SpendTerms) -> Option<NanoUsd> {
    let SpendTerms { typical: _, budget, default_cap, limits } = *terms;
    let limits = [budget, limits.per_job, limits.per_day].into_iter().flatten();
    default_cap.map(|default_cap| whole_cents(limits.fold(default_cap, NanoUsd::min)))
}

fn left(limit: NanoUsd, counted: NanoUsd) -> NanoUsd {
    NanoUsd(limit.0.saturating_sub(counted.0))
}

fn has_left(limit: Option<NanoUsd>, counted: NanoUsd, needed: Option<NanoUsd>) -> bool {
    match (limit, needed) {
        (None, _) => true,
        (Some(_), None) | (Some(NanoUsd(0)), _) => false,
        (Some(limit), Some(needed)) => counted.0.saturating_add(needed.0) <= limit.0,
    }
}

fn whole_cents(amount: NanoUsd) -> NanoUsd {
    NanoUsd(amount.0 - amount.0 % CENT)
}

/// Returns whether a step queued the job for another paid run, after one that ended without a result. `before` is the
/// checkpoint that the step found.
pub fn begins_another_run(before: &Checkpoint, job: &Job) -> bool {
    job.allowance.is_some()
        && matches!(before, Checkpoint::Running(_))
        && matches!(job.state, JobState::Queued { .. })
        && job.checkpoint == Checkpoint::NotBegun
}

/// Limits another run of the job by the terms of the first. If a limit has not enough left, the run is not begun, and
/// the job fails with the error of the previous run.
pub fn reserve_another_run(record: &mut Record, counted: CountedSpend, now: Timestamp) {
    let job = &mut record.job;
    let Some(RunAllowance { terms, .. }) = &job.allowance else { return };
    match may_spend(terms, counted, now) {
        Ok(allowance) => job.allowance = Some(allowance),
        Err(refusal) => {
            if let Some(failure) = job.failures.last_mut() {
                let reason = refusal.of_another_run();
                failure.message =
                    format!("{}; no other run was started: {reason}", failure.message);
            }
            record.enter(JobState::Failed { at: now }, now);
        }
    }
}

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
    pub fn applied(
        &self,
        row: &LedgerRow,
        allowance: Option<&RunAllowance>,
        now: Timestamp,
    ) -> (LedgerRow, Option<LedgerRow>) {
        let Self { state, cost, model, remote, run_id, another_follows } = self.clone();
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
        (LedgerRow { state, cost, model, remote, run_id, ..row.clone() }, next)
    }
}

/// Returns the effect of a step of a job on the row of its latest run; `None` if nothing new is known of the run.
/// `before` is the checkpoint that the step found.
pub fn charge(before: &Checkpoint, job: &Job) -> Option<RunCharge> {
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
            Some(RunCharge { another_follows: true, run_id, ..charge_of_failed_run(job) })
        }
        JobState::Queued { .. } | JobState::Running { .. } => None,
        JobState::Succeeded { output, .. } => {
            let (cost, model) = (output.cost, output.model.clone());
            Some(match cost.amount() {
                Some(_) => RunCharge { model, run_id, ..spent(cost) },
                None => RunCharge { model, run_id, ..maybe() },
            })
        }
        // If a request may have been accepted, the job needs consent. Every other request without a run was refused,
        // or never sent.
        JobState::Failed { .. } if had_a_run || job.needs_consent() => {
            Some(RunCharge { remote, run_id, ..charge_of_failed_run(job) })
        }
        JobState::Failed { .. } | JobState::Cancelled { remote: RemoteStop::NotNeeded, .. } => {
            Some(released())
        }
        JobState::Cancelled { remote: RemoteStop::Completed, cost, .. }
            if cost.amount().is_some() =>
        {
            Some(RunCharge { remote, run_id, ..spent(*cost) })
        }
        JobState::Cancelled { remote: RemoteStop::Ended, cost, .. } if cost.is_known() => {
            Some(RunCharge { remote, run_id, ..spent(*cost) })
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
        Some(RunStatus::Ended(cost)) if cost.is_known() => spent(cost),
        Some(RunStatus::NotCharged) if !job.needs_consent() => released(),
        Some(RunStatus::Unknown | RunStatus::NotCharged | RunStatus::Ended(_)) | None => maybe(),
    }
}

fn spent(cost: Cost) -> RunCharge {
    RunCharge { state: ChargeState::Spent, cost, ..maybe() }
}

fn released() -> RunCharge {
    RunCharge { state: ChargeState::Released, ..maybe() }
}

fn maybe() -> RunCharge {
    RunCharge {
        state: ChargeState::Maybe,
        cost: Cost::Unknown,
        model: None,
        remote: None,
        run_id: None,
        another_follows: false,
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
        SpendLimits,
    };

    fn usd(cents: u64) -> NanoUsd {
        NanoUsd(cents * CENT)
    }

    fn asked(cents: u64) -> Reservation {
        Reservation {
            provider: "perplexity".to_owned(),
            model: None,
            terms: SpendTerms { typical: Some(usd(cents)), ..SpendTerms::default() },
        }
    }

    fn of_day(cents: u64) -> CountedSpend {
        CountedSpend { day: usd(cents), job: NanoUsd(0) }
    }

    fn uncapped(terms: &SpendTerms) -> RunAllowance {
        RunAllowance { cap: None, terms: *terms }
    }

    /// G6: in cents, the typical cost, the limit of a job, that of a day, and the sum that counts already.
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
            for default_cap in [None, Some(usd(200))] {
                let typical = typical.map(usd);
                let terms = SpendTerms { limits, typical, default_cap, ..SpendTerms::default() };
                let got =
                    may_spend(&terms, of_day(counted), NOW).err().map(|refused| refused.limit);
                assert_eq!(got, expected, "{terms:?} {counted}");
            }
        }
    }

    /// G6: a budget refuses the run if the provider does not stop at it; otherwise the whole cap is reserved.
    #[test]
    fn g6_a_budget_below_the_typical_cost_is_refused_unless_the_provider_stops_at_it() {
        let table = [
            (Some(50), Some(50), None, Ok(Some(50))),
            (Some(50), Some(80), None, Ok(Some(50))),
            (Some(50), Some(49), None, Err(())),
            (None, Some(49), None, Err(())),
            (Some(50), Some(49), Some(200), Ok(Some(49))),
            (Some(50), Some(80), Some(200), Ok(Some(80))),
            (None, Some(49), Some(200), Ok(Some(49))),
            (Some(50), None, Some(200), Ok(Some(200))),
            (Some(50), Some(1_500), Some(200), Ok(Some(200))),
        ];
        for (typical, budget, default_cap, expected) in table {
            let [typical, budget, default_cap] =
                [typical, budget, default_cap].map(|cents| cents.map(usd));
            let terms = SpendTerms { typical, budget, default_cap, limits: SpendLimits::default() };
            let got = may_spend(&terms, CountedSpend::default(), NOW);
            let got = got.map(|allowance| reserved_amount(&allowance)).map_err(|refused| {
                assert_eq!(refused.limit, BudgetLimit::Ask);
            });
            assert_eq!(got, expected.map(|cents| cents.map(usd)), "{terms:?}");
        }
    }

    /// G6: the smallest of budget, limits and default, rounded down to whole cents. Amounts are in tenths of a cent.
    #[test]
    fn g6_the_cap_of_a_run_is_the_smallest_of_budget_limits_and_default() {
        let tenths = |amount: u64| NanoUsd(amount * CENT / 10);
        let table = [
            (None, None, None, 0, 2_000),
            (Some(1_500), None, None, 0, 1_500),
            (Some(15_000), None, None, 0, 2_000),
            (None, Some(1_209), None, 0, 1_200),
            (None, None, Some(5_000), 2_000, 2_000),
            (None, None, Some(5_000), 3_994, 1_000),
            (Some(1_999), Some(1_500), Some(5_000), 3_600, 1_400),
        ];
        for (budget, per_job, per_day, counted, expected) in table {
            let limits = SpendLimits { per_job: per_job.map(tenths), per_day: per_day.map(tenths) };
            let terms = SpendTerms {
                typical: Some(tenths(1_000)),
                budget: budget.map(tenths),
                default_cap: Some(tenths(2_000)),
                limits,
            };
            let counted = CountedSpend { day: tenths(counted), job: NanoUsd(0) };
            let allowance = may_spend(&terms, counted, NOW).unwrap();
            assert_eq!(allowance.cap, Some(tenths(expected)), "{terms:?}");
            assert_eq!(reserved_amount(&allowance), allowance.cap, "{terms:?}");
        }
    }

    /// G6: another run of a job is limited by the possible cost of its earlier runs.
    #[test]
    fn g6_another_run_of_a_job_is_bounded_by_the_limits_of_the_first() {
        let table = [
            (None, None, None, Ok(Some(200))),
            (None, Some(300), None, Ok(Some(100))),
            (None, Some(299), None, Err("$2.00 of the $2.99 that one job may cost")),
            (Some(200), None, None, Err("$2.00 of its budget of $2.00")),
            (None, None, Some(500), Ok(Some(150))),
            (None, None, Some(449), Err("$3.50 of the $4.49 for this day (UTC)")),
        ];
        for (budget, per_job, per_day, expected) in table {
            let limits = SpendLimits { per_job: per_job.map(usd), per_day: per_day.map(usd) };
            let terms = SpendTerms {
                typical: Some(usd(100)),
                budget: budget.map(usd),
                default_cap: Some(usd(200)),
                limits,
            };
            let (mut record, lease) = running(Checkpoint::Running(remote()));
            record.job.allowance = Some(RunAllowance { cap: Some(usd(200)), terms });
            let before = record.job.checkpoint.clone();
            let checkpoint = Checkpoint::NotBegun;
            let retry = Settlement::Retry { failure: failure(), wait: Duration::ZERO, checkpoint };
            settle(&mut record, &lease, &retry, NOW).unwrap();
            assert!(begins_another_run(&before, &record.job));
            let counted = CountedSpend { day: usd(350), job: usd(200) };
            reserve_another_run(&mut record, counted, NOW);
            match (&record.job.state, expected) {
                (JobState::Queued { .. }, Ok(cap)) => {
                    let allowance = record.job.allowance.unwrap();
                    assert_eq!(allowance.cap, cap.map(usd), "{terms:?}");
                }
                (JobState::Failed { .. }, Err(reason)) => {
                    let failure = record.job.failures.last().unwrap();
                    assert!(failure.message.contains(reason), "{failure:?}");
                    let charge = charge(&before, &record.job).unwrap();
                    assert_eq!((charge.state, charge.another_follows), (ChargeState::Maybe, false));
                }
                (state, _) => panic!("{terms:?}: {state:?}"),
            }
        }
    }

    /// G6: a job that an older version inserted has no cap; it gets the lowest known limit.
    #[test]
    fn g6_a_job_without_a_stored_cap_gets_the_lowest_limit() {
        let limits = SpendLimits { per_job: Some(usd(120)), per_day: Some(usd(90)) };
        let default_cap = Some(usd(200));
        let terms = SpendTerms { default_cap, limits, ..SpendTerms::default() };
        assert_eq!(lowest_cap(&terms), Some(usd(90)));
        assert_eq!(lowest_cap(&SpendTerms { default_cap: None, ..terms }), None);
    }

    /// G6: waiting for the next day helps if a whole day's limit has room for the run.
    #[test]
    fn g6_the_next_day_helps_only_where_the_limit_is_larger_than_the_run() {
        for (typical, waits) in [(50, true), (101, false)] {
            let limits = SpendLimits { per_job: None, per_day: Some(usd(100)) };
            let terms = SpendTerms { limits, ..asked(typical).terms };
            let refused = may_spend(&terms, of_day(60), NOW).unwrap_err();
            let rest = NOW.day().next().begins().since(NOW);
            assert_eq!(refused.next_day, waits.then_some(rest), "{typical}");
        }
    }

    fn ended(checkpoint: Checkpoint, settlement: &Settlement) -> Option<ChargeState> {
        let (mut record, lease) = running(checkpoint.clone());
        settle(&mut record, &lease, settlement, NOW).unwrap();
        charge(&checkpoint, &record.job).map(|charge| charge.state)
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
            charge(&record.job.checkpoint, &record.job).map(|charge| charge.state)
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
        assert_eq!(charge(&beginning, &record.job), None);
        let never = RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        };
        restore(&mut record, Some(never), NOW);
        let charge = charge(&beginning, &record.job).unwrap();
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
            charge(&before, &record.job).unwrap().applied(&first, Some(&allowance), later);
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
        let left = charge(&under_way, &record.job).unwrap();
        assert_eq!((left.state, left.remote.as_deref()), (ChargeState::Maybe, Some("resp_1")));
        let cost = Cost::Reported(usd(41));
        let output = Output { cost, model: Some("m".to_owned()), ..(*output()).clone() };
        record.job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        let reservation = asked(50);
        let allowance = uncapped(&reservation.terms);
        let row = reserve(&reservation, &allowance, record.job.id, &OwnerId::new("ann"), NOW);
        let (spent, next) = charge(&under_way, &record.job).unwrap().applied(&row, None, NOW);
        assert_eq!((spent.counts(), spent.model.as_deref(), next), (usd(41), Some("m"), None));
        assert_eq!(left.applied(&row, None, NOW).0.remote.as_deref(), Some("resp_1"));
    }

    /// G6: the model that did the work is known even if its price is not.
    #[test]
    fn g6_a_success_of_unknown_cost_names_its_model() {
        let (mut record, _) = running(Checkpoint::Running(remote()));
        let output = Output { model: Some("m".to_owned()), ..(*output()).clone() };
        record.job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        let told = charge(&Checkpoint::Running(remote()), &record.job).unwrap();
        assert_eq!((told.state, told.model.as_deref()), (ChargeState::Maybe, Some("m")));
    }

    /// G6: a row of day 0 is removed after eight sweeps on consecutive days from day 400 on.
    #[test]
    fn g6_a_row_is_removed_only_after_sweeps_on_eight_consecutive_days() {
        let removable = |sweeps: &[i64], today| {
            let sweeps: Vec<Day> = sweeps.iter().copied().map(Day).collect();
            ledger_removable_until(&sweeps, Day(today))
        };
        assert_eq!(ledger_old_until(Day(400)), Day(0));
        let days: Vec<i64> = (400..=407).collect();
        assert_eq!(removable(&days, 407), Some(Day(0)));
        assert_eq!(removable(&days[1..], 407), None, "seven days");
        assert_eq!(removable(&[401, 400, 402, 404, 405, 406, 407, 408], 408), None, "a gap");
        assert_eq!(removable(&days, 408), None, "today is not recorded");
        assert_eq!(removable(&[5_000], 5_000), None, "a clock that is far ahead once");
        assert!(sweeps_needed_from(Day(407)) <= Day(400));
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
