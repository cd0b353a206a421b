//! G3, G4: the agent, the environment and the session, which cost nothing: each is looked for before it is made.

use std::sync::Arc;

use outlast_core::{BeginError, Provider, ProviderErrorKind, ResearchKind, Store};
use outlast_provider::anthropic::Anthropic;
use outlast_store::MemoryStore;
use serde_json::json;

use super::bench::{Bench, adapter};
use crate::bench::{self, KEY, PATIENCE, ask, patiently, with};

/// G3: made once for an account, and found by name by every other process.
#[tokio::test]
async fn g3_the_agent_and_the_environment_are_made_once() {
    let bench = Bench::new().await;
    bench.begin("q1").await;
    bench.begin("q2").await;
    let other = adapter(bench.sim.url(), PATIENCE, &bench.clock);
    patiently(other.begin(&ask("q3"), "k3")).await.unwrap();
    assert_eq!(bench.requests("POST /v1/agents").len(), 1);
    assert_eq!(bench.requests("POST /v1/environments").len(), 1);
    assert_eq!(bench.requests("POST /v1/sessions").len(), 3);
    let agent = &bench.requests("POST /v1/agents")[0].body;
    assert_eq!(agent["model"], "claude-sonnet-5-5");
    let tools = &agent["tools"][0];
    assert_eq!(tools["default_config"]["enabled"], false, "{tools}");
    let enabled: Vec<_> =
        tools["configs"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(enabled, ["web_search", "web_fetch"]);
}

/// G3: what one process found is kept in the store, by key: the next one asks the vendor nothing. Refused ids are replaced
/// there too.
#[tokio::test]
async fn g3_ids_are_kept_between_processes() {
    let bench = Bench::new().await;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(bench.clock.clone()));
    let process = || {
        let adapter = adapter(bench.sim.url(), PATIENCE, &bench.clock);
        adapter.set_id_store(&store);
        adapter
    };
    patiently(process().begin(&ask("q1"), "k1")).await.unwrap();
    let looked = bench.requests("GET /v1/agents").len();
    patiently(process().begin(&ask("q2"), "k2")).await.unwrap();
    assert_eq!(bench.requests("GET /v1/agents").len(), looked, "it was kept");
    let sessions = bench.requests("POST /v1/sessions");
    let agent = sessions[1].body["agent"].as_str().unwrap();
    assert_eq!(sessions[0].body["agent"], agent);
    bench.post(&format!("/v1/agents/{agent}/archive")).await;
    patiently(process().begin(&ask("q3"), "k3")).await.unwrap();
    let refused = bench.requests("POST /v1/sessions").len();
    patiently(process().begin(&ask("q4"), "k4")).await.unwrap();
    assert_eq!(bench.requests("POST /v1/sessions").len(), refused + 1, "the new one is kept");
}

/// G3: an agent that was archived is found out by the refusal, and created again, once.
#[tokio::test]
async fn g3_an_archived_agent_is_created_again() {
    let bench = Bench::new().await;
    bench.begin("q1").await;
    let made = &bench.requests("POST /v1/sessions")[0].body;
    let agent = made["agent"].as_str().unwrap().to_owned();
    bench.post(&format!("/v1/agents/{agent}/archive")).await;
    bench.begin("q2").await;
    assert_eq!(bench.requests("POST /v1/agents").len(), 3, "two made, one archived");
    let sessions = bench.requests("POST /v1/sessions");
    assert_ne!(sessions.last().unwrap().body["agent"], json!(agent));
}

/// G4: a session whose making was not answered is found by its key, and no second one is made.
#[tokio::test]
async fn g4_a_lost_session_is_found_by_its_key() {
    let bench = Bench::new().await;
    let question = "q [[sim:drop_create|ok;delay_ms=0]]";
    let run = patiently(bench.anthropic.begin(&ask(question), "job-0")).await.unwrap();
    assert_eq!(bench.requests("POST /v1/sessions").len(), 1, "{:?}", run.remote());
    // Another key is another job.
    patiently(bench.anthropic.begin(&ask(question), "job-1")).await.unwrap();
    assert_eq!(bench.requests("POST /v1/sessions").len(), 2);
}

/// G4: no error while a session is made leaves a job in doubt: nothing was paid for.
#[tokio::test]
async fn g4_an_error_while_the_session_is_made_leaves_nothing_in_doubt() {
    for status in [302, 400, 401, 402, 403, 404, 408, 409, 413, 422, 429, 500, 502, 503, 504, 524] {
        for body in ["json", "html", "empty"] {
            let bench = Bench::new().await;
            let question =
                format!("q [[sim:http;on=create;status={status};body={body};secret={KEY}]]");
            let refused = patiently(bench.anthropic.begin(&ask(&question), "k")).await;
            let Err(BeginError::Refused(error)) = refused else { panic!("{question}") };
            assert_ne!(error.kind, ProviderErrorKind::TimedOut, "{question}");
            let reported = format!("{error:?}");
            assert!(!reported.contains(KEY), "{reported}");
        }
    }
}

/// A model that the vendor does not have: the ones it has are named.
#[tokio::test]
async fn g3_a_model_that_does_not_exist_is_answered_with_those_that_do() {
    let bench = Bench::new().await;
    let mut options = bench::options(bench.sim.url(), KEY, PATIENCE, &bench.clock);
    options.model = Some("claude-nine".to_owned());
    let anthropic = Anthropic::new(options).unwrap();
    let refused = patiently(anthropic.begin(&ask("q"), "k")).await;
    let Err(BeginError::Refused(error)) = refused else { panic!("it began") };
    assert_eq!(error.kind, ProviderErrorKind::Misconfigured);
    assert!(error.sentence.contains("`claude-nine`"), "{error}");
    assert!(error.sentence.contains("claude-sonnet-5-5, claude-opus-5-5"), "{error}");
    let checked = patiently(anthropic.check(PATIENCE)).await.unwrap();
    assert!(checked.warnings[0].contains("does not list the model claude-nine"), "{checked:?}");
}

/// G9: doctor's call costs nothing and warns of a model's end.
#[tokio::test]
async fn a_check_costs_nothing_and_warns_of_a_models_end() {
    let bench = Bench::new().await;
    assert!(patiently(bench.anthropic.check(PATIENCE)).await.unwrap().warnings.is_empty());
    let mut options = bench::options(bench.sim.url(), KEY, PATIENCE, &bench.clock);
    options.model = Some("claude-sonnet-4-5".to_owned());
    let checked = patiently(Anthropic::new(options).unwrap().check(PATIENCE)).await.unwrap();
    assert_eq!(checked.warnings, ["the model claude-sonnet-4-5 will be shut down on 2027-02-01"]);
    let wrong = Anthropic::new(bench::options(bench.sim.url(), "wrong", PATIENCE, &Arc::default()));
    let error = patiently(wrong.unwrap().check(PATIENCE)).await.unwrap_err();
    assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
    assert!(error.sentence.contains("ANTHROPIC_API_KEY"), "{error}");
    assert!(bench.requests("POST").is_empty());
}

/// G6, G3: the session has the budget, the key and the title; the version path may be in the base URL.
#[tokio::test]
async fn g6_a_session_has_the_budget_of_the_ask() {
    let bench = Bench::new().await;
    let versioned = adapter(&format!("{}/v1/", bench.sim.url()), PATIENCE, &bench.clock);
    let ask = with(&ask("q"), "budget", 1_250_000_000);
    patiently(versioned.begin(&ask, "job-7")).await.unwrap();
    let session = &bench.requests("POST /v1/sessions")[0].body;
    let cost = json!({"type": "limit", "max_list_cost": {"amount": "125", "currency": "USD"}});
    assert_eq!(session["budget"], cost);
    assert_eq!(session["metadata"], json!({"outlast_key": "job-7"}));
    assert_eq!(session["title"], "q");
    assert_eq!(versioned.profile(), bench.anthropic.profile());
}

/// Invalid requests are refused before anything is sent.
#[tokio::test]
async fn other_kinds_of_questions_and_tiny_budgets_are_refused_unsent() {
    let bench = Bench::new().await;
    for kind in
        [ResearchKind::Search, ResearchKind::Ask, ResearchKind::Reason, ResearchKind::Results]
    {
        let ask = with(&ask("q"), "kind", serde_json::to_value(kind).unwrap());
        let refused = bench.anthropic.begin(&ask, "k").await;
        assert!(matches!(refused, Err(BeginError::NotSent(error)) if error.kind.is_permanent()));
    }
    let ask = with(&ask("q"), "budget", 9_999_999);
    assert!(matches!(bench.anthropic.begin(&ask, "k").await, Err(BeginError::NotSent(_))));
    assert!(bench.sim.requests().is_empty());
}
