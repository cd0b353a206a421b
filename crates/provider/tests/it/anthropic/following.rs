//! A5, G5: a session is followed to its report whatever befalls its stream, its lists and its answers.

use outlast_core::ProviderErrorKind;

use super::bench::Bench;
use crate::bench::{KEY, follow};

/// G5: the same faults as in every other dialect; each leads to the one report of the one run.
#[tokio::test]
async fn g5_faults_in_passing_change_nothing() {
    for scenario in [
        "ok;delay_ms=20000",
        "http;on=poll;status=503;times=2",
        "http;on=poll;status=502;body=html;times=2",
        "http;on=poll;status=429;times=1",
        "http;on=attach;status=503;times=2",
        "http;on=attach;status=400",
        "no_stream",
        "no_terminal|ok;delay_ms=1000",
        "sse;crlf;pings;unknown",
        "sse;dup",
        "sse;gap",
        "drop;after_events=1;times=3",
        "drop;after_events=5;rst",
        "drop;after_bytes=10;times=4",
        "drop;after_bytes=700;times=4",
        "flap404;times=3",
        "stale;polls=3",
        "stale;polls=2;backwards",
        "slow;chunk_bytes=997",
        "malformed;kind=truncated;times=2",
        "malformed;kind=not_json;times=2",
        "malformed;kind=wrong_type;times=2",
        "malformed;kind=bad_utf8;times=2",
        "malformed;kind=huge;times=1;bytes=40000000",
        "malformed;kind=unknown_item",
        "malformed;kind=truncated;on=stream",
        "malformed;kind=not_json;on=stream",
        "late_list;ms=50000",
    ] {
        let bench = Bench::new().await;
        let followed =
            follow(&mut *bench.begin(&format!("q [[sim:{scenario}|ok;words=120]]")).await).await;
        assert!(followed.end.is_ok(), "{scenario}: {:?}", followed.error());
        assert_eq!(bench.sim.stats().submits, 1, "{scenario}");
    }
}

/// G5: a stream cut at any byte, and then a check: the report is the same.
#[tokio::test]
async fn g5_a_stream_may_be_cut_anywhere() {
    let bench = Bench::new().await;
    let whole = follow(&mut *bench.begin("q [[sim:ok;words=60;delay_ms=5000]]").await).await;
    for bytes in (0..4_000).step_by(97) {
        let question =
            format!("q [[sim:drop;after_bytes={bytes};times=2|ok;words=60;delay_ms=5000]]");
        let followed = follow(&mut *bench.begin(&question).await).await;
        assert!(followed.end.is_ok(), "{bytes}: {:?}", followed.error());
        assert_eq!(followed.sources().len(), whole.sources().len(), "{bytes}");
    }
}

/// A5, B9a: what is found no more is lost, and not begun again.
#[tokio::test]
async fn b9a_a_session_that_is_not_found_any_more_is_lost() {
    let bench = Bench::new().await;
    let followed = follow(&mut *bench.begin("q [[sim:lost;after=1|ok]]").await).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunLost, "{:?}", followed.error());
    assert_eq!(bench.sim.stats().submits, 1);
}

/// A5: a refused key ends the run; what upstream says never contains the key.
#[tokio::test]
async fn a_refused_check_ends_the_run_and_shows_no_key() {
    for (status, kind) in [
        (401, ProviderErrorKind::Unauthorized),
        (402, ProviderErrorKind::QuotaExhausted),
        (400, ProviderErrorKind::Rejected),
    ] {
        let bench = Bench::new().await;
        let question = format!("q [[sim:http;on=poll;status={status};secret={KEY}]]");
        let followed = follow(&mut *bench.begin(&question).await).await;
        assert_eq!(followed.error().kind, kind);
        assert!(!format!("{:?}", followed.error()).contains(KEY));
    }
}

/// A running session is resumed by another process, which returns the whole report.
#[tokio::test]
async fn g3_a_running_run_is_resumed() {
    let bench = Bench::new().await;
    let question = "q [[sim:ok;hold]]";
    let died = bench.sent(question).await.remote();
    let mut run = bench.resume(question, &died).await;
    let release = async {
        bench.until(|stats| stats.attaches >= 1).await;
        bench.sim.release();
    };
    let (followed, ()) = tokio::join!(follow(&mut *run), release);
    assert!(followed.end.is_ok(), "{:?}", followed.error());
    assert_eq!(bench.sim.stats().submits, 1);
}
