//! Failed attempts: which of them are repeated, when, and which are not.

use std::time::Duration;

use outlast_core::{
    BeginError, Checkpoint, Code, NewJob, ProviderErrorKind, ResendPolicy, ResumePolicy, StateKind,
};
use outlast_testkit::scripted::{Act, Answer, Begin, Scripted, error};
use tokio::time::Instant;

use crate::bench::{Bench, deliver, research, seconds, semantics_of, text};

fn refused(kind: ProviderErrorKind) -> Begin {
    Begin::Fail(BeginError::Refused(error(kind)))
}

fn busy() -> ProviderErrorKind {
    ProviderErrorKind::Unavailable { retry_after: None }
}

/// B9: the failure is kept, the job is pending meanwhile, and the rules decide the wait.
#[tokio::test(start_paused = true)]
async fn a_failed_try_is_repeated_after_its_wait_and_its_failure_is_kept() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench.provider.next_begins([refused(busy())]);
    let started = Instant::now();
    let id = process.start(research()).await;
    bench.quiet().await;
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Queued);
    assert_eq!(job.failures.len(), 1);
    bench.until(|| bench.provider.keys().len() == 2).await;
    let waited = started.elapsed();
    assert!(waited >= seconds(2) && waited <= seconds(3) + Duration::from_millis(5), "{waited:?}");
    bench.quiet().await;
    deliver(&bench, 2);
    let job = process.end(&id).await.job;
    assert_eq!(text(&job), "because");
    assert_eq!(job.failures[0].code, Code::ServiceUnavailable);
    let keys = bench.provider.keys();
    assert_ne!(keys[0], keys[1], "a new request, so a new key");
}

/// B9: waits honour Retry-After.
#[tokio::test(start_paused = true)]
async fn a_retry_waits_as_long_as_the_provider_asked_for() {
    let bench = Bench::new();
    let process = bench.process().await;
    bench
        .provider
        .next_begins([refused(ProviderErrorKind::RateLimited { retry_after: Some(seconds(40)) })]);
    process.start(research()).await;
    tokio::time::sleep(seconds(39)).await;
    assert_eq!(bench.provider.keys().len(), 1);
    tokio::time::sleep(seconds(1) + Duration::from_millis(2)).await;
    assert_eq!(bench.provider.keys().len(), 2, "and no longer");
}

/// B9.
#[tokio::test(start_paused = true)]
async fn a_permanent_refusal_fails_at_once() {
    for (kind, code) in [
        (ProviderErrorKind::Unauthorized, Code::Unauthorized),
        (ProviderErrorKind::QuotaExhausted, Code::QuotaExhausted),
        (ProviderErrorKind::Retired, Code::EndpointRetired),
        (ProviderErrorKind::Rejected, Code::ExecutionError),
    ] {
        let bench = Bench::new();
        let process = bench.process().await;
        bench.provider.next_begins([refused(kind)]);
        let asked = Instant::now();
        let id = process.start(research()).await;
        let job = process.end(&id).await.job;
        assert_eq!(asked.elapsed(), Duration::ZERO);
        assert_eq!(job.state.kind(), StateKind::Failed);
        assert_eq!(job.failures[0].code, code);
        assert_eq!(bench.provider.keys().len(), 1);
    }
}

/// B9: N retries are N + 1 attempts.
#[tokio::test(start_paused = true)]
async fn n_retries_are_n_plus_one_tries() {
    for retries in [0, 1, 3] {
        let bench = Bench::new();
        let process = bench.process().await;
        bench.provider.next_begins((0..10).map(|_| refused(busy())));
        let id = process.start(NewJob { max_failures: retries, ..research() }).await;
        let job = process.end(&id).await.job;
        assert_eq!(job.state.kind(), StateKind::Failed);
        assert_eq!(job.failures.len(), retries as usize + 1);
        assert_eq!(bench.provider.keys().len(), retries as usize + 1);
    }
}

/// B9a: a run that ended without a result costs nothing more, so a new one may be begun.
#[tokio::test(start_paused = true)]
async fn a_run_that_failed_is_begun_again() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, Act::Fail(ProviderErrorKind::RunFailed));
    bench.quiet().await;
    assert_eq!(bench.job(&id).await.checkpoint, Checkpoint::NotBegun);
    tokio::time::sleep(seconds(5)).await;
    deliver(&bench, 2);
    assert_eq!(text(&process.end(&id).await.job), "because");
    assert_eq!(bench.provider.resumes(), 0);
}

/// B9a: a run that its owner stopped at the provider is not begun again.
#[tokio::test(start_paused = true)]
async fn b9a_a_run_that_was_stopped_at_the_provider_ends_the_job() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.act(1, Act::Fail(ProviderErrorKind::RunStopped));
    let job = process.end(&id).await.job;
    assert_eq!(job.state.kind(), StateKind::Failed);
    assert_eq!(job.failures[0].code, Code::ExecutionError);
    tokio::time::sleep(seconds(600)).await;
    assert_eq!(bench.provider.keys().len(), 1);
}

/// P6: if the provider honours the key, the same key is sent again while retries remain. After that, no caller gets a
/// plain timeout.
#[tokio::test(start_paused = true)]
async fn p6_a_late_answer_under_a_key_is_sent_again_and_ends_submit_unknown() {
    let late = || Begin::Fail(BeginError::Unknown(error(ProviderErrorKind::TimedOut)));
    let bench = Bench::over(Scripted::with_semantics(semantics_of(
        ResendPolicy::WithKey,
        ResumePolicy::Always,
    )));
    let process = bench.process().await;
    bench.provider.next_begins([late(), late(), late()]);
    let id = process.start(NewJob { max_failures: 2, ..research() }).await;
    let job = process.end(&id).await.job;
    let keys = bench.provider.keys();
    assert_eq!(keys.len(), 3);
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    assert_eq!(job.failures.last().unwrap().code, Code::SubmitUnknown);
    assert!(job.failures.last().unwrap().message.contains("--again"), "{:?}", job.failures);
}

/// B9a: a run that we lost sight of continues at the provider, so it is resumed, never begun again.
#[tokio::test(start_paused = true)]
async fn a_broken_run_is_resumed() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    bench.provider.next_resumes([Answer::Fail(ProviderErrorKind::TimedOut)]);
    bench.provider.act(1, Act::Fail(ProviderErrorKind::Unreachable));
    bench.provider.act(1, Act::Done("because"));
    let job = process.end(&id).await.job;
    assert_eq!(text(&job), "because");
    assert_eq!(job.failures.len(), 2, "the break, and the resume that failed");
    assert_eq!(bench.provider.keys().len(), 1);
    assert_eq!(bench.provider.resumes(), 2);
}

/// B9a: silence after the bytes were sent.
#[tokio::test(start_paused = true)]
async fn a_request_of_unknown_outcome_is_not_sent_again_unless_that_is_safe() {
    for (again, begins) in
        [(ResendPolicy::Never, 1), (ResendPolicy::WithKey, 2), (ResendPolicy::Idempotent, 2)]
    {
        let bench =
            Bench::over(Scripted::with_semantics(semantics_of(again, ResumePolicy::Always)));
        let process = bench.process().await;
        bench
            .provider
            .next_begins([Begin::Fail(BeginError::Unknown(error(ProviderErrorKind::TimedOut)))]);
        let id = process.start(research()).await;
        tokio::time::sleep(seconds(5)).await;
        let keys = bench.provider.keys();
        assert_eq!(keys.len(), begins, "{again:?}");
        match again {
            ResendPolicy::Never => {
                let job = process.end(&id).await.job;
                assert_eq!(job.failures[0].code, Code::SubmitUnknown);
            }
            ResendPolicy::WithKey | ResendPolicy::Idempotent => {
                assert_eq!(keys[0], keys[1], "under the same key");
                deliver(&bench, 2);
                assert_eq!(text(&process.end(&id).await.job), "because");
            }
        }
    }
}
