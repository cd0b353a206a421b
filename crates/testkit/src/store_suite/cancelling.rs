//! Cancels, and the remote stops that they leave pending.

use outlast_core::{
    CancelOutcome, Checkpoint, ClaimedJob, ConversationId, Cost, Job, JobId, JobState, NewJob,
    Profile, RemoteStop, Scope, StoreError,
};

use super::fixture::{Fixture, a_job, a_run, alice, profiles, succeed, worker};
use crate::clock::START;

/// No worker claims it any more, and its conversation is free.
pub async fn a_queued_job_is_cancelled_immediately(fixture: Fixture) {
    let talk = NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() };
    let job = fixture.add(talk.clone()).await;
    let cancelled = now(&fixture, &job.id).await;
    assert_eq!(
        cancelled.state,
        JobState::Cancelled { at: START, remote: RemoteStop::NotNeeded, cost: Cost::Unknown }
    );
    assert_eq!(fixture.read(&job.id).await, cancelled);
    assert!(fixture.try_claim(&worker("w1")).await.is_none());
    fixture.add(talk).await;
}

/// Claimed, but nothing was sent.
pub async fn a_cancel_before_the_run_leaves_no_pending_stop(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let cancelled = now(&fixture, &claimed.job.id).await;
    assert_eq!(remote(&cancelled), RemoteStop::NotNeeded);
    assert_eq!(cancelled.progress, None);
    assert!(owed(&fixture).await.is_empty());
}

/// Its worker will learn the run and call `owe`, or learn that there is none; if it crashes first, the doubt is
/// on record.
pub async fn a_cancel_of_a_request_in_flight_records_that_a_run_may_start(fixture: Fixture) {
    let claimed = at(&fixture, Checkpoint::Beginning { key: "k".to_owned() }).await;
    let cancelled = now(&fixture, &claimed.job.id).await;
    assert_eq!(remote(&cancelled), RemoteStop::MaybeBegun);
    assert_eq!(cancelled.checkpoint, Checkpoint::Beginning { key: "k".to_owned() });
    assert_eq!(fixture.read(&claimed.job.id).await, cancelled);
    assert!(owed(&fixture).await.is_empty());
    fixture.store.record_stop(&claimed.job.id, RemoteStop::NotNeeded, Cost::Unknown).await.unwrap();
    assert_eq!(remote(&fixture.read(&claimed.job.id).await), RemoteStop::NotNeeded);
}

/// The provider must be notified.
pub async fn a_cancel_of_a_remote_run_leaves_a_pending_stop(fixture: Fixture) {
    let claimed = at(&fixture, Checkpoint::Running(a_run("run-1"))).await;
    let cancelled = now(&fixture, &claimed.job.id).await;
    assert_eq!(remote(&cancelled), RemoteStop::Owed);
    assert_eq!(owed(&fixture).await, [(claimed.job.id, a_run("run-1"))]);
}

/// The first commit wins.
pub async fn a_finished_job_keeps_its_final_state(fixture: Fixture) {
    let settled = fixture.add_succeeded().await;
    let cancelled = fixture.store.cancel(&Scope::Owner(alice()), &settled.id).await.unwrap();
    assert_eq!(cancelled, CancelOutcome::Already(settled.clone()));
    assert_eq!(fixture.read(&settled.id).await, settled);
}

/// It does not change the time of the end.
pub async fn a_second_cancel_finds_the_first(fixture: Fixture) {
    let job = fixture.add(a_job()).await;
    let first = now(&fixture, &job.id).await;
    fixture.clock.advance(super::LEASE);
    let second = fixture.store.cancel(&Scope::Owner(alice()), &job.id).await.unwrap();
    assert_eq!(second, CancelOutcome::Already(first));
}

/// Another owner gets the same answer as for an unknown job; the operator may cancel.
pub async fn only_the_owner_can_cancel(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let stranger = Scope::Owner(super::fixture::bob());
    let refused = fixture.store.cancel(&stranger, &claimed.job.id).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    let unknown = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    let refused = fixture.store.cancel(&Scope::Operator, &unknown).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    assert_eq!(fixture.read(&claimed.job.id).await, claimed.job);
    let cancelled = fixture.cancel(&claimed.job.id).await;
    assert!(matches!(cancelled, CancelOutcome::Now(_)));
}

/// The provider's answer arrived after the cancel.
pub async fn a_late_run_of_a_cancelled_job_gets_a_pending_stop(fixture: Fixture) {
    let claimed = at(&fixture, Checkpoint::Beginning { key: "k".to_owned() }).await;
    now(&fixture, &claimed.job.id).await;
    fixture.store.record_late_run(&claimed.job.id, &a_run("late")).await.unwrap();
    let job = fixture.read(&claimed.job.id).await;
    assert_eq!(remote(&job), RemoteStop::Owed);
    assert_eq!(job.checkpoint, Checkpoint::Running(a_run("late")));
    assert_eq!(owed(&fixture).await, [(claimed.job.id, a_run("late"))]);
}

/// Not on a job that is still held or queued, or that ended differently.
pub async fn only_cancelled_jobs_get_a_pending_stop(fixture: Fixture) {
    let finished = fixture.add_succeeded().await.id;
    let running = fixture.add_claimed().await.job.id;
    let queued = fixture.add(a_job()).await.id;
    let unknown = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    for id in [queued, running, finished, unknown] {
        let refused = fixture.store.record_late_run(&id, &a_run("x")).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    }
    assert!(owed(&fixture).await.is_empty());
}

/// Only workers with the profile have the key to stop it.
pub async fn pending_stops_are_returned_only_for_the_profile(fixture: Fixture) {
    let claimed = at(&fixture, Checkpoint::Running(a_run("run-1"))).await;
    now(&fixture, &claimed.job.id).await;
    for profiles in [vec![], vec![Profile::new("search")]] {
        assert!(fixture.store.pending_stops(&profiles, 10).await.unwrap().is_empty());
    }
    let mine = [Profile::new("search"), Profile::new("research")];
    assert_eq!(fixture.store.pending_stops(&mine, 10).await.unwrap().len(), 1);
}

/// The rest is returned when these are done.
pub async fn pending_stops_are_limited_to_the_requested_number(fixture: Fixture) {
    for run in ["run-1", "run-2", "run-3"] {
        let claimed = at(&fixture, Checkpoint::Running(a_run(run))).await;
        now(&fixture, &claimed.job.id).await;
    }
    for (limit, expected) in [(0, 0), (2, 2), (10, 3)] {
        assert_eq!(fixture.store.pending_stops(&profiles(), limit).await.unwrap().len(), expected);
    }
}

/// A long list of one profile must not delay another's; a profile given twice counts once.
pub async fn pending_stops_are_returned_oldest_first_across_profiles(fixture: Fixture) {
    let mut expected = Vec::new();
    for profile in ["search", "research", "search"] {
        fixture.add(NewJob { profile: Profile::new(profile), ..a_job() }).await;
        let claimed = fixture.claim().await;
        let running = Checkpoint::Running(a_run(profile));
        fixture.store.checkpoint(&claimed.lease, &running).await.unwrap();
        now(&fixture, &claimed.job.id).await;
        expected.push((claimed.job.id, a_run(profile)));
    }
    let both = [Profile::new("research"), Profile::new("search"), Profile::new("research")];
    for limit in [10, 3, 2, 1] {
        let owed = fixture.store.pending_stops(&both, limit).await.unwrap();
        assert_eq!(owed, expected[..limit.min(3)], "at most {limit}");
    }
}

/// Whatever the result of the stop.
pub async fn a_completed_stop_is_no_longer_pending(fixture: Fixture) {
    use RemoteStop::{Completed, Ended, GoesOn, Told, Unsupported};
    for outcome in [Told, Ended, Completed, GoesOn, Unsupported] {
        let claimed = at(&fixture, Checkpoint::Running(a_run("run-1"))).await;
        now(&fixture, &claimed.job.id).await;
        assert_eq!(owed(&fixture).await.len(), 1);
        let refused =
            fixture.store.record_stop(&claimed.job.id, RemoteStop::NotNeeded, Cost::Unknown).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "there is a run: {refused:?}");
        fixture.store.record_stop(&claimed.job.id, outcome, Cost::Unknown).await.unwrap();
        assert_eq!(remote(&fixture.read(&claimed.job.id).await), outcome);
        assert!(owed(&fixture).await.is_empty());
    }
}

/// A3: the cost of a run that was seen to have ended is stored with it; a run without a name was not seen.
pub async fn a3_a_stop_stores_the_observed_outcome_of_the_run(fixture: Fixture) {
    let paid = Cost::Reported(outlast_core::NanoUsd(410_000_000));
    let cases = [
        (RemoteStop::Ended, paid),
        (RemoteStop::Completed, paid),
        (RemoteStop::Completed, Cost::Unknown),
        (RemoteStop::GoesOn, Cost::Unknown),
    ];
    for (outcome, cost) in cases {
        let claimed = at(&fixture, Checkpoint::Running(a_run("run-1"))).await;
        now(&fixture, &claimed.job.id).await;
        fixture.store.record_stop(&claimed.job.id, outcome, paid).await.unwrap();
        fixture.store.record_stop(&claimed.job.id, outcome, cost).await.unwrap();
        let job = fixture.read(&claimed.job.id).await;
        assert_eq!(job.state, JobState::Cancelled { at: START, remote: outcome, cost });
        assert_eq!(job.checkpoint, Checkpoint::Running(a_run("run-1")));
        let unnamed = at(&fixture, Checkpoint::Beginning { key: "k".to_owned() }).await;
        now(&fixture, &unnamed.job.id).await;
        let refused = fixture.store.record_stop(&unnamed.job.id, outcome, paid).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "{outcome:?}: {refused:?}");
    }
}

/// No other job has a run to stop.
pub async fn only_a_cancelled_job_can_be_stopped(fixture: Fixture) {
    let claimed = at(&fixture, Checkpoint::Running(a_run("run-1"))).await;
    let refused =
        fixture.store.record_stop(&claimed.job.id, RemoteStop::Ended, Cost::Unknown).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    let refused =
        fixture.store.record_stop(&claimed.job.id, RemoteStop::Ended, Cost::Unknown).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
}

/// It could never be made, and would keep the job forever.
pub async fn no_stop_is_pending_if_no_run_is_known(fixture: Fixture) {
    let job = fixture.add(a_job()).await;
    let cancelled = now(&fixture, &job.id).await;
    let refused = fixture.store.record_stop(&job.id, RemoteStop::Owed, Cost::Unknown).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    assert_eq!(fixture.read(&job.id).await, cancelled);
    let claimed = at(&fixture, Checkpoint::Running(a_run("run-1"))).await;
    now(&fixture, &claimed.job.id).await;
    fixture.store.record_stop(&claimed.job.id, RemoteStop::Owed, Cost::Unknown).await.unwrap();
    assert_eq!(fixture.store.pending_stops(&profiles(), 1).await.unwrap().len(), 1);
}

async fn at(fixture: &Fixture, checkpoint: Checkpoint) -> ClaimedJob {
    let claimed = fixture.add_claimed().await;
    fixture.store.checkpoint(&claimed.lease, &checkpoint).await.unwrap();
    claimed
}

async fn now(fixture: &Fixture, id: &JobId) -> Job {
    match fixture.store.cancel(&Scope::Owner(alice()), id).await.unwrap() {
        CancelOutcome::Now(job) => job,
        CancelOutcome::Already(job) => panic!("it had ended: {:?}", job.state),
    }
}

fn remote(job: &Job) -> RemoteStop {
    match job.state {
        JobState::Cancelled { remote, .. } => remote,
        _ => panic!("{:?}", job.state),
    }
}

async fn owed(fixture: &Fixture) -> Vec<(JobId, outlast_core::RemoteRun)> {
    fixture.store.pending_stops(&profiles(), 10).await.unwrap()
}
