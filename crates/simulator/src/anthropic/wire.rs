//! The JSON of sessions and their events.

use std::time::Duration;

use serde_json::{Value, json};

use super::sessions::{Objects, Session};
use crate::faults::CENT_NANOS;
use crate::frame::Frame;
use crate::run::Run;
use crate::scenario::KeptOutput;
use crate::script::Event;
use crate::sources::Source;
use crate::wall_clock;

/// Renders a session with its run after `seen` events.
pub(crate) fn session(session: &Session, objects: &Objects, run: Option<(&Run, usize)>) -> Value {
    let agent = objects.definitions.iter().find(|agent| agent["id"] == session.request["agent"]);
    let mut agent = agent.cloned().unwrap_or_default();
    for field in ["created_at", "updated_at", "archived_at", "metadata"] {
        agent.as_object_mut().map(|agent| agent.remove(field));
    }
    let created_at = wall_clock::rfc3339(session.created_at);
    json!({
        "id": session.id,
        "type": "session",
        "status": run.map_or("idle", |(run, seen)| status(run.last(seen))),
        "agent": agent,
        "environment_id": session.request["environment_id"],
        "title": session.request["title"],
        "metadata": session.request["metadata"],
        "budget": session.request["budget"],
        "created_at": created_at,
        "updated_at": created_at,
        "archived_at": session.archived_at.map(wall_clock::rfc3339),
        "usage": run.map_or_else(|| json!({}), |(run, seen)| usage(run, seen)),
        "stats": {"active_seconds": 0.0, "duration_seconds": 0.0},
        "outcome_evaluations": [],
        "resources": [],
        "vault_ids": [],
        "deployment_id": null,
    })
}

/// The frames that event number `index` of a run sends over a stream.
pub(crate) fn frames(run: &Run, index: usize) -> Vec<Frame> {
    let ends = ["session.status_idle", "session.status_terminated"];
    let frame = |event: Value| {
        let is_end = ends.iter().any(|end| event["type"] == *end);
        Frame::event(event, is_end)
    };
    events(run, index).into_iter().map(frame).collect()
}

/// The status of a session whose run has this last event.
pub(crate) fn status(last: &Event) -> &'static str {
    match last {
        Event::Failed { code } if code == "terminated" => "terminated",
        Event::RequiresAction => "idle",
        event if event.is_terminal() => "idle",
        _ => "running",
    }
}

/// The cost of the whole run, rounded up to whole cents.
pub(crate) fn nanos(run: &Run) -> u64 {
    let used = run.timeline.script.used.nanos();
    let nanos = run.scenario.cost.and_then(|cost| cost.nanos()).unwrap_or(used);
    nanos.div_ceil(CENT_NANOS) * CENT_NANOS
}

fn usage(run: &Run, seen: usize) -> Value {
    if !crate::agent::wire::is_billed(run, run.last(seen)) {
        return json!({"input_tokens": 0, "output_tokens": 0});
    }
    let used = &run.timeline.script.used;
    let (input, cached, output) = used.tokens();
    let mut usage = json!({
        "input_tokens": input - cached,
        "cache_read_input_tokens": cached,
        "cache_creation": {"ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "active_seconds": 12.5,
        "server_tool_use": {
            "web_search_requests": used.searches, "web_fetch_requests": used.fetches,
        },
        "list_cost": {"amount": (nanos(run) / CENT_NANOS).to_string(), "currency": "USD"},
    });
    let states_none = run.scenario.cost.is_some_and(|cost| cost.nanos().is_none());
    if states_none && let Some(fields) = usage.as_object_mut() {
        fields.remove("list_cost");
    }
    usage
}

/// The response to an accepted message.
pub(crate) fn sent(run: &Run) -> Value {
    json!({"data": [message(run, None)]})
}

/// The events that a list contains after `seen` events of the run.
pub(crate) fn listed(run: &Run, seen: usize) -> Vec<Value> {
    let shown = |index: &usize| !matches!(run.timeline.event(*index), Event::TextDelta(_));
    let events = (0..seen).filter(shown).flat_map(|index| events(run, index));
    events.filter(|event| event["type"] != "event_start").collect()
}

/// The events of this API for event number `index` of the run: none, one or two.
pub(crate) fn events(run: &Run, index: usize) -> Vec<Value> {
    let script = &run.timeline.script;
    let at = run.timeline.happened(index).unwrap_or_default();
    let idle = |reason: Value| {
        event(run, index, 1, at, "session.status_idle", json!({"stop_reason": reason}))
    };
    let one = |kind: &str, fields: Value| vec![event(run, index, 0, at, kind, fields)];
    let used = |name: &str, input: Value| {
        one(
            "agent.tool_use",
            json!({"name": name, "input": input, "evaluated_permission": "allow"}),
        )
    };
    let result = |content: Vec<Value>| {
        let asked = event_id(run, index.saturating_sub(1), 0);
        one(
            "agent.tool_result",
            json!({"tool_use_id": asked, "content": content, "is_error": false}),
        )
    };
    match run.timeline.event(index) {
        Event::Created => vec![message(run, Some(at))],
        Event::InProgress => one("session.status_running", json!({})),
        Event::ReasoningStarted => one("agent.thinking", json!({})),
        Event::SearchQueries(search) => {
            used("web_search", json!({"query": script.searches[*search].query}))
        }
        Event::SearchResults(search) => {
            result(script.searches[*search].results.iter().map(found).collect())
        }
        Event::FetchQueries(fetch) => used("web_fetch", json!({"url": script.fetched[*fetch].url})),
        Event::FetchResults(fetch) => {
            let page = &script.fetched[*fetch];
            let source = json!({"type": "text", "media_type": "text/plain", "data": page.snippet});
            result(vec![json!({"type": "document", "source": source, "title": page.title})])
        }
        Event::ReasoningStopped | Event::TextDone => Vec::new(),
        Event::MessageAdded => vec![json!({
            "type": "event_start", "event": {"type": "agent.message", "id": run.message_id},
        })],
        Event::TextDelta(range) => vec![json!({
            "type": "event_delta", "event_id": run.message_id,
            "delta": {"type": "content_delta", "index": 0,
                "content": {"type": "text", "text": script.text[range.clone()]}},
        })],
        Event::MessageDone if script.kept == KeptOutput::Empty => Vec::new(),
        Event::MessageDone => {
            let mut message = event(
                run,
                index,
                0,
                at,
                "agent.message",
                json!({"content": [{"type": "text", "text": script.text}]}),
            );
            message["id"] = run.message_id.as_str().into();
            vec![message]
        }
        Event::Completed => vec![idle(json!({"type": "end_turn"}))],
        Event::Incomplete => vec![idle(json!({"type": "budget_reached"}))],
        Event::RequiresAction => {
            vec![idle(json!({"type": "requires_action", "event_ids": [event_id(run, index, 0)]}))]
        }
        Event::Failed { code } if code == "refusal" => {
            let mut idle = idle(json!({"type": "refusal"}));
            idle["stop_details"] =
                json!({"type": "refusal", "category": null, "explanation": "against the policy"});
            vec![idle]
        }
        Event::Failed { code } => {
            let is_terminal = code == "terminated";
            let retry = if is_terminal { "terminal" } else { "exhausted" };
            let kind = if is_terminal { "unknown_error" } else { code };
            let error = json!({
                "type": kind, "message": format!("the run failed: {code}"), "retry_status": {"type": retry},
            });
            let end = match is_terminal {
                true => event(run, index, 1, at, "session.status_terminated", json!({})),
                false => idle(json!({"type": "retries_exhausted"})),
            };
            vec![event(run, index, 0, at, "session.error", json!({"error": error})), end]
        }
        Event::Cancelled => vec![
            event(run, index, 0, at, "user.interrupt", json!({})),
            idle(json!({"type": "end_turn"})),
        ],
    }
}

/// The user's message; it counts as processed once the list shows it.
fn message(run: &Run, processed: Option<Duration>) -> Value {
    let content: Vec<Value> = serde_json::from_str(&run.ask.input).unwrap_or_default();
    let at = processed.map(|at| wall_clock::rfc3339(run.unix_seconds(at)));
    json!({"id": event_id(run, 0, 0), "type": "user.message", "content": content, "processed_at": at})
}

fn event(
    run: &Run,
    index: usize,
    part: usize,
    at: Duration,
    kind: &str,
    mut fields: Value,
) -> Value {
    fields["id"] = event_id(run, index, part).into();
    fields["type"] = kind.into();
    fields["processed_at"] = wall_clock::rfc3339(run.unix_seconds(at)).into();
    fields
}

fn event_id(run: &Run, index: usize, part: usize) -> String {
    format!("sevt_{}_{index}_{part}", run.id)
}

fn found(source: &Source) -> Value {
    json!({
        "type": "search_result", "source": source.url, "title": source.title,
        "content": [{"type": "text", "text": source.snippet}], "citations": {"enabled": false},
    })
}
