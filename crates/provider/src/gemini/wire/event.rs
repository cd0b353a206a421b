//! One event of a stream.

use serde::Deserialize;

use super::{Arguments, Step, TextPart, ToolResult, status};
use crate::vendor::lenient::{Items, Lenient, object, word};

/// One event of a stream.
#[derive(Clone, Debug, Default, Deserialize)]
pub(in crate::gemini) struct Event {
    #[serde(default, deserialize_with = "word")]
    event_type: String,
    /// A token with which a stream can be reopened after this event.
    pub(in crate::gemini) event_id: Lenient<String>,
    /// The number of the step it speaks of.
    pub(in crate::gemini) index: Lenient<u64>,
    status: Lenient<String>,
    step: Lenient<Step>,
    delta: Lenient<Delta>,
}

/// The meaning of an event, as far as it concerns us.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::gemini) enum EventKind {
    /// The run has ended; a check shows how.
    Ended,
    /// The stream failed, which does not concern the run.
    StreamError,
    /// Its step asks these queries, or read these pages.
    Searched { queries: usize, pages: usize },
    /// A thought, in the provider's summary of it.
    Thought(String),
    /// Output begins.
    OutputBegins,
    /// This many words were written.
    Wrote { words: usize },
    /// Something else.
    Other,
}

/// The growth of a step.
#[derive(Clone, Debug, Default, Deserialize)]
struct Delta {
    #[serde(default, rename = "type", deserialize_with = "word")]
    kind: String,
    text: Lenient<String>,
    content: Lenient<TextPart>,
    arguments: Lenient<Arguments>,
    result: Items<ToolResult>,
}

impl Event {
    /// The event in a frame's data; `None` for keep-alives, `[DONE]` and anything else that is not an event.
    pub(in crate::gemini) fn parse(data: &mut String) -> Option<Self> {
        object(data.as_bytes())
    }

    /// The next piece of a text that is being written.
    pub(in crate::gemini) fn text_delta(&self) -> Option<&str> {
        self.delta.as_ref().filter(|delta| delta.kind == "text")?.text.as_deref()
    }

    /// Its meaning.
    pub(in crate::gemini) fn kind(&self) -> EventKind {
        match self.event_type.as_str() {
            "interaction.completed" | "interaction.complete" => EventKind::Ended,
            "interaction.status_update" => {
                let status = status(self.status.as_deref().unwrap_or_default());
                if status.is_terminal() { EventKind::Ended } else { EventKind::Other }
            }
            "error" => EventKind::StreamError,
            "step.start" | "content.start" => {
                self.step.as_ref().map_or(EventKind::Other, read_step_start)
            }
            "step.delta" | "content.delta" => {
                self.delta.as_ref().map_or(EventKind::Other, read_delta)
            }
            _ => EventKind::Other,
        }
    }
}

fn read_step_start(step: &Step) -> EventKind {
    if step.is_output() {
        return EventKind::OutputBegins;
    }
    read_search(step.queries(), step.pages())
}

fn read_delta(delta: &Delta) -> EventKind {
    match delta.kind.as_str() {
        "text" => {
            let text = delta.text.as_deref().unwrap_or_default();
            EventKind::Wrote { words: text.split_whitespace().count() }
        }
        "thought_summary" => {
            let summary = delta.content.as_ref().and_then(TextPart::report_text);
            summary.map_or(EventKind::Other, |summary| EventKind::Thought(summary.to_owned()))
        }
        _ => {
            let queries = delta.arguments.as_ref().map_or(0, Arguments::queries);
            read_search(
                queries,
                delta.result.iter().flatten().filter(|page| page.is_page()).count(),
            )
        }
    }
}

fn read_search(queries: usize, pages: usize) -> EventKind {
    match queries + pages {
        0 => EventKind::Other,
        _ => EventKind::Searched { queries, pages },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_show_the_work_of_the_run_and_unknown_ones_are_ignored() {
        let kind = |json: &str| Event::parse(&mut json.to_owned()).map(|event| event.kind());
        let cases = [
            (r#"{"event_type":"interaction.created","interaction":{"id":"x"}}"#, EventKind::Other),
            (
                r#"{"event_type":"interaction.status_update","status":"in_progress"}"#,
                EventKind::Other,
            ),
            (r#"{"event_type":"interaction.status_update","status":"failed"}"#, EventKind::Ended),
            (r#"{"event_type":"interaction.completed","interaction":7}"#, EventKind::Ended),
            (r#"{"event_type":"interaction.complete"}"#, EventKind::Ended),
            (r#"{"event_type":"error","error":{"code":"x"}}"#, EventKind::StreamError),
            (
                r#"{"event_type":"step.start","index":0,"step":{"type":"google_search_call","arguments":{"queries":["a","b"]}}}"#,
                EventKind::Searched { queries: 2, pages: 0 },
            ),
            (
                r#"{"event_type":"step.delta","index":0,"delta":{"type":"url_context_result","result":[{"url":"u"},{}]}}"#,
                EventKind::Searched { queries: 0, pages: 1 },
            ),
            (
                r#"{"event_type":"step.delta","delta":{"type":"thought_summary","content":{"type":"text","text":"hm"}}}"#,
                EventKind::Thought("hm".to_owned()),
            ),
            (
                r#"{"event_type":"step.start","step":{"type":"model_output"}}"#,
                EventKind::OutputBegins,
            ),
            (
                r#"{"event_type":"step.delta","delta":{"type":"text","text":"a b"}}"#,
                EventKind::Wrote { words: 2 },
            ),
            (
                r#"{"event_type":"step.delta","delta":{"type":"text","text":7}}"#,
                EventKind::Wrote { words: 0 },
            ),
            (r#"{"event_type":"step.mystery","step":[],"delta":null}"#, EventKind::Other),
            (r#"{"event_type":7}"#, EventKind::Other),
        ];
        for (json, expected) in cases {
            assert_eq!(kind(json), Some(expected), "{json}");
        }
        assert_eq!(kind("[DONE]"), None);
    }
}
