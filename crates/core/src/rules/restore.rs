//! The decision about an unfinished job when a backup becomes the store again. The original store was in use after the
//! backup, so any job that the backup has not finished may have been run, and paid for, since.

use super::approach::must_give_up;
use super::failures;
use super::rescue::rescue;
use crate::{
    Checkpoint, Code, JobState, Record, RecoverySemantics, ResendPolicy, ResumePolicy, Timestamp,
};

/// The decision about a job that the backup had not finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoredOutcome {
    /// It ended with SUBMIT_UNKNOWN: running it could pay for it a second time.
    Ended,
    /// Its remote run is recorded: a worker resumes that run and begins no other.
    Resumes,
    /// Running it twice is safe: it waits for a worker, as before.
    RunsOn,
}

/// Decides about one job and changes it; `None` for a job that has ended. `semantics` is the recovery semantics of its
/// request, or `None` if no provider for its profile is configured: then it counts as paid for.
pub fn restore(
    record: &mut Record,
    semantics: Option<RecoverySemantics>,
    now: Timestamp,
) -> Option<RestoredOutcome> {
    match record.job.state {
        JobState::Queued { .. } | JobState::Running { .. } => {}
        JobState::Succeeded { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
            return None;
        }
    }
    let is_paid = record.job.allowance.is_some();
    let fate = fate(&record.job.checkpoint, semantics, is_paid);
    rescue(record, now);
    match fate {
        RestoredOutcome::RunsOn => {}
        // Another run may have followed since the backup, if this one failed or the provider forgot it. So no further
        // attempt is made without a person.
        RestoredOutcome::Resumes => {
            let failures = u32::try_from(record.job.failures.len()).unwrap_or(u32::MAX);
            record.job.new.max_failures = record.job.new.max_failures.min(failures);
        }
        RestoredOutcome::Ended => {
            let failure = failures::plain(Code::SubmitUnknown, RESTORED, now);
            // The backup does not know how many times it was sent since.
            let semantics = RecoverySemantics {
                resend: ResendPolicy::Never,
                resume: ResumePolicy::Never,
                can_stop: false,
            };
            let failure = failures::submit_unknown(&record.job, semantics, failure);
            record.job.failures.push(failure);
            record.job.state = JobState::Failed { at: now };
        }
    }
    Some(fate)
}

const RESTORED: &str = "the store was restored from a backup that was made before this job ended, and the job may have run since";

fn fate(
    checkpoint: &Checkpoint,
    semantics: Option<RecoverySemantics>,
    is_paid: bool,
) -> RestoredOutcome {
    let from_journal =
        semantics.is_some_and(|semantics| semantics.resume == ResumePolicy::FromJournal);
    if from_journal && is_paid {
        // Steps that were bought after the backup are missing from the journal (K3).
        return RestoredOutcome::Ended;
    }
    let is_safe = semantics.is_some_and(|semantics| semantics.resend == ResendPolicy::Idempotent);
    match checkpoint {
        _ if is_safe => RestoredOutcome::RunsOn,
        Checkpoint::Running(_)
            if semantics.is_some_and(|semantics| must_give_up(checkpoint, semantics)) =>
        {
            RestoredOutcome::Ended
        }
        Checkpoint::Running(_) => RestoredOutcome::Resumes,
        Checkpoint::NotBegun | Checkpoint::Beginning { .. } => RestoredOutcome::Ended,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::tests::{NOW, failure, queued, remote, running};
    use crate::{RunAllowance, SpendTerms};

    const LATER: Timestamp = Timestamp::from_millis(2_000_000);

    /// Promise 4: a job continues only if it is free, or if the provider can be asked about it.
    #[test]
    fn b9a_what_a_backup_had_not_finished_is_not_bought_again() {
        let semantics = |again, resumes| {
            Some(RecoverySemantics { resend: again, resume: resumes, can_stop: true })
                as Option<RecoverySemantics>
        };
        let beginning = || Checkpoint::Beginning { key: "k".to_owned() };
        let under_way = || Checkpoint::Running(remote());
        let cases = [
            (
                Checkpoint::NotBegun,
                semantics(ResendPolicy::Never, ResumePolicy::Always),
                RestoredOutcome::Ended,
            ),
            (
                Checkpoint::NotBegun,
                semantics(ResendPolicy::WithKey, ResumePolicy::Always),
                RestoredOutcome::Ended,
            ),
            (
                Checkpoint::NotBegun,
                semantics(ResendPolicy::Idempotent, ResumePolicy::Never),
                RestoredOutcome::RunsOn,
            ),
            (Checkpoint::NotBegun, None, RestoredOutcome::Ended),
            (
                beginning(),
                semantics(ResendPolicy::Never, ResumePolicy::Always),
                RestoredOutcome::Ended,
            ),
            (
                beginning(),
                semantics(ResendPolicy::WithKey, ResumePolicy::Always),
                RestoredOutcome::Ended,
            ),
            (
                beginning(),
                semantics(ResendPolicy::Idempotent, ResumePolicy::Never),
                RestoredOutcome::RunsOn,
            ),
            (beginning(), None, RestoredOutcome::Ended),
            (
                under_way(),
                semantics(ResendPolicy::Never, ResumePolicy::Always),
                RestoredOutcome::Resumes,
            ),
            (
                under_way(),
                semantics(ResendPolicy::Never, ResumePolicy::Never),
                RestoredOutcome::Ended,
            ),
            (
                under_way(),
                semantics(ResendPolicy::Idempotent, ResumePolicy::Never),
                RestoredOutcome::RunsOn,
            ),
            (under_way(), None, RestoredOutcome::Resumes),
        ];
        for (checkpoint, semantics, expected) in cases {
            let (mut held, _) = running(checkpoint.clone());
            let mut waiting = queued();
            waiting.job.checkpoint = checkpoint.clone();
            for record in [&mut held, &mut waiting] {
                record.job.failures.push(failure());
                let got = restore(record, semantics, LATER);
                assert_eq!(got, Some(expected), "{checkpoint:?} {semantics:?}");
                let job = &record.job;
                assert_eq!((&record.holder, &job.progress), (&None, &None), "{checkpoint:?}");
                assert_eq!(job.updated_at, LATER);
                match expected {
                    RestoredOutcome::Ended => {
                        assert_eq!(job.state, JobState::Failed { at: LATER });
                        let last = job.failures.last().unwrap();
                        assert_eq!(last.code, Code::SubmitUnknown);
                        assert!(last.message.contains("restored"), "{last:?}");
                    }
                    RestoredOutcome::Resumes => {
                        assert_eq!(job.state, JobState::Queued { run_at: LATER });
                        assert_eq!(job.checkpoint, checkpoint);
                        assert_eq!(job.new.max_failures, 1, "no further try by itself");
                    }
                    RestoredOutcome::RunsOn => {
                        assert_eq!(job.state, JobState::Queued { run_at: LATER });
                        assert_eq!(job.new.max_failures, 2);
                    }
                }
            }
        }
    }

    /// K3: the journal of a backup lacks the steps that were bought after it.
    #[test]
    fn k3_a_paid_run_of_steps_needs_consent_after_a_restore() {
        let semantics = RecoverySemantics {
            resend: ResendPolicy::Idempotent,
            resume: ResumePolicy::FromJournal,
            can_stop: true,
        };
        let terms = SpendTerms::default();
        let paid = Some(RunAllowance { cap: None, terms });
        for (allowance, expected) in
            [(paid, RestoredOutcome::Ended), (None, RestoredOutcome::RunsOn)]
        {
            for checkpoint in [Checkpoint::NotBegun, Checkpoint::Running(remote())] {
                let mut record = running(checkpoint).0;
                record.job.allowance = allowance;
                assert_eq!(restore(&mut record, Some(semantics), LATER), Some(expected));
            }
        }
    }

    #[test]
    fn what_had_ended_stays_as_it_was() {
        let mut record = queued();
        record.job.state = JobState::Failed { at: NOW };
        let before = record.clone();
        assert_eq!(restore(&mut record, None, LATER), None);
        assert_eq!(record, before);
    }
}
