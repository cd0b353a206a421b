//! Stopping a run at the provider: under way, finished, stopped already, unknown.

use std::time::Duration;

use outlast_core::{Clock, Provider, ProviderErrorKind, RemoteRun, StopOutcome};

use super::bench::Bench;
use crate::bench::{assert_completed, assert_ended, follow};

/// G3: one call stops it, and it is safe to stop again.
#[tokio::test]
async fn g3_a_run_under_way_is_stopped_once() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:stuck]]").await;
    assert_ended(bench.openai.stop(&run.remote()).await);
    bench.until(|stats| stats.runs[0].status == "cancelled").await;
    assert_ended(bench.openai.stop(&run.remote()).await);
    assert_eq!(bench.sim.stats().cancels, 1);
    let followed = follow(&mut *bench.resume(&run.remote()).await).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunStopped);
}

/// G3: the stream of a run that is stopped just ends; a check says why.
#[tokio::test]
async fn g3_a_run_stopped_while_it_is_followed_is_reported() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;hold;delay_ms=0]]").await;
    let remote = run.remote();
    let stopping = async {
        bench.until(|stats| stats.attaches == 1).await;
        bench.openai.stop(&remote).await
    };
    let (followed, stopped) = tokio::join!(follow(&mut *run), stopping);
    assert_ended(stopped);
    assert_eq!(followed.error().kind, ProviderErrorKind::RunStopped);
}

#[tokio::test]
async fn g3_a_finished_run_needs_no_stop() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:ok;delay_ms=0]]").await;
    bench.until(|stats| stats.runs[0].status == "completed").await;
    assert_completed(bench.openai.stop(&run.remote()).await);
    assert_eq!(bench.sim.stats().cancels, 0);
}

/// G3: one that is unknown may be about to spend money; later it is asked to stop, and not reported as stopped.
#[tokio::test]
async fn g3_an_unknown_run_is_not_called_stopped() {
    let bench = Bench::new().await;
    let run = RemoteRun {
        provider: bench.openai.name().to_owned(),
        id: "resp_0b0cfa5b-d9cb-469f-a165-70867728950e".to_owned(),
        cursor: None,
        begun_at: bench.clock.now(),
    };
    let error = bench.openai.stop(&run).await.unwrap_err();
    assert!(!error.kind.is_permanent(), "it must be tried again: {error:?}");
    bench.clock.advance(Duration::from_secs(30));
    assert_eq!(bench.openai.stop(&run).await, Ok(StopOutcome::Unknown));
}

#[tokio::test]
async fn g3_a_stop_that_fails_is_an_error_to_try_again() {
    let bench = Bench::new().await;
    for on in ["cancel", "poll"] {
        let run = bench.begin(&format!("q [[sim:http;on={on};status=503;times=1|stuck]]")).await;
        match bench.openai.stop(&run.remote()).await {
            Ok(outcome) => assert_eq!((on, outcome), ("cancel", StopOutcome::StillRunning)),
            Err(error) => {
                assert_eq!(
                    (on, error.kind),
                    ("poll", ProviderErrorKind::Unavailable { retry_after: None })
                )
            }
        }
        assert_ended(bench.openai.stop(&run.remote()).await);
    }
}
