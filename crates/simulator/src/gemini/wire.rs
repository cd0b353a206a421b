//! The JSON of a run: the interaction, its steps, its citations.

use serde_json::{Value, json};

use super::usage;
use crate::ids::fnv1a64;
use crate::run::Run;
use crate::scenario::KeptOutput;
use crate::script::Event;
use crate::sources::Source;
use crate::wall_clock;

/// The interaction after `seen` events.
pub(crate) fn object(run: &Run, seen: usize) -> Value {
    let last = run.last(seen);
    let mut object = head(run, seen);
    object["steps"] = steps(run, seen).into();
    if let Event::Failed { code } = last {
        let message = format!("The agent stopped: {code}.");
        object["errors"] =
            json!([{"code": format!("https://ai.google.dev/errors/{code}"), "message": message}]);
    }
    object
}

/// The interaction without its steps, as events contain it.
pub(super) fn head(run: &Run, seen: usize) -> Value {
    let last = run.last(seen);
    let mut object = json!({
        "id": run.id,
        "object": "interaction",
        "status": status(run, seen),
        "agent": run.ask.model,
        "created": wall_clock::rfc3339(run.created_at),
        "updated": wall_clock::rfc3339(wall_clock::unix_seconds()),
    });
    if crate::agent::wire::is_billed(run, last) {
        object["usage"] = usage::json(&run.timeline.script.used);
    }
    object
}

/// The status after `seen` events.
pub(crate) fn status(run: &Run, seen: usize) -> &'static str {
    match run.last(seen) {
        Event::Completed => "completed",
        Event::Failed { .. } => "failed",
        Event::Incomplete => match run.scenario.limit_reached() {
            Some("budget_exceeded") => "budget_exceeded",
            Some("requires_continuation") => "requires_continuation",
            _ => "incomplete",
        },
        Event::RequiresAction => "requires_action",
        Event::Cancelled => "cancelled",
        _ => "in_progress",
    }
}

/// The steps finished so far.
fn steps(run: &Run, seen: usize) -> Vec<Value> {
    let script = &run.timeline.script;
    if *run.last(seen) == Event::Incomplete && script.kept == KeptOutput::Empty {
        return Vec::new();
    }
    let events = script.timed_events.iter().take(seen).map(|timed| &timed.event);
    events.filter_map(|event| step(run, event)).collect()
}

/// The whole step for an event, if it has one.
pub(super) fn step(run: &Run, event: &Event) -> Option<Value> {
    let script = &run.timeline.script;
    Some(match event {
        Event::ReasoningStarted => thought("Planning the searches"),
        Event::SearchQueries(search) => json!({
            "type": "google_search_call", "id": format!("search_{search}"), "search_type": "web_search",
            "arguments": {"queries": [script.searches[*search].query]},
        }),
        Event::SearchResults(search) => json!({
            "type": "google_search_result", "call_id": format!("search_{search}"),
            "result": [{"search_suggestions": "<div>suggestions</div>"}],
        }),
        Event::FetchQueries(fetch) => json!({
            "type": "url_context_call", "id": format!("fetch_{fetch}"),
            "arguments": {"urls": [script.fetched[*fetch].url]},
        }),
        Event::FetchResults(fetch) => json!({
            "type": "url_context_result", "call_id": format!("fetch_{fetch}"),
            "result": [{"status": "success", "url": script.fetched[*fetch].url}],
        }),
        Event::ReasoningStopped => thought("Writing the report"),
        Event::RequiresAction => json!({
            "type": "function_call", "id": "call_1", "name": "look_up", "arguments": {},
        }),
        Event::MessageDone => json!({"type": "model_output", "content": [{
            "type": "text", "text": script.text, "annotations": annotations(run),
        }]}),
        _ => return None,
    })
}

pub(super) fn thought(title: &str) -> Value {
    json!({"type": "thought", "summary": [{"type": "text", "text": summary(title)}]})
}

pub(super) fn summary(title: &str) -> String {
    format!("**{title}**\n\nI am at this now.")
}

/// A citation for every marker in the text, covering the marker; positions are bytes.
pub(super) fn annotations(run: &Run) -> Vec<Value> {
    let script = &run.timeline.script;
    let mut annotations = Vec::new();
    let mut at = 0;
    while let Some(start) = script.text[at..].find('[').map(|next| at + next) {
        at = start + 1;
        let Some(length) = script.text[start..].find(']') else { break };
        let Ok(id) = script.text[start + 1..start + length].parse::<u32>() else { continue };
        let Some(source) = script.sources().find(|source| source.id == id) else { continue };
        annotations.push(citation(source, start, start + length + 1));
    }
    annotations
}

/// The vendor's search returns redirects.
fn citation(source: &Source, start: usize, end: usize) -> Value {
    let redirect = fnv1a64(&[source.url.as_bytes()]);
    json!({
        "type": "url_citation", "start_index": start, "end_index": end, "title": source.title,
        "url": format!("https://vertexaisearch.cloud.google.com/grounding-api-redirect/{redirect:016x}"),
    })
}
