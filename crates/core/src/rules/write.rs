//! The writes of the worker that holds a job. Each of them presents its lease.

use crate::rules::question::park;
use crate::rules::settlement_bytes;
use crate::{Checkpoint, JobState, Lease, Progress, Record, Settlement, StoreError, Timestamp};

/// Refuses a lease that is not the current one.
pub fn check_lease(record: &Record, lease: &Lease) -> Result<(), StoreError> {
    let mine = record.job.fence == lease.fence
        && record.holder.as_ref().is_some_and(|holder| holder.worker == lease.worker);
    if mine { Ok(()) } else { Err(StoreError::LeaseLost) }
}

/// Records the progress of the work for the next worker.
pub fn checkpoint(
    record: &mut Record,
    lease: &Lease,
    checkpoint: &Checkpoint,
    now: Timestamp,
) -> Result<(), StoreError> {
    check_lease(record, lease)?;
    record.job.checkpoint = checkpoint.clone();
    record.job.updated_at = now;
    Ok(())
}

/// Shows progress, which never decreases within an attempt.
pub fn show_progress(
    record: &mut Record,
    lease: &Lease,
    progress: &Progress,
    now: Timestamp,
) -> Result<(), StoreError> {
    check_lease(record, lease)?;
    let shown = record.job.progress.as_ref().and_then(|progress| progress.percent);
    record.job.progress =
        Some(Progress { percent: progress.percent.max(shown), message: progress.message.clone() });
    record.job.updated_at = now;
    Ok(())
}

/// Shows the text so far (G8). Not a change: the times of the job stay the same.
pub fn show_text(record: &mut Record, lease: &Lease, text: &str) -> Result<(), StoreError> {
    check_lease(record, lease)?;
    record.job.partial = Some(text.into());
    Ok(())
}

/// Ends an attempt.
pub fn settle(
    record: &mut Record,
    lease: &Lease,
    settlement: &Settlement,
    now: Timestamp,
) -> Result<(), StoreError> {
    check_lease(record, lease)?;
    let job = &mut record.job;
    let state = match settlement {
        Settlement::Succeed { output, raw: _ } => {
            JobState::Succeeded { at: now, output: output.clone() }
        }
        Settlement::Retry { failure, wait, checkpoint } => {
            job.failures.push(failure.clone());
            job.checkpoint = checkpoint.clone();
            JobState::Queued { run_at: now.after(*wait) }
        }
        Settlement::Fail { failure, raw: _ } => {
            job.failures.push(failure.clone());
            JobState::Failed { at: now }
        }
        Settlement::Release => JobState::Queued { run_at: now },
        Settlement::Wait => park(record, now),
    };
    record.enter(state, now);
    record.bytes += settlement_bytes(settlement);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, failure, output, remote, running};
    use crate::rules::{cancel, rescue};
    use crate::{Fence, StateKind, WorkerId};

    #[test]
    fn a_stale_lease_can_write_nothing() {
        let (record, lease) = running(Checkpoint::NotBegun);
        let mut cancelled = record.clone();
        cancel(&mut cancelled, NOW);
        let mut rescued = record.clone();
        rescue(&mut rescued, NOW);
        let stale = [
            ("older fence", record.clone(), Lease { fence: Fence(0), ..lease.clone() }),
            ("other worker", record, Lease { worker: WorkerId::new("x"), ..lease.clone() }),
            ("cancelled", cancelled, lease.clone()),
            ("rescued", rescued, lease),
        ];
        for (name, record, lease) in stale {
            let mut after = record.clone();
            let progress = Progress { percent: Some(1), message: String::new() };
            let running = Checkpoint::Running(remote());
            assert!(checkpoint(&mut after, &lease, &running, NOW).is_err(), "{name}");
            assert!(show_progress(&mut after, &lease, &progress, NOW).is_err(), "{name}");
            assert!(show_text(&mut after, &lease, "t").is_err(), "{name}");
            assert!(settle(&mut after, &lease, &Settlement::Release, NOW).is_err(), "{name}");
            assert_eq!(after, record, "{name}: a refused write leaves no trace");
        }
    }

    #[test]
    fn progress_never_goes_down_within_a_try() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        for (given, shown) in
            [(Some(25), Some(25)), (Some(50), Some(50)), (Some(30), Some(50)), (None, Some(50))]
        {
            let progress = Progress { percent: given, message: "m".to_owned() };
            show_progress(&mut record, &lease, &progress, NOW).unwrap();
            assert_eq!(record.job.progress.as_ref().unwrap().percent, shown, "{given:?}");
        }
    }

    /// G8: the text is kept until the attempt ends, and does not change the times of the job.
    #[test]
    fn g8_a_text_is_shown_until_the_try_ends() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        let moved = record.job.updated_at;
        show_text(&mut record, &lease, "so far").unwrap();
        assert_eq!(record.job.partial.as_deref(), Some("so far"));
        assert_eq!(record.job.updated_at, moved);
        settle(&mut record, &lease, &Settlement::Release, NOW).unwrap();
        assert_eq!(record.job.partial, None);
    }

    #[test]
    fn what_a_settlement_stores_is_added_to_the_size_of_the_job() {
        let (mut record, lease) = running(Checkpoint::NotBegun);
        record.bytes = 1_000;
        let success = Settlement::Succeed { output: output(), raw: None };
        settle(&mut record, &lease, &success, NOW).unwrap();
        assert_eq!(record.bytes, 1_000 + settlement_bytes(&success));
    }

    #[test]
    fn each_settlement_leaves_its_state_and_ends_the_lease() {
        let wait = Duration::from_secs(2);
        let retry =
            Settlement::Retry { failure: failure(), wait, checkpoint: Checkpoint::NotBegun };
        let cases = [
            (Settlement::Succeed { output: output(), raw: None }, StateKind::Succeeded, 0),
            (retry, StateKind::Queued, 1),
            (Settlement::Fail { failure: failure(), raw: None }, StateKind::Failed, 1),
            (Settlement::Release, StateKind::Queued, 0),
        ];
        for (settlement, kind, failures) in cases {
            let (mut record, lease) = running(Checkpoint::Running(remote()));
            settle(&mut record, &lease, &settlement, NOW).unwrap();
            assert_eq!(record.job.state.kind(), kind, "{settlement:?}");
            assert_eq!(record.job.failures.len(), failures, "{settlement:?}");
            assert_eq!(record.holder, None, "{settlement:?}");
            assert!(
                settle(&mut record, &lease, &settlement, NOW).is_err(),
                "settled twice: {settlement:?}"
            );
        }
    }

    #[test]
    fn a_released_job_keeps_its_remote_run() {
        let (mut record, lease) = running(Checkpoint::Running(remote()));
        settle(&mut record, &lease, &Settlement::Release, NOW).unwrap();
        assert_eq!(record.job.checkpoint, Checkpoint::Running(remote()));
    }
}
