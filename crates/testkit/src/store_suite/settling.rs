//! The ends of attempts.

use std::time::Duration;

use outlast_core::{Body, Checkpoint, Cost, JobState, Output, Settlement, StoreError, Usage};
use serde_json::json;

use super::fixture::{Fixture, a_failure, a_report, a_run, succeed, worker};
use crate::clock::START;

/// Text that parsers and databases tend to alter.
pub async fn a_report_is_returned_byte_for_byte(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture.clock.advance(Duration::from_secs(60));
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    let at = START.after(Duration::from_secs(60));
    let JobState::Succeeded { at: ended, output } = &settled.state else {
        panic!("{:?}", settled.state)
    };
    assert_eq!((ended, output.as_ref()), (&at, &a_report()));
    assert_eq!(settled.new, claimed.job.new);
    assert!(settled.failures.is_empty() && settled.progress.is_none());
    assert_eq!(fixture.read(&claimed.job.id).await, settled);
    assert!(fixture.try_claim(&worker("w2")).await.is_none());
}

/// Content blocks are opaque to us, including their numbers.
pub async fn a_tool_result_is_returned_unchanged(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let output = Output {
        body: Body::Tool {
            content: vec![json!({ "type": "text", "text": "hi" }), json!(null)],
            structured: Some(json!({ "tiny": 5e-324, "third": 0.1 + 0.2, "n": u64::MAX })),
            is_error: true,
        },
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    };
    let settlement = Settlement::Succeed { output: output.clone().into(), raw: None };
    fixture.store.settle(&claimed.lease, settlement).await.unwrap();
    let JobState::Succeeded { output: read, .. } = fixture.read(&claimed.job.id).await.state else {
        panic!("it succeeded")
    };
    assert_eq!(*read, output);
}

/// The last failure contains the reason.
pub async fn a_job_can_fail_for_good(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let settlement = Settlement::Fail {
        failure: a_failure("refused"),
        raw: Some(vec![0, 159, 146, 150].into()),
    };
    let settled = fixture.store.settle(&claimed.lease, settlement).await.unwrap();
    assert_eq!(settled.state, JobState::Failed { at: START });
    assert_eq!(settled.failures, [a_failure("refused")]);
    assert_eq!(fixture.read(&claimed.job.id).await, settled);
    assert!(fixture.try_claim(&worker("w2")).await.is_none());
}

/// Failures accumulate in order; the checkpoint is the settlement's.
pub async fn a_retry_waits_and_remembers_why(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture
        .store
        .checkpoint(&claimed.lease, &Checkpoint::Beginning { key: "k".to_owned() })
        .await
        .unwrap();
    let retry = |message, checkpoint| Settlement::Retry {
        failure: a_failure(message),
        wait: Duration::from_secs(5),
        checkpoint,
    };
    let running = Checkpoint::Running(a_run("run-1"));
    let settled =
        fixture.store.settle(&claimed.lease, retry("one", running.clone())).await.unwrap();
    let run_at = START.after(Duration::from_secs(5));
    assert_eq!(settled.state, JobState::Queued { run_at });
    assert_eq!(
        (settled.failures.as_slice(), &settled.checkpoint),
        (&[a_failure("one")][..], &running)
    );
    assert_eq!(fixture.read(&claimed.job.id).await, settled);
    fixture.clock.set(run_at);
    let again = fixture.claim().await;
    assert_eq!(again.job.checkpoint, running);
    fixture.store.settle(&again.lease, retry("two", Checkpoint::NotBegun)).await.unwrap();
    let job = fixture.read(&claimed.job.id).await;
    assert_eq!(job.failures, [a_failure("one"), a_failure("two")]);
    assert_eq!(job.checkpoint, Checkpoint::NotBegun);
}

/// Claimable immediately, including the checkpoint.
pub async fn a_release_spends_no_attempt(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let running = Checkpoint::Running(a_run("run-1"));
    fixture.store.checkpoint(&claimed.lease, &running).await.unwrap();
    let settled = fixture.store.settle(&claimed.lease, Settlement::Release).await.unwrap();
    assert_eq!(settled.state, JobState::Queued { run_at: START });
    assert!(settled.failures.is_empty());
    assert!(settled.was_claimed());
    assert_eq!(fixture.claim().await.job.checkpoint, running);
}

/// The second one gets the same answer as any stale worker.
pub async fn a_job_settles_once(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    let fail = Settlement::Fail { failure: a_failure("late"), raw: None };
    for settlement in [fail, succeed()] {
        let again = fixture.store.settle(&claimed.lease, settlement).await;
        assert!(matches!(again, Err(StoreError::LeaseLost)), "{again:?}");
    }
    assert_eq!(fixture.read(&claimed.job.id).await, settled);
}

/// No call on a finished job changes it.
pub async fn a_result_never_changes_once_it_was_read(fixture: Fixture) {
    use outlast_core::{RemoteStop, RescueBy};
    let settled = fixture.add_succeeded().await;
    fixture.clock.advance(Duration::from_secs(3600));
    fixture.cancel(&settled.id).await;
    fixture.store.rescue(&RescueBy::ExpiredLease).await.unwrap();
    fixture.end_worker(&worker("w1")).await;
    assert!(fixture.store.record_late_run(&settled.id, &a_run("x")).await.is_err());
    assert!(
        fixture.store.record_stop(&settled.id, RemoteStop::Ended, Cost::Unknown).await.is_err()
    );
    assert_eq!(fixture.read(&settled.id).await, settled);
}
