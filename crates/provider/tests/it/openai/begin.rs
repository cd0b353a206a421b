//! Submitting: what is sent, to which address, under which key, and when it returns.

use outlast_core::{BeginError, Clock, Provider, ProviderErrorKind};
use outlast_provider::openai::OpenAi;
use outlast_provider::vendor::VendorOptions;
use serde_json::json;

use super::bench::{Bench, SEND_KEY, begun, openai};
use crate::bench::{KEY, PATIENCE, ask, follow, options, patiently, with};
use crate::canned::{Canned, reply};

/// G3: the id is there long before the report, and the run names our job.
#[tokio::test]
async fn g3_begin_returns_once_the_run_has_an_id_and_names_the_job() {
    let bench = Bench::new().await;
    let run = bench.begin("q [[sim:ok;hold]]").await;
    let stats = bench.sim.stats();
    assert_eq!(run.remote().id, stats.runs[0].id);
    assert_eq!((run.remote().provider.as_str(), stats.runs[0].api.as_str()), ("openai", "openai"));
    assert_eq!(run.remote().begun_at, bench.clock.now());
    assert_eq!((stats.submits, stats.polls, stats.attaches), (1, 0, 0));
    let request = bench.sim.requests().pop().unwrap();
    assert_eq!(request.path, "/openai/v1/responses");
    assert!(request.body.get("stream").is_none(), "a submit is plain: {}", request.body);
    let object = bench.call(reqwest::Method::GET, &format!("responses/{}", run.remote().id)).await;
    assert_eq!(object["metadata"], json!({"outlast_job": "00000000000000000000000000000007"}));
}

/// G3: the address with and without its version, and with a query.
#[tokio::test]
async fn g3_the_version_may_be_in_the_address() {
    let server = Canned::always(reply(200, r#"{"id":"r","status":"queued"}"#)).await;
    for path in ["", "/", "/v1", "/v1/", "/gateway", "/gateway/v1/", "/v1?tenant=7"] {
        let base_url = format!("{}{path}", server.url);
        let adapter = OpenAi::new(options(&base_url, KEY, PATIENCE, &server.clock)).unwrap();
        begun(&adapter).await;
    }
    let expected =
        ["", "", "", "", "/gateway", "/gateway"].map(|path| format!("POST {path}/v1/responses"));
    let mut lines = server.lines();
    assert_eq!(lines.pop().unwrap(), "POST /v1/responses?tenant=7");
    assert_eq!(lines, expected);
}

/// G3: the query of an address is on every call, streams among them.
#[tokio::test]
async fn g3_a_stream_is_requested_in_addition_to_the_query_of_the_address() {
    let server = Canned::serve(|line, nth| match nth {
        0 => reply(200, r#"{"id":"r","status":"queued"}"#),
        _ if line.contains("stream=true") => reply(400, ""),
        1 => reply(200, r#"{"id":"r","status":"in_progress"}"#),
        _ => reply(200, r#"{"id":"r","status":"completed","output":[{"type":"message","content":[{"text":"t"}]}]}"#),
    })
    .await;
    let base_url = format!("{}/v1?tenant=7", server.url);
    let adapter = OpenAi::new(options(&base_url, KEY, PATIENCE, &server.clock)).unwrap();
    follow(&mut *begun(&adapter).await).await.text();
    assert_eq!(server.lines()[2], "GET /v1/responses/r?tenant=7&stream=true&starting_after=0");
}

/// G3: with and without the version it is the same service.
#[tokio::test]
async fn g3_a_profile_does_not_depend_on_the_version_in_the_address() {
    let profile = |base_url: &str| {
        OpenAi::new(options(base_url, KEY, PATIENCE, &Default::default())).unwrap().profile()
    };
    assert_eq!(profile("https://api.openai.com"), profile("https://api.openai.com/v1/"));
    assert_ne!(profile("https://api.openai.com"), profile("https://a.openai.azure.com"));
}

/// G3: another model is asked if the configuration names one.
#[tokio::test]
async fn g3_the_configured_model_is_asked_and_priced() {
    let bench = Bench::new().await;
    let url = format!("{}/openai", bench.sim.url());
    let with = |model: &str| {
        let options = options(&url, KEY, PATIENCE, &bench.clock);
        OpenAi::new(VendorOptions { model: Some(model.to_owned()), ..options }).unwrap()
    };
    let luna = with("gpt-6-luna");
    assert_eq!(luna.expected_model(&ask("q")).as_deref(), Some("gpt-6-luna"));
    let cost = |openai: &OpenAi| format!("{:?}", openai.typical_cost(&ask("q")));
    assert_eq!(cost(&luna), "Estimate(NanoUsd(89600000))");
    assert_eq!(cost(&bench.openai), "Estimate(NanoUsd(272000000))");
    let mut run = patiently(luna.begin(&ask("q [[sim:ok;delay_ms=0]]"), SEND_KEY)).await.unwrap();
    let followed = follow(&mut *run).await;
    assert_eq!(followed.output().model.as_deref(), Some("gpt-6-luna"));
}

/// G3: quick answers and searches are refused before anything is sent.
#[tokio::test]
async fn g3_other_kinds_of_ask_are_never_sent() {
    let bench = Bench::new().await;
    for kind in ["search", "ask", "reason", "results"] {
        let ask = with(&ask("q"), "kind", kind);
        let Err(error) = bench.openai.begin(&ask, SEND_KEY).await else {
            panic!("{kind} was sent")
        };
        let BeginError::NotSent(error) = error else { panic!("{error:?}") };
        assert_eq!(error.kind, ProviderErrorKind::Rejected, "{kind}");
    }
    assert!(bench.sim.requests().is_empty());
}

/// G3: a server that knows no background answers with the report, which it may not keep.
#[tokio::test]
async fn g3_a_report_that_comes_with_the_submit_is_used() {
    let done = r#"{"id":"r","status":"completed","model":"m","output":[{"type":"message","content":[{"text":"the report"}]}]}"#;
    let server = Canned::serve(move |line, _| match line.starts_with("POST") {
        true => reply(200, done),
        false => reply(404, ""),
    })
    .await;
    let mut run = begun(&openai(&server, PATIENCE)).await;
    assert_eq!(run.remote().id, "r");
    assert_eq!(follow(&mut *run).await.text(), "the report");
    assert_eq!(server.lines(), ["POST /v1/responses"]);
}
