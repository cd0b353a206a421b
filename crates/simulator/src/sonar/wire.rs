//! The JSON of Sonar: the completion, the job around it, the chunks of a stream.

use serde_json::{Value, json};

use super::prices;
use crate::ask::{Sonar, StreamMode};
use crate::frame::Frame;
use crate::run::Run;
use crate::script::{Event, Script};
use crate::sources::Source;

/// A job as `GET /v1/async/sonar/{id}` shows it.
pub(crate) fn job(run: &Run, sonar: &Sonar, seen: usize) -> Value {
    let mut job = listed(run, seen);
    job["error_message"] = match run.last(seen) {
        Event::Failed { code } => format!("the run failed: {code}").into(),
        _ => Value::Null,
    };
    let done = matches!(run.last(seen), Event::Completed | Event::Incomplete);
    job["response"] = if done { completion(run, sonar, seen) } else { Value::Null };
    job
}

/// A job as the list shows it.
pub(crate) fn listed(run: &Run, seen: usize) -> Value {
    let last = run.last(seen);
    let at = |happened: bool, index: usize| {
        happened.then(|| run.timeline.happened(index)).flatten().map(|at| run.unix_seconds(at))
    };
    let ended = seen.saturating_sub(1);
    json!({
        "id": run.id,
        "model": run.ask.label,
        "created_at": run.created_at,
        "started_at": at(seen > 1, 1),
        "completed_at": at(matches!(last, Event::Completed | Event::Incomplete), ended),
        "failed_at": at(matches!(last, Event::Failed { .. }), ended),
        "status": status(last),
    })
}

/// The word for a job whose last event is this one.
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

/// What event number `index` sends over a stream; often nothing.
pub(crate) fn frames(run: &Run, sonar: &Sonar, index: usize) -> Vec<Frame> {
    let event = run.timeline.event(index);
    if let Event::Failed { code } = event {
        let error =
            json!({"message": format!("the run failed: {code}"), "type": code, "code": 500});
        return vec![Frame::terminal(json!({"error": error}))];
    }
    match sonar.mode {
        StreamMode::Full => full(run, sonar, index),
        StreamMode::Concise => concise(run, sonar, index),
    }
}

/// Every chunk repeats the text so far and all that was found.
fn full(run: &Run, sonar: &Sonar, index: usize) -> Vec<Frame> {
    let script = &run.timeline.script;
    let mut chunk = envelope(run, "chat.completion.chunk");
    add_findings(&mut chunk, script);
    match run.timeline.event(index) {
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

/// Reasoning steps first, then deltas alone, then the whole once.
fn concise(run: &Run, sonar: &Sonar, index: usize) -> Vec<Frame> {
    let script = &run.timeline.script;
    let of = |object: &str, delta: Value, message: Value| {
        let mut chunk = envelope(run, object);
        chunk["choices"] =
            json!([{"index": 0, "finish_reason": null, "delta": delta, "message": message}]);
        chunk
    };
    let frame = match run.timeline.event(index) {
        Event::SearchResults(search) => {
            let search = &script.searches[*search];
            let found: Vec<Value> = search.results.iter().map(result).collect();
            let step = json!({
                "thought": format!("Search for {}", search.query), "type": "web_search",
                "web_search": {"search_keywords": [search.query], "search_results": found},
            });
            let delta = json!({"role": "assistant", "content": "", "reasoning_steps": [step]});
            Frame::data(of("chat.reasoning", delta, Value::Null))
        }
        Event::FetchResults(fetch) => {
            let step = json!({
                "thought": "Read a page", "type": "fetch_url_content",
                "fetch_url_content": {"contents": [result(&script.fetched[*fetch])]},
            });
            let delta = json!({"role": "assistant", "content": "", "reasoning_steps": [step]});
            Frame::data(of("chat.reasoning", delta, Value::Null))
        }
        Event::ReasoningStopped => {
            let mut chunk = of("chat.reasoning.done", json!({"content": ""}), Value::Null);
            chunk["search_results"] = results(script);
            chunk["usage"] = prices::unfinished_usage(sonar.context);
            Frame::data(chunk)
        }
        Event::TextDelta(range) => {
            let delta = json!({"role": "assistant", "content": &script.text[range.clone()]});
            Frame::data(of("chat.completion.chunk", delta, Value::Null))
        }
        last @ (Event::Completed | Event::Incomplete) => {
            let message = json!({"role": "assistant", "content": script.text});
            let mut chunk = of("chat.completion.done", json!({"content": ""}), message);
            chunk["choices"][0]["finish_reason"] = finish_reason(last).into();
            chunk["search_results"] = results(script);
            chunk["usage"] = run.usage();
            Frame::terminal(chunk)
        }
        _ => return Vec::new(),
    };
    vec![frame]
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
    object["search_results"] = results(script);
}

fn results(script: &Script) -> Value {
    script.sources().map(result).collect::<Vec<_>>().into()
}

fn result(source: &Source) -> Value {
    let mut result = json!({
        "title": source.title, "url": source.url, "snippet": source.snippet, "source": "web",
    });
    source.add_dates(&mut result);
    result
}

fn finish_reason(last: &Event) -> &'static str {
    if *last == Event::Incomplete { "length" } else { "stop" }
}
