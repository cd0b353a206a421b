//! An owner's cancel: terminal at once; what is left to do at the provider is a recorded duty.

use crate::{
    Cancelled, Checkpoint, JobState, Record, RemoteRun, RemoteStop, StoreError, Timestamp,
};

/// Ends an unfinished job; a finished one keeps its end.
pub fn cancel(record: &mut Record, now: Timestamp) -> Cancelled {
    let job = &mut record.job;
    if job.state.kind().is_terminal() {
        return Cancelled::Already(job.clone());
    }
    let remote = match &job.checkpoint {
        // While the request is on its way there is no run to name; its worker will call `owe`.
        Checkpoint::NotBegun | Checkpoint::Beginning { .. } => RemoteStop::NotNeeded,
        Checkpoint::Running(_) => RemoteStop::Owed,
    };
    job.state = JobState::Cancelled { at: now, remote };
    job.progress = None;
    job.updated_at = now;
    record.holder = None;
    Cancelled::Now(job.clone())
}

/// Records a run that turned up after its job was cancelled.
pub fn owe(record: &mut Record, run: &RemoteRun, now: Timestamp) -> Result<(), StoreError> {
    let JobState::Cancelled { remote, .. } = &mut record.job.state else {
        return Err(StoreError::NotFound);
    };
    *remote = RemoteStop::Owed;
    record.job.checkpoint = Checkpoint::Running(run.clone());
    record.job.updated_at = now;
    Ok(())
}

/// Records what came of an owed stop.
pub fn stopped(record: &mut Record, outcome: RemoteStop, now: Timestamp) -> Result<(), StoreError> {
    let JobState::Cancelled { remote, .. } = &mut record.job.state else {
        return Err(StoreError::NotFound);
    };
    let run_is_known = matches!(record.job.checkpoint, Checkpoint::Running(_));
    // Nobody could ever stop a run without a name, and the duty would keep the job for ever.
    if outcome == RemoteStop::Owed && !run_is_known {
        return Err(StoreError::NotFound);
    }
    *remote = outcome;
    record.job.updated_at = now;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::sample::{NOW, output, queued, remote, running};
    use crate::rules::settle;
    use crate::{Settlement, StateKind};

    #[test]
    fn a_cancel_ends_a_job_at_once_and_owes_a_stop_only_for_a_known_run() {
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let cases = [
            (queued(), RemoteStop::NotNeeded),
            (running(Checkpoint::NotBegun).0, RemoteStop::NotNeeded),
            (running(beginning).0, RemoteStop::NotNeeded),
            (running(Checkpoint::Running(remote())).0, RemoteStop::Owed),
        ];
        for (mut record, expected) in cases {
            assert!(matches!(cancel(&mut record, NOW), Cancelled::Now(_)));
            assert_eq!(record.job.state, JobState::Cancelled { at: NOW, remote: expected });
            assert_eq!(record.holder, None);
        }
    }

    #[test]
    fn a_finished_job_keeps_its_end() {
        let (mut record, lease) = running(Checkpoint::Running(remote()));
        settle(&mut record, &lease, &Settlement::Succeed { output: output(), raw: None }, NOW)
            .unwrap();
        let before = record.clone();
        assert!(matches!(cancel(&mut record, NOW), Cancelled::Already(_)));
        assert_eq!(record, before);
    }

    #[test]
    fn a_run_found_after_the_cancel_is_owed_a_stop() {
        let (mut record, _) = running(Checkpoint::Beginning { key: "k".to_owned() });
        assert!(owe(&mut record, &remote(), NOW).is_err(), "only a cancelled job can owe");
        cancel(&mut record, NOW);
        owe(&mut record, &remote(), NOW).unwrap();
        assert_eq!(record.job.checkpoint, Checkpoint::Running(remote()));
        stopped(&mut record, RemoteStop::Done, NOW).unwrap();
        assert_eq!(record.job.state, JobState::Cancelled { at: NOW, remote: RemoteStop::Done });
        assert_eq!(record.job.state.kind(), StateKind::Cancelled);
    }

    #[test]
    fn nothing_is_owed_where_no_run_is_known() {
        let (mut record, _) = running(Checkpoint::Beginning { key: "k".to_owned() });
        cancel(&mut record, NOW);
        let before = record.clone();
        assert!(stopped(&mut record, RemoteStop::Owed, NOW).is_err());
        assert_eq!(record, before, "a refused write leaves no trace");
        owe(&mut record, &remote(), NOW).unwrap();
        stopped(&mut record, RemoteStop::Owed, NOW).unwrap();
        stopped(&mut record, RemoteStop::Done, NOW).unwrap();
    }
}
