//! One event of a stream.

use std::borrow::Cow;

use serde::Deserialize;

use super::output::{Action, is_search_call};
use super::{OpenedPage, Response};
use crate::vendor::lenient::{Items, Lenient, object, word};
use crate::vendor::{RunError, Status};

/// The kind of most events: a piece of the report.
pub(crate) const TEXT_DELTA: &str = "response.output_text.delta";

/// One event of a stream.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Event {
    #[serde(default, rename = "type", deserialize_with = "word")]
    pub(crate) kind: String,
    pub(crate) sequence_number: Lenient<u64>,
    pub(crate) response: Lenient<Box<Response>>,
    pub(crate) error: Lenient<RunError>,
    queries: Items<String>,
    results: Items<OpenedPage>,
    contents: Items<OpenedPage>,
    pub(crate) delta: Lenient<String>,
    item: Lenient<EventItem>,
    /// The event as it came, for events that end a run.
    #[serde(skip)]
    pub(crate) raw: Vec<u8>,
}

/// All that is needed of a piece of the report, of which there are a thousand in one stream: read without looking at each
/// field as one that may have any type.
#[derive(Deserialize)]
struct TextDelta<'a> {
    #[serde(borrow)]
    r#type: Cow<'a, str>,
    sequence_number: u64,
    delta: String,
}

/// The item of an event; more of it comes with the end of the run.
#[derive(Clone, Debug, Default, Deserialize)]
struct EventItem {
    r#type: Lenient<String>,
    action: Lenient<Action>,
}

impl Event {
    /// The event in a frame's data; `None` for keep-alives, `[DONE]` and anything else that is not an event. One that ends a
    /// run takes the data.
    pub(crate) fn parse(data: &mut String) -> Option<Self> {
        if let Some(event) = Self::parse_text_delta(data) {
            return Some(event);
        }
        let mut event: Self = object(data.as_bytes())?;
        if event.status().is_some_and(Status::is_terminal) {
            event.raw = std::mem::take(data).into_bytes();
        }
        Some(event)
    }

    fn parse_text_delta(data: &str) -> Option<Self> {
        if !data.starts_with('{') || !data.contains(TEXT_DELTA) {
            return None;
        }
        let TextDelta { r#type, sequence_number, delta } = serde_json::from_str(data).ok()?;
        (r#type == TEXT_DELTA).then(|| Self {
            kind: r#type.into_owned(),
            sequence_number: Lenient(Some(sequence_number)),
            delta: Lenient(Some(delta)),
            ..Self::default()
        })
    }

    /// The status of the run after this event, if the event states it.
    pub(crate) fn status(&self) -> Option<Status> {
        match self.kind.as_str() {
            "response.created" | "response.in_progress" | "response.queued" => {
                Some(Status::Running)
            }
            "response.completed" => Some(Status::Completed),
            "response.incomplete" => Some(Status::Incomplete),
            "response.failed" => Some(Status::Failed),
            "response.cancelled" | "response.canceled" => Some(Status::Cancelled),
            "response.requires_action" => Some(Status::RequiresAction),
            _ => None,
        }
    }

    /// Returns true if an item is added to the report, and not one found or done on the way to it.
    pub(crate) fn opens_the_report(&self) -> bool {
        self.kind == "response.output_item.added" && self.is_about_a_message()
    }

    /// Returns true if an item of the report is done.
    pub(crate) fn closes_the_report(&self) -> bool {
        self.kind == "response.output_item.done" && self.is_about_a_message()
    }

    fn is_about_a_message(&self) -> bool {
        let kind = self.item.as_ref().and_then(|item| item.r#type.as_deref());
        kind.is_none_or(|kind| kind == "message")
    }

    /// The numbers of queries asked and sources read that this event adds.
    pub(crate) fn count_searches(&self) -> (usize, usize) {
        let item = self.item.as_ref().filter(|item| {
            self.kind == "response.output_item.done" && is_search_call(item.r#type.as_deref())
        });
        let length = |list: &Option<Vec<OpenedPage>>| list.as_ref().map_or(0, Vec::len);
        let (asked, read) = item.map_or((0, 0), |item| {
            let action = item.action.as_ref();
            let opened = action.and_then(Action::opened_page).map_or(0, |_| 1);
            let asked = action.map_or(1, Action::count_queries);
            (asked, action.map_or(0, |action| length(&action.sources)) + opened)
        });
        let queries = self.queries.as_ref().map_or(0, Vec::len);
        (queries + asked, length(&self.results) + length(&self.contents) + read)
    }

    /// Returns true if it reports an error of the stream, which does not concern the run.
    pub(crate) fn is_stream_error(&self) -> bool {
        self.kind == "error"
    }

    /// Returns true if nothing of use follows it.
    pub(crate) fn ends_the_stream(&self) -> bool {
        self.is_stream_error() || self.status().is_some_and(Status::is_terminal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A piece of the report is read the short way; one of another form, or another event that speaks of one, as any event.
    #[test]
    fn g1_a_piece_of_the_report_is_read_in_every_form() {
        let cases: [(&str, &str, Option<u64>, Option<&str>); 6] = [
            (
                r#"{"type":"response.output_text.delta","sequence_number":7,"delta":"a\n\u00e9 b","x":[{}]}"#,
                TEXT_DELTA,
                Some(7),
                Some("a\n\u{e9} b"),
            ),
            (
                r#"{"type":"response.output_text.delta","delta":"no number"}"#,
                TEXT_DELTA,
                None,
                Some("no number"),
            ),
            (
                r#"{"type":"response.output_text.delta","sequence_number":"7","delta":"a"}"#,
                TEXT_DELTA,
                None,
                Some("a"),
            ),
            (
                r#"{"type":"response.output_text.delta","sequence_number":8,"delta":["a"]}"#,
                TEXT_DELTA,
                Some(8),
                None,
            ),
            (
                r#" {"type":"response.output_text.delta","sequence_number":9,"delta":"a"}"#,
                TEXT_DELTA,
                Some(9),
                Some("a"),
            ),
            (
                r#"{"type":"response.completed","sequence_number":9,"delta":"response.output_text.delta"}"#,
                "response.completed",
                Some(9),
                Some(TEXT_DELTA),
            ),
        ];
        for (data, kind, number, delta) in cases {
            let event = Event::parse(&mut data.to_owned()).unwrap();
            assert_eq!(event.kind, kind, "{data}");
            assert_eq!(*event.sequence_number, number, "{data}");
            assert_eq!(event.delta.as_deref(), delta, "{data}");
        }
        for data in
            ["[\"response.output_text.delta\",7,\"a\"]", "\"response.output_text.delta\"", ""]
        {
            assert!(Event::parse(&mut data.to_owned()).is_none(), "{data}");
        }
    }
}
