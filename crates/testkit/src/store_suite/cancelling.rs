//! Cancels, and the remote stops they leave to be made.

use outlast_core::{
    Cancelled, Checkpoint, Claimed, ConversationId, Job, JobId, JobState, NewJob, Profile,
    RemoteStop, Scope, StoreError,
};

use super::bench::{Bench, a_job, a_run, alice, profiles, succeed, worker};
use crate::clock::START;

/// Nobody claims it any more, and its conversation is free.
pub async fn a_queued_job_is_cancelled_at_once(bench: Bench) {
    let talk = NewJob { conversation: Some(ConversationId::new("talk")), ..a_job() };
    let job = bench.add(talk.clone()).await;
    let cancelled = now(&bench, &job.id).await;
    assert_eq!(cancelled.state, JobState::Cancelled { at: START, remote: RemoteStop::NotNeeded });
    assert_eq!(bench.read(&job.id).await, cancelled);
    assert!(bench.try_claim(&worker("w1")).await.is_none());
    bench.add(talk).await;
}

/// Claimed, but nothing was sent.
pub async fn a_cancel_before_the_run_owes_nothing(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let cancelled = now(&bench, &claimed.job.id).await;
    assert_eq!(remote(&cancelled), RemoteStop::NotNeeded);
    assert_eq!(cancelled.progress, None);
    assert!(owed(&bench).await.is_empty());
}

/// Its worker will know the run, and call `record_late_run`, or that there is none; if it dies first, the doubt is on record.
pub async fn a_cancel_while_the_request_is_on_its_way_records_that_a_run_may_come_of_it(
    bench: Bench,
) {
    let claimed = at(&bench, Checkpoint::Beginning { key: "k".to_owned() }).await;
    let cancelled = now(&bench, &claimed.job.id).await;
    assert_eq!(remote(&cancelled), RemoteStop::MaybeBegun);
    assert_eq!(cancelled.checkpoint, Checkpoint::Beginning { key: "k".to_owned() });
    assert_eq!(bench.read(&claimed.job.id).await, cancelled);
    assert!(owed(&bench).await.is_empty());
    bench.store.record_stop(&claimed.job.id, RemoteStop::NotNeeded).await.unwrap();
    assert_eq!(remote(&bench.read(&claimed.job.id).await), RemoteStop::NotNeeded);
}

/// Somebody must tell the provider.
pub async fn a_cancel_of_a_remote_run_owes_a_stop(bench: Bench) {
    let claimed = at(&bench, Checkpoint::Running(a_run("run-1"))).await;
    let cancelled = now(&bench, &claimed.job.id).await;
    assert_eq!(remote(&cancelled), RemoteStop::Owed);
    assert_eq!(owed(&bench).await, [(claimed.job.id, a_run("run-1"))]);
}

/// Whoever commits first wins.
pub async fn a_finished_job_keeps_its_end(bench: Bench) {
    let settled = bench.add_succeeded().await;
    let cancelled = bench.store.cancel(&Scope::Owner(alice()), &settled.id).await.unwrap();
    assert_eq!(cancelled, Cancelled::Already(settled.clone()));
    assert_eq!(bench.read(&settled.id).await, settled);
}

/// And does not move its end.
pub async fn a_second_cancel_finds_the_first(bench: Bench) {
    let job = bench.add(a_job()).await;
    let first = now(&bench, &job.id).await;
    bench.clock.advance(super::LEASE);
    let second = bench.store.cancel(&Scope::Owner(alice()), &job.id).await.unwrap();
    assert_eq!(second, Cancelled::Already(first));
}

/// A stranger hears the same as for a job that never was; the operator may.
pub async fn only_the_owner_can_cancel(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let stranger = Scope::Owner(super::bench::bob());
    let refused = bench.store.cancel(&stranger, &claimed.job.id).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    let unknown = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    let refused = bench.store.cancel(&Scope::Operator, &unknown).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    assert_eq!(bench.read(&claimed.job.id).await, claimed.job);
    let cancelled = bench.store.cancel(&Scope::Operator, &claimed.job.id).await.unwrap();
    assert!(matches!(cancelled, Cancelled::Now(_)));
}

/// The provider's answer came after the cancel.
pub async fn a_run_that_turned_up_late_is_owed(bench: Bench) {
    let claimed = at(&bench, Checkpoint::Beginning { key: "k".to_owned() }).await;
    now(&bench, &claimed.job.id).await;
    bench.store.record_late_run(&claimed.job.id, &a_run("late")).await.unwrap();
    let job = bench.read(&claimed.job.id).await;
    assert_eq!(remote(&job), RemoteStop::Owed);
    assert_eq!(job.checkpoint, Checkpoint::Running(a_run("late")));
    assert_eq!(owed(&bench).await, [(claimed.job.id, a_run("late"))]);
}

/// Not on a job that still has a holder, a place in the queue, or another end.
pub async fn a_run_is_owed_on_cancelled_jobs_only(bench: Bench) {
    let finished = bench.add_succeeded().await.id;
    let running = bench.add_claimed().await.job.id;
    let queued = bench.add(a_job()).await.id;
    let unknown = "0f8fad5bd9cb469fa16570867728950e".parse().unwrap();
    for id in [queued, running, finished, unknown] {
        let refused = bench.store.record_late_run(&id, &a_run("x")).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    }
    assert!(owed(&bench).await.is_empty());
}

/// Only they have the key to stop it with.
pub async fn owed_stops_are_for_those_with_the_profile(bench: Bench) {
    let claimed = at(&bench, Checkpoint::Running(a_run("run-1"))).await;
    now(&bench, &claimed.job.id).await;
    for profiles in [vec![], vec![Profile::new("search")]] {
        assert!(bench.store.owed_stops(&profiles, 10).await.unwrap().is_empty());
    }
    let mine = [Profile::new("search"), Profile::new("research")];
    assert_eq!(bench.store.owed_stops(&mine, 10).await.unwrap().len(), 1);
}

/// The rest comes when these are done.
pub async fn owed_stops_come_no_more_than_asked_for(bench: Bench) {
    for run in ["run-1", "run-2", "run-3"] {
        let claimed = at(&bench, Checkpoint::Running(a_run(run))).await;
        now(&bench, &claimed.job.id).await;
    }
    for (limit, expected) in [(0, 0), (2, 2), (10, 3)] {
        assert_eq!(bench.store.owed_stops(&profiles(), limit).await.unwrap().len(), expected);
    }
}

/// So that a long list of one profile does not keep another's waiting; a profile given twice is one.
pub async fn owed_stops_come_oldest_first_whatever_their_profile(bench: Bench) {
    let mut expected = Vec::new();
    for profile in ["search", "research", "search"] {
        bench.add(NewJob { profile: Profile::new(profile), ..a_job() }).await;
        let claimed = bench.claim().await;
        let running = Checkpoint::Running(a_run(profile));
        bench.store.checkpoint(&claimed.lease, &running).await.unwrap();
        now(&bench, &claimed.job.id).await;
        expected.push((claimed.job.id, a_run(profile)));
    }
    let both = [Profile::new("research"), Profile::new("search"), Profile::new("research")];
    for limit in [10, 3, 2, 1] {
        let owed = bench.store.owed_stops(&both, limit).await.unwrap();
        assert_eq!(owed, expected[..limit.min(3)], "at most {limit}");
    }
}

/// Whatever came of it.
pub async fn a_stop_that_was_made_is_owed_no_more(bench: Bench) {
    for outcome in [RemoteStop::Done, RemoteStop::Unsupported] {
        let claimed = at(&bench, Checkpoint::Running(a_run("run-1"))).await;
        now(&bench, &claimed.job.id).await;
        assert_eq!(owed(&bench).await.len(), 1);
        let refused = bench.store.record_stop(&claimed.job.id, RemoteStop::NotNeeded).await;
        assert!(matches!(refused, Err(StoreError::NotFound)), "there is a run: {refused:?}");
        bench.store.record_stop(&claimed.job.id, outcome).await.unwrap();
        assert_eq!(remote(&bench.read(&claimed.job.id).await), outcome);
        assert!(owed(&bench).await.is_empty());
    }
}

/// There is no stop to speak of on any other.
pub async fn only_a_cancelled_job_can_be_stopped(bench: Bench) {
    let claimed = at(&bench, Checkpoint::Running(a_run("run-1"))).await;
    let refused = bench.store.record_stop(&claimed.job.id, RemoteStop::Done).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    let refused = bench.store.record_stop(&claimed.job.id, RemoteStop::Done).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
}

/// It could never be made, and would keep the job for ever.
pub async fn no_stop_is_owed_where_no_run_is_known(bench: Bench) {
    let job = bench.add(a_job()).await;
    let cancelled = now(&bench, &job.id).await;
    let refused = bench.store.record_stop(&job.id, RemoteStop::Owed).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    assert_eq!(bench.read(&job.id).await, cancelled);
    let claimed = at(&bench, Checkpoint::Running(a_run("run-1"))).await;
    now(&bench, &claimed.job.id).await;
    bench.store.record_stop(&claimed.job.id, RemoteStop::Owed).await.unwrap();
    assert_eq!(bench.store.owed_stops(&profiles(), 1).await.unwrap().len(), 1);
}

async fn at(bench: &Bench, checkpoint: Checkpoint) -> Claimed {
    let claimed = bench.add_claimed().await;
    bench.store.checkpoint(&claimed.lease, &checkpoint).await.unwrap();
    claimed
}

async fn now(bench: &Bench, id: &JobId) -> Job {
    match bench.store.cancel(&Scope::Owner(alice()), id).await.unwrap() {
        Cancelled::Now(job) => job,
        Cancelled::Already(job) => panic!("it had ended: {:?}", job.state),
    }
}

fn remote(job: &Job) -> RemoteStop {
    match job.state {
        JobState::Cancelled { remote, .. } => remote,
        _ => panic!("{:?}", job.state),
    }
}

async fn owed(bench: &Bench) -> Vec<(JobId, outlast_core::RemoteRun)> {
    bench.store.owed_stops(&profiles(), 10).await.unwrap()
}
