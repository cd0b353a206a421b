//! The rescue of a job whose worker is dead, or taken for dead: it returns to the state Queued with its checkpoint,
//! and no attempt is spent.

use crate::{Checkpoint, JobId, JobState, Record, Timestamp, WorkerId};

/// Returns whether a running job may return to the queue because its lease has ended.
///
/// A job at [`Checkpoint::Beginning`] stays with a worker that is known to be running: that worker is only slow, and
/// a second worker that sends the request now could buy the same research twice.
pub fn lease_is_void(
    record: &Record,
    is_known_to_live: impl FnOnce(&WorkerId) -> bool,
    now: Timestamp,
) -> bool {
    let Some(holder) = record.holder.as_ref().filter(|holder| holder.until <= now) else {
        return false;
    };
    match record.job.checkpoint {
        Checkpoint::Beginning { .. } => !is_known_to_live(&holder.worker),
        Checkpoint::NotBegun | Checkpoint::Running(_) => true,
    }
}

/// Returns whether a running job is recorded with a live worker that does not hold it. A lease that has not ended may
/// belong to a claim whose answer is still on its way to the worker.
pub fn is_unheld(record: &Record, worker: &WorkerId, held: &[JobId], now: Timestamp) -> bool {
    let holder = record.holder.as_ref();
    holder.is_some_and(|holder| holder.worker == *worker && holder.until <= now)
        && !held.contains(&record.job.id)
}

/// Returns a running job to the queue. The next worker decides what its checkpoint means: see
/// [`approach`](fn@super::approach).
pub fn rescue(record: &mut Record, now: Timestamp) {
    record.enter(JobState::Queued { run_at: now }, now);
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, queued, remote, running};

    /// B9a: the table of the rule.
    #[test]
    fn b9a_a_request_on_its_way_stays_with_a_live_worker_whatever_its_lease() {
        let beginning = || Checkpoint::Beginning { key: "k".to_owned() };
        let end = NOW.after(Duration::from_secs(30));
        let early = NOW.after(Duration::from_secs(29));
        let cases = [
            (Checkpoint::NotBegun, end, true, true),
            (Checkpoint::Running(remote()), end, true, true),
            (beginning(), end, true, false),
            (beginning(), end, false, true),
            (beginning(), early, false, false),
            (Checkpoint::NotBegun, early, false, false),
        ];
        for (checkpoint, now, alive, expected) in cases {
            let record = running(checkpoint.clone()).0;
            let got = lease_is_void(&record, |_| alive, now);
            assert_eq!(got, expected, "{checkpoint:?} {now} {alive}");
        }
        assert!(!lease_is_void(&queued(), |_| false, end), "no worker has it");
    }

    /// F6: once the lease has ended, a live worker gives up a job that the store records for it and that it does not
    /// run.
    #[test]
    fn f6_a_job_that_its_live_worker_does_not_hold_is_free_when_its_lease_ends() {
        let (record, lease) = running(Checkpoint::Beginning { key: "k".to_owned() });
        let (job, worker) = (record.job.id, lease.worker.clone());
        let other = WorkerId::new("another");
        let end = NOW.after(Duration::from_secs(30));
        let early = NOW.after(Duration::from_secs(29));
        assert!(is_unheld(&record, &worker, &[], end));
        assert!(!is_unheld(&record, &worker, &[job], end), "it runs it");
        assert!(!is_unheld(&record, &worker, &[], early), "its claim may be on its way");
        assert!(!is_unheld(&record, &other, &[], end), "another worker runs it");
        assert!(!is_unheld(&queued(), &worker, &[], end), "no worker has it");
    }
}
