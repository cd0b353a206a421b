//! The result of a run against the simulator: progress, sources, usage, and a cost that is the simulator's own bill.

use outlast_core::{Cost, NanoUsd, Provider};
use serde_json::json;

use super::bench::{Bench, SEND_KEY};
use crate::bench::{follow, patiently};

/// G3, B6: the milestones, and real signals between them.
#[tokio::test]
async fn g3_progress_comes_from_what_the_run_does() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;hold;searches=2;sources=4;words=120]]").await;
    let followed = bench.follow_released(&mut *run, |stats| stats.attaches == 1).await;
    let reported = followed.reported();
    assert_eq!(reported[0], (25, "Querying OpenAI..."));
    assert!(reported.contains(&(50, "Processing response...")), "{reported:?}");
    assert!(
        reported.iter().any(|(percent, text)| (26..50).contains(percent)
            && text.starts_with("Researching: 2 queries asked, 4 sources read")),
        "{reported:?}"
    );
    assert_eq!(reported.last().unwrap(), &(95, "Finalizing research report..."));
}

/// G3: the same from checks alone.
#[tokio::test]
async fn g3_a_run_without_a_stream_is_followed_by_checks() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:no_stream|ok;hold;searches=2;sources=4]]").await;
    let followed = bench.follow_released(&mut *run, |stats| stats.polls > 3).await;
    assert_eq!(bench.sim.stats().attaches, 1, "one that was refused is not asked for again");
    assert!(
        followed.reported().iter().any(|(_, text)| text.starts_with("Researching: 1 query asked")),
        "{:?}",
        followed.reported()
    );
    assert!(!followed.text().is_empty());
}

/// G3: every citation is a numbered marker, every number a source with its title, and the stream says what a check does.
#[tokio::test]
async fn g3_every_citation_is_a_source_from_the_stream_and_from_a_check() {
    let bench = Bench::new().await;
    let mut run = bench.begin("W\u{e4}rme \u{1f600} [[sim:ok;hold;sources=5;words=200]]").await;
    let streamed = bench.follow_released(&mut *run, |stats| stats.attaches == 1).await;
    let checked = follow(&mut *bench.resume(&run.remote()).await).await;
    assert_eq!(streamed.output(), checked.output());
    let numbers: Vec<u32> = streamed.sources().iter().map(|source| source.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    for source in streamed.sources() {
        assert!(streamed.text().contains(&format!("[{}]", source.number)), "{source:?}");
        assert!(source.title.is_some() && !streamed.text().contains(&source.url), "{source:?}");
    }
    assert!(!streamed.text().contains("(["), "{}", streamed.text());
}

/// G3, G6: our cost is the simulator's bill, to the nano-dollar.
#[tokio::test]
async fn g3_the_cost_is_the_bill() {
    let bench = Bench::new().await;
    let mut sum = 0;
    for (effort, searches) in [("low", 0), ("low", 3), ("medium", 7), ("high", 11)] {
        let question = format!("q {searches} [[sim:ok;searches={searches};delay_ms=0]]");
        let ask =
            json!({"messages": [{"role": "user", "content": question}], "effort": effort}).into();
        let mut run = patiently(bench.openai.begin(&ask, SEND_KEY)).await.unwrap();
        let followed = follow(&mut *run).await;
        let Cost::Computed(NanoUsd(nanos)) = followed.output().cost else {
            panic!("{:?}", followed.output().cost)
        };
        sum += nanos;
        assert_eq!(bench.sim.stats().spent_nanos, sum, "{effort} {searches}");
    }
    assert_eq!(bench.openai.typical_cost(&json!({"prompt": "q"}).into()), Cost::Unknown);
}
