//! G3: how a session ends, and its result: a report with sources, usage and cost, or an error by its remedy.

use outlast_core::{Cost, NanoUsd, Provider, ProviderErrorKind};
use serde_json::json;

use super::bench::Bench;
use crate::bench::{follow, patiently};

/// G3: numbered sources, usage and the cost that the vendor states, to the nano-dollar of its bill.
#[tokio::test]
async fn g3_a_finished_session_is_a_report_with_sources_usage_and_cost() {
    let bench = Bench::new().await;
    let followed =
        follow(&mut *bench.begin("How do heat pumps age? [[sim:ok;delay_ms=2000000]]").await).await;
    let output = followed.output();
    assert_eq!(output.model.as_deref(), Some("claude-sonnet-5-5"));
    let stats = bench.sim.stats();
    assert_eq!(output.cost, Cost::Reported(NanoUsd(stats.spent_nanos)));
    assert!(stats.spent_nanos > 0 && stats.spent_nanos % 10_000_000 == 0, "{stats:?}");
    assert!(output.usage.searches == 4 && output.usage.output_tokens > 0, "{:?}", output.usage);
    let numbers: Vec<u32> = followed.sources().iter().map(|source| source.number).collect();
    assert_eq!(numbers, (1..=8).collect::<Vec<u32>>());
    assert!(
        followed.text().contains("[1]") && !followed.text().contains("]("),
        "{}",
        followed.text()
    );
    assert!(followed.sources().iter().all(|source| source.title.is_some()));
    assert_eq!(followed.reported()[0], (25, "Querying Anthropic..."));
    assert!(
        followed.reported().iter().any(|(_, said)| said.contains("asked")),
        "{:?}",
        followed.reported()
    );
}

#[tokio::test]
async fn g3_a_session_that_states_no_cost_is_estimated() {
    let bench = Bench::new().await;
    let followed = follow(&mut *bench.begin("q [[sim:cost;none|ok;delay_ms=0]]").await).await;
    assert!(matches!(followed.output().cost, Cost::Estimate(_)), "{:?}", followed.output().cost);
}

#[tokio::test]
async fn g3_a_report_without_sources_has_none() {
    let bench = Bench::new().await;
    let followed =
        follow(&mut *bench.begin("q [[sim:ok;sources=0;searches=0;delay_ms=0]]").await).await;
    assert!(followed.sources().is_empty(), "{:?}", followed.sources());
}

/// G6: a budget that was used up ends the run with what there is.
#[tokio::test]
async fn g6_a_used_up_budget_keeps_the_text_or_reports_that_there_is_none() {
    let bench = Bench::new().await;
    let followed = follow(&mut *bench.begin("q [[sim:incomplete|ok;delay_ms=0]]").await).await;
    let said = "*The provider ended this report early (its budget was used up).*";
    assert!(followed.text().ends_with(said), "{}", followed.text());
    let empty =
        follow(&mut *bench.begin("q [[sim:incomplete;output=empty|ok;delay_ms=0]]").await).await;
    assert_eq!(empty.error().kind, ProviderErrorKind::Rejected);
    assert!(empty.error().sentence.contains("budget"), "{}", empty.error());
}

/// G3, B9a: only a run that failed may be repeated.
#[tokio::test]
async fn g3_every_other_end_is_an_error_by_its_remedy() {
    let cases = [
        (
            "fail;code=model_overloaded_error",
            ProviderErrorKind::RunFailed,
            "Anthropic's run failed",
        ),
        ("fail;code=terminated", ProviderErrorKind::RunFailed, "Anthropic's run failed"),
        ("fail;code=billing_error", ProviderErrorKind::QuotaExhausted, "ANTHROPIC_API_KEY"),
        ("fail;code=refusal", ProviderErrorKind::Rejected, "refused the question"),
        ("requires_action", ProviderErrorKind::Rejected, "asks for an action"),
        ("ok;words=0", ProviderErrorKind::Malformed, "shows no report"),
    ];
    for (scenario, kind, sentence) in cases {
        let bench = Bench::new().await;
        let followed =
            follow(&mut *bench.begin(&format!("q [[sim:{scenario};delay_ms=0]]")).await).await;
        let error = followed.error();
        assert_eq!(error.kind, kind, "{scenario}: {error:?}");
        assert!(error.sentence.contains(sentence), "{scenario}: {error}");
        assert_eq!(bench.sim.stats().submits, 1, "{scenario}");
    }
    let bench = Bench::new().await;
    let refused = follow(&mut *bench.begin("q [[sim:fail;code=refusal;delay_ms=0]]").await).await;
    assert_eq!(refused.error().detail.as_deref(), Some("against the policy"), "G9: its own words");
}

/// B9a: a session that was stopped at the vendor by another hand is not begun again.
#[tokio::test]
async fn b9a_a_session_stopped_elsewhere_ends_with_that_reason() {
    let bench = Bench::new().await;
    let mut run = bench.sent("q [[sim:stuck]]").await;
    patiently(bench.anthropic.stop(&run.remote())).await.unwrap();
    let followed = follow(&mut *run).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunStopped, "{:?}", followed.error());
}

/// G3: earlier turns go with the question, in order.
#[tokio::test]
async fn g3_a_follow_up_includes_earlier_turns() {
    let bench = Bench::new().await;
    let ask = json!({"messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "first"},
        {"role": "assistant", "content": "answer"},
        {"role": "user", "content": "second [[sim:ok;delay_ms=0]]"},
    ]})
    .into();
    let mut run = patiently(bench.anthropic.begin(&ask, "k")).await.unwrap();
    assert!(follow(&mut *run).await.end.is_ok());
    let sent = bench.requests("POST /v1/sessions/").remove(0).body;
    let texts: Vec<_> =
        sent["events"][0]["content"].as_array().unwrap().iter().map(|it| &it["text"]).collect();
    assert_eq!(
        texts,
        [
            "Instructions:\n\nbe brief",
            "Earlier question:\n\nfirst",
            "Earlier answer:\n\nanswer",
            "second [[sim:ok;delay_ms=0]]",
        ]
    );
}
