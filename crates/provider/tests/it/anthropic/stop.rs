//! Stopping a session: interrupted, then archived, so that nothing can be sent into it any more.

use std::time::Duration;

use outlast_core::{Clock, Provider, RemoteRun, StopOutcome};

use super::bench::{Bench, until_cursor};
use crate::bench::{assert_completed, assert_ended, follow, patiently};

/// A3: a run under way is stopped, and safe to stop again.
#[tokio::test]
async fn g3_a_session_under_way_is_stopped_and_closed() {
    let bench = Bench::new().await;
    let run = bench.sent("q [[sim:stuck]]").await;
    for _ in 0..2 {
        assert_ended(patiently(bench.anthropic.stop(&run.remote())).await);
    }
    bench.until(|stats| stats.runs[0].status == "idle").await;
    assert_eq!(bench.sim.stats().cancels, 1, "an archived session needs no second word");
}

#[tokio::test]
async fn g3_a_finished_session_is_stopped_without_harm() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;delay_ms=0]]").await;
    assert!(follow(&mut *run).await.end.is_ok());
    assert_completed(patiently(bench.anthropic.stop(&run.remote())).await);
}

/// G4: after a cancel before the question was sent, nothing can be sent any more.
#[tokio::test]
async fn g4_a_stopped_session_accepts_no_question() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok]]").await;
    until_cursor(&mut *run, "sending@").await;
    assert_ended(patiently(bench.anthropic.stop(&run.remote())).await);
    let followed = follow(&mut *run).await;
    assert!(followed.end.is_err());
    assert_eq!(bench.sim.stats().submits, 0);
}

#[tokio::test]
async fn g3_an_unknown_session_is_not_called_stopped() {
    let bench = Bench::new().await;
    let run = RemoteRun {
        provider: bench.anthropic.name().to_owned(),
        id: "sesn_none".to_owned(),
        cursor: Some("sent".to_owned()),
        begun_at: bench.clock.now(),
    };
    let error = bench.anthropic.stop(&run).await.unwrap_err();
    assert!(!error.kind.is_permanent(), "it must be tried again: {error:?}");
    bench.clock.advance(Duration::from_secs(30));
    assert_eq!(bench.anthropic.stop(&run).await, Ok(StopOutcome::Unknown));
}

#[tokio::test]
async fn g3_a_stop_that_fails_is_tried_again() {
    let bench = Bench::new().await;
    let run = bench.sent("q [[sim:http;on=cancel;status=503;times=1|stuck]]").await;
    assert_eq!(bench.anthropic.stop(&run.remote()).await, Ok(StopOutcome::StillRunning));
    assert_ended(bench.anthropic.stop(&run.remote()).await);
}
