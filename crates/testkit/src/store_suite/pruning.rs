//! Removing finished jobs: by age, by a person's word, and never what is still needed.

use std::time::Duration;

use outlast_core::{
    Checkpoint, ConversationId, Inserted, Job, JobId, JobQuery, Key, NewJob, Prune, Pruned,
    RemoteStop, Rev, Scope, StoreError, Timestamp,
};

use super::bench::{
    Bench, a_held_key, a_job, a_key, a_research_key, a_run, alice, bob, fail, profiles, succeed,
    worker,
};
use crate::clock::START;

const KEEP: Duration = Duration::from_secs(10);

/// A6: not a millisecond before its retention ends, and with everything that belongs to it.
pub async fn a_job_goes_when_its_retention_has_ended(bench: Bench) {
    let job = finished(&bench, kept(KEEP)).await;
    bench.clock.advance(KEEP - Duration::from_millis(1));
    let early = prune(&bench, Prune::Expired).await;
    assert_eq!(early, Pruned { jobs: 0, next_expiry: Some(START.after(KEEP)) });
    bench.clock.advance(Duration::from_millis(1));
    assert_eq!(prune(&bench, Prune::Expired).await, Pruned { jobs: 1, next_expiry: None });
    assert_eq!(prune(&bench, Prune::Expired).await, Pruned::default());
    bench.clock.set(START);
    assert_eq!(bench.store.job(&Scope::Operator, &job.id).await.unwrap(), None, "gone for good");
    assert!(listed(&bench).await.is_empty());
}

/// The nearest of those that are left.
pub async fn the_next_expiry_is_the_nearest(bench: Bench) {
    for seconds in [30, 10, 20] {
        finished(&bench, kept(Duration::from_secs(seconds))).await;
    }
    bench.add(kept(KEEP / 10)).await;
    finished(&bench, a_job()).await;
    for (now, jobs, next) in [(5, 0, Some(10)), (10, 1, Some(20)), (25, 1, Some(30)), (99, 1, None)]
    {
        bench.clock.set(START.after(Duration::from_secs(now)));
        let next_expiry = next.map(|seconds| START.after(Duration::from_secs(seconds)));
        let pruned = prune(&bench, Prune::Expired).await;
        assert_eq!(pruned, Pruned { jobs, next_expiry }, "after {now} s");
    }
    assert_eq!(listed(&bench).await.len(), 2, "the unfinished, and the one kept for ever");
}

/// A8: whatever is asked, and however old it is.
pub async fn an_unfinished_job_is_never_removed(bench: Bench) {
    let running = bench.add(kept(KEEP)).await;
    bench.claim().await;
    let queued = bench.add(kept(KEEP)).await;
    bench.clock.advance(KEEP * 1000);
    for which in [Prune::Expired, Prune::EndedBefore(much_later())] {
        assert_eq!(prune(&bench, which).await, Pruned::default());
    }
    assert_eq!(listed(&bench).await, [queued.id, running.id]);
}

/// The duty is in the job, and would go with it.
pub async fn a_job_that_is_owed_a_stop_stays_until_it_was_made(bench: Bench) {
    let conversation = ConversationId::new("talk");
    let mut ids = Vec::new();
    for conversation in [Some(conversation.clone()), None] {
        bench.add(NewJob { conversation, ..kept(KEEP) }).await;
        let claimed = bench.claim().await;
        let running = Checkpoint::Running(a_run("run-1"));
        bench.store.checkpoint(&claimed.lease, &running).await.unwrap();
        bench.store.cancel(&Scope::Operator, &claimed.job.id).await.unwrap();
        ids.push(claimed.job.id);
    }
    bench.clock.advance(KEEP);
    let prunes =
        [Prune::Expired, Prune::EndedBefore(much_later()), Prune::Conversation(conversation)];
    for which in prunes {
        assert_eq!(prune(&bench, which.clone()).await, Pruned::default(), "{which:?}");
    }
    assert_eq!(bench.store.owed_stops(&profiles(), 10).await.unwrap().len(), 2);
    for id in ids {
        bench.store.record_stop(&id, RemoteStop::Done).await.unwrap();
        assert_eq!(prune(&bench, Prune::Expired).await.jobs, 1);
    }
}

/// E9: a call made again within the key's window finds its job and buys nothing, whatever was swept.
pub async fn a_job_stays_as_long_as_its_key_holds(bench: Bench) {
    let job = keyed(&bench, kept(KEEP), a_key("k", 1)).await;
    let claimed = bench.claim().await;
    bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    let window = START.after(Duration::from_secs(60));
    bench.clock.advance(KEEP);
    assert_eq!(bench.store.job(&Scope::Operator, &job.id).await.unwrap(), None, "unseen");
    let spared = prune(&bench, Prune::Expired).await;
    assert_eq!(spared, Pruned { jobs: 0, next_expiry: Some(window) });
    let again = bench.add_keyed(kept(KEEP), a_key("k", 1)).await.unwrap();
    assert!(
        matches!(&again, Inserted::Existing { job: found, .. } if found.id == job.id),
        "{again:?}"
    );
    bench.clock.set(window);
    assert_eq!(prune(&bench, Prune::Expired).await, Pruned { jobs: 1, next_expiry: None });
    keyed(&bench, kept(KEEP), a_key("k", 2)).await;
}

/// Promise 2: the same for a held call that nobody has heard the outcome of.
pub async fn a_held_call_stays_until_it_was_answered(bench: Bench) {
    let finish = async |text| {
        let job = keyed(&bench, kept(KEEP), a_held_key(text, 1)).await;
        let claimed = bench.claim().await;
        bench.store.settle(&claimed.lease, succeed()).await.unwrap();
        job
    };
    let heard = finish("heard").await;
    finish("unheard").await;
    bench.clock.advance(KEEP);
    assert_eq!(prune(&bench, Prune::Expired).await.jobs, 0);
    bench.store.record_answer(&heard.id).await.unwrap();
    let pruned = prune(&bench, Prune::Expired).await;
    let next_expiry = Some(START.after(Duration::from_secs(60)));
    assert_eq!(pruned, Pruned { jobs: 1, next_expiry });
}

/// Promise 2: a report that may be told again stays that long, and a failure that may not goes with its retention.
pub async fn a_research_call_stays_as_long_as_it_is_told_again(bench: Bench) {
    let keep = Duration::from_secs(1);
    for (text, settlement, stays) in [("report", succeed(), 10), ("failure", fail(), 1)] {
        let job = keyed(&bench, kept(keep), a_research_key(text, 1)).await;
        let claimed = bench.claim().await;
        let ended = bench.store.settle(&claimed.lease, settlement).await.unwrap().ended_at();
        let next_expiry = Some(ended.unwrap().after(Duration::from_secs(60)));
        assert_eq!(prune(&bench, Prune::Expired).await, Pruned { jobs: 0, next_expiry });
        bench.store.record_answer(&job.id).await.unwrap();
        let next_expiry = Some(ended.unwrap().after(Duration::from_secs(stays)));
        assert_eq!(prune(&bench, Prune::Expired).await, Pruned { jobs: 0, next_expiry }, "{text}");
        bench.clock.advance(Duration::from_secs(stays));
        assert_eq!(prune(&bench, Prune::Expired).await.jobs, 1, "{text}");
    }
}

/// The key went to another job; nothing keeps the first any more.
pub async fn a_key_that_names_another_job_keeps_that_one(bench: Bench) {
    let window = Duration::from_secs(60);
    let first = keyed(&bench, kept(KEEP), a_key("k", 1)).await;
    bench.store.cancel(&Scope::Operator, &first.id).await.unwrap();
    bench.clock.advance(window);
    let second = keyed(&bench, kept(KEEP), a_key("k", 1)).await;
    bench.store.cancel(&Scope::Operator, &second.id).await.unwrap();
    // As after a clock that was set back: by the time of day the first one's key would still hold.
    bench.clock.set(START.after(KEEP));
    let pruned = prune(&bench, Prune::Expired).await;
    assert_eq!(pruned, Pruned { jobs: 1, next_expiry: Some(START.after(window * 2)) });
    assert_eq!(listed(&bench).await, [second.id]);
}

/// Keys go with their jobs: a new one is made, under any input.
pub async fn a_key_goes_with_the_job_a_person_removed(bench: Bench) {
    let job = keyed(&bench, a_job(), a_key("k", 1)).await;
    bench.store.cancel(&Scope::Operator, &job.id).await.unwrap();
    let moment = START.after(Duration::from_millis(1));
    assert_eq!(prune(&bench, Prune::EndedBefore(moment)).await.jobs, 1);
    keyed(&bench, a_job(), a_key("k", 2)).await;
}

/// The moment itself is not before it; what is kept for ever goes too; a conversation does not.
pub async fn a_person_can_remove_what_ended_before_a_moment(bench: Bench) {
    let old = finished(&bench, a_job()).await;
    let conversation = Some(ConversationId::new("talk"));
    let turn = finished(&bench, NewJob { conversation, ..a_job() }).await;
    bench.clock.advance(KEEP);
    let young = finished(&bench, kept(KEEP)).await;
    assert_eq!(prune(&bench, Prune::EndedBefore(START)).await.jobs, 0);
    let pruned = prune(&bench, Prune::EndedBefore(START.after(KEEP))).await;
    assert_eq!(pruned, Pruned { jobs: 1, next_expiry: Some(START.after(KEEP * 2)) });
    assert_eq!(bench.store.job(&Scope::Operator, &old.id).await.unwrap(), None);
    assert_eq!(listed(&bench).await, [young.id, turn.id]);
}

/// A8: only a person removes a conversation, and then all of it.
pub async fn a_conversation_is_removed_whole(bench: Bench) {
    let conversation = ConversationId::new("talk");
    let turn = || NewJob { conversation: Some(conversation.clone()), ..a_job() };
    let his = bench.add(NewJob { owner: bob(), ..turn() }).await;
    bench.store.cancel(&Scope::Operator, &his.id).await.unwrap();
    finished(&bench, turn()).await;
    finished(&bench, turn()).await;
    let other = bench.add(a_job()).await;
    bench.clock.advance(Duration::from_secs(86_400 * 365));
    assert_eq!(prune(&bench, Prune::Expired).await.jobs, 0);
    let hers = Scope::Owner(alice());
    let prune = Prune::Conversation(conversation.clone());
    assert_eq!(bench.store.prune(&hers, &prune).await.unwrap().jobs, 2);
    assert_eq!(listed(&bench).await, [other.id, his.id]);
    let refused = bench.store.prune(&hers, &prune).await;
    assert!(matches!(refused, Err(StoreError::NotFound)), "{refused:?}");
    assert_eq!(bench.add(turn()).await.turn, 1, "a new conversation of that name");
}

/// Nothing of it goes, and the refusal names the job.
pub async fn a_busy_conversation_is_not_removed(bench: Bench) {
    let conversation = ConversationId::new("talk");
    let turn = || NewJob { conversation: Some(conversation.clone()), ..a_job() };
    let first = finished(&bench, turn()).await;
    let second = bench.add(turn()).await;
    let prune = Prune::Conversation(conversation.clone());
    for _ in 0..2 {
        let refused = bench.store.prune(&Scope::Operator, &prune).await;
        assert!(
            matches!(refused, Err(StoreError::ConversationBusy(id)) if id == second.id),
            "{refused:?}"
        );
        bench.try_claim(&worker("w1")).await;
    }
    assert_eq!(listed(&bench).await, [second.id, first.id]);
    let stranger = bench.store.prune(&Scope::Owner(bob()), &prune).await;
    assert!(matches!(stranger, Err(StoreError::NotFound)), "{stranger:?}");
}

/// One owner's sweep does not touch another's, nor tells when theirs is due.
pub async fn a_prune_stays_within_its_scope(bench: Bench) {
    finished(&bench, kept(KEEP)).await;
    let his = finished(&bench, NewJob { owner: bob(), ..kept(KEEP * 2) }).await;
    bench.clock.advance(KEEP * 2);
    let hers = Scope::Owner(alice());
    for which in [Prune::Expired, Prune::EndedBefore(much_later())] {
        let pruned = bench.store.prune(&Scope::Owner(super::bench::carol()), &which).await;
        assert_eq!(pruned.unwrap(), Pruned::default());
    }
    let pruned = bench.store.prune(&hers, &Prune::Expired).await.unwrap();
    assert_eq!(pruned, Pruned { jobs: 1, next_expiry: None });
    bench.clock.set(START);
    assert_eq!(listed(&bench).await, [his.id]);
}

/// Nobody is woken for what is not there any more.
pub async fn a_removal_is_not_a_change(bench: Bench) {
    finished(&bench, kept(KEEP)).await;
    let rev = bench.store.rev().await.unwrap();
    bench.clock.advance(KEEP);
    assert_eq!(prune(&bench, Prune::Expired).await.jobs, 1);
    assert_eq!(bench.store.rev().await.unwrap(), rev);
    assert_eq!(bench.look(Rev::default()).await.jobs, []);
}

/// However many there are; the store may take as many steps as it likes.
pub async fn many_jobs_go_in_one_call(bench: Bench) {
    const JOBS: u32 = 250;
    for _ in 0..JOBS {
        finished(&bench, kept(KEEP)).await;
    }
    bench.clock.advance(KEEP);
    assert_eq!(prune(&bench, Prune::Expired).await, Pruned { jobs: JOBS, next_expiry: None });
    assert!(listed(&bench).await.is_empty());
}

fn kept(keep: Duration) -> NewJob {
    NewJob { keep: Some(keep), ..a_job() }
}

fn much_later() -> Timestamp {
    START.after(Duration::from_secs(86_400 * 365))
}

/// Cancelled, which is the quickest end.
async fn finished(bench: &Bench, job: NewJob) -> Job {
    let job = bench.add(job).await;
    bench.store.cancel(&Scope::Operator, &job.id).await.unwrap();
    job
}

async fn keyed(bench: &Bench, job: NewJob, key: Key) -> Job {
    match bench.add_keyed(job, key).await.unwrap() {
        Inserted::New(job) => job,
        Inserted::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

async fn prune(bench: &Bench, prune: Prune) -> Pruned {
    bench.store.prune(&Scope::Operator, &prune).await.unwrap()
}

async fn listed(bench: &Bench) -> Vec<JobId> {
    let query = JobQuery { limit: 10, ..JobQuery::default() };
    let page = bench.store.list(&Scope::Operator, &query).await.unwrap();
    page.jobs.iter().map(|summary| summary.id).collect()
}
