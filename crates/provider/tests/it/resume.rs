//! Resuming a run that another process began (B9a: nothing is submitted again).

use outlast_core::{Provider, ProviderErrorKind, RemoteRun};

use crate::bench::{Bench, follow, text_in};

/// Begins a run, and forgets all but what a store would keep.
async fn begun(bench: &Bench, scenario: &str) -> RemoteRun {
    bench.begin(&format!("q [[sim:{scenario};delay_ms=0]]")).await.remote()
}

#[tokio::test]
async fn a_running_run_is_resumed_and_followed_to_its_end() {
    let bench = Bench::new().await;
    let remote = begun(&bench, "ok;hold").await;
    let mut run = bench.resume(&remote).await;
    assert_eq!(run.remote(), remote);
    let followed = bench.follow_released(&mut *run, |stats| stats.attaches == 1).await;
    assert_eq!(followed.text(), text_in(&bench.object(&remote.id).await));
    assert_eq!(bench.sim.stats().submits, 1);
}

#[tokio::test]
async fn a_run_that_finished_meanwhile_gives_its_report_at_the_first_check() {
    let bench = Bench::new().await;
    let remote = begun(&bench, "ok").await;
    bench.until(|stats| stats.runs[0].status == "completed").await;
    let followed = follow(&mut *bench.resume(&remote).await).await;
    assert_eq!(bench.sim.stats().polls, 1);
    let (_, raw) = followed.end.as_ref().unwrap();
    let raw: serde_json::Value = serde_json::from_slice(raw).unwrap();
    assert_eq!(raw["id"], remote.id);
    assert_eq!(text_in(&raw), followed.text());
    assert_eq!(bench.sim.stats().attaches, 0);
}

#[tokio::test]
async fn a_run_that_failed_meanwhile_is_reported() {
    let bench = Bench::new().await;
    let remote = begun(&bench, "fail").await;
    bench.until(|stats| stats.runs[0].status == "failed").await;
    let followed = follow(&mut *bench.resume(&remote).await).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunFailed);
}

#[tokio::test]
async fn following_a_stopped_run_reports_the_stop() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;hold;delay_ms=0]]").await;
    let remote = run.remote();
    let (followed, stopped) = tokio::join!(follow(&mut *run), bench.agent.stop(&remote));
    stopped.unwrap();
    assert_eq!(followed.error().kind, ProviderErrorKind::RunStopped);
    let followed = follow(&mut *bench.resume(&remote).await).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunStopped);
}

#[tokio::test]
async fn a_report_cut_short_is_kept_with_a_note() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:incomplete;delay_ms=0]]").await;
    let followed = follow(&mut *run).await;
    let whole = text_in(&bench.object(&run.remote().id).await).to_owned();
    let expected =
        format!("{whole}\n\n*The provider ended this report early (max_output_tokens).*");
    assert_eq!(followed.text(), expected);
    let resumed = follow(&mut *bench.resume(&run.remote()).await).await;
    assert_eq!(resumed.text(), expected);
}

/// B9a: it did not fail, it was paid for, and it would end the same way.
#[tokio::test]
async fn a_run_cut_short_before_its_first_word_is_not_begun_again() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:incomplete;output=empty;delay_ms=0]]").await;
    for followed in [follow(&mut *run).await, follow(&mut *bench.resume(&run.remote()).await).await]
    {
        let problem = &followed.error().kind;
        assert!(problem.is_permanent() && !problem.ends_the_run(), "{problem:?}");
    }
}
