//! What callers send, checked: every mistake names its field, so that a model can correct it.

use outlast_core::{AskKind, ContextSize, Message, Recency, Role, SearchFilters};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments;
use crate::reply::Refusal;

/// What is asked, and within which bounds.
type Asked = (Vec<Message>, SearchFilters);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AskArguments {
    messages: Vec<Message>,
    search_recency_filter: Option<Recency>,
    #[serde(default)]
    search_domain_filter: Vec<String>,
    search_context_size: Option<ContextSize>,
    #[serde(default, rename = "strip_thinking")]
    _strip_thinking: Option<Value>,
    #[serde(default, rename = "reasoning_effort")]
    _reasoning_effort: Option<Value>,
}

/// What older versions of the vendor's server took is read and set aside, as the vendor does.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResearchArguments {
    messages: Vec<Message>,
    #[serde(default, rename = "strip_thinking")]
    _strip_thinking: Option<Value>,
    #[serde(default, rename = "reasoning_effort")]
    _reasoning_effort: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SearchArguments {
    query: String,
    max_results: Option<f64>,
    max_tokens_per_page: Option<f64>,
    country: Option<String>,
    search_recency_filter: Option<Recency>,
    #[serde(default)]
    search_domain_filter: Vec<String>,
}

pub(super) fn read(kind: AskKind, given: JsonObject) -> Result<Asked, Refusal> {
    match kind {
        AskKind::Research => {
            let ResearchArguments { messages, .. } = arguments::read(given)?;
            arguments::check_messages(&messages)?;
            Ok((messages, SearchFilters::default()))
        }
        AskKind::Search | AskKind::Ask | AskKind::Reason => {
            let arguments: AskArguments = arguments::read(given)?;
            arguments::check_messages(&arguments.messages)?;
            arguments::check_domains(&arguments.search_domain_filter)?;
            let filters = SearchFilters {
                recency: arguments.search_recency_filter,
                domains: arguments.search_domain_filter,
                context_size: arguments.search_context_size,
                ..SearchFilters::default()
            };
            Ok((arguments.messages, filters))
        }
        AskKind::Results => results(given),
    }
}

fn results(given: JsonObject) -> Result<Asked, Refusal> {
    let arguments: SearchArguments = arguments::read(given)?;
    arguments::check_query("query", &arguments.query)?;
    arguments::check_domains(&arguments.search_domain_filter)?;
    if let Some(country) = &arguments.country
        && !(country.len() == 2 && country.bytes().all(|byte| byte.is_ascii_alphabetic()))
    {
        return Err(Refusal::validation("country must be two letters, such as US or DE"));
    }
    let filters = SearchFilters {
        recency: arguments.search_recency_filter,
        domains: arguments.search_domain_filter,
        country: arguments.country.map(|country| country.to_ascii_uppercase()),
        max_results: Some(whole("max_results", arguments.max_results, 10, 1..=20)?),
        max_tokens_per_page: Some(whole(
            "max_tokens_per_page",
            arguments.max_tokens_per_page,
            1024,
            256..=2048,
        )?),
        ..SearchFilters::default()
    };
    let question = Message { role: Role::User, content: arguments.query };
    Ok((vec![question], filters))
}

/// A whole number in a range; the vendor's schema says `number`, so `10.0` is one as well.
fn whole(
    field: &str,
    given: Option<f64>,
    default: u32,
    range: std::ops::RangeInclusive<u32>,
) -> Result<u32, Refusal> {
    let Some(number) = given else { return Ok(default) };
    let found = range.clone().find(|whole| f64::from(*whole) == number);
    found.ok_or_else(|| {
        Refusal::validation(format!(
            "{field} must be a whole number from {} to {}, not {number}",
            range.start(),
            range.end()
        ))
    })
}
