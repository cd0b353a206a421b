//! The cap of a paid run: the amount that it may cost, and the reasons to refuse it (G6). docs/spending.md states the
//! same in words.

use crate::{
    BudgetLimit, BudgetRefusal, Checkpoint, CountedSpend, Job, JobState, NanoUsd, Record,
    RunAllowance, SpendTerms, Timestamp,
};

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
        let left = |limit: Option<NanoUsd>, counted| limit.map(|limit| remaining(limit, counted));
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

fn remaining(limit: NanoUsd, counted: NanoUsd) -> NanoUsd {
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
                let reason = refusal.another_run_reason();
                failure.message =
                    format!("{}; no other run was started: {reason}", failure.message);
            }
            record.enter(JobState::Failed { at: now }, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, failure, remote, running};
    use crate::rules::{charge, settle};
    use crate::{ChargeState, Settlement, SpendLimits};

    fn usd(cents: u64) -> NanoUsd {
        NanoUsd(cents * CENT)
    }

    fn of_day(cents: u64) -> CountedSpend {
        CountedSpend { day: usd(cents), job: NanoUsd(0) }
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
                    let charge = charge(&before, &record.job, None).unwrap();
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
            let terms = SpendTerms { limits, typical: Some(usd(typical)), ..SpendTerms::default() };
            let refused = may_spend(&terms, of_day(60), NOW).unwrap_err();
            let rest = NOW.day().next().begins().since(NOW);
            assert_eq!(refused.next_day, waits.then_some(rest), "{typical}");
        }
    }
}
