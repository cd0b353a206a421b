//! The vendor's JSON, known to no other module. Everything is optional and every set is open: unknown events,
//! items, statuses and null fields are facts of this API. What has another type than we know is taken to be absent:
//! one odd field must not hide the id, or the report, beside it.

mod submit;
mod event;
mod output;
mod usage;
mod run_error;

use serde::Deserialize;

use crate::vendor::billed::Billed;
use crate::vendor::lenient::{Known, object};
pub(super) use event::Event;
pub(super) use output::Page;
use output::{ContentPart, OutputItem, output_items};
pub(super) use run_error::{ErrorCode, RunError};
pub(crate) use submit::effort;
pub(super) use submit::{DEEP_RESEARCH, submit};
pub(super) use usage::{InputTokens, Usage, UsageCost};

/// The longest id of a run that is taken: it becomes part of an address, of every row and of log lines.
const MAX_ID_BYTES: usize = 1_000;

/// Whether this can be the id of a run.
pub(super) fn is_name(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
}

/// A run's state as a body or inside an event.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Response {
    id: Known<String>,
    status: Known<String>,
    pub(super) model: Known<String>,
    #[serde(deserialize_with = "output_items")]
    output: Option<Vec<OutputItem>>,
    pub(super) usage: Known<Billed<Usage>>,
    pub(super) error: Known<RunError>,
    pub(super) incomplete_details: Known<IncompleteDetails>,
}

impl Response {
    /// The object in a body; `None` when it is none.
    pub(super) fn parse(body: &[u8]) -> Option<Self> {
        object(body)
    }

    /// The run's name, if it has one.
    pub(super) fn into_id(self) -> Option<String> {
        self.id.0.filter(|id| is_name(id))
    }

    pub(super) fn status(&self) -> Status {
        Status::named(self.status.as_deref().unwrap_or_default())
    }

    /// Takes out the report: all that the assistant wrote, a blank line between its messages. The usual report is
    /// one part, which may be megabytes: it is moved, not copied.
    pub(super) fn take_text(&mut self) -> String {
        let mut text = String::new();
        for message in self.output.iter_mut().flatten().filter(|item| item.is_message()) {
            let parts = message.content.iter_mut().flatten();
            for (nth, part) in parts.filter_map(ContentPart::take_written).enumerate() {
                if text.is_empty() {
                    text = part;
                    continue;
                }
                if nth == 0 {
                    text.push_str("\n\n");
                }
                text.push_str(&part);
            }
        }
        text
    }

    /// How many words of it there are so far.
    pub(super) fn words(&self) -> usize {
        let parts = self.messages().flat_map(|message| message.content.iter().flatten());
        parts.filter_map(ContentPart::written).map(|text| text.split_whitespace().count()).sum()
    }

    fn messages(&self) -> impl Iterator<Item = &OutputItem> {
        self.items().filter(|item| item.is_message())
    }

    /// What the web searches found, in their order. Their numbers are what citations name.
    pub(super) fn found(&self) -> impl Iterator<Item = &Page> {
        let searches = self.items().filter(|item| item.is_web_search());
        searches.flat_map(|item| item.results.iter().flatten())
    }

    /// Pages that were fetched, and what other tools found.
    pub(super) fn read(&self) -> impl Iterator<Item = &Page> {
        self.items().flat_map(|item| {
            let others = item.results.iter().flatten().filter(|_| !item.is_web_search());
            item.contents.iter().flatten().chain(others)
        })
    }

    fn items(&self) -> impl Iterator<Item = &OutputItem> {
        self.output.iter().flatten()
    }

    /// Queries in the order they were asked.
    pub(super) fn queries(&self) -> impl Iterator<Item = &String> {
        self.output.iter().flatten().flat_map(|item| item.queries.iter().flatten())
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct IncompleteDetails {
    pub(super) reason: Known<String>,
}

/// Where a run stands. What we do not know is taken to be under way, and looked at again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Running,
    Completed,
    Incomplete,
    Failed,
    Cancelled,
    RequiresAction,
}

impl Status {
    fn named(name: &str) -> Self {
        match name {
            "completed" => Self::Completed,
            "incomplete" => Self::Incomplete,
            "failed" => Self::Failed,
            "cancelled" | "canceled" => Self::Cancelled,
            "requires_action" => Self::RequiresAction,
            _ => Self::Running,
        }
    }

    pub(super) fn is_terminal(self) -> bool {
        self != Self::Running
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_things_and_nulls_are_tolerated() {
        let response = Response::parse(
            br#"{"id":"resp_1","status":"meditating","output":[{"type":"sandbox_x","foo":1},
                {"type":"message","content":[{"type":"output_text","text":"hi","annotations":null}]}],
                "usage":null,"new_field":{}}"#,
        );
        let mut response = response.unwrap();
        assert_eq!(response.status(), Status::Running);
        assert_eq!(response.take_text(), "hi");
        assert!(Event::parse(&mut "[DONE]".to_owned()).is_none());
        assert!(
            Event::parse(&mut r#"{"type":"response.skill.loaded","delta":null}"#.to_owned())
                .is_some()
        );
    }

    /// A10, B9a: an id that was there must not be lost to an odd field beside it.
    #[test]
    fn a_field_of_another_type_hides_nothing_beside_it() {
        let body = br#"{"id":"resp_1","status":"completed","model":7,"usage":{"input_tokens":"9","output_tokens":4},
            "error":"none","output":[5,{"type":"mcp_call","content":"text","results":{}},
            {"type":"search_results","results":[{"id":"x","url":"u"},{"id":2,"url":"v","date":20260610}]},
            {"type":"message","content":[{"type":"refusal","text":null},{"type":"output_text","text":"hi"}]}]}"#;
        let mut response = Response::parse(body).unwrap();
        assert_eq!(response.status(), Status::Completed);
        assert_eq!(response.take_text(), "hi");
        assert_eq!(response.usage.as_ref().unwrap().output_tokens.0, Some(4));
        assert_eq!(response.found().filter_map(|page| *page.id).collect::<Vec<_>>(), [2]);
        assert_eq!(response.into_id().as_deref(), Some("resp_1"));
        let event =
            Event::parse(&mut r#"{"type":"response.failed","response":[],"error":3}"#.to_owned());
        assert_eq!(event.unwrap().status(), Some(Status::Failed));
        assert_eq!(Response::parse(br#"{"id":""}"#).unwrap().into_id(), None);
    }

    #[test]
    fn the_text_is_what_the_assistant_wrote_and_nothing_else() {
        let body = br#"{"output":[
            {"type":"message","role":"user","content":[{"type":"output_text","text":"the question"}]},
            {"type":"message","role":"assistant","content":[{"type":"reasoning_text","text":"hm"},
                {"type":"output_text","text":"one"},{"type":"output_text","text":" two"}]},
            {"type":"message","content":[{"type":"refusal","refusal":"no"}]},
            {"type":"message","role":null,"content":[{"text":"three"}]}]}"#;
        let mut response = Response::parse(body).unwrap();
        assert_eq!(response.words(), 3);
        assert_eq!(response.take_text(), "one two\n\nthree");
    }

    /// Numbers of images and people are not the numbers of citations.
    #[test]
    fn only_web_searches_number_their_finds() {
        let body = br#"{"output":[{"type":"search_results","results":[{"id":1,"url":"a"}]},
            {"type":"image_search_results","results":[{"id":1,"url":"i"}]},
            {"type":"fetch_url_results","contents":[{"url":"b"},null,"c"]}]}"#;
        let response = Response::parse(body).unwrap();
        let urls = |pages: Vec<&Page>| -> Vec<_> {
            pages.iter().filter_map(|page| page.url.0.clone()).collect()
        };
        assert_eq!(urls(response.found().collect()), ["a"]);
        assert_eq!(urls(response.read().collect()), ["i", "b"]);
    }
}
