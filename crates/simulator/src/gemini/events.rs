//! The events of a stream: the activity of the run, never the complete report.

use serde_json::{Value, json};

use super::wire;
use crate::frame::Frame;
use crate::run::Run;
use crate::script::Event;

/// The frames of event number `index`. Each frame has an id after which a stream can be resumed.
pub(crate) fn frames(run: &Run, index: usize) -> Vec<Frame> {
    let event = run.timeline.event(index);
    let step = step_number(run, index);
    let mut events = events(run, index, event);
    for (nth, data) in events.iter_mut().enumerate() {
        data["event_id"] = format!("{index}.{nth}").into();
        if data["event_type"].as_str().is_some_and(|name| name.starts_with("step.")) {
            data["index"] = step.into();
        }
    }
    events.into_iter().map(|data| Frame::event(data, event.is_terminal())).collect()
}

/// Returns the number of the event after the one with this id.
pub(crate) fn after(event_id: &str) -> Option<usize> {
    let (index, _) = event_id.split_once('.')?;
    index.parse::<usize>().ok()?.checked_add(1)
}

fn events(run: &Run, index: usize, event: &Event) -> Vec<Value> {
    let stop = || json!({"event_type": "step.stop"});
    let start = |step: Value| json!({"event_type": "step.start", "step": step});
    let delta = |delta: Value| json!({"event_type": "step.delta", "delta": delta});
    let updated = |status: &str| json!({"event_type": "interaction.status_update", "interaction_id": run.id, "status": status});
    let thought = |title: &str| {
        let summary = json!({"type": "text", "text": wire::summary(title)});
        vec![
            start(json!({"type": "thought"})),
            delta(json!({"type": "thought_summary", "content": summary})),
            stop(),
        ]
    };
    match event {
        Event::Created => {
            vec![json!({"event_type": "interaction.created", "interaction": wire::head(run, 1)})]
        }
        Event::InProgress => vec![updated("in_progress")],
        Event::ReasoningStarted => thought("Planning the searches"),
        Event::ReasoningStopped => thought("Writing the report"),
        Event::SearchQueries(_)
        | Event::SearchResults(_)
        | Event::FetchQueries(_)
        | Event::FetchResults(_) => {
            wire::step(run, event).map(|step| vec![start(step), stop()]).unwrap_or_default()
        }
        Event::RequiresAction => vec![updated("requires_action")],
        Event::MessageAdded => vec![start(json!({"type": "model_output"}))],
        Event::TextDelta(range) => {
            let text = &run.timeline.script.text[range.clone()];
            vec![delta(json!({"type": "text", "text": text}))]
        }
        Event::TextDone => {
            let annotations = wire::annotations(run);
            vec![delta(json!({"type": "text_annotation_delta", "annotations": annotations}))]
        }
        Event::MessageDone => vec![stop()],
        Event::Completed | Event::Failed { .. } | Event::Incomplete | Event::Cancelled => {
            let interaction = wire::head(run, index + 1);
            vec![json!({"event_type": "interaction.completed", "interaction": interaction})]
        }
    }
}

/// Returns the number of the step that an event belongs to.
fn step_number(run: &Run, index: usize) -> usize {
    let events = run.timeline.script.timed_events.iter().take(index + 1);
    let begun = events.filter(|timed| {
        matches!(
            timed.event,
            Event::ReasoningStarted
                | Event::SearchQueries(_)
                | Event::SearchResults(_)
                | Event::FetchQueries(_)
                | Event::FetchResults(_)
                | Event::ReasoningStopped
                | Event::MessageAdded
        )
    });
    begun.count().saturating_sub(1)
}
