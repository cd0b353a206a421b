//! The four tools as the vendor's server lists them.

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::super::recipient::Recipient;
use super::super::schema::{messages, object};
use super::{ASK, REASON, RESEARCH, SEARCH};

pub(super) fn tools(recipient: Recipient<'_>) -> Vec<Tool> {
    let (warning, long_warning) = (recipient.warning(), recipient.long_warning());
    let place = recipient.either("the server's own documents", "the web");
    let sources = recipient.either("the server's own documents as sources", "web sources");
    let found = recipient.either("passages of the server's own documents", "web pages");
    vec![
        tool(
            ASK,
            recipient.either("Ask the Library", "Ask Perplexity"),
            format!("Answers a question from {place}, with citations, in seconds.{warning}"),
            asking(json!({
                "search_recency_filter": recency(),
                "search_domain_filter": domains(),
                "search_context_size": context_size()
            })),
            output("response", "The answer, with citations."),
        ),
        tool(
            REASON,
            "Advanced Reasoning",
            format!("Thinks a hard question through, step by step, with {sources}.{warning}"),
            asking(json!({
                "search_recency_filter": recency(),
                "search_domain_filter": domains(),
                "search_context_size": context_size()
            })),
            output("response", "The answer, with citations."),
        ),
        tool(
            RESEARCH,
            "Deep Research",
            format!(
                "Researches a question in depth and returns a report with citations. Takes minutes; if the client gives \
                 up, the same call made again picks it up.{long_warning}"
            ),
            asking(json!({})),
            output("response", "The report, with citations."),
        ),
        tool(
            SEARCH,
            recipient.either("Search the Library", "Search the Web"),
            format!(
                "Finds {found}: ranked results with title, address, snippet and date. No answer is written.{warning}"
            ),
            searching(),
            output("results", "The results as text."),
        ),
    ]
}

fn tool(
    name: &'static str,
    title: &str,
    description: String,
    input: Map<String, Value>,
    output: Map<String, Value>,
) -> Tool {
    let mut tool = Tool::new(name, description, Arc::new(input));
    tool.title = Some(title.to_owned());
    tool.output_schema = Some(Arc::new(output));
    tool.annotations = Some(
        ToolAnnotations::new()
            .read_only(true)
            .destructive(false)
            .idempotent(false)
            .open_world(true),
    );
    tool
}

fn asking(more: Value) -> Map<String, Value> {
    let mut properties = object(json!({
        "messages": messages()
    }));
    properties.extend(object(more));
    object(json!({
        "type": "object",
        "properties": properties,
        "required": ["messages"],
        "additionalProperties": false
    }))
}

fn searching() -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": 10000 },
            "max_results": { "type": "number", "minimum": 1, "maximum": 20, "default": 10 },
            "max_tokens_per_page": { "type": "number", "minimum": 256, "maximum": 2048, "default": 1024 },
            "country": { "type": "string", "description": "Two letters, such as US." },
            "search_recency_filter": recency(),
            "search_domain_filter": domains()
        },
        "required": ["query"],
        "additionalProperties": false
    }))
}

fn recency() -> Value {
    json!({ "type": "string", "enum": ["hour", "day", "week", "month", "year"] })
}

fn domains() -> Value {
    json!({
        "type": "array",
        "items": { "type": "string" },
        "maxItems": 20,
        "description": "Only these domains; with a leading - none of these."
    })
}

fn context_size() -> Value {
    json!({ "type": "string", "enum": ["low", "medium", "high"] })
}

fn output(field: &str, description: &str) -> Map<String, Value> {
    object(json!({
        "type": "object",
        "properties": { field: { "type": "string", "description": description } },
        "required": [field],
        "additionalProperties": false
    }))
}
