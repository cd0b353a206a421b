//! Checks, made while no stream can be had: what passes, what ends the run (A5).

use std::time::Duration;

use outlast_core::ProviderErrorKind;
use tokio::time::Instant;

use crate::bench::{Bench, LOST_AFTER, follow, text_in};

/// A5: a stream that is refused is asked for once.
#[tokio::test]
async fn a_run_without_streams_is_followed_by_checks() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:no_stream|drop;after_events=2|ok;hold;delay_ms=0]]").await;
    let followed = bench.follow_released(&mut *run, |stats| stats.polls == 4).await;
    assert_eq!(followed.text(), text_in(&bench.object(&run.remote().id).await));
    assert_eq!(bench.sim.stats().attaches, 1);
}

/// A5: a stream that cannot be had now may be had later.
#[tokio::test]
async fn a_stream_refused_in_passing_is_asked_for_again() {
    let bench = Bench::new().await;
    for fault in ["status=503", "status=429", "status=502;body=html", "status=404"] {
        let before = bench.sim.stats().attaches;
        let mut run = bench
            .begin(&format!(
                "q [[sim:http;on=attach;times=2;{fault}|drop;after_events=2|ok;hold;delay_ms=0]]"
            ))
            .await;
        let reached = |stats: &outlast_simulator::Stats| {
            stats.attaches == before + 3 && stats.runs.last().unwrap().streams == 2
        };
        let followed = bench.follow_released(&mut *run, reached).await;
        assert_eq!(followed.text(), text_in(&bench.object(&run.remote().id).await), "{fault}");
    }
}

/// A5: a passing error is not a failed try.
#[tokio::test]
async fn a_check_that_fails_in_passing_is_repeated() {
    let bench = Bench::new().await;
    for fault in ["503", "503;body=html", "429", "429;body=html", "500;body=empty", "524;body=html"]
    {
        let before = bench.sim.stats().polls;
        let question =
            format!("q [[sim:http;on=poll;times=4;status={fault}|no_terminal|ok;delay_ms=0]]");
        let mut run = bench.begin(&question).await;
        let followed = follow(&mut *run).await;
        assert_eq!(bench.sim.stats().polls - before, 5, "{fault}");
        assert_eq!(followed.text(), text_in(&bench.object(&run.remote().id).await), "{fault}");
    }
    assert_eq!(bench.sim.stats().submits, 6);
}

/// A5: 401 and 403 end the run at once.
#[tokio::test]
async fn a_refused_key_ends_the_run_at_the_first_check() {
    let bench = Bench::new().await;
    for (status, kind) in
        [(401, ProviderErrorKind::Unauthorized), (403, ProviderErrorKind::Retired)]
    {
        let before = bench.sim.stats().polls;
        let question = format!(
            "q [[sim:http;on=poll;status={status}|drop;after_events=2|ok;hold;delay_ms=0]]"
        );
        let followed = follow(&mut *bench.begin(&question).await).await;
        assert_eq!(followed.error().kind, kind);
        assert!(!kind.ends_the_run(), "it may still run: nothing new may be bought");
        assert_eq!(bench.sim.stats().polls - before, 1);
    }
}

const LOST: &str = "q [[sim:lost|drop;after_events=2|ok;hold;delay_ms=0]]";

/// A5, B9a: a run is lost only after a long time of nothing but 404, however often it is looked for in that time, and
/// the error is not one after which a new run may begin.
#[tokio::test]
async fn a5_a_run_is_lost_only_after_a_time_of_nothing_but_404() {
    let bench = Bench::new().await;
    let begun = bench.begin(LOST).await.remote();
    // By the clock of people it is old: that says nothing.
    bench.clock.advance(Duration::from_secs(3600));
    let looked = Instant::now();
    let followed = follow(&mut *bench.resume(&begun).await).await;
    assert!(looked.elapsed() >= LOST_AFTER, "{:?}", looked.elapsed());
    assert_eq!(followed.error().kind, ProviderErrorKind::RunLost);
    assert!(!followed.error().kind.ends_the_run());
    assert!(bench.sim.stats().polls > 3, "{} polls", bench.sim.stats().polls);
}

/// A5: a 404 for a while, as a gateway or a replica that lags gives it, is in passing.
#[tokio::test]
async fn a5_a_run_missing_for_a_while_goes_on() {
    let bench = Bench::new().await;
    let begun = bench.begin("q [[sim:http;on=poll;status=404;times=9|ok;delay_ms=0]]").await;
    bench.clock.advance(Duration::from_secs(3600));
    let followed = follow(&mut *bench.resume(&begun.remote()).await).await;
    assert_eq!(followed.text(), text_in(&bench.object(&begun.remote().id).await));
    assert_eq!(bench.sim.stats().submits, 1);
}
