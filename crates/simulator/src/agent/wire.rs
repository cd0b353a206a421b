//! The JSON of the Agent API: the response object, its output items, the stream events.

use serde_json::{Value, json};

use crate::run::Run;
use crate::scenario::KeptOutput;
use crate::script::Event;
use crate::sources::Source;
use crate::wall_clock;

/// The response object after `seen` events.
pub(crate) fn object(run: &Run, seen: usize) -> Value {
    let last = run.last(seen);
    let (error, incomplete) = match last {
        Event::Failed { code } => (failure(code), Value::Null),
        Event::Cancelled => (cancelled(), json!({"reason": "cancelled"})),
        Event::Incomplete => {
            let reason = run.scenario.limit_reached().unwrap_or("max_output_tokens");
            (Value::Null, json!({"reason": reason}))
        }
        _ => (Value::Null, Value::Null),
    };
    let ended = matches!(last, Event::Completed | Event::Failed { .. } | Event::Incomplete);
    let billed = is_billed(run, last);
    // Rewritten at every request, as the vendor does: a client must not mistake it for the age of the run.
    let now = wall_clock::unix_seconds();
    json!({
        "id": run.id,
        "object": "response",
        "status": status(last),
        "background": run.ask.background,
        "store": run.ask.store,
        "created_at": now,
        "completed_at": ended.then_some(now),
        "model": if billed { run.ask.model } else { run.ask.label.as_str() },
        "output": output(run, seen),
        "usage": billed.then(|| run.usage()),
        "error": error,
        "incomplete_details": incomplete,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "metadata": {},
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "prompt_cache_key": null,
        "reasoning": null,
        "service_tier": "fast",
        "temperature": 1,
        "top_p": 1,
        "top_logprobs": 0,
        "presence_penalty": 0,
        "frequency_penalty": 0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "truncation": "",
        "user": null,
        "safety_identifier": null,
    })
}

/// The status of a run whose last event is this one.
pub(crate) fn status(last: &Event) -> &'static str {
    match last {
        Event::Created => "queued",
        Event::Completed => "completed",
        Event::Failed { .. } => "failed",
        Event::Incomplete => "incomplete",
        Event::RequiresAction => "requires_action",
        Event::Cancelled => "cancelled",
        _ => "in_progress",
    }
}

/// Returns true if a run with this end reports its usage. Failed and cancelled runs may have cost money without
/// reporting it, unless the scenario sets a cost.
pub(crate) fn is_billed(run: &Run, last: &Event) -> bool {
    let states_cost = run.scenario.cost.is_some_and(|cost| cost.total.is_some());
    match last {
        Event::Completed | Event::Incomplete => true,
        Event::Failed { .. } => states_cost,
        _ => false,
    }
}

/// Event number `index` of the run's stream.
pub(crate) fn event(run: &Run, index: usize) -> Value {
    let script = &run.timeline.script;
    let ended = || json!({"response": object(run, index + 1)});
    let (kind, mut fields) = match run.timeline.event(index) {
        // The vendor starts a stream with a run in progress, although a poll reports it as queued.
        Event::Created => ("response.created", json!({"response": begun(run)})),
        Event::InProgress => ("response.in_progress", json!({"response": begun(run)})),
        Event::ReasoningStarted => {
            ("response.reasoning.started", json!({"thought": "Plan the searches"}))
        }
        Event::SearchQueries(search) => (
            "response.reasoning.search_queries",
            json!({"queries": [script.searches[*search].query], "thought": null}),
        ),
        Event::SearchResults(search) => {
            let results: Vec<Value> = script.searches[*search].results.iter().map(result).collect();
            ("response.reasoning.search_results", json!({"results": results, "usage": null}))
        }
        Event::FetchQueries(fetch) => {
            ("response.reasoning.fetch_url_queries", json!({"urls": [script.fetched[*fetch].url]}))
        }
        Event::FetchResults(fetch) => (
            "response.reasoning.fetch_url_results",
            json!({"contents": [content(&script.fetched[*fetch])]}),
        ),
        Event::ReasoningStopped => ("response.reasoning.stopped", json!({})),
        Event::MessageAdded => (
            "response.output_item.added",
            json!({"output_index": script.message_index(), "item": {
                "type": "message", "id": run.message_id, "role": "assistant",
                "status": "in_progress", "content": [],
            }}),
        ),
        Event::TextDelta(range) => {
            ("response.output_text.delta", text_part(run, "delta", &script.text[range.clone()]))
        }
        Event::TextDone => ("response.output_text.done", text_part(run, "text", &script.text)),
        Event::MessageDone => (
            "response.output_item.done",
            json!({"output_index": script.message_index(), "item": message(run, "completed")}),
        ),
        Event::Failed { code } => ("response.failed", json!({"error": failure(code)})),
        Event::Completed => ("response.completed", ended()),
        Event::Incomplete => ("response.incomplete", ended()),
        Event::RequiresAction => ("response.requires_action", ended()),
        Event::Cancelled => ("response.cancelled", ended()),
    };
    fields["type"] = kind.into();
    fields["sequence_number"] = index.into();
    fields
}

/// The run as the first events show it.
pub(crate) fn begun(run: &Run) -> Value {
    let mut object = run.object(1);
    object["status"] = "in_progress".into();
    object
}

/// The items finished so far.
fn output(run: &Run, seen: usize) -> Vec<Value> {
    let script = &run.timeline.script;
    let last = run.last(seen);
    let cut_short = *last == Event::Incomplete;
    if cut_short && script.kept == KeptOutput::Empty {
        return Vec::new();
    }
    let mut items = Vec::new();
    for timed in script.timed_events.iter().take(seen) {
        match &timed.event {
            Event::SearchResults(search) => {
                let search = &script.searches[*search];
                let results: Vec<Value> = search.results.iter().map(result).collect();
                items.push(json!({
                    "type": "search_results", "queries": [search.query], "results": results,
                }));
            }
            Event::FetchResults(fetch) => items.push(json!({
                "type": "fetch_url_results", "contents": [content(&script.fetched[*fetch])],
            })),
            Event::RequiresAction => items.push(function_call(run)),
            Event::MessageDone => {
                items.push(message(run, if cut_short { "incomplete" } else { "completed" }));
            }
            _ => {}
        }
    }
    items
}

/// The call of a tool that the client should run.
pub(crate) fn function_call(run: &Run) -> Value {
    json!({
        "type": "function_call", "id": run.message_id, "call_id": "call_1",
        "name": "look_up", "arguments": "{}", "status": "in_progress",
    })
}

fn message(run: &Run, status: &str) -> Value {
    json!({
        "type": "message", "id": run.message_id, "role": "assistant", "status": status,
        "content": [{"type": "output_text", "text": run.timeline.script.text, "annotations": []}],
    })
}

pub(crate) fn text_part(run: &Run, name: &str, text: &str) -> Value {
    let index = run.timeline.script.message_index();
    json!({"item_id": run.message_id, "output_index": index, "content_index": 0, name: text})
}

fn result(source: &Source) -> Value {
    let mut result = source.json();
    result["id"] = source.id.into();
    result["source"] = "web".into();
    result
}

fn content(source: &Source) -> Value {
    json!({"url": source.url, "title": source.title, "snippet": source.snippet})
}

pub(crate) fn failure(code: &str) -> Value {
    json!({"code": code, "message": format!("the run failed: {code}"), "type": code})
}

fn cancelled() -> Value {
    json!({"code": "cancelled", "message": "cancelled", "type": "cancelled"})
}
