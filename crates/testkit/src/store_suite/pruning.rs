//! Removing finished jobs: by age, by a user's command, and never while they are still needed.

use std::time::Duration;

use outlast_core::{
    Checkpoint, ConversationId, Cost, InsertOutcome, Job, JobId, JobQuery, Key, NewJob, Prune,
    PruneOutcome, RemoteStop, Rev, Scope, StoreError, Timestamp,
};

use super::fixture::{
    Fixture, a_held_key, a_job, a_key, a_research_key, a_run, alice, bob, fail, profiles, succeed,
    worker,
};
use crate::clock::START;

const KEEP: Duration = Duration::from_secs(10);

/// A6: not a millisecond before its retention ends, and with all its data.
pub async fn a_job_is_removed_when_its_retention_has_ended(fixture: Fixture) {
    let job = finished(&fixture, kept(KEEP)).await;
    fixture.clock.advance(KEEP - Duration::from_millis(1));
    let early = prune(&fixture, Prune::Expired).await;
    assert_eq!(early, PruneOutcome { jobs: 0, next_expiry: Some(START.after(KEEP)) });
    fixture.clock.advance(Duration::from_millis(1));
    assert_eq!(prune(&fixture, Prune::Expired).await, PruneOutcome { jobs: 1, next_expiry: None });
    assert_eq!(prune(&fixture, Prune::Expired).await, PruneOutcome::default());
    fixture.clock.set(START);
    assert_eq!(fixture.store.job(&Scope::Operator, &job.id).await.unwrap(), None, "gone for good");
    assert!(listed(&fixture).await.is_empty());
}

/// The nearest of the remaining ones.
pub async fn the_next_expiry_is_the_nearest(fixture: Fixture) {
    for seconds in [30, 10, 20] {
        finished(&fixture, kept(Duration::from_secs(seconds))).await;
    }
    fixture.add(kept(KEEP / 10)).await;
    finished(&fixture, a_job()).await;
    for (now, jobs, next) in [(5, 0, Some(10)), (10, 1, Some(20)), (25, 1, Some(30)), (99, 1, None)]
    {
        fixture.clock.set(START.after(Duration::from_secs(now)));
        let next_expiry = next.map(|seconds| START.after(Duration::from_secs(seconds)));
        let pruned = prune(&fixture, Prune::Expired).await;
        assert_eq!(pruned, PruneOutcome { jobs, next_expiry }, "after {now} s");
    }
    assert_eq!(listed(&fixture).await.len(), 2, "the unfinished, and the one kept for ever");
}

/// A8: with every kind of prune, and at any age.
pub async fn an_unfinished_job_is_never_removed(fixture: Fixture) {
    let running = fixture.add(kept(KEEP)).await;
    fixture.claim().await;
    let queued = fixture.add(kept(KEEP)).await;
    fixture.clock.advance(KEEP * 1000);
    for which in [Prune::Expired, Prune::EndedBefore(much_later())] {
        assert_eq!(prune(&fixture, which).await, PruneOutcome::default());
    }
    assert_eq!(listed(&fixture).await, [queued.id, running.id]);
}

/// The pending stop is stored with the job and would be removed with it.
pub async fn a_job_with_a_pending_stop_stays_until_it_is_completed(fixture: Fixture) {
    let conversation = ConversationId::new("talk");
    let mut ids = Vec::new();
    for conversation in [Some(conversation.clone()), None] {
        fixture.add(NewJob { conversation, ..kept(KEEP) }).await;
        let claimed = fixture.claim().await;
        let running = Checkpoint::Running(a_run("run-1"));
        fixture.store.checkpoint(&claimed.lease, &running).await.unwrap();
        fixture.cancel(&claimed.job.id).await;
        ids.push(claimed.job.id);
    }
    fixture.clock.advance(KEEP);
    let prunes =
        [Prune::Expired, Prune::EndedBefore(much_later()), Prune::Conversation(conversation)];
    for which in prunes {
        assert_eq!(prune(&fixture, which.clone()).await, PruneOutcome::default(), "{which:?}");
    }
    assert_eq!(fixture.store.pending_stops(&profiles(), 10).await.unwrap().len(), 2);
    for id in ids {
        fixture.store.record_stop(&id, RemoteStop::Ended, Cost::Unknown).await.unwrap();
        assert_eq!(prune(&fixture, Prune::Expired).await.jobs, 1);
    }
}

/// E9: a call that is repeated within the key's window finds its job and buys nothing, even after a sweep.
pub async fn a_job_stays_as_long_as_its_key_is_valid(fixture: Fixture) {
    let job = keyed(&fixture, kept(KEEP), a_key("k", 1)).await;
    fixture.end_next(succeed()).await;
    let window = START.after(Duration::from_secs(60));
    fixture.clock.advance(KEEP);
    assert_eq!(fixture.store.job(&Scope::Operator, &job.id).await.unwrap(), None, "unseen");
    let spared = prune(&fixture, Prune::Expired).await;
    assert_eq!(spared, PruneOutcome { jobs: 0, next_expiry: Some(window) });
    let again = fixture.add_keyed(kept(KEEP), a_key("k", 1)).await.unwrap();
    assert!(
        matches!(&again, InsertOutcome::Existing { job: found, .. } if found.id == job.id),
        "{again:?}"
    );
    fixture.clock.set(window);
    assert_eq!(prune(&fixture, Prune::Expired).await, PruneOutcome { jobs: 1, next_expiry: None });
    keyed(&fixture, kept(KEEP), a_key("k", 2)).await;
}

/// Promise 2: this also holds for a held call that was never reported to a caller.
pub async fn a_held_call_stays_until_it_was_answered(fixture: Fixture) {
    let finish = async |text| {
        let job = keyed(&fixture, kept(KEEP), a_held_key(text, 1)).await;
        fixture.end_next(succeed()).await;
        job
    };
    let heard = finish("heard").await;
    finish("unheard").await;
    fixture.clock.advance(KEEP);
    assert_eq!(prune(&fixture, Prune::Expired).await.jobs, 0);
    fixture.store.record_answer(&heard.id).await.unwrap();
    let pruned = prune(&fixture, Prune::Expired).await;
    let next_expiry = Some(START.after(Duration::from_secs(60)));
    assert_eq!(pruned, PruneOutcome { jobs: 1, next_expiry });
}

/// Promise 2: a report that may be repeated stays for that window, and a failure that may not expires with its
/// retention.
pub async fn a_research_call_stays_as_long_as_its_result_is_repeated(fixture: Fixture) {
    let keep = Duration::from_secs(1);
    for (text, settlement, stays) in [("report", succeed(), 10), ("failure", fail(), 1)] {
        let job = keyed(&fixture, kept(keep), a_research_key(text, 1)).await;
        let claimed = fixture.claim().await;
        let ended = fixture.store.settle(&claimed.lease, settlement).await.unwrap().ended_at();
        let next_expiry = Some(ended.unwrap().after(Duration::from_secs(60)));
        assert_eq!(prune(&fixture, Prune::Expired).await, PruneOutcome { jobs: 0, next_expiry });
        fixture.store.record_answer(&job.id).await.unwrap();
        let next_expiry = Some(ended.unwrap().after(Duration::from_secs(stays)));
        assert_eq!(
            prune(&fixture, Prune::Expired).await,
            PruneOutcome { jobs: 0, next_expiry },
            "{text}"
        );
        fixture.clock.advance(Duration::from_secs(stays));
        assert_eq!(prune(&fixture, Prune::Expired).await.jobs, 1, "{text}");
    }
}

/// The key moved to another job; nothing keeps the first one any more.
pub async fn a_key_that_names_another_job_keeps_that_one(fixture: Fixture) {
    let window = Duration::from_secs(60);
    let first = keyed(&fixture, kept(KEEP), a_key("k", 1)).await;
    fixture.cancel(&first.id).await;
    fixture.clock.advance(window);
    let second = keyed(&fixture, kept(KEEP), a_key("k", 1)).await;
    fixture.cancel(&second.id).await;
    // As after a clock that was set back: at this time of day the first one's key would still be valid.
    fixture.clock.set(START.after(KEEP));
    let pruned = prune(&fixture, Prune::Expired).await;
    assert_eq!(pruned, PruneOutcome { jobs: 1, next_expiry: Some(START.after(window * 2)) });
    assert_eq!(listed(&fixture).await, [second.id]);
}

/// Keys are removed with their jobs: a new job can be created with any input.
pub async fn a_key_is_removed_with_the_job_a_person_removed(fixture: Fixture) {
    let job = keyed(&fixture, a_job(), a_key("k", 1)).await;
    fixture.cancel(&job.id).await;
    let moment = START.after(Duration::from_millis(1));
    assert_eq!(prune(&fixture, Prune::EndedBefore(moment)).await.jobs, 1);
    keyed(&fixture, a_job(), a_key("k", 2)).await;
}

/// A job that ended exactly at that time is not before it; jobs kept forever are removed too; conversations are
/// not.
pub async fn a_person_can_remove_jobs_that_ended_before_a_time(fixture: Fixture) {
    let old = finished(&fixture, a_job()).await;
    let conversation = Some(ConversationId::new("talk"));
    let turn = finished(&fixture, NewJob { conversation, ..a_job() }).await;
    fixture.clock.advance(KEEP);
    let young = finished(&fixture, kept(KEEP)).await;
    assert_eq!(prune(&fixture, Prune::EndedBefore(START)).await.jobs, 0);
    let pruned = prune(&fixture, Prune::EndedBefore(START.after(KEEP))).await;
    assert_eq!(pruned, PruneOutcome { jobs: 1, next_expiry: Some(START.after(KEEP * 2)) });
    assert_eq!(fixture.store.job(&Scope::Operator, &old.id).await.unwrap(), None);
    assert_eq!(listed(&fixture).await, [young.id, turn.id]);
}

/// A8: only a person removes a conversation, and then completely.
pub async fn a_conversation_is_removed_whole(fixture: Fixture) {
    let conversation = ConversationId::new("talk");
    let turn = || NewJob { conversation: Some(conversation.clone()), ..a_job() };
    let his = fixture.add(NewJob { owner: bob(), ..turn() }).await;
    fixture.cancel(&his.id).await;
    finished(&fixture, turn()).await;
    finished(&fixture, turn()).await;
    let other = fixture.add(a_job()).await;
    fixture.clock.advance(Duration::from_secs(86_400 * 365));
    assert_eq!(prune(&fixture, Prune::Expired).await.jobs, 0);
    let hers = Scope::Owner(alice());
    let prune = Prune::Conversation(conversation.clone());
    assert_eq!(fixture.store.prune(&hers, &prune).await.unwrap().jobs, 2);
    assert_eq!(listed(&fixture).await, [other.id, his.id]);
    let refused = fixture.store.prune(&hers, &prune).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    assert_eq!(fixture.add(turn()).await.turn, 1, "a new conversation of that name");
}

/// Nothing of it is removed, and the refusal names the job.
pub async fn a_busy_conversation_is_not_removed(fixture: Fixture) {
    let conversation = ConversationId::new("talk");
    let turn = || NewJob { conversation: Some(conversation.clone()), ..a_job() };
    let first = finished(&fixture, turn()).await;
    let second = fixture.add(turn()).await;
    let prune = Prune::Conversation(conversation.clone());
    for _ in 0..2 {
        let refused = fixture.store.prune(&Scope::Operator, &prune).await;
        assert!(
            matches!(refused, Err(StoreError::ConversationBusy(id)) if id == second.id),
            "{refused:?}"
        );
        fixture.try_claim(&worker("w1")).await;
    }
    assert_eq!(listed(&fixture).await, [second.id, first.id]);
    let stranger = fixture.store.prune(&Scope::Owner(bob()), &prune).await;
    assert!(matches!(stranger, Err(StoreError::NotFound)), "{stranger:?}");
}

/// One owner's sweep does not affect another's jobs or reveal when they expire.
pub async fn a_prune_stays_within_its_scope(fixture: Fixture) {
    finished(&fixture, kept(KEEP)).await;
    let his = finished(&fixture, NewJob { owner: bob(), ..kept(KEEP * 2) }).await;
    fixture.clock.advance(KEEP * 2);
    let hers = Scope::Owner(alice());
    for which in [Prune::Expired, Prune::EndedBefore(much_later())] {
        let pruned = fixture.store.prune(&Scope::Owner(super::fixture::carol()), &which).await;
        assert_eq!(pruned.unwrap(), PruneOutcome::default());
    }
    let pruned = fixture.store.prune(&hers, &Prune::Expired).await.unwrap();
    assert_eq!(pruned, PruneOutcome { jobs: 1, next_expiry: None });
    fixture.clock.set(START);
    assert_eq!(listed(&fixture).await, [his.id]);
}

/// A removal wakes no caller.
pub async fn a_removal_is_not_a_change(fixture: Fixture) {
    finished(&fixture, kept(KEEP)).await;
    let rev = fixture.store.rev().await.unwrap();
    fixture.clock.advance(KEEP);
    assert_eq!(prune(&fixture, Prune::Expired).await.jobs, 1);
    assert_eq!(fixture.store.rev().await.unwrap(), rev);
    assert_eq!(fixture.look(Rev::default()).await.jobs, []);
}

/// For any number of jobs; the store may take any number of steps.
pub async fn many_jobs_are_removed_in_one_call(fixture: Fixture) {
    const JOBS: u32 = 250;
    for _ in 0..JOBS {
        finished(&fixture, kept(KEEP)).await;
    }
    fixture.clock.advance(KEEP);
    // A job that is being added to the search index at this moment is left to the next call.
    let first = prune(&fixture, Prune::Expired).await;
    assert!(first.jobs > JOBS / 2, "{first:?}");
    let mut removed = first.jobs;
    while !listed(&fixture).await.is_empty() {
        removed += prune(&fixture, Prune::Expired).await.jobs;
    }
    assert_eq!(removed, JOBS);
}

fn kept(keep: Duration) -> NewJob {
    NewJob { keep: Some(keep), ..a_job() }
}

fn much_later() -> Timestamp {
    START.after(Duration::from_secs(86_400 * 365))
}

/// Cancels the job, which is the quickest end.
async fn finished(fixture: &Fixture, job: NewJob) -> Job {
    let job = fixture.add(job).await;
    fixture.cancel(&job.id).await;
    job
}

async fn keyed(fixture: &Fixture, job: NewJob, key: Key) -> Job {
    match fixture.add_keyed(job, key).await.unwrap() {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

async fn prune(fixture: &Fixture, prune: Prune) -> PruneOutcome {
    fixture.store.prune(&Scope::Operator, &prune).await.unwrap()
}

async fn listed(fixture: &Fixture) -> Vec<JobId> {
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    let page = fixture.store.list(&Scope::Operator, &query).await.unwrap();
    page.jobs.iter().map(|summary| summary.id).collect()
}
