//! Tests that need a provider that shows its thinking, is very expensive or never answers.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use outlast_core::{
    BeginError, Body, Cost, NanoUsd, Output, Provider, ProviderError, RecoverySemantics, RemoteRun,
    Request, ResendPolicy, ResumePolicy, Run, Source, Step, StopOutcome, Timestamp, Usage,
};
use outlast_engine::{LeaveTime, Options, Providers, Shutdown, Worker, WorkerRole};
use outlast_mirror::MirrorOptions;
use outlast_store::{MemoryStore, SystemClock};
use serde_json::{Value, json};

use super::*;
use crate::caller::Caller;
use crate::reply::{CallResult, ToolResult};
use crate::tool_names::research::DEEP_RESEARCH;

/// A provider that answers at once, or never.
#[derive(Clone)]
pub(super) struct Oracle {
    answer: Option<Output>,
    typical_cost: Cost,
    asks: Arc<Mutex<Vec<Value>>>,
}

impl Oracle {
    pub(super) fn answering(answer: Option<Output>, typical_cost: Cost) -> Self {
        Self { answer, typical_cost, asks: Arc::default() }
    }
}

#[async_trait]
impl Provider for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: ResendPolicy::Never,
            resume: ResumePolicy::Always,
            can_stop: true,
        }
    }

    fn expected_model(&self, _request: &Request) -> Option<String> {
        Some("delphi".to_owned())
    }

    fn typical_cost(&self, _request: &Request) -> Cost {
        self.typical_cost
    }

    async fn begin(&self, request: &Request, _key: &str) -> Result<Box<dyn Run>, BeginError> {
        self.asks.lock().unwrap().push(request.json().clone());
        Ok(Box::new(self.clone()))
    }

    async fn resume(
        &self,
        _request: &Request,
        _run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(self.clone()))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        Ok(StopOutcome::Ended { cost: outlast_core::Cost::Unknown })
    }
}

#[async_trait]
impl Run for Oracle {
    fn remote(&self) -> RemoteRun {
        RemoteRun {
            provider: "oracle".to_owned(),
            id: "r-1".to_owned(),
            cursor: None,
            begun_at: Timestamp::from_millis(0),
        }
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        match self.answer.clone() {
            Some(output) => Ok(Step::Done { output: Box::new(output), raw: None }),
            None => std::future::pending().await,
        }
    }
}

fn thoughtful() -> Output {
    let body = Body::Report {
        text: "Because of Rayleigh [1].\u{1b}[31m".to_owned(),
        sources: vec![Source {
            number: 1,
            url: "https://a.example".to_owned(),
            ..Source::default()
        }],
        thinking: Some("hm".to_owned()),
        related: vec!["And at dusk?".to_owned()],
    };
    let cost = Cost::Reported(NanoUsd(7_000_000));
    Output { body, model: Some("delphi-2".to_owned()), usage: Usage::default(), cost }
}

/// Returns the set over a provider, with a worker that is running.
pub(super) async fn research(oracle: Oracle, mode: ResearchMode) -> Research {
    let profile = Profile::new("oracle");
    let providers = Providers::from([(profile.clone(), Arc::new(oracle) as Arc<dyn Provider>)]);
    let store = Arc::new(MemoryStore::new(Arc::new(SystemClock)));
    let folder = tempfile::tempdir().unwrap().keep();
    let mirror = MirrorOptions {
        logs_dir: folder.join("logs"),
        state_dir: folder.join("state"),
        owner: OwnerId::new("local"),
    };
    let mirror = Arc::new(Mirror::open(store.clone(), providers.clone(), mirror).unwrap());
    let mut engine_options = Options::default();
    engine_options.observers.add(mirror.clone());
    let engine = Engine::new(store, providers, engine_options, Shutdown::new()).await;
    let (engine, _follower) = engine.unwrap();
    tokio::spawn(Worker::new(&engine, WorkerRole::TheQueue).run(LeaveTime::Asked));
    let options = ResearchOptions {
        set: ResearchSet::Perplexity,
        profiles: vec![profile],
        mode,
        inline_report_chars: 80_000,
        inline_budget: Duration::from_secs(45),
        max_failures: 2,
        attempt_timeout: Duration::from_secs(600),
        search_timeout: Duration::from_secs(30),
        keep: Duration::from_secs(3600),
        disclaimer: Disclaimer::Off,
        sharing: DocumentSharing::PersonsOnly,
        checks_citations: true,
        mirror: Some(mirror),
    };
    Research::new(engine, options)
}

async fn call(set: &Research, owner: &str, tool: &str, arguments: Value) -> ToolResult<CallResult> {
    let Value::Object(arguments) = arguments else { panic!("not an object") };
    let tools = set.list_tools();
    let listed = tools.iter().find(|listed| listed.tool.name == tool).unwrap();
    (listed.call)(&mut Caller::test(owner), arguments).await
}

/// Returns the structured content and the text of a call that must succeed.
async fn ask(set: &Research, owner: &str, tool: &str, arguments: Value) -> (Value, String) {
    let (Ok(CallResult::Now(answer)) | Ok(CallResult::LeftRunning(answer, _))) =
        call(set, owner, tool, arguments).await
    else {
        panic!("refused, or a task")
    };
    let result = serde_json::to_value(answer).unwrap();
    let blocks = result["content"].as_array().unwrap().iter();
    let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
    (result["structuredContent"].clone(), texts.join("\n"))
}

/// Defect B7 of the older server: thinking is shown if it is requested, and otherwise never.
#[tokio::test]
async fn thinking_is_shown_only_on_request() {
    let oracle = Oracle::answering(Some(thoughtful()), Cost::Unknown);
    let set = research(oracle, ResearchMode::Blocking).await;
    let (hidden, text) = ask(&set, "local", SEARCH, json!({ "query": "why?" })).await;
    assert!(!text.contains("hm") && !hidden.to_string().contains("think"), "{text}");
    let (shown, text) =
        ask(&set, "local", SEARCH, json!({ "query": "why so?", "showThinking": true })).await;
    let raw = shown["rawResultText"].as_str().unwrap();
    assert!(raw.starts_with("<think>\nhm\n</think>\n\nBecause"), "{raw}");
    assert!(text.contains(raw) && text.contains("\n- And at dusk?"), "{text}");
    assert!(!text.contains('\u{1b}'), "sanitised: {text:?}");
    assert_eq!(shown["responseId"], "r-1");
    assert_eq!(shown["modelUsed"], "delphi-2");

    let id = &shown["conversationId"];
    let (plain, _) = ask(&set, "local", HISTORY, json!({ "conversationId": id })).await;
    assert!(!plain.to_string().contains("think"), "{plain}");
    let asked = json!({ "conversationId": id, "showThinking": true });
    let (whole, _) = ask(&set, "local", HISTORY, asked).await;
    assert!(whole["messages"][1]["content"].as_str().unwrap().starts_with("<think>\nhm"));
    let asked = json!({ "conversationIds": [id], "showThinking": true });
    let (batch, _) = ask(&set, "local", HISTORIES, asked).await;
    assert!(batch.to_string().contains("<think>"), "{batch}");
}

/// tools.md: the filters of a search reach its provider, and no others do.
#[tokio::test]
async fn filters_reach_the_provider() {
    let oracle = Oracle::answering(Some(thoughtful()), Cost::Unknown);
    let set = research(oracle.clone(), ResearchMode::Blocking).await;
    ask(&set, "local", SEARCH, json!({ "query": "plain" })).await;
    let narrowed = json!({
        "query": "narrow",
        "return_related_questions": true,
        "search_recency_filter": "week",
        "search_domain_filter": ["-a.example"],
        "search_after_date_filter": "02/28/2026",
        "search_before_date_filter": "03/01/2026",
        "search_mode": "academic"
    });
    ask(&set, "local", SEARCH, narrowed).await;
    let asks = oracle.asks.lock().unwrap().clone();
    assert_eq!(asks[0]["filters"], json!({}));
    assert_eq!(
        (&asks[0]["kind"], &asks[0]["messages"][0]["role"]),
        (&json!("search"), &json!("user"))
    );
    let filters = json!({
        "recency": "week", "domains": ["-a.example"], "after": "02/28/2026", "before": "03/01/2026",
        "academic": true, "related_questions": true
    });
    assert_eq!(asks[1]["filters"], filters);
}

/// G2, G6: the effort and the budget, to the billionth, reach the provider that the call names.
#[tokio::test]
async fn g2_effort_and_budget_of_any_provider_reach_it() {
    let oracle = Oracle::answering(Some(thoughtful()), Cost::Estimate(NanoUsd(1_000_000)));
    let mut set = research(oracle.clone(), ResearchMode::Blocking).await;
    set.options.set = ResearchSet::AnyProvider;
    let asked =
        json!({ "query": "why?", "effort": "high", "budget_usd": 0.1, "provider": "oracle" });
    let (answer, text) = ask(&set, "local", "deep_research", asked).await;
    assert_eq!(answer["provider"], "oracle");
    assert!(text.ends_with("Continue with `deep_research_followup`."), "{text}");
    ask(&set, "local", "deep_research", json!({ "query": "and so?" })).await;
    let asks = oracle.asks.lock().unwrap().clone();
    assert_eq!((&asks[0]["effort"], &asks[0]["budget"]), (&json!("high"), &json!(100_000_000)));
    assert_eq!((&asks[1]["effort"], asks[1].get("budget")), (&json!("medium"), None));
    assert_eq!(asks[0]["tool"], "deep_research");
}

/// tools.md: only the local owner receives the path of the files.
#[tokio::test]
async fn the_path_is_for_the_local_owner_alone() {
    let oracle = Oracle::answering(Some(thoughtful()), Cost::Unknown);
    let set = research(oracle, ResearchMode::Blocking).await;
    for (owner, local) in [("local", true), ("ann", false)] {
        let (answer, text) = ask(&set, owner, DEEP_RESEARCH, json!({ "query": "why?" })).await;
        let id = answer["conversationId"].as_str().unwrap().to_owned();
        let place = |answer: &Value| answer["conversationPath"].as_str().map(str::to_owned);
        assert_eq!(
            place(&answer).is_some_and(|path| path.ends_with(&format!("/logs/{id}"))),
            local
        );
        assert_eq!(text.contains("/logs/"), local, "{text}");
        let (history, text) = ask(&set, owner, HISTORY, json!({ "conversationId": id })).await;
        assert_eq!(place(&history), place(&answer));
        assert_eq!(text.contains("/logs/"), local, "{text}");
    }
}

/// Records the log of this thread.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// C10: queued answers include the estimate; an estimate over a dollar is logged as a warning.
#[tokio::test]
async fn c10_a_dear_question_is_logged_and_its_estimate_reported() {
    for (nanos, usd, warned) in [(2_500_000_000, 2.5, true), (900_000_000, 0.9, false)] {
        let log = Log::default();
        let written = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || log.clone()).finish();
        let _listening = tracing::subscriber::set_default(subscriber);
        let oracle = Oracle::answering(None, Cost::Computed(NanoUsd(nanos)));
        let set = research(oracle, ResearchMode::Queued).await;
        let (queued, text) = ask(&set, "local", DEEP_RESEARCH, json!({ "query": "why?" })).await;
        assert_eq!(queued["cost"], json!({ "usd": usd, "kind": "estimate" }));
        assert_eq!(queued["modelUsed"], "delphi");
        assert!(text.contains("Estimated cost: about $"), "{text}");
        let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
        assert_eq!(log.contains("likely to cost over $1"), warned, "{log}");
        assert_eq!(log.contains("WARN"), warned, "{log}");
    }
}

/// tools.md: a search ends after 30 s, and leaves no conversation.
#[tokio::test(start_paused = true)]
async fn a_search_ends_after_its_time() {
    let oracle = Oracle::answering(None, Cost::Unknown);
    let set = research(oracle, ResearchMode::Blocking).await;
    let before = tokio::time::Instant::now();
    let answer = call(&set, "local", SEARCH, json!({ "query": "why?" })).await;
    let result = answer.unwrap_err().into_result();
    let text = serde_json::to_value(result).unwrap()["content"][0]["text"].clone();
    assert!(text.as_str().unwrap().starts_with("TIMEOUT: "), "{text}");
    let waited = before.elapsed();
    assert!((29..=31).contains(&waited.as_secs()), "{waited:?}");
    let (listed, _) = ask(&set, "local", LIST, json!({})).await;
    assert_eq!(listed["conversations"], json!([]));
}

/// If two sets share a name, the set listed first provides the tool.
#[tokio::test]
async fn a_shared_name_belongs_to_the_first_set() {
    use rmcp::ServerHandler;

    let oracle = Oracle::answering(Some(thoughtful()), Cost::Unknown);
    let first = research(oracle.clone(), ResearchMode::Blocking).await;
    let second = research(oracle, ResearchMode::Queued).await;
    let engine = first.engine.clone();
    let sets = [first, second].map(|set| crate::Tools::Research(Box::new(set)));
    let face = crate::Face::new(OwnerId::new("local"), engine, sets.into());
    let server = crate::Server::new(face);
    let described = server.get_tool(DEEP_RESEARCH).unwrap().description.unwrap();
    assert!(described.contains("picks the research up"), "that of the first: {described}");
    assert!(server.get_tool(AWAIT).is_some(), "what only the second has is there as well");
}
