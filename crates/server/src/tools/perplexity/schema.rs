//! The four tools as the vendor's server lists them.

use std::sync::Arc;

use outlast_core::ResearchKind;
use rmcp::model::ToolAnnotations;
use serde_json::{Value, json};

use super::{Perplexity, PerplexityOptions};
use crate::tool_names::perplexity::{ASK, REASON, RESEARCH, SEARCH};
use crate::tools::recipient::Recipient;
use crate::tools::schema::{ListedTool, describe, join, list_tool, object, one_of, recency, tool};

pub(super) fn tools(set: &Arc<Perplexity>) -> Vec<ListedTool> {
    let PerplexityOptions { profile, disclaimer, .. } = &set.options;
    let recipient = Recipient { profile: profile.as_ref(), disclaimer: *disclaimer };
    let (warning, long_warning) = (recipient.warning_text(), recipient.long_warning());
    let place = recipient.either("the server's own documents", "the web");
    let found = recipient.either("passages of the server's own documents", "web pages");
    let narrowing = "Can be limited by recency, domains and search context size.";
    let asking = |name: &'static str, kind, title, description, input, output| {
        let tool = tool(name, title, description, input, output, asks_as_vendor());
        list_tool(set, tool, move |set, caller, given| Box::pin(set.ask(caller, name, kind, given)))
            .with_tasks(name == RESEARCH)
    };
    vec![
        asking(
            ASK,
            ResearchKind::Ask,
            recipient.either("Ask the Library", "Ask Perplexity"),
            format!(
                "Answers a question from {place}. Best for quick facts, summaries, explanations and general questions; \
                 the fastest and cheapest of these tools. Returns text with numbered citations. {narrowing} For \
                 research over many sources use {RESEARCH}, for step-by-step analysis {REASON}.{warning}"
            ),
            ask_input(),
            output("response", "The answer, with numbered citations."),
        ),
        asking(
            REASON,
            ResearchKind::Reason,
            "Advanced Reasoning",
            format!(
                "Thinks a question through step by step, grounded in {place}. Best for math, logic, comparisons and \
                 complex arguments. Returns text with numbered citations. {narrowing} For quick facts use {ASK}, for \
                 research over many sources {RESEARCH}.{warning}"
            ),
            ask_input(),
            output("response", "The answer, with numbered citations."),
        ),
        asking(
            RESEARCH,
            ResearchKind::Research,
            "Deep Research",
            format!(
                "Researches a topic in depth in {place}. Best for overviews, literature reviews and investigations that \
                 need many sources. Returns a detailed report with numbered citations. Takes minutes; if the client \
                 gives up, the same call made again picks it up. For quick facts use {ASK}, for logical analysis \
                 {REASON}.{long_warning}"
            ),
            object(json!({ "messages": messages() }), &["messages"]),
            output("response", "The report, with numbered citations."),
        ),
        asking(
            SEARCH,
            ResearchKind::Results,
            recipient.either("Search the Library", "Search the Web"),
            format!(
                "Finds {found} and returns a ranked list with titles, URLs, snippets and dates; no answer is written. \
                 Best for finding addresses and sources, checking recent news and verifying facts. Can be limited by \
                 recency and domains. For answers with citations use {ASK}.{warning}"
            ),
            search_input(),
            output("results", "The results as text: title, URL, snippet and date of each."),
        ),
    ]
}

fn asks_as_vendor() -> ToolAnnotations {
    ToolAnnotations::new().read_only(true).destructive(false).idempotent(false).open_world(true)
}

fn ask_input() -> Value {
    let mut context_size = one_of(&["low", "medium", "high"]);
    context_size["description"] =
        json!("How much is read for the answer: `low` is fastest, `high` most comprehensive.");
    let own = json!({ "messages": messages(), "search_context_size": context_size });
    object(join(own, filters()), &["messages"])
}

fn search_input() -> Value {
    let number = |least: u32, most: u32, description: &str| json!({ "type": "number", "minimum": least, "maximum": most, "description": description });
    let own = json!({
        "query": describe("What to search for."),
        "max_results": number(1, 20, "The most results to return, 1 to 20 (default: 10)."),
        "max_tokens_per_page": number(256, 2048, "The most tokens to take from a page (default: 1024)."),
        "country": describe("Results for this country: ISO 3166-1 alpha-2, such as US or GB.")
    });
    object(join(own, filters()), &["query"])
}

/// Returns the vendor's schema of a conversation, which has no limits; ours are checked when a call arrives.
fn messages() -> Value {
    let mut role = one_of(&["system", "user", "assistant"]);
    role["description"] = json!("Who said it.");
    let message = json!({ "role": role, "content": describe("What was said.") });
    json!({
        "type": "array",
        "description": "The conversation; the last user message is the question.",
        "items": object(message, &["role", "content"])
    })
}

fn filters() -> Value {
    let mut recency = recency();
    recency["description"] =
        json!("Only recent results: `hour` for breaking news, `day` for today, and so on.");
    json!({
        "search_recency_filter": recency,
        "search_domain_filter": {
            "type": "array",
            "items": { "type": "string" },
            "description": "Only these domains, such as wikipedia.org; with a leading - not these, such as -reddit.com."
        }
    })
}

fn output(field: &str, description: &str) -> Value {
    object(json!({ field: describe(description) }), &[field])
}
