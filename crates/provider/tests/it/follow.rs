//! Following a run by its stream, whole or in pieces.

use std::time::Duration;

use outlast_core::{Body, Cost, NanoUsd, ProviderErrorKind, Run, Step};

use crate::bench::{Bench, follow, patiently, text_in};

/// B6, C9: everything a finished run has to give.
#[tokio::test]
async fn a_run_followed_to_its_end_gives_the_report_as_a_look_at_it_would() {
    let bench = Bench::new().await;
    let mut run = bench.begin("How do heat pumps age? [[sim:ok;words=400;delay_ms=0]]").await;
    let followed = follow(&mut *run).await;
    let object = bench.object(&run.remote().id).await;
    assert_eq!(followed.text(), text_in(&object));

    let output = followed.output();
    assert_eq!(output.model.as_deref(), object["model"].as_str());
    assert_eq!(output.cost, Cost::Reported(NanoUsd(bench.sim.stats().spent_nanos)));
    let usage = &object["usage"];
    assert_eq!(output.usage.input_tokens, usage["input_tokens"].as_u64().unwrap());
    assert_eq!(output.usage.output_tokens, usage["output_tokens"].as_u64().unwrap());
    assert_eq!(output.usage.total_tokens, usage["total_tokens"].as_u64().unwrap());
    assert_eq!(output.usage.searches, 4);
    let Body::Report { sources, .. } = &output.body else { panic!("no report") };
    let numbers: Vec<u32> = sources.iter().map(|source| source.number).collect();
    assert!(!numbers.is_empty() && numbers.is_sorted_by(|a, b| a < b), "{numbers:?}");
    assert!(followed.text().contains(&format!("[{}]", numbers[0])));

    let (_, raw) = followed.end.as_ref().unwrap();
    let raw: serde_json::Value = serde_json::from_slice(raw).unwrap();
    assert_eq!(text_in(&raw["response"]), followed.text());
    let stats = bench.sim.stats();
    assert_eq!((stats.submits, stats.polls - 1, stats.attaches), (1, 0, 0), "the stream sufficed");
}

/// B6: the named milestones, and real signals between them.
#[tokio::test]
async fn progress_starts_at_25_and_rises_to_95() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:ok;words=400;delay_ms=0]]").await;
    let progress = follow(&mut *run).await.progress;
    let percents: Vec<_> = progress.iter().filter_map(|step| step.percent).collect();
    assert_eq!((percents[0], percents.last()), (25, Some(&95)));
    let said = |percent: u8| {
        let step = progress.iter().find(|step| step.percent == Some(percent)).unwrap();
        step.message.as_str()
    };
    assert_eq!(said(25), "Querying Perplexity API...");
    assert_eq!(said(50), "Processing response...");
    assert_eq!(said(75), "Finalizing research report...");
    assert!(progress.iter().any(|step| step.message.starts_with("Researching: 4 queries asked")));
}

/// The provider counts from zero in one form and from one in the other, and leaves numbers out; what a reader sees is
/// the same.
#[tokio::test]
async fn citations_lead_to_the_same_sources_in_either_form() {
    let bench = Bench::new().await;
    let mut seen = Vec::new();
    for markers in ["number", "web"] {
        let scenario = format!("ok;words=300;sources=12;searches=3;delay_ms=0;markers={markers}");
        bench.sim.script(&[&scenario]).unwrap();
        let mut run = bench.begin("How do heat pumps age?").await;
        let followed = follow(&mut *run).await;
        let object = bench.object(&run.remote().id).await;
        assert_eq!(text_in(&object).contains("[web:"), markers == "web");
        assert!(!followed.text().contains("[web:"));
        seen.push((followed.text().to_owned(), followed.sources().to_vec()));
    }
    assert_eq!(seen[0], seen[1]);
    let numbers: Vec<u32> = seen[0].1.iter().map(|source| source.number).collect();
    assert_ne!(numbers, (1..=12).collect::<Vec<_>>(), "numbers are left out");
    for number in numbers {
        assert!(seen[0].0.contains(&format!("[{number}]")), "{number} is cited");
    }
}

/// A5: a broken stream goes on behind the last event.
#[tokio::test]
async fn a_broken_stream_is_resumed_at_the_break() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:drop;after_events=3|ok;hold;delay_ms=0]]").await;
    let followed = bench.follow_released(&mut *run, |stats| stats.attaches == 1).await;
    assert_eq!(followed.text(), text_in(&bench.object(&run.remote().id).await));
    assert_eq!(bench.cursors(), [2]);
    assert_eq!(bench.sim.stats().submits, 1);
}

/// A5, B6: nothing is lost and nothing is counted twice, however often the stream breaks.
#[tokio::test]
async fn a_stream_that_breaks_after_every_event_loses_nothing() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:drop;times=99|ok;hold;sources=12;delay_ms=0]]").await;
    let followed = bench.follow_released(&mut *run, |stats| stats.attaches == 5).await;
    let object = bench.object(&run.remote().id).await;
    assert_eq!(followed.text(), text_in(&object));
    assert_eq!(bench.cursors()[..5], [0, 1, 2, 3, 4]);
    let found = object["output"][0]["results"].as_array().unwrap().len();
    let message = format!("Researching: 1 query asked, {found} sources read");
    assert!(
        followed.progress.iter().any(|step| step.message == message),
        "{message}: {:?}",
        followed.progress
    );
    assert_eq!(bench.sim.stats().submits, 1);
}

/// A5: a stream that falls silent is a reason to look, not an error.
#[tokio::test]
async fn a_stream_silent_for_longer_than_the_limit_leads_to_checks() {
    let bench = Bench::with_timeout(Duration::from_millis(200)).await;
    let mut run = bench.begin("q [[sim:ok;hold;delay_ms=0]]").await;
    let followed = bench.follow_released(&mut *run, |stats| stats.polls == 2).await;
    assert_eq!(followed.text(), text_in(&bench.object(&run.remote().id).await));
    assert_eq!(bench.cursors()[0], 4, "behind the last event before the silence");
}

/// A5: the end is found by a check if the stream does not report it.
#[tokio::test]
async fn a_stream_without_its_last_event_is_completed_by_a_check() {
    let bench = Bench::new().await;
    let mut run = bench.begin("q [[sim:no_terminal|ok;delay_ms=0]]").await;
    let followed = follow(&mut *run).await;
    assert_eq!(bench.sim.stats().polls, 1);
    assert_eq!(followed.text(), text_in(&bench.object(&run.remote().id).await));
}

#[tokio::test]
async fn a_failed_run_is_reported_and_may_be_repeated() {
    let bench = Bench::new().await;
    for at in ["search", "write"] {
        let mut run = bench.begin(&format!("q [[sim:fail;at={at};delay_ms=0]]")).await;
        let followed = follow(&mut *run).await;
        assert_eq!(followed.error().kind, ProviderErrorKind::RunFailed);
        assert!(followed.error().detail.as_ref().unwrap().contains("server_error"));
    }
}

/// The steps of a run whose calls are dropped again and again; `patience` grows with each drop, so
/// that a call is dropped at every one of its waits. `told` is called after each step.
async fn steps_with_drops(run: &mut dyn Run, told: impl Fn(&[String])) -> Vec<String> {
    let mut steps = Vec::new();
    loop {
        let mut patience = 0;
        let step = loop {
            let waits = async {
                for _ in 0..patience {
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! {
                biased;
                step = run.next() => break step.unwrap(),
                () = waits => patience += 1,
            }
        };
        match step {
            Step::Progress(progress) => {
                steps.push(progress.message);
                told(&steps);
            }
            Step::Moved | Step::Wait | Step::Cancel => {}
            Step::Done { output, .. } => {
                let Body::Report { text, .. } = output.body else { panic!("no report") };
                steps.push(text);
                return steps;
            }
        }
    }
}

#[tokio::test]
async fn a_dropped_call_loses_no_step_of_a_stream() {
    let bench = Bench::new().await;
    let question = "q [[sim:ok;words=300;delay_ms=0]]";
    let followed = follow(&mut *bench.begin(question).await).await;
    let mut expected: Vec<_> = followed.progress.iter().map(|step| step.message.clone()).collect();
    expected.push(followed.text().to_owned());
    let mut run = bench.begin(question).await;
    assert_eq!(patiently(steps_with_drops(&mut *run, |_| ())).await, expected);
}

#[tokio::test]
async fn a_dropped_call_loses_no_step_of_a_check() {
    let bench = Bench::new().await;
    for scenario in ["ok;hold;sources=12;delay_ms=0", "no_stream|ok;hold;sources=12;delay_ms=0"] {
        let begun = bench.begin(&format!("q [[sim:{scenario}]]")).await;
        let id = begun.remote().id;
        let found = bench.object(&id).await["output"][0]["results"].as_array().unwrap().len();
        let mut run = bench.resume(&begun.remote()).await;
        let told = |steps: &[String]| {
            if steps.len() == 2 {
                bench.sim.release();
            }
        };
        let steps = patiently(steps_with_drops(&mut *run, told)).await;
        let expected = format!("Researching: 1 query asked, {found} sources read");
        assert_eq!(steps[1], expected, "{scenario}: {steps:?}");
        assert_eq!(steps.last().unwrap(), text_in(&bench.object(&id).await), "{scenario}");
    }
}
