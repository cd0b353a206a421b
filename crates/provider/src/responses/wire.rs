//! The JSON of the protocol, known to no other module. Everything is optional and every set is open: unknown events,
//! items, statuses and null fields are facts of these APIs. A field of an unknown type is taken to be absent:
//! one odd field must not hide the id, or the report, next to it.

mod event;
mod output;

use std::collections::HashMap;

use outlast_core::{Message, ResearchRequest, Role};
use output::{ContentPart, OutputItem, output_items};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::vendor::billed::BilledUsage;
use crate::vendor::lenient::Lenient;
use crate::vendor::{RunError, Status};
pub(crate) use event::{Event, TEXT_DELTA};
pub(crate) use output::{Annotation, OpenedPage};

/// The longest id of a run that is accepted: it becomes part of an address, of every row and of log lines.
const MAX_ID_BYTES: usize = 1_000;

/// Returns true if this can be the id of a run.
pub(crate) fn is_name(id: &str) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len())
}

/// A run's state as a body or inside an event.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Response {
    id: Lenient<String>,
    status: Lenient<String>,
    pub(crate) model: Lenient<String>,
    #[serde(default, deserialize_with = "output_items")]
    output: Option<Vec<OutputItem>>,
    pub(crate) usage: Lenient<BilledUsage<Usage>>,
    /// The tools' usage, apart from `usage`; OpenAI's.
    pub(crate) tool_usage: Lenient<ToolUsage>,
    pub(crate) error: Lenient<RunError>,
    pub(crate) incomplete_details: Lenient<IncompleteDetails>,
}

impl Response {
    /// The run's name, if it has one.
    pub(crate) fn id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| is_name(id))
    }

    /// Takes out the reason for a missing report: its error, or the model's refusal.
    pub(crate) fn take_error(&mut self) -> Option<RunError> {
        let error = self.error.take();
        error.or_else(|| Some(RunError::refusal(self.messages().find_map(OutputItem::refusal)?)))
    }

    pub(crate) fn status(&self) -> Status {
        Status::from_name(self.status.as_deref().unwrap_or_default())
    }

    /// Takes out the report: all that the assistant wrote, a blank line between its messages, and the citations in it.
    /// The usual report is one part, which may be megabytes: it is moved, not copied.
    pub(crate) fn take_report(&mut self) -> (String, Vec<Annotation>) {
        let (mut text, mut citations) = (String::new(), Vec::new());
        // Commentary is not the report, unless there is nothing else.
        let has_report = self.messages().any(|item| !item.is_commentary() && item.says_something());
        let items = self.output.iter_mut().flatten().filter(|item| item.is_message());
        for message in items.filter(|item| !(has_report && item.is_commentary())) {
            for (nth, part) in message.parts().enumerate() {
                let (written, cited) = part.take();
                if nth == 0 && !text.is_empty() {
                    text.push_str("\n\n");
                }
                if !cited.is_empty() {
                    // The places of a citation are counted from the beginning of its part.
                    let before = text.chars().count();
                    citations.extend(cited.into_iter().map(|citation| citation.after(before)));
                }
                if text.is_empty() {
                    text = written;
                } else {
                    text.push_str(&written);
                }
            }
        }
        (text, citations)
    }

    /// The number of words written so far.
    pub(crate) fn words(&self) -> usize {
        let parts = self.messages().flat_map(|message| message.content.iter().flatten());
        parts.filter_map(ContentPart::report_text).map(|text| text.split_whitespace().count()).sum()
    }

    fn messages(&self) -> impl Iterator<Item = &OutputItem> {
        self.items().filter(|item| item.is_message())
    }

    /// The results of web searches, in their order. Citations name their numbers.
    pub(crate) fn search_results(&self) -> impl Iterator<Item = &OpenedPage> {
        let searches = self.items().filter(|item| item.is_web_search());
        searches.flat_map(|item| item.results.iter().flatten())
    }

    /// Pages that were fetched, and what other tools found.
    pub(crate) fn read(&self) -> impl Iterator<Item = &OpenedPage> {
        self.items().flat_map(OutputItem::read)
    }

    /// Pages that were opened.
    pub(crate) fn opened_pages(&self) -> impl Iterator<Item = &str> {
        self.items().filter_map(|item| item.action.as_ref()?.opened_page())
    }

    fn items(&self) -> impl Iterator<Item = &OutputItem> {
        self.output.iter().flatten()
    }

    /// The number of queries that were asked.
    pub(crate) fn queries(&self) -> usize {
        self.items().map(OutputItem::count_queries).sum()
    }

    /// The number of web searches.
    pub(crate) fn searches(&self) -> usize {
        self.items().filter(|item| item.is_search_call()).count()
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct IncompleteDetails {
    pub(crate) reason: Lenient<String>,
}

/// The usage of a run; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: Lenient<u64>,
    pub(crate) output_tokens: Lenient<u64>,
    pub(crate) total_tokens: Lenient<u64>,
    output_tokens_details: Lenient<OutputTokens>,
    input_tokens_details: Lenient<InputTokens>,
    /// By tool; the set of tools is open.
    pub(crate) tool_calls_details: Lenient<HashMap<String, Lenient<Calls>>>,
    pub(crate) cost: Lenient<UsageCost>,
}

impl Usage {
    /// The same in our words, with this many searches.
    pub(crate) fn to_usage(&self, searches: u64) -> outlast_core::Usage {
        let input_tokens = self.input_tokens.unwrap_or(0);
        let output_tokens = self.output_tokens.unwrap_or(0);
        let details = self.output_tokens_details.as_ref();
        outlast_core::Usage {
            input_tokens,
            output_tokens,
            total_tokens: self.total_tokens.unwrap_or(input_tokens.saturating_add(output_tokens)),
            reasoning_tokens: details.and_then(|details| *details.reasoning_tokens).unwrap_or(0),
            citation_tokens: 0,
            searches,
        }
    }

    /// Those of the input tokens that were read from a cache.
    pub(crate) fn cached_tokens(&self) -> u64 {
        self.input_tokens_details.as_ref().map_or(0, InputTokens::count_cached)
    }

    /// Each tool that was called, and how often.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.tool_calls_details.iter().flatten();
        tools.filter_map(|(name, calls)| Some((name.as_str(), (*calls.as_ref()?.invocation)?)))
    }
}

/// The number of calls of a tool.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Calls {
    invocation: Lenient<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct InputTokens {
    cached_tokens: Lenient<u64>,
    cache_read_input_tokens: Lenient<u64>,
}

impl InputTokens {
    /// Read from a cache; the provider has two names for it, and may leave out either.
    fn count_cached(&self) -> u64 {
        self.cached_tokens.or(*self.cache_read_input_tokens).unwrap_or(0)
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct OutputTokens {
    reasoning_tokens: Lenient<u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct UsageCost {
    pub(crate) total_cost: Lenient<f64>,
}

/// The usage of tools; OpenAI's count of what it bills.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ToolUsage {
    web_search: Lenient<ToolRequests>,
}

impl ToolUsage {
    /// The number of web searches.
    pub(crate) fn searches(&self) -> Option<u64> {
        *self.web_search.as_ref()?.num_requests
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ToolRequests {
    num_requests: Lenient<u64>,
}

/// An instruction in words for an option that the API has no field for.
pub(crate) const SCHOLARLY: &str =
    "Use scholarly sources only: peer-reviewed papers, preprints, academic books.";

/// The messages of a conversation, and the instructions for it.
pub(crate) fn conversation(ask: &ResearchRequest) -> (Value, Option<String>) {
    let (mut system, mut said): (Vec<&Message>, Vec<&Message>) =
        ask.messages.iter().partition(|message| message.role == Role::System);
    if said.is_empty() {
        // Instructions alone are the question: the API refuses an empty input.
        std::mem::swap(&mut system, &mut said);
    }
    let item = |message: &&Message| json!({"type": "message", "role": message.role, "content": message.content});
    let input = match said.as_slice() {
        [Message { role: Role::User, content }] => json!(content),
        messages => messages.iter().map(item).collect(),
    };
    let mut instructions: Vec<&str> =
        system.iter().map(|message| message.content.as_str()).collect();
    instructions.extend(ask.filters.academic.then_some(SCHOLARLY));
    (input, (!instructions.is_empty()).then(|| instructions.join("\n\n")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::object;

    #[test]
    fn unknown_things_and_nulls_are_tolerated() {
        let response = object::<Response>(
            br#"{"id":"resp_1","status":"meditating","output":[{"type":"sandbox_x","foo":1},
                {"type":"message","content":[{"type":"output_text","text":"hi","annotations":null}]}],
                "usage":null,"new_field":{}}"#,
        );
        let mut response = response.unwrap();
        assert_eq!(response.status(), Status::Running);
        assert_eq!(response.take_report().0, "hi");
        assert!(Event::parse(&mut "[DONE]".to_owned()).is_none());
        assert!(
            Event::parse(&mut r#"{"type":"response.skill.loaded","delta":null}"#.to_owned())
                .is_some()
        );
    }

    /// A10, B9a: an id that was there must not be lost to an odd field next to it.
    #[test]
    fn a_field_of_another_type_hides_no_other_field() {
        let body = br#"{"id":"resp_1","status":"completed","model":7,"usage":{"input_tokens":"9","output_tokens":4},
            "error":"none","output":[5,{"type":"mcp_call","content":"text","results":{}},
            {"type":"search_results","results":[{"id":"x","url":"u"},{"id":2,"url":"v","date":20260610}]},
            {"type":"message","content":[{"type":"refusal","text":null},{"type":"output_text","text":"hi"}]}]}"#;
        let mut response = object::<Response>(body).unwrap();
        assert_eq!(response.status(), Status::Completed);
        assert_eq!(response.take_report().0, "hi");
        assert_eq!(response.usage.as_ref().unwrap().output_tokens.0, Some(4));
        assert_eq!(response.search_results().filter_map(|page| *page.id).collect::<Vec<_>>(), [2]);
        assert_eq!(response.id(), Some("resp_1"));
        let event =
            Event::parse(&mut r#"{"type":"response.failed","response":[],"error":3}"#.to_owned());
        assert_eq!(event.unwrap().status(), Some(Status::Failed));
        assert_eq!(object::<Response>(br#"{"id":""}"#).unwrap().id(), None);
    }

    #[test]
    fn the_text_is_the_assistants_and_nothing_else() {
        let body = br#"{"output":[
            {"type":"message","role":"user","content":[{"type":"output_text","text":"the question"}]},
            {"type":"message","role":"assistant","content":[{"type":"reasoning_text","text":"hm"},
                {"type":"output_text","text":"one"},{"type":"output_text","text":" two"}]},
            {"type":"message","content":[{"type":"refusal","refusal":"no"}]},
            {"type":"message","role":null,"content":[{"text":"three"}]}]}"#;
        let mut response = object::<Response>(body).unwrap();
        assert_eq!(response.words(), 3);
        assert_eq!(response.take_report().0, "one two\n\nthree");
    }

    /// Numbers of images and people are not the numbers of citations.
    #[test]
    fn only_web_searches_number_their_finds() {
        let body = br#"{"output":[{"type":"search_results","results":[{"id":1,"url":"a"}]},
            {"type":"image_search_results","results":[{"id":1,"url":"i"}]},
            {"type":"fetch_url_results","contents":[{"url":"b"},null,"c"]}]}"#;
        let response = object::<Response>(body).unwrap();
        let urls = |pages: Vec<&OpenedPage>| -> Vec<_> {
            pages.iter().filter_map(|page| page.url.0.clone()).collect()
        };
        assert_eq!(urls(response.search_results().collect()), ["a"]);
        assert_eq!(urls(response.read().collect()), ["i", "b"]);
    }
}
