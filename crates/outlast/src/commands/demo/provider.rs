//! The provider of the demo: one run of Perplexity's Agent API, played from a fixed script on a port of this machine.

use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::Instant;

const RUN_ID: &str = "resp_demo";
const SEARCH_TIME: Duration = Duration::from_millis(1_200);
const FETCH_TIME: Duration = Duration::from_millis(600);
/// The time in which a few words of the report are written.
const WORDS_TIME: Duration = Duration::from_millis(90);
const WORDS_AT_ONCE: usize = 5;

/// The searches: the query and the title of the page that it finds.
const SEARCHES: [(&str, &str); 4] = [
    ("heat pumps cold climates field measurements", "Nine winters of heat pump data"),
    ("air source heat pump efficiency below -15 C", "Efficiency at low outdoor temperatures"),
    ("heat pump retrofit costs old houses", "Retrofits in practice: lessons from twelve houses"),
    ("ground source heat pump cold regions", "Ground loops where the soil freezes"),
];
/// The number of found pages that are read as well.
const FETCHED: usize = 2;

const REPORT: &str = "\
# Heat pumps in cold climates

*Simulated report: composed for this demo. Its findings and its sources are invented.*

## Summary

Heat pumps heat houses through cold winters, with less efficiency on the coldest days.[1] The measured houses needed \
between two and three times less electricity than direct heating would have.[2] Most of the difference between houses \
comes from their radiators, not from the outdoor temperature.[3]

## What the measurements show

Field data from nine winters agree with the laboratory down to about -15 °C.[1] Below that, defrosting takes a growing \
share of the power.[2] Ground loops are not affected, because the soil stays warmer than the air.[4]

## Open questions

The studies count the cost of a retrofit differently, so their figures cannot be compared directly.[3] Few of them \
follow a house for more than ten years.[1]";

/// The provider; it ends when it is dropped.
pub(super) struct DemoProvider {
    url: String,
    run: Arc<DemoRun>,
    serving: JoinHandle<()>,
}

impl DemoProvider {
    /// Listens on a free port of 127.0.0.1.
    pub(super) async fn start() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let url = format!("http://{}", listener.local_addr()?);
        let run = Arc::new(DemoRun {
            script: script(),
            submits: AtomicU64::new(0),
            begun_at: OnceLock::new(),
        });
        let routes = Router::new()
            .route("/v1/agent", post(submit))
            .route(&format!("/v1/agent/{RUN_ID}"), get(look))
            .with_state(run.clone());
        let serving = outlast_engine::spawn(async move {
            // Without the provider the demo fails with an error of its server.
            drop(axum::serve(listener, routes).await);
        });
        Ok(Self { url, run, serving })
    }

    /// Returns the base URL.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Returns the number of runs that were submitted, and would have been paid for.
    pub(super) fn submits(&self) -> u64 {
        self.run.submits.load(Ordering::Relaxed)
    }
}

impl Drop for DemoProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// The run, which goes on whether anyone listens or not.
struct DemoRun {
    script: Vec<ScriptedEvent>,
    submits: AtomicU64,
    begun_at: OnceLock<Instant>,
}

/// An event of the run's stream.
struct ScriptedEvent {
    /// The time since the submit.
    at: Duration,
    event: Value,
    /// The item of the run's output that is complete with this event.
    output: Option<Value>,
}

impl DemoRun {
    fn begin_time(&self) -> Instant {
        *self.begun_at.get_or_init(Instant::now)
    }

    /// Returns the run's state after this number of events.
    fn state(&self, events: usize) -> Value {
        let is_complete = events == self.script.len();
        let output = self.script.iter().take(events).filter_map(|scripted| scripted.output.clone());
        let usage = json!({
            "input_tokens": 9_000, "output_tokens": 900, "total_tokens": 9_900,
            "cost": { "currency": "USD", "total_cost": 0.03 },
        });
        json!({
            "id": RUN_ID, "object": "response", "model": "demo/simulated", "background": true,
            "status": if is_complete { "completed" } else { "in_progress" },
            "output": output.collect::<Vec<_>>(),
            "usage": is_complete.then_some(usage),
            "error": null,
        })
    }

    /// Returns an event as it is sent, or nothing after the last one.
    fn frame(&self, index: usize) -> Option<(Duration, String)> {
        let ScriptedEvent { at, event, .. } = self.script.get(index)?;
        let mut event = event.clone();
        event["sequence_number"] = index.into();
        let is_last = index + 1 == self.script.len();
        if is_last || index == 0 {
            event["response"] = self.state(index + 1);
        }
        let name = event["type"].as_str().unwrap_or_default();
        Some((*at, format!("event: {name}\ndata: {event}\n\n")))
    }
}

/// The query of a look at a run.
#[derive(Deserialize)]
struct LookQuery {
    stream: Option<bool>,
    starting_after: Option<usize>,
}

async fn submit(State(run): State<Arc<DemoRun>>) -> Response {
    run.submits.fetch_add(1, Ordering::Relaxed);
    stream_from(run, 0)
}

async fn look(State(run): State<Arc<DemoRun>>, Query(query): Query<LookQuery>) -> Response {
    if query.stream == Some(true) {
        return stream_from(run, query.starting_after.map_or(0, |after| after + 1));
    }
    let elapsed = run.begin_time().elapsed();
    let events = run.script.iter().take_while(|scripted| scripted.at <= elapsed).count();
    Json(run.state(events)).into_response()
}

/// Streams the events from this one on, each in its time.
fn stream_from(run: Arc<DemoRun>, first: usize) -> Response {
    let frames = stream::unfold((run, first), async |(run, index)| {
        let (at, frame) = run.frame(index)?;
        tokio::time::sleep_until(run.begin_time() + at).await;
        Some((Ok::<_, Infallible>(frame), (run, index + 1)))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

/// Returns the events of the run: searches, pages that are read, the report a few words at a time.
fn script() -> Vec<ScriptedEvent> {
    let mut script = Script::default();
    script.add(Duration::ZERO, json!({ "type": "response.created" }), None);
    for (number, (query, _)) in SEARCHES.iter().enumerate() {
        let queries = json!({ "type": "response.reasoning.search_queries", "queries": [query] });
        script.add(Duration::ZERO, queries, None);
        let results = json!([page(number)]);
        let event = json!({ "type": "response.reasoning.search_results", "results": results });
        let item = json!({ "type": "search_results", "queries": [query], "results": results });
        script.add(SEARCH_TIME, event, Some(item));
    }
    for number in 0..FETCHED {
        let contents = json!([page(number)]);
        let event = json!({ "type": "response.reasoning.fetch_url_results", "contents": contents });
        let item = json!({ "type": "fetch_url_results", "contents": contents });
        script.add(FETCH_TIME, event, Some(item));
    }
    let item = json!({ "type": "message", "role": "assistant", "content": [] });
    script.add(WORDS_TIME, json!({ "type": "response.output_item.added", "item": item }), None);
    let words: Vec<&str> = REPORT.split_inclusive(' ').collect();
    for words in words.chunks(WORDS_AT_ONCE) {
        let event = json!({ "type": "response.output_text.delta", "delta": words.concat() });
        script.add(WORDS_TIME, event, None);
    }
    let content = json!([{ "type": "output_text", "text": REPORT, "annotations": [] }]);
    let item = json!({ "type": "message", "role": "assistant", "content": content });
    let done = json!({ "type": "response.output_item.done", "item": item });
    script.add(Duration::ZERO, done, Some(item));
    script.add(Duration::ZERO, json!({ "type": "response.completed" }), None);
    script.events
}

#[derive(Default)]
struct Script {
    events: Vec<ScriptedEvent>,
    end: Duration,
}

impl Script {
    /// Adds an event, this long after the one before it.
    fn add(&mut self, after: Duration, event: Value, output: Option<Value>) {
        self.end += after;
        self.events.push(ScriptedEvent { at: self.end, event, output });
    }
}

/// Returns the page that search number `number` finds.
fn page(number: usize) -> Value {
    let title = SEARCHES[number].1;
    let words = title.to_lowercase().replace(|letter: char| !letter.is_alphanumeric(), "-");
    let url = format!("https://source-{}.example/{}", number + 1, words.replace("--", "-"));
    json!({ "id": number + 1, "source": "web", "title": title, "url": url, "snippet": title })
}
