//! Resuming a run that another process began: nothing is submitted again.

use outlast_core::ProviderErrorKind;
use reqwest::Method;

use super::bench::Bench;
use crate::bench::follow;

/// G3, B9a: a run under way, one that ended, one that failed.
#[tokio::test]
async fn g3_a_run_is_resumed_by_its_id_alone() {
    let bench = Bench::new().await;
    let remote = bench.begin("q [[sim:ok;hold;delay_ms=0]]").await.remote();
    let mut run = bench.resume(&remote).await;
    assert_eq!(run.remote(), remote);
    let followed = bench.follow_released(&mut *run, |stats| stats.attaches == 1).await;
    let again = follow(&mut *bench.resume(&remote).await).await;
    assert_eq!(followed.output(), again.output());
    let failed = bench.begin("q [[sim:fail;delay_ms=0]]").await.remote();
    let followed = follow(&mut *bench.resume(&failed).await).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunFailed);
    assert!(followed.error().detail.as_ref().unwrap().contains("server_error"));
    assert_eq!(bench.sim.stats().submits, 2);
}

/// G3: a broken stream is resumed where it broke off, and nothing counts twice.
#[tokio::test]
async fn g3_a_broken_stream_is_resumed_after_its_last_event() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:drop;after_events=3|ok;hold;searches=3]]").await;
    bench.follow_released(&mut *run, |stats| stats.attaches == 2).await.text();
    let requests = bench.sim.requests();
    let cursors: Vec<&str> = requests
        .iter()
        .filter_map(|request| Some(request.path.split_once("starting_after=")?.1))
        .collect();
    assert_eq!(cursors[0], "0");
    assert_ne!(cursors[1], "0", "{cursors:?}");
}

/// G3, B9a: a run that was deleted at the vendor is lost, not over.
#[tokio::test]
async fn g3_a_run_deleted_at_the_vendor_is_lost_and_not_begun_again() {
    let bench = Bench::new().await;
    let remote = bench.begin("q [[sim:ok;delay_ms=0]]").await.remote();
    let deleted = bench.call(Method::DELETE, &format!("responses/{}", remote.id)).await;
    assert_eq!(deleted["deleted"], true);
    let followed = follow(&mut *bench.resume(&remote).await).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunLost);
    assert_eq!(bench.sim.stats().submits, 1);
}
