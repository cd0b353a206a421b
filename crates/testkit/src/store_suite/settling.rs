//! How tries end.

use std::time::Duration;

use outlast_core::{Body, Checkpoint, Cost, JobState, Output, Settlement, StoreError, Usage};
use serde_json::json;

use super::bench::{Bench, a_failure, a_report, a_run, succeed, worker};
use crate::clock::START;

/// Text that parsers and databases like to bend.
pub async fn a_report_comes_back_byte_for_byte(bench: Bench) {
    let claimed = bench.add_claimed().await;
    bench.clock.advance(Duration::from_secs(60));
    let settled = bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    let at = START.after(Duration::from_secs(60));
    let JobState::Succeeded { at: ended, output } = &settled.state else {
        panic!("{:?}", settled.state)
    };
    assert_eq!((ended, output.as_ref()), (&at, &a_report()));
    assert_eq!(settled.new, claimed.job.new);
    assert!(settled.failures.is_empty() && settled.progress.is_none());
    assert_eq!(bench.read(&claimed.job.id).await, settled);
    assert!(bench.try_claim(&worker("w2")).await.is_none());
}

/// Content blocks are opaque to us; also their numbers.
pub async fn a_tool_result_comes_back_as_it_was(bench: Bench) {
    let claimed = bench.add_claimed().await;
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
    bench.store.settle(&claimed.lease, settlement).await.unwrap();
    let JobState::Succeeded { output: read, .. } = bench.read(&claimed.job.id).await.state else {
        panic!("it succeeded")
    };
    assert_eq!(*read, output);
}

/// The last failure says why.
pub async fn a_job_can_fail_for_good(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let settlement = Settlement::Fail {
        failure: a_failure("refused"),
        raw: Some(vec![0, 159, 146, 150].into()),
    };
    let settled = bench.store.settle(&claimed.lease, settlement).await.unwrap();
    assert_eq!(settled.state, JobState::Failed { at: START });
    assert_eq!(settled.failures, [a_failure("refused")]);
    assert_eq!(bench.read(&claimed.job.id).await, settled);
    assert!(bench.try_claim(&worker("w2")).await.is_none());
}

/// Failures pile up in order; the checkpoint is the settlement's.
pub async fn a_retry_waits_and_remembers_why(bench: Bench) {
    let claimed = bench.add_claimed().await;
    bench
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
    let settled = bench.store.settle(&claimed.lease, retry("one", running.clone())).await.unwrap();
    let run_at = START.after(Duration::from_secs(5));
    assert_eq!(settled.state, JobState::Queued { run_at });
    assert_eq!(
        (settled.failures.as_slice(), &settled.checkpoint),
        (&[a_failure("one")][..], &running)
    );
    assert_eq!(bench.read(&claimed.job.id).await, settled);
    bench.clock.set(run_at);
    let again = bench.claim().await;
    assert_eq!(again.job.checkpoint, running);
    bench.store.settle(&again.lease, retry("two", Checkpoint::NotBegun)).await.unwrap();
    let job = bench.read(&claimed.job.id).await;
    assert_eq!(job.failures, [a_failure("one"), a_failure("two")]);
    assert_eq!(job.checkpoint, Checkpoint::NotBegun);
}

/// Claimable at once, checkpoint and all.
pub async fn a_release_spends_no_attempt(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let running = Checkpoint::Running(a_run("run-1"));
    bench.store.checkpoint(&claimed.lease, &running).await.unwrap();
    let settled = bench.store.settle(&claimed.lease, Settlement::Release).await.unwrap();
    assert_eq!(settled.state, JobState::Queued { run_at: START });
    assert!(settled.failures.is_empty());
    assert!(settled.was_claimed());
    assert_eq!(bench.claim().await.job.checkpoint, running);
}

/// The second gets the same answer as any stale worker.
pub async fn a_job_settles_once(bench: Bench) {
    let claimed = bench.add_claimed().await;
    let settled = bench.store.settle(&claimed.lease, succeed()).await.unwrap();
    let fail = Settlement::Fail { failure: a_failure("late"), raw: None };
    for settlement in [fail, succeed()] {
        let again = bench.store.settle(&claimed.lease, settlement).await;
        assert!(matches!(again, Err(StoreError::LeaseLost)), "{again:?}");
    }
    assert_eq!(bench.read(&claimed.job.id).await, settled);
}

/// Nothing that may be called on a finished job alters it.
pub async fn a_result_once_read_never_changes(bench: Bench) {
    use outlast_core::{Dead, RemoteStop, Scope};
    let settled = bench.add_succeeded().await;
    bench.clock.advance(Duration::from_secs(3600));
    bench.store.cancel(&Scope::Operator, &settled.id).await.unwrap();
    bench.store.rescue(&Dead::LeasesExpired).await.unwrap();
    bench.end_worker(&worker("w1")).await;
    assert!(bench.store.record_late_run(&settled.id, &a_run("x")).await.is_err());
    assert!(bench.store.record_stop(&settled.id, RemoteStop::Done).await.is_err());
    assert_eq!(bench.read(&settled.id).await, settled);
}
