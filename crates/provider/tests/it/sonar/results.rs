//! The Search API, in both dialects.

use outlast_core::{
    BeginError, Cost, NanoUsd, Provider, ProviderErrorKind, RecoverySemantics, ResendPolicy,
    ResumePolicy, Step,
};
use serde_json::json;

use super::bench::{agent, answered, ask, begin, not_begun, sonar};
use crate::bench::{PATIENCE, with};
use crate::canned::{Canned, Then, raw, reply};

const FOUND: &str = r#"{"id":"s-1","results":[
    {"title":"First","url":"https://a.example","snippet":"It is so.","date":"2026-10-02","last_updated":"2026-10-05"},
    {"title":null,"url":"https://b.example","snippet":null,"date":null},
    {"title":"No address"},
    "odd",
    {"title":"Last","url":"https://c.example"}],"server_time":null}"#;

#[tokio::test]
async fn results_are_listed_as_text_and_as_sources_in_both_dialects() {
    let server = Canned::always(reply(200, FOUND)).await;
    let (agent, sonar) = (agent(&server.url, PATIENCE), sonar(&server.url, PATIENCE));
    let providers: [&dyn Provider; 2] = [&agent, &sonar];
    for provider in providers {
        let mut run = begin(provider, &ask("results")).await;
        assert_eq!(
            (run.remote().id.as_str(), run.remote().provider.as_str()),
            ("s-1", provider.name())
        );
        let Step::Done { output, raw } = run.next().await.unwrap() else {
            panic!("not done at once")
        };
        assert_eq!(raw.unwrap(), FOUND.as_bytes());
        assert_eq!(output.cost, Cost::Computed(NanoUsd(5_000_000)));
        let followed = answered(provider, &ask("results")).await;
        assert_eq!(
            followed.text(),
            "Found 3 search results:\n\n\
             1. **First**\n   URL: https://a.example\n   It is so.\n   Date: 2026-10-02\n\n\
             2. **https://b.example**\n   URL: https://b.example\n\n\
             3. **Last**\n   URL: https://c.example\n\n"
        );
        let sources = followed.sources();
        assert_eq!(sources.iter().map(|source| source.number).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(sources[0].snippet.as_deref(), Some("It is so."));
        assert_eq!(
            (&sources[1].title, &sources[1].snippet, &sources[1].date),
            (&None, &None, &None)
        );
        assert_eq!(provider.typical_cost(&ask("results")), Cost::Estimate(NanoUsd(5_000_000)));
        let semantics = RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Never,
            can_stop: false,
        };
        assert_eq!(provider.recovery_semantics(&ask("results")), semantics);
    }
    assert_eq!(server.lines(), ["POST /search"; 4]);
}

#[tokio::test]
async fn a_search_sends_its_question_and_its_filters() {
    let server = Canned::always(reply(200, FOUND)).await;
    let sonar = sonar(&server.url, PATIENCE);
    answered(&sonar, &ask("results")).await.output();
    assert_eq!(
        server.seen()[0].body,
        json!({"query": "why?", "max_results": 10, "max_tokens_per_page": 1024})
    );
    let filters = json!({"recency": "day", "domains": ["-x.example"], "after": "10/01/2026",
        "before": "11/01/2026", "academic": true, "country": "CH", "max_results": 3, "max_tokens_per_page": 256});
    let narrow = with(&ask("results"), "filters", filters);
    answered(&sonar, &narrow).await.output();
    assert_eq!(
        server.seen()[1].body,
        json!({"query": "why?", "max_results": 3, "max_tokens_per_page": 256, "country": "CH",
            "search_recency_filter": "day", "search_domain_filter": ["-x.example"],
            "search_after_date_filter": "10/01/2026", "search_before_date_filter": "11/01/2026",
            "search_mode": "academic"})
    );
}

#[tokio::test]
async fn a9_no_results_are_worded_as_the_vendor_does() {
    let server = Canned::always(reply(200, r#"{"results":[]}"#)).await;
    let followed = answered(&sonar(&server.url, PATIENCE), &ask("results")).await;
    assert_eq!(followed.text(), "Found 0 search results:\n\n");
    assert!(followed.sources().is_empty());
}

/// B9a: a success without results is not the expected answer.
#[tokio::test]
async fn b9a_a_search_answered_with_nonsense_is_unknown() {
    let endless = raw(200, "content-type: application/json", &vec![b' '; 33 << 20], Then::Hold);
    for reply in [reply(200, "{}"), reply(200, "<html>"), reply(204, ""), endless] {
        let server = Canned::always(reply).await;
        let error = not_begun(&agent(&server.url, PATIENCE), &ask("results")).await;
        let BeginError::Unknown(error) = error else { panic!("{error:?}") };
        assert!(
            matches!(error.kind, ProviderErrorKind::Malformed | ProviderErrorKind::TooLarge),
            "{error:?}"
        );
        assert_eq!(server.submits(), 1);
    }
}

/// C10, and what the model is called until one has answered; both known before anything is sent.
#[test]
fn c10_an_ask_names_its_model_and_its_typical_cost() {
    let sonar = sonar("http://127.0.0.1:9", PATIENCE);
    let cases = [
        ("research", Some("sonar-deep-research"), 800),
        ("ask", Some("sonar-pro"), 6),
        ("search", Some("sonar"), 20),
        ("reason", Some("sonar-reasoning-pro"), 20),
        ("results", None, 5),
    ];
    for (kind, model, thousandths) in cases {
        assert_eq!(sonar.expected_model(&ask(kind)).as_deref(), model, "{kind}");
        let cost = Cost::Estimate(NanoUsd(thousandths * 1_000_000));
        assert_eq!(sonar.typical_cost(&ask(kind)), cost, "{kind}");
    }
    let unreadable = serde_json::json!({"prompt": "q"}).into();
    assert_eq!(sonar.expected_model(&unreadable), None);
    assert_eq!(sonar.typical_cost(&unreadable), Cost::Unknown);
}
