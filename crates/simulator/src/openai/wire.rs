//! The JSON of the API: the response object, its output items, the stream events.

use serde_json::{Value, json};

use super::citations::annotations;
use super::prices;
use crate::agent::wire::{begun, failure, function_call, is_billed, status, text_part};
use crate::run::Run;
use crate::scenario::KeptOutput;
use crate::script::Event;

/// The index of the first call among the output items, after the reasoning.
const FIRST_CALL: usize = 1;

/// The response object after `seen` events.
pub(crate) fn object(run: &Run, seen: usize) -> Value {
    let last = run.last(seen);
    let error = match last {
        Event::Failed { code } => failure(code),
        _ => Value::Null,
    };
    let incomplete = (*last == Event::Incomplete).then(|| json!({"reason": "max_output_tokens"}));
    let ended = run.timeline.happened(seen.saturating_sub(1)).filter(|_| last.is_terminal());
    let billed = is_billed(run, last);
    let used = &run.timeline.script.used;
    json!({
        "id": run.id,
        "object": "response",
        "status": status(last),
        "background": run.ask.background,
        "created_at": run.created_at as f64,
        "completed_at": ended.map(|ended| run.unix_seconds(ended) as f64),
        "model": run.ask.model,
        "output": output(run, seen),
        "usage": billed.then(|| prices::usage(used)),
        "tool_usage": billed.then(|| prices::tool_usage(used)),
        "error": error,
        "incomplete_details": incomplete,
        "instructions": null,
        "max_output_tokens": null,
        "max_tool_calls": null,
        "metadata": run.ask.metadata,
        "parallel_tool_calls": true,
        "previous_response_id": null,
        "reasoning": {"effort": null, "summary": null},
        "service_tier": "default",
        "temperature": 1.0,
        "top_p": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [{"type": "web_search", "search_context_size": "medium"}],
        "truncation": "disabled",
        "user": null,
    })
}

/// Event number `index` of the run's stream. A cancel has no event: the stream just ends.
pub(crate) fn event(run: &Run, index: usize) -> Option<Value> {
    let script = &run.timeline.script;
    let message_index = script.message_index() + FIRST_CALL;
    let ended = || json!({"response": object(run, index + 1)});
    let item = |kind: &'static str, place: usize, item: Value| {
        (kind, json!({"output_index": place, "item": item}))
    };
    let called = |kind: &'static str, place: usize| {
        (kind, json!({"output_index": place + FIRST_CALL, "item_id": call_id(run, place)}))
    };
    let text = |name: &str, text: &str| {
        let mut part = text_part(run, name, text);
        part["output_index"] = message_index.into();
        part["logprobs"] = json!([]);
        part
    };
    const ADDED: &str = "response.output_item.added";
    const DONE: &str = "response.output_item.done";
    let fetch_place = |fetch: usize| script.searches.len() + fetch;
    let (kind, mut fields) = match run.timeline.event(index) {
        Event::Created => ("response.created", json!({"response": begun(run)})),
        Event::InProgress => ("response.in_progress", json!({"response": begun(run)})),
        Event::ReasoningStarted => item(ADDED, 0, reasoning(run)),
        Event::SearchQueries(search) => called("response.web_search_call.searching", *search),
        Event::SearchResults(search) => item(DONE, search + FIRST_CALL, search_call(run, *search)),
        Event::FetchQueries(fetch) => {
            called("response.web_search_call.in_progress", fetch_place(*fetch))
        }
        Event::FetchResults(fetch) => {
            item(DONE, fetch_place(*fetch) + FIRST_CALL, open_page(run, *fetch))
        }
        Event::ReasoningStopped => item(DONE, 0, reasoning(run)),
        Event::MessageAdded => item(
            ADDED,
            message_index,
            json!({
                "type": "message", "id": run.message_id, "role": "assistant", "status": "in_progress", "content": [],
            }),
        ),
        Event::TextDelta(range) => {
            ("response.output_text.delta", text("delta", &script.text[range.clone()]))
        }
        Event::TextDone => ("response.output_text.done", text("text", &script.text)),
        Event::MessageDone => item(DONE, message_index, message(run, "completed")),
        Event::Failed { .. } => ("response.failed", ended()),
        Event::Completed => ("response.completed", ended()),
        Event::Incomplete => ("response.incomplete", ended()),
        Event::RequiresAction => ("response.requires_action", ended()),
        Event::Cancelled => return None,
    };
    fields["type"] = kind.into();
    fields["sequence_number"] = index.into();
    Some(fields)
}

/// The items finished so far.
fn output(run: &Run, seen: usize) -> Vec<Value> {
    let script = &run.timeline.script;
    let cut_short = *run.last(seen) == Event::Incomplete;
    if cut_short && script.kept == KeptOutput::Empty {
        return Vec::new();
    }
    let events = script.timed_events.iter().take(seen);
    let items = events.filter_map(|timed| match &timed.event {
        Event::ReasoningStarted => Some(reasoning(run)),
        Event::SearchResults(search) => Some(search_call(run, *search)),
        Event::FetchResults(fetch) => Some(open_page(run, *fetch)),
        Event::RequiresAction => Some(function_call(run)),
        Event::MessageDone => {
            Some(message(run, if cut_short { "incomplete" } else { "completed" }))
        }
        _ => None,
    });
    items.collect()
}

fn reasoning(run: &Run) -> Value {
    json!({"type": "reasoning", "id": run.message_id.replacen("msg_", "rs_", 1), "summary": []})
}

fn search_call(run: &Run, search: usize) -> Value {
    let found = &run.timeline.script.searches[search];
    let sources: Vec<Value> =
        found.results.iter().map(|source| json!({"type": "url", "url": source.url})).collect();
    let action = json!({
        "type": "search", "query": found.query, "queries": [found.query], "sources": sources,
    });
    call(run, search, &action)
}

fn open_page(run: &Run, fetch: usize) -> Value {
    let script = &run.timeline.script;
    let action = json!({"type": "open_page", "url": script.fetched[fetch].url});
    call(run, script.searches.len() + fetch, &action)
}

fn call(run: &Run, place: usize, action: &Value) -> Value {
    json!({"type": "web_search_call", "id": call_id(run, place), "status": "completed", "action": action})
}

fn call_id(run: &Run, place: usize) -> String {
    format!("{}_{place}", run.message_id.replacen("msg_", "ws_", 1))
}

fn message(run: &Run, status: &str) -> Value {
    let script = &run.timeline.script;
    let annotations = annotations(script);
    json!({
        "type": "message", "id": run.message_id, "role": "assistant", "status": status,
        "content": [{
            "type": "output_text", "text": script.text, "annotations": annotations, "logprobs": [],
        }],
    })
}
