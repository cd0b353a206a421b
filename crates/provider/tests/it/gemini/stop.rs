//! Stopping a run at the provider: once, and only when it runs.

use std::time::Duration;

use outlast_core::{Clock, Provider, ProviderErrorKind, RemoteRun, StopOutcome};

use super::bench::{Bench, gemini};
use crate::bench::{PATIENCE, assert_completed, assert_ended, follow, patiently};
use crate::canned::{Canned, reply};

/// A3, G3: a run under way is stopped by one call, and safe to stop again; its follower is notified.
#[tokio::test]
async fn g3_a_run_under_way_is_stopped_once() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:stuck]]").await;
    let remote = run.remote();
    let (followed, stopped) = tokio::join!(follow(&mut *run), bench.gemini.stop(&remote));
    assert_ended(stopped);
    assert_eq!(followed.error().kind, ProviderErrorKind::RunStopped);
    assert_ended(bench.gemini.stop(&remote).await);
    assert_eq!(bench.sim.stats().cancels, 1);
}

#[tokio::test]
async fn g3_a_finished_run_needs_no_stop() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:ok;delay_ms=0]]").await;
    bench.until(|stats| stats.runs[0].status == "completed").await;
    assert_completed(bench.gemini.stop(&run.remote()).await);
    assert_eq!(bench.sim.stats().cancels, 0);
}

/// G3: one that the provider does not know yet may be about to spend money; one it no longer knows is cancelled all the same,
/// and not reported as stopped.
#[tokio::test]
async fn g3_an_old_unknown_run_is_cancelled_but_not_reported_stopped() {
    let bench = Bench::new().await;
    let run = RemoteRun {
        provider: bench.gemini.name().to_owned(),
        id: "v1_nothing".to_owned(),
        cursor: None,
        begun_at: bench.clock.now(),
    };
    let error = bench.gemini.stop(&run).await.unwrap_err();
    assert!(!error.kind.is_permanent(), "it must be tried again: {error:?}");
    bench.clock.advance(Duration::from_secs(30));
    assert_eq!(bench.gemini.stop(&run).await, Ok(StopOutcome::Unknown));
    assert_eq!(bench.sim.stats().cancels, 1);
}

#[tokio::test]
async fn g3_a_stop_that_fails_is_an_error_to_try_again() {
    let bench = Bench::new().await;
    for on in ["cancel", "poll"] {
        let run = bench.begin(&format!("q [[sim:http;on={on};status=503;times=1|stuck]]")).await;
        match bench.gemini.stop(&run.remote()).await {
            Ok(outcome) => assert_eq!((on, outcome), ("cancel", StopOutcome::StillRunning)),
            Err(error) => {
                assert_eq!(
                    (on, error.kind),
                    ("poll", ProviderErrorKind::Unavailable { retry_after: None })
                )
            }
        }
        assert_ended(bench.gemini.stop(&run.remote()).await);
    }
    assert_eq!(bench.sim.stats().cancels, 3, "two tries of the first, one of the second");
}

#[tokio::test]
async fn g3_a_run_that_ends_while_it_is_stopped_is_seen_to_have_ended() {
    let server = Canned::serve(|line, number| match line {
        line if line.starts_with("GET") && number == 0 => {
            reply(200, r#"{"id":"r","status":"in_progress"}"#)
        }
        line if line.starts_with("GET") => reply(200, r#"{"id":"r","status":"failed"}"#),
        _ => reply(
            400,
            r#"{"error":{"message":"terminal","status":"FAILED_PRECONDITION","code":400}}"#,
        ),
    })
    .await;
    let provider = gemini(&server.url, PATIENCE, &server.clock);
    let run = RemoteRun {
        provider: provider.name().to_owned(),
        id: "../r/x".to_owned(),
        cursor: None,
        begun_at: server.clock.now(),
    };
    assert_ended(patiently(provider.stop(&run)).await);
    let look = "GET /v1beta/interactions/..%2Fr%2Fx";
    let calls = [look, "POST /v1beta/interactions/..%2Fr%2Fx/cancel", look];
    assert_eq!(server.lines(), calls, "an id cannot lead to another path");
}
