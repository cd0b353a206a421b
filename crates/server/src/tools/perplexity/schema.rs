//! The four tools as the vendor's server lists them.

use std::sync::Arc;

use outlast_core::AskKind;
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::{Perplexity, PerplexityOptions};
use crate::tool_names::perplexity::{ASK, REASON, RESEARCH, SEARCH};
use crate::tools::recipient::Recipient;
use crate::tools::schema::{
    ListedTool, described, domains, joined, listed, messages, object, one_of, query, recency, tool,
};

pub(super) fn tools(set: &Arc<Perplexity>) -> Vec<ListedTool> {
    let PerplexityOptions { profile, disclaimer, .. } = &set.options;
    let recipient = Recipient { profile, disclaimer: *disclaimer };
    let (warning, long_warning) = (recipient.warning(), recipient.long_warning());
    let place = recipient.either("the server's own documents", "the web");
    let sources = recipient.either("the server's own documents as sources", "web sources");
    let found = recipient.either("passages of the server's own documents", "web pages");
    let asking = |name: &'static str, kind, title, description, input, output| {
        let tool = tool(name, title, description, input, output, asks_as_vendor());
        listed(set, tool, move |set, caller, given| Box::pin(set.ask(caller, name, kind, given)))
    };
    vec![
        asking(
            ASK,
            AskKind::Ask,
            recipient.either("Ask the Library", "Ask Perplexity"),
            format!("Answers a question from {place}, with citations, in seconds.{warning}"),
            ask_input(),
            output("response", "The answer, with citations."),
        ),
        asking(
            REASON,
            AskKind::Reason,
            "Advanced Reasoning",
            format!("Thinks a hard question through, step by step, with {sources}.{warning}"),
            ask_input(),
            output("response", "The answer, with citations."),
        ),
        asking(
            RESEARCH,
            AskKind::Research,
            "Deep Research",
            format!(
                "Researches a question in depth and returns a report with citations. Takes minutes; if the client \
                 gives up, the same call made again picks it up.{long_warning}"
            ),
            object(json!({ "messages": messages() }), &["messages"]),
            output("response", "The report, with citations."),
        ),
        asking(
            SEARCH,
            AskKind::Results,
            recipient.either("Search the Library", "Search the Web"),
            format!(
                "Finds {found}: ranked results with title, address, snippet and date. No answer is written.{warning}"
            ),
            search_input(),
            output("results", "The results as text."),
        ),
    ]
}

fn asks_as_vendor() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(false).open_world(true)
}

fn ask_input() -> Value {
    let context_size = one_of(&["low", "medium", "high"]);
    let own = json!({ "messages": messages(), "search_context_size": context_size });
    object(joined(own, filters()), &["messages"])
}

fn search_input() -> Value {
    let own = json!({
        "query": query(),
        "max_results": { "type": "number", "minimum": 1, "maximum": 20, "default": 10 },
        "max_tokens_per_page": { "type": "number", "minimum": 256, "maximum": 2048, "default": 1024 },
        "country": described("Two letters, such as US.")
    });
    object(joined(own, filters()), &["query"])
}

fn filters() -> Value {
    json!({
        "search_recency_filter": recency(),
        "search_domain_filter": domains("Only these domains; with a leading - none of these.")
    })
}

fn output(field: &str, description: &str) -> Value {
    object(json!({ field: described(description) }), &[field])
}
