//! Follow-ups start from the notes and pages of their conversation (K10).

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Scope, StepState};
use outlast_simulator::{Options, Simulator};

use crate::bench::{Bench, QUESTION};

/// Another question that the same pages answer.
const NEXT: &str = "How have heat pumps changed in cost?";

/// K10: the pages of the first question are used before anything is searched, and none is fetched a second time within a
/// day.
#[tokio::test(flavor = "multi_thread")]
async fn k10_a_follow_up_starts_from_the_pages_of_its_conversation() {
    let mut bench = Bench::new("-", "-").await;
    let (report, sources) = bench.finish().await;
    let before = bench.simulator.calls();
    bench.follow_up(&report, NEXT).await;
    let (output, messages) = bench.try_finish().await;
    let outlast_core::Body::Report { text, sources: cited, .. } = output.unwrap().body else {
        panic!("a report")
    };
    let looked = messages.iter().position(|it| it.starts_with("Looking at "));
    let searched = messages.iter().position(|it| it.starts_with("Searching: "));
    assert!(looked.is_some(), "{messages:?}");
    assert!(searched.is_none_or(|searched| Some(searched) > looked), "{messages:?}");
    assert!(text.contains("## Summary"), "{text}");
    let known = cited.iter().filter(|it| sources.iter().any(|source| source.url == it.url));
    assert!(known.count() > 0, "{cited:?}");
    let after = bench.simulator.calls();
    for (page, fetched) in &before.pages {
        // A page whose notes were all dropped is not a page that the follow-up starts from.
        if sources.iter().any(|source| source.url.ends_with(page)) {
            assert_eq!(after.pages[page], *fetched, "{page} was fetched again");
        }
    }
    let searches = |calls: &outlast_simulator::Calls| calls.lanes["-"].search.len();
    assert!(searches(&after) - searches(&before) <= searches(&before), "no more searches");
}

/// K10: pages that are older than a day are read again.
#[tokio::test(flavor = "multi_thread")]
async fn k10_pages_older_than_a_day_are_read_again() {
    for (hours, is_read_again) in [(23, false), (25, true)] {
        let mut bench = Bench::new("-", "-").await;
        let (report, _) = bench.finish().await;
        let before = bench.simulator.calls().pages;
        bench.fixture.clock.advance(Duration::from_secs(hours * 3600));
        bench.follow_up(&report, NEXT).await;
        bench.finish().await;
        let after = bench.simulator.calls().pages;
        let again = before.iter().filter(|(page, fetched)| after[*page] > **fetched).count();
        assert_eq!(again > 0, is_read_again, "{hours} hours: {before:?} {after:?}");
    }
}

/// K2, K10: a follow-up that is interrupted gives the same report, also if the journal of the first question is removed
/// meanwhile.
#[tokio::test(flavor = "multi_thread")]
async fn k10_an_interrupted_follow_up_keeps_its_pages() {
    let simulator = Arc::new(Simulator::start(Options::default()).await.unwrap());
    let mut whole = Bench::with(Arc::clone(&simulator), "whole=1", "-").await;
    let (report, _) = whole.finish().await;
    whole.follow_up(&report, NEXT).await;
    let expected = whole.finish().await;
    let records = whole.steps().await.len() as i64 * 4;
    for record in (5..records).step_by(41) {
        let lane = format!("follow={record}");
        let mut bench = Bench::with(Arc::clone(&simulator), &lane, &lane).await;
        assert_eq!(bench.finish().await.0, report);
        bench.follow_up(&report, NEXT).await;
        bench.run_until(record).await;
        let steps = bench.steps().await;
        let has_chosen =
            steps.iter().any(|step| step.key == "earlier" && step.state == StepState::Done);
        if has_chosen {
            let later = bench.fixture.clock_now().after(Duration::from_secs(1));
            assert_eq!(bench.fixture.store.forget_runs("research", later).await.unwrap(), 1);
        }
        assert_eq!(bench.finish().await, expected, "{record}");
    }
}

/// K10: a follow-up whose earlier pages were removed searches like a first question.
#[tokio::test(flavor = "multi_thread")]
async fn k10_a_follow_up_without_earlier_pages_searches() {
    let mut bench = Bench::new("-", "-").await;
    let (report, _) = bench.finish().await;
    bench.follow_up(&report, NEXT).await;
    let later = bench.fixture.clock_now().after(Duration::from_secs(1));
    assert_eq!(bench.fixture.store.forget_runs("research", later).await.unwrap(), 1);
    let (output, messages) = bench.try_finish().await;
    assert!(output.is_ok(), "{output:?}");
    assert!(!messages.iter().any(|it| it.starts_with("Looking at ")), "{messages:?}");
    assert!(messages.iter().any(|it| it.starts_with("Searching: ")), "{messages:?}");
}

/// K9: files that an earlier question read are not shown to a run that searches the web, and are read again by one that
/// searches the files.
#[tokio::test(flavor = "multi_thread")]
async fn k9_earlier_files_are_used_only_by_a_run_that_searches_them() {
    let folder = tempfile::tempdir().unwrap();
    let text = |number: u32| {
        format!(
            "# Heat pumps developed in Arlen\n\nIn 2023 the town of Arlen counted {number} heat pumps. \
             Each of them saves 3,100 kilowatt hours a year. The costs fell by 12 percent between 2020 and 2023.\n"
        )
    };
    let file = folder.path().join("arlen.md");
    std::fs::write(&file, text(1204)).unwrap();
    let mut bench = Bench::new("-", "-").await;
    bench.library = Some(folder.path().to_owned());
    let (report, sources) = bench.finish().await;
    assert_eq!(sources.len(), 1, "{report}");
    std::fs::write(&file, text(1377)).unwrap();
    bench.follow_up(&report, QUESTION).await;
    let (next, sources) = bench.finish().await;
    assert_eq!(sources.len(), 1, "{next}");
    assert!(!next.contains("1204") && next.contains("1377"), "the file is read again: {next}");
    bench.library = None;
    bench.follow_up("There is no more.", QUESTION).await;
    bench.finish().await;
    let outputs =
        bench.fixture.store.step_outputs(&Scope::Operator, &bench.lease.job, &["decision"]);
    let outputs = outputs.await.unwrap();
    let earlier = outputs.iter().find(|output| output.key == "earlier").unwrap();
    assert_eq!(earlier.output, r#"{"pages":[]}"#);
}
