//! An owner's cancel: terminal at once. The work that is left to do at the provider is recorded.

use crate::{
    CancelOutcome, Checkpoint, Cost, JobState, Record, RemoteRun, RemoteStop, StoreError, Timestamp,
};

/// Ends an unfinished job; a finished one keeps its end.
pub fn cancel(record: &mut Record, now: Timestamp) -> CancelOutcome {
    let job = &record.job;
    if job.state.kind().is_terminal() {
        return CancelOutcome::Already(job.clone());
    }
    let remote = match &job.checkpoint {
        Checkpoint::NotBegun => RemoteStop::NotNeeded,
        // There is no run with an id yet. The worker will call `record_late_run`, or `record_stop` if the request did
        // not become a run. The doubt is recorded now, because that worker may crash first.
        Checkpoint::Beginning { .. } => RemoteStop::MaybeBegun,
        Checkpoint::Running(_) => RemoteStop::Owed,
    };
    record.enter(JobState::Cancelled { at: now, remote, cost: Cost::Unknown }, now);
    CancelOutcome::Now(record.job.clone())
}

/// Records a run that was found after its job was cancelled.
pub fn record_late_run(
    record: &mut Record,
    run: &RemoteRun,
    now: Timestamp,
) -> Result<(), StoreError> {
    let JobState::Cancelled { remote, cost, .. } = &mut record.job.state else {
        return Err(StoreError::NotFound);
    };
    (*remote, *cost) = (RemoteStop::Owed, Cost::Unknown);
    record.job.checkpoint = Checkpoint::Running(run.clone());
    record.job.updated_at = now;
    Ok(())
}

/// Records the outcome of a pending stop, and the cost of the run as far as it is known.
pub fn record_stop(
    record: &mut Record,
    outcome: RemoteStop,
    found_cost: Cost,
    now: Timestamp,
) -> Result<(), StoreError> {
    let JobState::Cancelled { remote, cost, .. } = &mut record.job.state else {
        return Err(StoreError::NotFound);
    };
    let run_is_known = matches!(record.job.checkpoint, Checkpoint::Running(_));
    let fits = match outcome {
        // A run without an id can never be stopped, and the pending stop would keep the job for ever.
        RemoteStop::Owed => run_is_known,
        // Only a run with an id can be checked.
        RemoteStop::Ended | RemoteStop::Completed | RemoteStop::GoesOn => run_is_known,
        // Recorded by the worker whose request was refused. It knows of no other run.
        RemoteStop::NotNeeded => !run_is_known,
        RemoteStop::MaybeBegun | RemoteStop::Told | RemoteStop::Unsupported => true,
    };
    if !fits {
        return Err(StoreError::NotFound);
    }
    *remote = outcome;
    *cost = match outcome {
        RemoteStop::Ended | RemoteStop::Completed => found_cost,
        RemoteStop::NotNeeded
        | RemoteStop::MaybeBegun
        | RemoteStop::Owed
        | RemoteStop::Told
        | RemoteStop::GoesOn
        | RemoteStop::Unsupported => Cost::Unknown,
    };
    record.job.updated_at = now;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::settle;
    use crate::rules::tests::{NOW, output, queued, remote, running};
    use crate::{Settlement, StateKind};

    fn cancelled(remote: RemoteStop) -> JobState {
        JobState::Cancelled { at: NOW, remote, cost: Cost::Unknown }
    }

    #[test]
    fn a_cancel_ends_a_job_at_once_and_leaves_a_pending_stop_only_for_a_known_run() {
        let beginning = Checkpoint::Beginning { key: "k".to_owned() };
        let cases = [
            (queued(), RemoteStop::NotNeeded),
            (running(Checkpoint::NotBegun).0, RemoteStop::NotNeeded),
            (running(beginning).0, RemoteStop::MaybeBegun),
            (running(Checkpoint::Running(remote())).0, RemoteStop::Owed),
        ];
        for (mut record, expected) in cases {
            assert!(matches!(cancel(&mut record, NOW), CancelOutcome::Now(_)));
            assert_eq!(record.job.state, cancelled(expected));
            assert_eq!(record.holder, None);
        }
    }

    #[test]
    fn a_finished_job_keeps_its_end() {
        let (mut record, lease) = running(Checkpoint::Running(remote()));
        settle(&mut record, &lease, &Settlement::Succeed { output: output(), raw: None }, NOW)
            .unwrap();
        let before = record.clone();
        assert!(matches!(cancel(&mut record, NOW), CancelOutcome::Already(_)));
        assert_eq!(record, before);
    }

    #[test]
    fn a_run_found_after_the_cancel_has_a_pending_stop() {
        let (mut record, _) = running(Checkpoint::Beginning { key: "k".to_owned() });
        assert!(
            record_late_run(&mut record, &remote(), NOW).is_err(),
            "only a cancelled job has a late run"
        );
        cancel(&mut record, NOW);
        record_late_run(&mut record, &remote(), NOW).unwrap();
        assert_eq!(record.job.checkpoint, Checkpoint::Running(remote()));
        record_stop(&mut record, RemoteStop::Ended, Cost::Unknown, NOW).unwrap();
        assert_eq!(record.job.state, cancelled(RemoteStop::Ended));
        assert_eq!(record.job.state.kind(), StateKind::Cancelled);
    }

    #[test]
    fn no_stop_is_pending_if_no_run_is_known() {
        let (mut record, _) = running(Checkpoint::Beginning { key: "k".to_owned() });
        cancel(&mut record, NOW);
        let before = record.clone();
        assert!(record_stop(&mut record, RemoteStop::Owed, Cost::Unknown, NOW).is_err());
        assert_eq!(record, before, "a refused write leaves no trace");
        record_late_run(&mut record, &remote(), NOW).unwrap();
        record_stop(&mut record, RemoteStop::Owed, Cost::Unknown, NOW).unwrap();
        record_stop(&mut record, RemoteStop::Ended, Cost::Unknown, NOW).unwrap();
    }

    /// A3: a refusal that arrives after the cancel clears the doubt, but never a pending stop.
    #[test]
    fn a3_a_refused_request_leaves_nothing_to_stop() {
        let (mut record, _) = running(Checkpoint::Beginning { key: "k".to_owned() });
        cancel(&mut record, NOW);
        record_stop(&mut record, RemoteStop::NotNeeded, Cost::Unknown, NOW).unwrap();
        assert_eq!(record.job.state, cancelled(RemoteStop::NotNeeded));
        let (mut record, _) = running(Checkpoint::Running(remote()));
        cancel(&mut record, NOW);
        assert!(record_stop(&mut record, RemoteStop::NotNeeded, Cost::Unknown, NOW).is_err());
    }

    /// The provider chooses a run's id: a log line shows no more of it than a person reads.
    #[test]
    fn a_long_id_is_cut_in_the_log() {
        let long = RemoteRun { id: "\u{e9}".repeat(2_000_000), ..remote() };
        assert_eq!(long.short_id(), "\u{e9}".repeat(200));
        assert_eq!(remote().short_id(), "resp_1");
    }

    /// A3: the text states what is not known of a run, and promises nothing that the provider cannot do.
    #[test]
    fn a3_a_cancel_while_the_request_is_on_its_way_says_what_is_not_known() {
        let (mut record, _) = running(Checkpoint::Beginning { key: "k".to_owned() });
        cancel(&mut record, NOW);
        let shown = record.job.stop_text().unwrap();
        assert!(shown.contains("may have been begun and paid for"), "{shown}");
        record.job.new.request = serde_json::json!({ "message": "a command has no price" }).into();
        assert_eq!(record.job.stop_text(), None);
    }
}
