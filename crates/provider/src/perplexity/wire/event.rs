//! One event of a stream.

use serde::Deserialize;

use super::{Page, Response, RunError, Status};
use crate::vendor::lenient::{Known, known_items, object, word};

/// One event of a stream.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(in crate::perplexity) struct Event {
    #[serde(rename = "type", deserialize_with = "word")]
    pub(in crate::perplexity) kind: String,
    pub(in crate::perplexity) sequence_number: Known<u64>,
    pub(in crate::perplexity) response: Known<Response>,
    pub(in crate::perplexity) error: Known<RunError>,
    #[serde(deserialize_with = "known_items")]
    pub(in crate::perplexity) queries: Option<Vec<String>>,
    #[serde(deserialize_with = "known_items")]
    pub(in crate::perplexity) results: Option<Vec<Page>>,
    #[serde(deserialize_with = "known_items")]
    pub(in crate::perplexity) contents: Option<Vec<Page>>,
    pub(in crate::perplexity) delta: Known<String>,
    item: Known<Item>,
    /// The event as it came, for events that end a run.
    #[serde(skip)]
    pub(in crate::perplexity) raw: Vec<u8>,
}

/// What an event of an item speaks of; more of it comes with the end of the run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Item {
    r#type: Known<String>,
}

impl Event {
    /// The event in a frame's data; `None` for keep-alives, `[DONE]` and whatever else is no event. One that ends a
    /// run takes the data.
    pub(in crate::perplexity) fn parse(data: &mut String) -> Option<Self> {
        let mut event: Self = object(data.as_bytes())?;
        if event.status().is_some_and(Status::is_terminal) {
            event.raw = std::mem::take(data).into_bytes();
        }
        Some(event)
    }

    /// Where the run stands after this event, when the event says so.
    pub(in crate::perplexity) fn status(&self) -> Option<Status> {
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

    /// Whether an item is added to the report, and not one found or done on the way to it.
    pub(in crate::perplexity) fn opens_the_report(&self) -> bool {
        self.kind == "response.output_item.added" && self.is_about_a_message()
    }

    /// Whether an item of the report is done.
    pub(in crate::perplexity) fn closes_the_report(&self) -> bool {
        self.kind == "response.output_item.done" && self.is_about_a_message()
    }

    fn is_about_a_message(&self) -> bool {
        let kind = self.item.as_ref().and_then(|item| item.r#type.as_deref());
        kind.is_none_or(|kind| kind == "message")
    }

    /// Whether it says that the stream has trouble, not what became of the run.
    pub(in crate::perplexity) fn is_stream_error(&self) -> bool {
        self.kind == "error"
    }

    /// Whether nothing of use follows it.
    pub(in crate::perplexity) fn ends_the_stream(&self) -> bool {
        self.is_stream_error() || self.status().is_some_and(Status::is_terminal)
    }
}
