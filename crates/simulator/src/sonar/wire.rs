//! The JSON of Sonar: the completion, the job around it, the chunks of a stream.

use serde_json::{Value, json};

use super::prices;
use crate::ask::Sonar;
use crate::frame::Frame;
use crate::run::Run;
use crate::script::{Event, Script};

/// A job in the response to `GET /v1/async/sonar/{id}`.
pub(crate) fn job(run: &Run, sonar: &Sonar, seen: usize) -> Value {
    let last = run.last(seen);
    let error = match last {
        Event::Failed { code } => Some(format!("the run failed: {code}")),
        _ => None,
    };
    let done = matches!(last, Event::Completed | Event::Incomplete);
    let at = |happened: bool, index: usize| {
        happened.then(|| run.timeline.happened(index)).flatten().map(|at| run.unix_seconds(at))
    };
    let ended = seen.saturating_sub(1);
    json!({
        "id": run.id,
        "model": run.ask.label,
        "created_at": run.created_at,
        "started_at": at(seen > 1, 1),
        "completed_at": at(done, ended),
        "failed_at": at(error.is_some(), ended),
        "status": status(last),
        "error_message": error,
        "response": done.then(|| completion(run, sonar, seen)),
    })
}

/// The status of a job whose last event is this one.
pub(crate) fn status(last: &Event) -> &'static str {
    match last {
        Event::Created => "CREATED",
        Event::Completed | Event::Incomplete => "COMPLETED",
        Event::Failed { .. } => "FAILED",
        _ => "IN_PROGRESS",
    }
}

/// The finished answer.
pub(crate) fn completion(run: &Run, sonar: &Sonar, seen: usize) -> Value {
    let script = &run.timeline.script;
    let mut completion = envelope(run, "chat.completion");
    completion["usage"] = run.usage();
    completion["choices"] = choices(&script.text, "", Some(finish_reason(run.last(seen))));
    add_findings(&mut completion, script);
    if sonar.related_questions {
        let questions = script.searches.iter().take(3).map(|search| search.query.as_str());
        completion["related_questions"] = questions.collect::<Vec<_>>().into();
    }
    completion
}

/// The frames that event number `index` sends over a stream; often none.
pub(crate) fn frames(run: &Run, sonar: &Sonar, index: usize) -> Vec<Frame> {
    let event = run.timeline.event(index);
    if let Event::Failed { code } = event {
        let error =
            json!({"message": format!("the run failed: {code}"), "type": code, "code": 500});
        return vec![Frame::terminal(json!({"error": error}))];
    }
    // Every chunk repeats the text and all sources so far.
    let script = &run.timeline.script;
    let mut chunk = envelope(run, "chat.completion.chunk");
    add_findings(&mut chunk, script);
    match event {
        Event::TextDelta(range) => {
            chunk["choices"] =
                choices(&script.text[..range.end], &script.text[range.clone()], None);
            chunk["usage"] = prices::unfinished_usage(sonar.context);
            vec![Frame::data(chunk)]
        }
        last @ (Event::Completed | Event::Incomplete) => {
            chunk["choices"] = choices(&script.text, "", Some(finish_reason(last)));
            chunk["usage"] = run.usage();
            vec![Frame::terminal(chunk)]
        }
        _ => Vec::new(),
    }
}

fn envelope(run: &Run, object: &str) -> Value {
    json!({"id": run.id, "model": run.ask.model, "created": run.created_at, "object": object})
}

fn choices(content: &str, delta: &str, finish_reason: Option<&str>) -> Value {
    json!([{
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": content},
        "delta": {"role": "assistant", "content": delta},
    }])
}

fn add_findings(object: &mut Value, script: &Script) {
    let urls = script.sources().map(|source| source.url.as_str());
    object["citations"] = urls.collect::<Vec<_>>().into();
    let results = script.sources().map(|source| {
        let mut result = source.json();
        result["source"] = "web".into();
        result
    });
    object["search_results"] = results.collect();
}

fn finish_reason(last: &Event) -> &'static str {
    if *last == Event::Incomplete { "length" } else { "stop" }
}
