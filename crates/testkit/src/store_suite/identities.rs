//! Identities of held research calls (promise 2): one question, one job, even next to processes of the previous
//! version.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    CallIdentity, CallMode, Checkpoint, Code, Failure, Insert, InsertOutcome, Job, Key, KeyLife,
    NewJob, Profile, Scope, Settlement, StoreError, Visibility,
};

use super::fixture::{
    Fixture, a_failure, a_held_key, a_job, a_key, a_research_key, a_run, an_insert, bob, fail,
    succeed,
};
use super::{LEASE, profiles, worker};

/// The key of a call that the previous version identifies by its arguments, `previous`, and this one by its
/// question.
fn a_call(previous: &str, question: u8) -> Key {
    let key = a_research_key(previous, 1);
    let life = key.life;
    key.with_identity(CallIdentity {
        question: [question; 32],
        named_provider: None,
        model: None,
        mode: CallMode::Attach,
        life,
    })
}

fn changed(mut key: Key, change: impl FnOnce(&mut CallIdentity)) -> Key {
    if let Some(identity) = &mut key.identity {
        change(identity);
    }
    key
}

fn fresh(key: Key) -> Key {
    changed(key, |identity| identity.mode = CallMode::Fresh)
}

fn of(provider: &str) -> NewJob {
    NewJob { profile: Profile::new(provider), ..a_job() }
}

fn held() -> NewJob {
    NewJob { visibility: Visibility::Unpromised, ..a_job() }
}

/// Other arguments, the same question: one job.
pub async fn the_same_question_finds_its_job_whatever_else_differs(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_call("priority 0", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_call("priority 5", 1)).await), first);
    assert_ne!(new(fixture.add_keyed(a_job(), a_call("priority 0", 2)).await).id, first.id);
    let his = NewJob { owner: bob(), ..a_job() };
    assert_ne!(new(fixture.add_keyed(his, a_call("priority 0", 1)).await).id, first.id);
}

/// A changed default buys nothing while the job is unfinished; afterwards it asks another provider.
pub async fn a_call_that_names_no_provider_finds_an_unfinished_job_of_any(fixture: Fixture) {
    let asked = fixture.add_keyed(of("openai"), a_call("a", 1)).await;
    let first = new(asked);
    assert_eq!(existing(fixture.add_keyed(of("gemini"), a_call("a", 1)).await).id, first.id);
    let names = |provider: &str| {
        changed(a_call("b", 1), |identity| identity.named_provider = Some(provider.to_owned()))
    };
    assert_eq!(existing(fixture.add_keyed(of("openai"), names("openai")).await).id, first.id);
    let other = new(fixture.add_keyed(of("gemini"), names("gemini")).await);
    // Of two unfinished jobs the newest is returned.
    assert_eq!(existing(fixture.add_keyed(of("openai"), a_call("a", 1)).await).id, other.id);
    end(&fixture, &other, &[Profile::new("gemini")], succeed()).await;
    assert_eq!(existing(fixture.add_keyed(of("gemini"), a_call("a", 1)).await).id, first.id);
    end(&fixture, &first, &[Profile::new("openai")], succeed()).await;
    assert_eq!(existing(fixture.add_keyed(of("gemini"), a_call("a", 1)).await).id, other.id);
    assert_eq!(existing(fixture.add_keyed(of("openai"), a_call("a", 1)).await).id, first.id);
    new(fixture.add_keyed(of("anthropic"), a_call("a", 1)).await);
}

/// The result of an ended job is repeated only to a call that the same model would answer.
pub async fn a_changed_model_asks_again_once_the_job_has_ended(fixture: Fixture) {
    let with =
        |model: &str| changed(a_call("a", 1), |identity| identity.model = Some(model.to_owned()));
    let first = new(fixture.add_keyed(a_job(), with("one")).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), with("two")).await).id, first.id);
    fixture.end_next(succeed()).await;
    assert_eq!(existing(fixture.add_keyed(a_job(), with("one")).await).id, first.id);
    assert_ne!(new(fixture.add_keyed(a_job(), with("two")).await).id, first.id);
}

/// Within the windows of promise 2, counted from the end; answers are recorded for both forms of the key.
pub async fn a_repeated_call_is_answered_with_the_ended_job_for_a_while(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_call("a", 1)).await);
    fixture.end_next(succeed()).await;
    fixture.store.record_answer(&first.id).await.unwrap();
    fixture.clock.advance(Duration::from_millis(9_999));
    for key in [a_call("other arguments", 1), a_research_key("a", 1)] {
        let Ok(InsertOutcome::Existing { job, key }) = fixture.add_keyed(a_job(), key).await else {
            panic!("found by either form");
        };
        assert_eq!((job.id, key.answered_at.is_some()), (first.id, true));
    }
    fixture.clock.advance(Duration::from_millis(1));
    new(fixture.add_keyed(a_job(), a_call("other arguments", 1)).await);
}

/// Promise 2: a run that was paid for is resumed by the same question in another form.
pub async fn the_same_question_resumes_the_run_of_its_failure(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_call("a", 1)).await);
    let claimed = fixture.claim().await;
    let left = Checkpoint::Running(a_run("left"));
    fixture.store.checkpoint(&claimed.lease, &left).await.unwrap();
    fixture.store.settle(&claimed.lease, fail()).await.unwrap();
    fixture.store.record_answer(&first.id).await.unwrap();
    assert_eq!(new(fixture.add_keyed(a_job(), a_call("b", 1)).await).checkpoint, left);
}

/// A job of the previous version has no identity and is found by the previous form of its key.
pub async fn a_call_begun_by_the_previous_version_is_found(fixture: Fixture) {
    let old = new(fixture.add_keyed(of("openai"), a_research_key("a", 1)).await);
    assert_eq!(existing(fixture.add_keyed(of("gemini"), a_call("a", 1)).await).id, old.id);
    end(&fixture, &old, &[Profile::new("openai")], succeed()).await;
    assert_eq!(existing(fixture.add_keyed(of("openai"), a_call("a", 1)).await).id, old.id);
    // The job itself shows which provider answered it.
    let other = new(fixture.add_keyed(of("gemini"), a_call("a", 1)).await);
    assert_eq!(
        existing(fixture.add_keyed(of("gemini"), a_research_key("a", 1)).await).id,
        other.id
    );
}

/// A process of the previous version attaches to a job of this one, and the reverse after the previous version
/// replaced the key.
pub async fn the_previous_version_finds_a_call_begun_by_this_one(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_call("a", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_research_key("a", 1)).await).id, first.id);
    fixture.end_next(succeed()).await;
    fixture.store.record_answer(&first.id).await.unwrap();
    fixture.clock.advance(Duration::from_secs(10));
    let second = new(fixture.add_keyed(a_job(), a_research_key("a", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_call("a", 1)).await).id, second.id);
}

/// E9: a key stored by the previous version is not a conflict, and the caller's own key alone decides.
pub async fn a_callers_own_key_decides_before_the_identity(fixture: Fixture) {
    let own = |text: &str| Key { identity: a_call("a", 1).identity, ..a_key(text, 1) };
    let old = new(fixture.add_keyed(a_job(), a_key("k", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), own("k")).await).id, old.id);
    let conflict = fixture.add_keyed(a_job(), Key { input_hash: [2; 32], ..own("k") }).await;
    assert!(matches!(conflict, Err(StoreError::KeyConflict(id)) if id == old.id), "{conflict:?}");
    let first = new(fixture.add_keyed(a_job(), own("one")).await);
    let second = new(fixture.add_keyed(a_job(), own("two")).await);
    assert_ne!(first.id, second.id, "a new key starts over");
    // A call without a key finds the newest job of its question, even one that was started under a key.
    assert_eq!(existing(fixture.add_keyed(a_job(), a_call("a", 1)).await).id, second.id);
    for job in [&old, &first, &second] {
        end(&fixture, job, &profiles(), succeed()).await;
        fixture.store.record_answer(&job.id).await.unwrap();
    }
    let Ok(InsertOutcome::Existing { job, key }) = fixture.add_keyed(a_job(), a_call("a", 1)).await
    else {
        panic!("repeated for a while");
    };
    assert_eq!(job.id, second.id);
    assert!(matches!(key.life, KeyLife::Replays { .. }) && key.answered_at.is_some(), "{key:?}");
    fixture.clock.advance(Duration::from_secs(10));
    new(fixture.add_keyed(a_job(), a_call("a", 1)).await);
    assert_eq!(existing(fixture.add_keyed(a_job(), own("one")).await).id, first.id);
}

/// `fresh`: starts over once, however often the client repeats it, until a call was answered.
pub async fn a_fresh_call_starts_over_and_attaches_to_its_own_job(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_call("a", 1)).await);
    let over = new(fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await);
    assert_ne!(over.id, first.id);
    assert_eq!(existing(fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await).id, over.id);
    assert_eq!(
        existing(fixture.add_keyed(a_job(), a_call("a", 1)).await).id,
        over.id,
        "the newest"
    );
    assert_eq!(existing(fixture.add_keyed(a_job(), a_research_key("a", 1)).await).id, over.id);
    let unknown = Failure { code: Code::SubmitUnknown, run_goes_on: false, ..a_failure("no") };
    let lost = Settlement::Fail { failure: unknown, raw: None };
    end(&fixture, &over, &profiles(), lost).await;
    let repeated = fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await;
    assert_eq!(existing(repeated).id, over.id, "no caller knows that it may have been paid for");
    fixture.store.record_answer(&over.id).await.unwrap();
    let again = new(fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await);
    assert_ne!(again.id, over.id, "like a new key");
    end(&fixture, &again, &profiles(), succeed()).await;
    assert_eq!(existing(fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await).id, again.id);
    fixture.clock.advance(Duration::from_secs(60));
    assert_eq!(
        existing(fixture.add_keyed(a_job(), a_call("a", 1)).await).id,
        first.id,
        "unfinished"
    );
    new(fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await);
}

/// A fresh call does not attach to a job of the previous version, which had no fresh calls.
pub async fn a_fresh_call_starts_over_next_to_the_previous_version(fixture: Fixture) {
    let old = new(fixture.add_keyed(a_job(), a_research_key("a", 1)).await);
    let over = new(fixture.add_keyed(a_job(), fresh(a_call("a", 1))).await);
    assert_ne!(over.id, old.id);
    assert_eq!(existing(fixture.add_keyed(a_job(), a_research_key("a", 1)).await).id, over.id);
}

/// A task call that attaches to a held job returns its id, so the job is listed and kept as long as a task.
pub async fn a_task_call_turns_a_held_job_into_a_promised_one(fixture: Fixture) {
    let short = NewJob { keep: Some(Duration::from_secs(1)), ..held() };
    let task = NewJob { visibility: Visibility::Task, keep: None, ..held() };
    let first = new(fixture.add_keyed(short.clone(), a_call("a", 1)).await);
    let took = fixture.store.claim_by_id(&worker("w1"), &profiles(), &first.id, LEASE).await;
    let claimed = took.unwrap().unwrap();
    let rev = fixture.store.rev().await.unwrap();
    let attached = existing(fixture.add_keyed(task.clone(), a_call("b", 1)).await);
    assert_eq!((attached.id, attached.fence), (first.id, claimed.job.fence));
    assert_eq!((attached.new.visibility, attached.new.keep), (Visibility::Task, None));
    assert!(fixture.store.rev().await.unwrap() > rev, "readers see the difference");
    assert_eq!(fixture.read(&first.id).await, attached);
    // A held call does not change it back, and its worker continues.
    assert_eq!(existing(fixture.add_keyed(short.clone(), a_call("a", 1)).await), attached);
    fixture.store.settle(&claimed.lease, fail()).await.unwrap();
    fixture.clock.advance(Duration::from_secs(3600));
    assert!(fixture.store.job(&Scope::Operator, &first.id).await.unwrap().is_some(), "kept");

    // This also holds for a failed job that was never reported to a caller, and for a key as well as for the
    // identity.
    let second = new(fixture.add_keyed(short, a_held_key("workflow", 1)).await);
    let took = fixture.store.claim_by_id(&worker("w1"), &profiles(), &second.id, LEASE).await;
    fixture.store.settle(&took.unwrap().unwrap().lease, fail()).await.unwrap();
    existing(fixture.add_keyed(task, a_held_key("workflow", 1)).await);
    fixture.clock.advance(Duration::from_secs(3600));
    assert!(fixture.store.job(&Scope::Operator, &second.id).await.unwrap().is_some(), "kept");
}

/// One of many concurrent calls creates the job and the others find it, whatever their form.
pub async fn many_concurrent_calls_of_one_question_make_one_job(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let call = |number: usize| {
        let fixture = fixture.clone();
        let key = a_call(&format!("form {number}"), 1);
        let insert = Insert { key: Some(key), ..an_insert(a_job()) };
        tokio::spawn(async move { fixture.store.insert(insert).await })
    };
    let calls: Vec<_> = (0..8).map(call).collect();
    let (mut made, mut ids) = (0, Vec::new());
    for call in calls {
        match call.await.unwrap().unwrap() {
            InsertOutcome::New(job) => {
                made += 1;
                ids.push(job.id);
            }
            InsertOutcome::Existing { job, .. } => ids.push(job.id),
        }
    }
    ids.dedup();
    assert_eq!((made, ids.len()), (1, 1));
}

/// A removed job leaves no identity behind.
pub async fn the_identity_of_a_call_is_removed_with_its_job(fixture: Fixture) {
    let first = new(fixture.add_keyed(a_job(), a_call("a", 1)).await);
    fixture.end_next(succeed()).await;
    let later = fixture.store.now().after(Duration::from_secs(1));
    let prune = outlast_core::Prune::EndedBefore(later);
    assert_eq!(fixture.store.prune(&Scope::Operator, &prune).await.unwrap().jobs, 1);
    assert_ne!(new(fixture.add_keyed(a_job(), a_call("a", 1)).await).id, first.id);
}

async fn end(fixture: &Fixture, job: &Job, profiles: &[Profile], how: Settlement) {
    let took = fixture.store.claim_by_id(&worker("w1"), profiles, &job.id, LEASE).await;
    fixture.store.settle(&took.unwrap().unwrap().lease, how).await.unwrap();
}

fn new(inserted: Result<InsertOutcome, StoreError>) -> Job {
    match inserted {
        Ok(InsertOutcome::New(job)) => job,
        other => panic!("{other:?}"),
    }
}

fn existing(inserted: Result<InsertOutcome, StoreError>) -> Job {
    match inserted {
        Ok(InsertOutcome::Existing { job, .. }) => job,
        other => panic!("{other:?}"),
    }
}
