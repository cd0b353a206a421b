//! Parses arguments in the same way as the vendor's server (A9): unknown arguments are ignored, and values are passed on
//! unchanged. An error names its field, so that a model can correct it.

use outlast_core::{ContextSize, Message, Recency, ResearchKind, Role, SearchFilters};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{self, MAX_REQUEST_CHARS, check};
use crate::reply::Refusal;

/// The maximum number of messages in one call.
const MAX_MESSAGES: usize = 1_000;

/// A question, its search filters, and the format of its answer.
pub(super) struct PerplexityQuestion {
    pub(super) messages: Vec<Message>,
    pub(super) filters: SearchFilters,
    pub(super) strip_thinking: bool,
}

#[derive(Debug, Deserialize)]
struct AskArguments {
    messages: Vec<MessageArgument>,
    search_recency_filter: Option<Recency>,
    #[serde(default)]
    search_domain_filter: Vec<String>,
    search_context_size: Option<ContextSize>,
    /// Used by the vendor's earlier versions; any value except `true` is ignored.
    strip_thinking: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct ResearchArguments {
    messages: Vec<MessageArgument>,
    strip_thinking: Option<Value>,
}

#[derive(Debug, Deserialize)]
struct MessageArgument {
    role: Role,
    content: String,
}

#[derive(Debug, Deserialize)]
struct SearchArguments {
    query: String,
    max_results: Option<f64>,
    max_tokens_per_page: Option<f64>,
    country: Option<String>,
    search_recency_filter: Option<Recency>,
    #[serde(default)]
    search_domain_filter: Vec<String>,
}

pub(super) fn read(kind: ResearchKind, given: JsonObject) -> Result<PerplexityQuestion, Refusal> {
    match kind {
        ResearchKind::Research => {
            let arguments: ResearchArguments = arguments::read(given)?;
            Ok(PerplexityQuestion {
                messages: check_messages(arguments.messages)?,
                filters: SearchFilters::default(),
                strip_thinking: arguments.strip_thinking == Some(Value::Bool(true)),
            })
        }
        ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason => {
            let arguments: AskArguments = arguments::read(given)?;
            let filters = SearchFilters {
                recency: arguments.search_recency_filter,
                domains: arguments.search_domain_filter,
                context_size: arguments.search_context_size,
                ..SearchFilters::default()
            };
            Ok(PerplexityQuestion {
                messages: check_messages(arguments.messages)?,
                filters,
                strip_thinking: arguments.strip_thinking == Some(Value::Bool(true)),
            })
        }
        ResearchKind::Results => results(given),
    }
}

/// Returns the messages, unless they are too many, too long or all blank.
fn check_messages(messages: Vec<MessageArgument>) -> Result<Vec<Message>, Refusal> {
    let count = messages.len();
    check((1..=MAX_MESSAGES).contains(&count), || {
        format!("messages must have 1 to {MAX_MESSAGES} entries, not {count}")
    })?;
    let length: usize = messages.iter().map(|message| message.content.chars().count()).sum();
    check(length <= MAX_REQUEST_CHARS, || {
        format!("messages must have {MAX_REQUEST_CHARS} characters at most in all, not {length}")
    })?;
    let is_blank = |message: &MessageArgument| message.content.trim().is_empty();
    check(!messages.iter().all(is_blank), || "messages must not all be empty".to_owned())?;
    let message = |MessageArgument { role, content }| Message { role, content };
    Ok(messages.into_iter().map(message).collect())
}

fn results(given: JsonObject) -> Result<PerplexityQuestion, Refusal> {
    let arguments: SearchArguments = arguments::read(given)?;
    let length = arguments.query.chars().count();
    check(!arguments.query.trim().is_empty(), || "query must not be empty".to_owned())?;
    check(length <= MAX_REQUEST_CHARS, || {
        format!("query must have {MAX_REQUEST_CHARS} characters at most, not {length}")
    })?;
    let filters = SearchFilters {
        recency: arguments.search_recency_filter,
        domains: arguments.search_domain_filter,
        country: arguments.country.filter(|country| !country.is_empty()),
        max_results: Some(count("max_results", arguments.max_results, 10, (1, 20))?),
        max_tokens_per_page: Some(count(
            "max_tokens_per_page",
            arguments.max_tokens_per_page,
            1024,
            (256, 2048),
        )?),
        ..SearchFilters::default()
    };
    let question = Message { role: Role::User, content: arguments.query };
    Ok(PerplexityQuestion { messages: vec![question], filters, strip_thinking: false })
}

/// Checks the range of a number. The vendor's schema says `number`: a fraction is accepted, and its whole part is sent.
fn count(
    field: &str,
    given: Option<f64>,
    default: u32,
    (least, most): (u32, u32),
) -> Result<u32, Refusal> {
    let Some(number) = given else { return Ok(default) };
    let is_within = (f64::from(least)..=f64::from(most)).contains(&number);
    check(is_within, || format!("{field} must be a number from {least} to {most}, not {number}"))?;
    // The range is checked above, so a whole number is always found.
    let whole = (least..=most).rev().find(|whole| f64::from(*whole) <= number);
    Ok(whole.unwrap_or(default))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn search(given: Value) -> Result<PerplexityQuestion, Refusal> {
        let Value::Object(given) = given else { panic!("not an object") };
        read(ResearchKind::Results, given)
    }

    /// A9: a fractional count is accepted, and the range is the vendor's.
    #[test]
    fn a9_fractional_counts_are_taken_within_the_range() {
        for (given, sent) in [(1.0, 1), (2.5, 2), (19.999, 19), (20.0, 20)] {
            let asked = search(json!({ "query": "q", "max_results": given })).unwrap();
            assert_eq!(asked.filters.max_results, Some(sent), "{given}");
        }
        for given in [0.0, 0.999, 20.001, -3.0, 1e300] {
            let refused = search(json!({ "query": "q", "max_results": given }));
            assert!(refused.is_err(), "{given}");
        }
        assert_eq!(search(json!({ "query": "q" })).unwrap().filters.max_results, Some(10));
    }
}
