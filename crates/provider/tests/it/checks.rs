//! Checks, made while no stream can be had: what passes, what ends the run (A5).

use std::time::Duration;

use outlast_core::Trouble;

use crate::bench::{Bench, follow, text_in};

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

/// A5: trouble in passing is not a failed try.
#[tokio::test]
async fn a_check_that_fails_in_passing_is_made_again() {
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
    for (status, trouble) in [(401, Trouble::Unauthorized), (403, Trouble::Retired)] {
        let before = bench.sim.stats().polls;
        let question = format!(
            "q [[sim:http;on=poll;status={status}|drop;after_events=2|ok;hold;delay_ms=0]]"
        );
        let followed = follow(&mut *bench.begin(&question).await).await;
        assert_eq!(followed.error().trouble, trouble);
        assert!(!trouble.ends_the_run(), "it may still run: nothing new may be bought");
        assert_eq!(bench.sim.stats().polls - before, 1);
    }
}

const LOST: &str = "q [[sim:lost|drop;after_events=2|ok;hold;delay_ms=0]]";

/// A5: a young run may be missing for a while.
#[tokio::test]
async fn a_missing_run_is_gone_only_30_seconds_after_its_submit() {
    let bench = Bench::new().await;
    let mut run = bench.begin(LOST).await;
    bench.clock.advance(Duration::from_millis(29_999));
    let age = async {
        bench.until(|stats| stats.polls == 5).await;
        bench.clock.advance(Duration::from_millis(1));
    };
    let (followed, ()) = tokio::join!(follow(&mut *run), age);
    assert_eq!(followed.error().trouble, Trouble::RunGone);
    assert!(bench.sim.stats().polls >= 5);
}

/// A5: one 404 is forgiven at any age, a second is not.
#[tokio::test]
async fn an_old_run_is_gone_at_the_second_time_it_is_missing() {
    let bench = Bench::new().await;
    let begun = bench.begin(LOST).await.remote();
    bench.clock.advance(Duration::from_secs(30));
    let followed = follow(&mut *bench.resume(&begun).await).await;
    assert_eq!(followed.error().trouble, Trouble::RunGone);
    assert_eq!(bench.sim.stats().polls, 2);
}

#[tokio::test]
async fn a_run_missing_once_goes_on() {
    let bench = Bench::new().await;
    let begun = bench.begin("q [[sim:http;on=poll;status=404;times=1|ok;delay_ms=0]]").await;
    bench.clock.advance(Duration::from_secs(3600));
    let followed = follow(&mut *bench.resume(&begun.remote()).await).await;
    assert_eq!(followed.text(), text_in(&bench.object(&begun.remote().id).await));
}

/// A5: trouble of another kind between two 404s proves nothing about the run.
#[tokio::test]
async fn a_passing_fault_does_not_hide_that_a_run_is_missing() {
    let bench = Bench::new().await;
    let fault = |status| format!("http;on=poll;times=1;status={status}");
    let question = format!("q [[sim:{}|{}|{}]]", fault(404), fault(503), fault(404));
    let begun = bench.begin(&question).await.remote();
    bench.clock.advance(Duration::from_secs(30));
    let followed = follow(&mut *bench.resume(&begun).await).await;
    assert_eq!(followed.error().trouble, Trouble::RunGone);
    assert_eq!(bench.sim.stats().polls, 3);
}
