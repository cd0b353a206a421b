//! Notices of ends: stored with the end, and claimed by one caller at a time until they are delivered.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, ClaimedNotice, JobId, NewJob, NewQuestion, NoticeClaim, NoticeOutcome, Prune,
    Scope, Settlement, StoreError, Timestamp, Visibility,
};
use tokio::task::JoinSet;

use super::fixture::{Fixture, LEASE, a_failure, a_job, fail, succeed, worker};
use crate::clock::START;

impl Fixture {
    async fn claim_notice(&self) -> ClaimedNotice {
        match self.store.claim_notice(LEASE).await.unwrap() {
            NoticeClaim::Claimed(claimed) => claimed,
            NoticeClaim::NoneDue { next } => panic!("none is due before {next:?}"),
        }
    }

    /// The time of the next notice, if none is due now.
    async fn next_notice(&self) -> Option<Timestamp> {
        match self.store.claim_notice(LEASE).await.unwrap() {
            NoticeClaim::Claimed(claimed) => panic!("one is due: {claimed:?}"),
            NoticeClaim::NoneDue { next } => next,
        }
    }

    async fn is_over(&self, claimed: &ClaimedNotice) {
        self.store.record_notice(claimed, NoticeOutcome::Over).await.unwrap();
    }
}

/// M4: a question leaves a notice, which that of the next event replaces if it was not delivered.
pub async fn m4_a_question_leaves_a_notice(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let question = NewQuestion::approval("plan", "Start?", NewQuestion::TIMEOUT);
    for _ in 0..2 {
        fixture.store.ask(&claimed.lease, &question).await.unwrap();
    }
    let first = fixture.claim_notice().await;
    let told: serde_json::Value = serde_json::from_str(&first.notice.body).unwrap();
    assert_eq!((&told["event"], &told["status"]), (&"job.question".into(), &"waiting".into()));
    assert_eq!(told.get("endedAt"), None);
    fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    fixture.is_over(&first).await;
    let end = fixture.claim_notice().await;
    assert!(end.notice.body.contains("job.ended"), "{}", end.notice.body);
    fixture.is_over(&end).await;
    assert_eq!(fixture.next_notice().await, None);
}

/// G7: success, failure and cancel each leave one notice, due immediately, in the order of the ends.
pub async fn g7_every_end_leaves_a_notice(fixture: Fixture) {
    assert_eq!(fixture.next_notice().await, None);
    fixture.add(a_job()).await;
    let succeeded = fixture.end_next(succeed()).await;
    fixture.clock.advance(Duration::from_secs(1));
    fixture.add(a_job()).await;
    let failed = fixture.end_next(fail()).await;
    fixture.clock.advance(Duration::from_secs(1));
    let cancelled = fixture.add(a_job()).await;
    fixture.cancel(&cancelled.id).await;
    // A second cancel ends nothing.
    fixture.cancel(&cancelled.id).await;
    for (id, status) in
        [(succeeded.id, "succeeded"), (failed.id, "failed"), (cancelled.id, "cancelled")]
    {
        let claimed = fixture.claim_notice().await;
        assert_eq!((claimed.notice.job, claimed.tries), (id, 1));
        let said: serde_json::Value = serde_json::from_str(&claimed.notice.body).unwrap();
        assert_eq!((&said["event"], &said["status"]), (&"job.ended".into(), &status.into()));
        fixture.is_over(&claimed).await;
    }
    assert_eq!(fixture.next_notice().await, None);
}

/// An attempt that is released or repeated ends nothing, and a held workflow's caller waits for its end.
pub async fn a_retry_or_an_unpromised_job_leaves_no_notice(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture.store.settle(&claimed.lease, Settlement::Release).await.unwrap();
    assert_eq!(fixture.next_notice().await, None);
    let ask = serde_json::json!({ "message": "run" });
    let held = NewJob { visibility: Visibility::Unpromised, request: ask.into(), ..a_job() };
    let held = fixture.add(held).await;
    fixture.cancel(&held.id).await;
    assert_eq!(fixture.next_notice().await, None);
}

/// G7: one caller has a notice at a time; another one may claim it when the lease has ended.
pub async fn g7_a_claimed_notice_has_one_caller_until_its_lease_ends(fixture: Fixture) {
    let job = fixture.add_succeeded().await;
    let first = fixture.claim_notice().await;
    assert_eq!(fixture.next_notice().await, Some(START.after(LEASE)));
    fixture.clock.advance(LEASE);
    let second = fixture.claim_notice().await;
    assert_eq!((second.notice.job, second.tries), (job.id, 2));
    assert_eq!(second.notice, first.notice);
    // The caller that was too late records nothing.
    fixture.is_over(&first).await;
    fixture.store.record_notice(&first, NoticeOutcome::Again(Duration::ZERO)).await.unwrap();
    assert_eq!(fixture.next_notice().await, Some(fixture.clock_now().after(LEASE)));
    fixture.is_over(&second).await;
    assert_eq!(fixture.next_notice().await, None);
}

/// Many concurrent callers: each notice goes to one of them.
pub async fn many_concurrent_callers_claim_each_notice_once(fixture: Fixture) {
    for _ in 0..10 {
        fixture.add_succeeded().await;
    }
    let mut claims = JoinSet::new();
    for _ in 0..30 {
        let store = Arc::clone(&fixture.store);
        claims.spawn(async move { store.claim_notice(LEASE).await });
    }
    let mut jobs: Vec<JobId> = Vec::new();
    while let Some(claim) = claims.join_next().await {
        match claim.unwrap().unwrap() {
            NoticeClaim::Claimed(claimed) => jobs.push(claimed.notice.job),
            NoticeClaim::NoneDue { .. } => {}
        }
    }
    let claimed = jobs.len();
    jobs.sort();
    jobs.dedup();
    assert_eq!((claimed, jobs.len()), (10, 10));
}

/// G7: after a failed delivery it is due again after the delay.
pub async fn g7_an_undelivered_notice_is_due_again_after_a_delay(fixture: Fixture) {
    fixture.add_succeeded().await;
    let first = fixture.claim_notice().await;
    let wait = Duration::from_secs(600);
    fixture.store.record_notice(&first, NoticeOutcome::Again(wait)).await.unwrap();
    assert_eq!(fixture.next_notice().await, Some(START.after(wait)));
    fixture.clock.advance(wait);
    assert_eq!(fixture.claim_notice().await.tries, 2);
}

/// The job may be gone when its end is reported; and a report is not a change of a job.
pub async fn a_notice_outlives_its_job(fixture: Fixture) {
    let job = fixture.add_succeeded().await;
    fixture.clock.advance(Duration::from_secs(60));
    let prune = Prune::EndedBefore(fixture.clock_now());
    assert_eq!(fixture.store.prune(&Scope::Operator, &prune).await.unwrap().jobs, 1);
    let rev = fixture.store.rev().await.unwrap();
    let claimed = fixture.claim_notice().await;
    assert_eq!(claimed.notice.job, job.id);
    fixture.is_over(&claimed).await;
    assert_eq!(fixture.store.rev().await.unwrap(), rev);
}

/// G8: readers have the text so far during the attempt; it is not a change, and only the holder of the job
/// writes it.
pub async fn g8_the_text_so_far_is_visible_during_the_attempt(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let id = claimed.job.id;
    assert_eq!(fixture.read(&id).await.partial, None);
    let rev = fixture.store.rev().await.unwrap();
    for text in ["# One", "# One\r\n\u{0} \u{1F600} two"] {
        fixture.store.show_text(&claimed.lease, text).await.unwrap();
        assert_eq!(fixture.read(&id).await.partial.as_deref(), Some(text));
    }
    assert_eq!(fixture.store.rev().await.unwrap(), rev);
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert_eq!(settled.partial, None);
    assert_eq!(fixture.read(&id).await, settled);
    let late = fixture.store.show_text(&claimed.lease, "late").await;
    assert!(matches!(late, Err(StoreError::LeaseLost)), "{late:?}");
    assert_eq!(fixture.read(&id).await.partial, None);
}

/// G8: the end of an attempt, of any kind, ends its text, and the next attempt starts without text.
pub async fn g8_the_text_so_far_never_outlives_its_attempt(fixture: Fixture) {
    let retry = Settlement::Retry {
        failure: a_failure("down"),
        wait: Duration::ZERO,
        checkpoint: Checkpoint::NotBegun,
    };
    let id = fixture.add(a_job()).await.id;
    let begin = async || {
        let claimed = fixture.claim().await;
        assert_eq!(claimed.job.partial, None);
        assert_eq!(fixture.read(&id).await.partial, None);
        fixture.store.show_text(&claimed.lease, "half").await.unwrap();
        claimed.lease
    };
    for settlement in [Settlement::Release, retry] {
        let lease = begin().await;
        fixture.store.settle(&lease, settlement).await.unwrap();
        assert_eq!(fixture.read(&id).await.partial, None);
    }
    begin().await;
    fixture.end_worker(&worker("w1")).await;
    assert_eq!(fixture.read(&id).await.partial, None);
    begin().await;
    fixture.cancel(&id).await;
    assert_eq!(fixture.read(&id).await.partial, None);
}
