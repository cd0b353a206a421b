//! Against the simulator: runs that cost something, counted by the simulator.

use outlast_core::{BeginError, Body, Cost, Provider, ProviderErrorKind, Request};
use outlast_provider::perplexity::Sonar;
use outlast_simulator::{Options, Simulator, SonarMode};
use serde_json::{Value, json};

use super::bench::{answered, begin, not_begun, sonar};
use crate::bench::{KEY, PATIENCE, follow, patiently, with};

async fn live() -> (Simulator, Sonar) {
    simulated(SonarMode::Live).await
}

async fn simulated(mode: SonarMode) -> (Simulator, Sonar) {
    let options = Options { speed: 1_000.0, sonar: mode, ..Options::default() };
    let sim = Simulator::start(options).await.unwrap();
    let sonar = sonar(sim.url(), PATIENCE);
    (sim, sonar)
}

fn ask(kind: &str, scenario: &str) -> Request {
    let question = format!("How do heat pumps age? [[sim:{scenario}]]");
    json!({"kind": kind, "messages": [{"role": "user", "content": question}]}).into()
}

/// The provider's own answer, past the adapter.
async fn said(sim: &Simulator, path: &str, body: Option<Value>) -> Value {
    #[expect(clippy::disallowed_methods, reason = "a look past the adapter")]
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    let url = format!("{}{path}", sim.url());
    let request = match body {
        Some(body) => client.post(url).json(&body),
        None => client.get(url),
    };
    let response = request.bearer_auth(KEY).send().await.unwrap();
    serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
}

fn report(completion: &Value) -> &str {
    let content = completion["choices"][0]["message"]["content"].as_str().unwrap();
    content.rsplit_once("</think>").map_or(content, |(_, report)| report).trim()
}

#[tokio::test]
async fn research_comes_to_the_report_the_provider_has() {
    let (sim, sonar) = live().await;
    let mut run = begin(&sonar, &ask("research", "ok;words=200;sources=5")).await;
    let followed = follow(&mut *run).await;
    let job = said(&sim, &format!("/v1/async/sonar/{}", run.remote().id), None).await;
    assert_eq!(followed.text(), report(&job["response"]));
    assert_eq!(followed.sources().len(), 5);
    assert!(followed.sources().iter().all(|source| source.title.is_some()));
    let output = followed.output();
    let Body::Report { thinking, .. } = &output.body else { panic!("no report") };
    assert!(thinking.as_ref().is_some_and(|thinking| !thinking.contains("think>")));
    let Cost::Reported(cost) = output.cost else { panic!("{:?}", output.cost) };
    assert_eq!(cost.0, sim.stats().spent_nanos);
    assert!(output.usage.citation_tokens > 0 && output.usage.reasoning_tokens > 0);
    assert_eq!((output.usage.searches, sim.stats().submits), (4, 1));
}

#[tokio::test]
async fn a_streamed_answer_is_the_one_given_whole() {
    let (sim, sonar) = live().await;
    for (kind, model) in
        [("search", "sonar"), ("ask", "sonar-pro"), ("reason", "sonar-reasoning-pro")]
    {
        let ask = ask(kind, "ok;words=120;delay_ms=0");
        let followed = answered(&sonar, &ask).await;
        let whole = json!({"model": model, "messages": ask.json()["messages"]});
        let whole = said(&sim, "/chat/completions", Some(whole)).await;
        assert_eq!(followed.text(), report(&whole), "{kind}");
        assert_eq!(followed.output().model.as_deref(), Some(model));
        assert!(matches!(followed.output().cost, Cost::Reported(_)), "{kind}");
        assert!(followed.reported().len() > 2, "{kind}: {:?}", followed.reported());
    }
}

#[tokio::test]
async fn results_come_with_titles_dates_and_snippets() {
    let (sim, sonar) = live().await;
    let filters = json!({"max_results": 4, "recency": "year"});
    let ask = with(&ask("results", "ok"), "filters", filters);
    let followed = answered(&sonar, &ask).await;
    assert_eq!(followed.sources().len(), 4);
    assert!(followed.sources().iter().all(|source| source.snippet.is_some()));
    assert!(followed.text().starts_with("Found 4 search results:"), "{}", followed.text());
    assert_eq!((sim.stats().searches, sim.stats().submits), (1, 0));
}

/// B9a: the answer was lost, the key finds the run again.
#[tokio::test]
async fn b9a_a_submit_repeated_under_its_key_is_paid_once() {
    let (sim, sonar) = live().await;
    let ask = ask("research", "drop_submit;delay_ms=0");
    assert!(matches!(not_begun(&sonar, &ask).await, BeginError::Unknown(_)));
    let mut run = begin(&sonar, &ask).await;
    assert_eq!(run.remote().id, sim.stats().runs[0].id);
    follow(&mut *run).await.output();
    let stats = sim.stats();
    assert_eq!((stats.submits, stats.replayed_submits), (1, 1));
    let another = patiently(sonar.begin(&ask, "key-2")).await;
    assert!(another.is_err(), "a new key is a new run, and its answer is lost again");
    assert_eq!(sim.stats().submits, 2);
}

/// A5: a run resumed by another process, whose checks fail in passing.
#[tokio::test]
async fn a5_a_run_is_resumed_through_checks_that_fail() {
    let (sim, sonar) = live().await;
    let faults = "http;on=poll;times=2;status=503|http;on=poll;times=1;status=429;body=html";
    let begun = begin(&sonar, &ask("research", &format!("{faults}|ok;delay_ms=0"))).await.remote();
    let mut run =
        sonar.resume(&outlast_core::Request::from(serde_json::Value::Null), &begun).await.unwrap();
    follow(&mut *run).await.output();
    assert_eq!((sim.stats().polls, sim.stats().submits), (4, 1));
}

#[tokio::test]
async fn a_run_that_fails_and_an_answer_that_is_cut_say_so() {
    let (_sim, sonar) = live().await;
    let followed = answered(&sonar, &ask("research", "fail;delay_ms=0")).await;
    assert_eq!(followed.error().kind, ProviderErrorKind::RunFailed);
    let followed = answered(&sonar, &ask("ask", "incomplete;delay_ms=0")).await;
    assert!(followed.text().ends_with("ended this report early (length).*"), "{}", followed.text());
}

/// The error for users who choose the dialect at today's vendor.
#[tokio::test]
async fn the_vendor_of_today_answers_that_sonar_is_retired() {
    let (sim, sonar) = simulated(SonarMode::Retired).await;
    for kind in ["research", "search", "ask", "reason"] {
        let error = not_begun(&sonar, &ask(kind, "ok")).await;
        let BeginError::Refused(error) = error else { panic!("{kind}: {error:?}") };
        assert_eq!(error.kind, ProviderErrorKind::Retired, "{kind}");
        assert!(error.sentence.contains("PERPLEXITY_API=agent"), "{error}");
    }
    answered(&sonar, &ask("results", "ok")).await.output();
    assert_eq!((sim.stats().submits, sim.stats().searches), (0, 1));
}
