//! Following a run: checks decide, the stream is progress; the report, its sources, its usage and its bill.

use std::time::Duration;

use outlast_core::{Cost, NanoUsd, Provider, ProviderErrorKind};
use outlast_provider::gemini::Gemini;
use outlast_provider::vendor::{PollIntervals, VendorOptions};

use super::bench::{Bench, gemini};
use crate::bench::{KEY, PATIENCE, ask, follow, options, patiently, with};
use crate::canned::{Canned, Then, reply, stream};

/// G3: a report with numbered sources, usage and a cost that equals the vendor's own bill to the nano-dollar.
#[tokio::test]
async fn g3_a_finished_run_is_a_report_with_sources_usage_and_the_bill_to_the_nano() {
    let bench = Bench::new().await;
    for (effort, agent) in
        [("low", "deep-research-preview-04-2026"), ("high", "deep-research-max-preview-04-2026")]
    {
        bench.sim.script(&["ok"]).unwrap();
        let before = bench.sim.stats().spent_nanos;
        let ask = with(&ask(&format!("How do heat pumps age? ({effort})")), "effort", effort);
        let mut run = patiently(bench.gemini.begin(&ask, "key")).await.unwrap();
        let followed = follow(&mut *run).await;
        let output = followed.output();
        assert_eq!(output.model.as_deref(), Some(agent));
        assert_eq!(bench.gemini.expected_model(&ask).as_deref(), Some(agent));
        let bill = bench.sim.stats().spent_nanos - before;
        assert_eq!(output.cost, Cost::Computed(NanoUsd(bill)));
        assert!(output.usage.searches > 0 && output.usage.reasoning_tokens > 0);
        let numbers: Vec<u32> = followed.sources().iter().map(|source| source.number).collect();
        let expected: Vec<u32> = (1..).take(numbers.len()).collect();
        assert_eq!(numbers, expected, "numbered in the order of the text");
        assert!(numbers.len() >= 8);
        for source in followed.sources() {
            let marker = format!("[{}]", source.number);
            assert!(followed.text().contains(&marker), "{marker} in {}", followed.text());
            assert!(source.url.contains("grounding-api-redirect"), "kept as it is: {source:?}");
            assert!(source.title.is_some());
        }
        assert!(!followed.text().contains("Planning the searches"), "thoughts are no part of it");
        assert!(matches!(bench.gemini.typical_cost(&ask), Cost::Estimate(_)));
    }
}

/// B6, G3: 25, real signals, 50, 75-95; the thoughts of the agent are among them.
#[tokio::test]
async fn g3_progress_comes_from_what_the_run_does() {
    let bench = Bench::at_speed(20.0).await;
    let mut run = bench.begin("q [[sim:ok;words=400]]").await;
    let followed = follow(&mut *run).await;
    let reported = followed.reported();
    assert_eq!(reported[0], (25, "Querying Gemini..."));
    for expected in
        ["Researching: Planning the searches", "queries asked", "Processing response..."]
    {
        assert!(
            reported.iter().any(|(_, message)| message.contains(expected)),
            "{expected}: {reported:?}"
        );
    }
    assert_eq!(reported.last().unwrap().1, "Finalizing research report...");
}

/// G3: resumed after kill -9: nothing is sent again, and the report is the same.
#[tokio::test]
async fn g3_a_running_run_is_resumed_by_its_name() {
    let bench = Bench::new().await;
    let remote = bench.begin("q [[sim:ok;hold;delay_ms=0]]").await.remote();
    let mut run = bench.resume(&remote).await;
    assert_eq!(run.remote(), remote);
    let release = async {
        bench.until(|stats| stats.attaches == 1).await;
        bench.sim.release();
    };
    let (first, ()) = tokio::join!(follow(&mut *run), release);
    let again = follow(&mut *bench.resume(&remote).await).await;
    assert_eq!(first.text(), again.text());
    assert_eq!(bench.sim.stats().submits, 1);
}

/// G5: the vendor ends streams after ten minutes; each is resumed where it ended, and checks go on meanwhile.
#[tokio::test]
async fn g5_streams_that_are_cut_after_ten_minutes_are_resumed_and_decide_nothing() {
    let bench = Bench::at_speed(20_000.0).await;
    let mut run = bench.begin("q [[sim:ok;hold]]").await;
    let release = async {
        bench.until(|stats| stats.attaches >= 3).await;
        bench.sim.release();
    };
    let (followed, ()) = tokio::join!(follow(&mut *run), release);
    assert!(!followed.text().is_empty());
    let requests = bench.sim.requests();
    let attaches: Vec<&str> = requests
        .iter()
        .map(|seen| seen.path.as_str())
        .filter(|path| path.contains("stream=true"))
        .collect();
    assert!(!attaches[0].contains("last_event_id"), "{attaches:?}");
    assert!(attaches[1].contains("last_event_id="), "{attaches:?}");
    assert_eq!(bench.sim.stats().submits, 1);
}

const RUNNING: &str = r#"{"id":"r","status":"in_progress"}"#;
const DONE: &str = r#"{"id":"r","status":"completed",
    "steps":[{"type":"model_output","content":[{"type":"text","text":"the report"}]}]}"#;

/// G3: a stream that stays open and never reports the end does not keep a check from finding it.
#[tokio::test]
async fn g3_a_silent_stream_does_not_hide_the_end() {
    let server = Canned::serve(|line, nth| match line {
        line if line.contains("stream=true") => {
            stream(&[r#"{"event_type":"interaction.created","event_id":"a b&c"}"#], Then::Hold)
        }
        _ => reply(200, if nth < 5 { RUNNING } else { DONE }),
    })
    .await;
    let provider = gemini(&server.url, PATIENCE, &server.clock);
    let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
    assert_eq!(follow(&mut *run).await.text(), "the report");
    let streams = server.lines().iter().filter(|line| line.contains("stream=true")).count();
    assert_eq!(streams, 1, "it is not asked for again while it is open");
}

/// G3: an end that the stream reports is checked without waiting for the next check.
#[tokio::test]
async fn g3_the_end_in_a_stream_is_a_reason_to_look_at_once() {
    let ends = [
        r#"{"event_type":"interaction.completed","interaction":{"id":"r","status":"completed"}}"#,
        r#"{"event_type":"interaction.status_update","status":"completed"}"#,
        r#"{"event_type":"interaction.complete"}"#,
    ];
    for end in ends {
        let server = Canned::serve(move |line, nth| match (line.contains("stream=true"), nth) {
            (true, _) => stream(&[end], Then::Hold),
            (false, 0 | 1) => reply(200, RUNNING),
            _ => reply(200, DONE),
        })
        .await;
        let waits = Some(PollIntervals::of(&[Duration::from_secs(3600)]));
        let options = options(&server.url, KEY, PATIENCE, &server.clock);
        let provider = Gemini::new(VendorOptions { waits, ..options }).unwrap();
        let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
        assert_eq!(follow(&mut *run).await.text(), "the report", "{end}");
        assert_eq!(server.lines().len(), 4, "{:?}", server.lines());
    }
}

/// A5: five minutes of nothing but 404, here less; a 403 that says the same counts as one.
#[tokio::test]
async fn a5_g3_a_run_deleted_at_the_vendor_is_lost_and_not_begun_again() {
    for status in [404, 403] {
        let server = Canned::serve(move |_, nth| match nth {
            0 => reply(200, RUNNING),
            _ => reply(
                status,
                r#"{"error":{"message":"No permission, or it may not exist.","code":0}}"#,
            ),
        })
        .await;
        let provider = gemini(&server.url, PATIENCE, &server.clock);
        let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
        let followed = follow(&mut *run).await;
        assert_eq!(followed.error().kind, ProviderErrorKind::RunLost, "{status}");
        assert!(server.lines().len() > 3);
        assert_eq!(server.submits(), 1);
    }
}

/// G9: the vendor's own reason is kept, without the key.
#[tokio::test]
async fn g9_the_reason_of_a_failed_run_is_kept() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:fail;code=internal_7;delay_ms=0]]").await;
    let followed = follow(&mut *run).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunFailed);
    let detail = followed.error().detail.as_deref().unwrap();
    assert!(detail.contains("internal_7") && detail.contains("The agent stopped"), "{detail}");
}

/// B9a: it was paid for; asking for it again costs nothing, a new run does.
#[tokio::test]
async fn b9a_a_completed_run_without_a_report_is_reported_and_not_repeated() {
    let empty = r#"{"id":"r","status":"completed","steps":[{"type":"thought"}]}"#;
    let server = Canned::always(reply(200, empty)).await;
    let provider = gemini(&server.url, PATIENCE, &server.clock);
    let mut run = patiently(provider.begin(&ask("q"), "key")).await.unwrap();
    let followed = follow(&mut *run).await;
    let error = followed.error();
    assert!(error.sentence.contains("no report") && !error.kind.ends_the_run(), "{error:?}");
}

/// G3: a report without a single source is one: nothing is made up.
#[tokio::test]
async fn g3_a_report_without_sources_has_none() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;sources=0;searches=0;delay_ms=0]]").await;
    let followed = follow(&mut *run).await;
    assert!(followed.sources().is_empty() && !followed.text().is_empty());
}
