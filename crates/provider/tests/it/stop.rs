//! Stopping a run at the provider: once, and only when it runs.

use std::time::Duration;

use outlast_core::{Clock, Provider, ProviderErrorKind, RemoteRun, StopOutcome};

use crate::bench::{Bench, assert_completed, assert_ended, patiently};
use crate::canned::{Canned, reply};

/// A3: a run under way is stopped by one call, and safe to stop again.
#[tokio::test]
async fn a_run_under_way_is_stopped_once() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:stuck]]").await;
    assert_ended(bench.agent.stop(&run.remote()).await);
    bench.until(|stats| stats.runs[0].status == "cancelled").await;
    assert_ended(bench.agent.stop(&run.remote()).await);
    assert_eq!(bench.sim.stats().cancels, 1);
}

#[tokio::test]
async fn a_finished_run_needs_no_stop() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:ok;delay_ms=0]]").await;
    bench.until(|stats| stats.runs[0].status == "completed").await;
    assert_completed(bench.agent.stop(&run.remote()).await);
    assert_eq!(bench.sim.stats().cancels, 0);
}

/// A run that the provider does not know yet may be about to spend money. One it no longer knows may only be hidden for a
/// while: it is cancelled all the same, and not reported as stopped if it does not answer that.
#[tokio::test]
async fn an_old_unknown_run_is_cancelled_but_not_reported_stopped() {
    let bench = Bench::new().await;
    let run = RemoteRun {
        provider: bench.agent.name().to_owned(),
        id: "resp_0b0cfa5b-d9cb-469f-a165-70867728950e".to_owned(),
        cursor: None,
        begun_at: bench.clock.now(),
    };
    let error = bench.agent.stop(&run).await.unwrap_err();
    assert!(!error.kind.is_permanent(), "it must be tried again: {error:?}");
    bench.clock.advance(Duration::from_secs(30));
    assert_eq!(bench.agent.stop(&run).await, Ok(StopOutcome::Unknown));
    assert_eq!(bench.sim.stats().cancels, 1);
}

#[tokio::test]
async fn a_stop_that_fails_is_an_error_to_try_again() {
    let bench = Bench::new().await;
    for on in ["cancel", "poll"] {
        let run = bench.begin(&format!("q [[sim:http;on={on};status=503;times=1|stuck]]")).await;
        match bench.agent.stop(&run.remote()).await {
            Ok(outcome) => assert_eq!((on, outcome), ("cancel", StopOutcome::StillRunning)),
            Err(error) => {
                assert_eq!(
                    (on, error.kind),
                    ("poll", ProviderErrorKind::Unavailable { retry_after: None })
                )
            }
        }
        assert_ended(bench.agent.stop(&run.remote()).await);
    }
    assert_eq!(bench.sim.stats().cancels, 3, "two tries of the first, one of the second");
}

#[tokio::test]
async fn a_run_that_ends_while_it_is_stopped_is_seen_to_have_ended() {
    let server = Canned::serve(|line, number| match line {
        line if line.starts_with("GET") && number == 0 => {
            reply(200, r#"{"id":"r","status":"in_progress"}"#)
        }
        line if line.starts_with("GET") => reply(200, r#"{"id":"r","status":"failed"}"#),
        _ => reply(400, r#"{"error":{"message":"terminal","type":"invalid_request","code":400}}"#),
    })
    .await;
    let agent = server.agent(Duration::from_secs(5));
    let run = RemoteRun {
        provider: agent.name().to_owned(),
        id: "r".to_owned(),
        cursor: None,
        begun_at: server.clock.now(),
    };
    assert_ended(patiently(agent.stop(&run)).await);
    assert_eq!(server.lines(), ["GET /v1/agent/r", "POST /v1/agent/r/cancel", "GET /v1/agent/r"]);
}
