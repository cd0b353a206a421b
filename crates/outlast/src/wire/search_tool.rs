//! A search tool of an upstream MCP server as a search service of the researcher: the query goes in as `query`, and
//! the addresses that its answer names come out.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Body, Clock, Output, Provider as _, ProviderError, ProviderErrorKind, Request,
    SearchHit, Step,
};
use outlast_provider::command::Rerun;
use outlast_provider::mcp_tool::{McpTool, McpToolOptions, Upstream};
use outlast_researcher::SearchTool;
use serde_json::{Value, json};

/// The time for which a search tool may be silent.
const SILENCE: Duration = Duration::from_secs(60);
/// The maximum number of characters of a snippet.
const MAX_SNIPPET_CHARS: usize = 500;
/// The maximum number of hits that are read from an answer.
const MAX_HITS: usize = 50;

/// The search tool of an upstream server.
pub(super) struct UpstreamSearch {
    tool: McpTool,
}

impl UpstreamSearch {
    /// Connects to nothing yet.
    pub(super) fn new(upstream: Arc<Upstream>, tool: String, clock: Arc<dyn Clock>) -> Self {
        let tool = McpTool::new(McpToolOptions {
            upstream,
            tool,
            message_argument: None,
            idle_timeout: SILENCE,
            reset_on_progress: true,
            total_timeout: None,
            rerun: Rerun::AfterCrash,
            clock,
        });
        Self { tool }
    }
}

#[async_trait]
impl SearchTool for UpstreamSearch {
    async fn search(&self, query: &str) -> Result<Vec<SearchHit>, ProviderError> {
        let request = Request::from(json!({ "arguments": { "query": query } }));
        let mut run = self.tool.begin(&request, "search").await.map_err(|error| match error {
            BeginError::NotSent(error)
            | BeginError::Refused(error)
            | BeginError::Unknown(error) => error,
        })?;
        loop {
            match run.next().await? {
                // A tool call asks nobody anything by itself.
                Step::Progress(_) | Step::Moved | Step::Wait | Step::Cancel => {}
                Step::Done { output, raw: _ } => return read_answer(*output),
            }
        }
    }
}

fn read_answer(output: Output) -> Result<Vec<SearchHit>, ProviderError> {
    let Body::Tool { content, structured, is_error } = output.body else { return Ok(Vec::new()) };
    let texts: Vec<&str> =
        content.iter().filter_map(|block| block.get("text").and_then(Value::as_str)).collect();
    if is_error {
        let mut error = ProviderError::new(
            ProviderErrorKind::Unavailable { retry_after: None },
            "the search tool answered with an error; its server says why",
        );
        error.detail = Some(texts.join("\n").chars().take(1_000).collect());
        return Err(error);
    }
    let mut hits = Vec::new();
    if let Some(structured) = &structured {
        collect(structured, &mut hits);
    }
    if hits.is_empty() {
        texts.iter().for_each(|text| read_text(text, &mut hits));
    }
    hits.truncate(MAX_HITS);
    Ok(hits)
}

/// Collects the objects that name an address, in their order.
fn collect(value: &Value, hits: &mut Vec<SearchHit>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, hits)),
        Value::Object(fields) => {
            let text = |names: &[&str]| {
                names.iter().find_map(|name| fields.get(*name).and_then(Value::as_str))
            };
            match text(&["url", "link", "href"]).filter(|url| is_web(url)) {
                Some(url) => add(
                    hits,
                    url,
                    text(&["title", "name"]).unwrap_or_default(),
                    text(&["snippet", "description", "content", "summary", "text"])
                        .unwrap_or_default(),
                ),
                None => fields.values().for_each(|field| collect(field, hits)),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Reads the hits of a text: JSON, lines such as `URL: https://...` after a title, or Markdown links.
fn read_text(text: &str, hits: &mut Vec<SearchHit>) {
    if let Ok(value @ (Value::Array(_) | Value::Object(_))) = serde_json::from_str(text) {
        return collect(&value, hits);
    }
    let mut title = "";
    for line in text.lines().map(str::trim) {
        let field = |names: &[&str]| {
            let (name, value) = line.split_once(':')?;
            let name = name.trim_matches(['*', '-', ' ']).to_lowercase();
            names.contains(&&*name).then(|| value.trim_matches(['*', ' ']))
        };
        if let Some(found) = field(&["title"]) {
            title = found;
        } else if let Some(url) = field(&["url", "link"]).filter(|url| is_web(url)) {
            add(hits, url, std::mem::take(&mut title), "");
        } else if let Some(found) = field(&["description", "content", "snippet", "summary"]) {
            if let Some(hit) = hits.last_mut().filter(|hit| hit.snippet.is_empty()) {
                hit.snippet = found.chars().take(MAX_SNIPPET_CHARS).collect();
            }
        } else {
            read_links(line, hits);
        }
    }
}

/// Reads the Markdown links of a line. What follows the last of them is its snippet.
fn read_links(line: &str, hits: &mut Vec<SearchHit>) {
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((address, tail)) = after.split_once(')') else { return };
        let url = address.split_whitespace().next().unwrap_or_default();
        let title = before.rsplit_once('[').map_or("", |(_, title)| title);
        if is_web(url) {
            add(hits, url, title, tail.trim_start_matches([' ', '-', ':', '\u{2013}', '\u{2014}']));
        }
        rest = tail;
    }
}

fn add(hits: &mut Vec<SearchHit>, url: &str, title: &str, snippet: &str) {
    if hits.iter().any(|hit| hit.url == url) {
        return;
    }
    let snippet = snippet.chars().take(MAX_SNIPPET_CHARS).collect();
    hits.push(SearchHit { url: url.to_owned(), title: title.to_owned(), snippet });
}

fn is_web(text: &str) -> bool {
    text.starts_with("https://") || text.starts_with("http://")
}

#[cfg(test)]
mod tests {
    use outlast_core::{Cost, Usage};

    use super::*;

    fn answer(texts: &[&str], structured: Option<Value>, is_error: bool) -> Output {
        let content = texts.iter().map(|text| json!({ "type": "text", "text": text })).collect();
        let structured = structured.map(|value| serde_json::from_value(value).unwrap());
        Output {
            body: Body::Tool { content, structured, is_error },
            model: None,
            usage: Usage::default(),
            cost: Cost::Unknown,
        }
    }

    fn hit(url: &str, title: &str, snippet: &str) -> SearchHit {
        SearchHit { url: url.into(), title: title.into(), snippet: snippet.into() }
    }

    /// K1: the forms in which search tools answer.
    #[test]
    fn k1_hits_are_read_from_the_answers_of_search_tools() {
        let [a, b] = ["https://a.example/1", "https://b.example/2"];
        let both = vec![hit(a, "A", "about a"), hit(b, "B", "about b")];
        let results = json!({ "results": [
            { "url": a, "title": "A", "content": "about a" },
            { "link": b, "name": "B", "snippet": "about b" },
            { "url": a, "title": "again" },
            { "url": "file:///etc/passwd", "title": "no page" },
        ]});
        let lines = format!(
            "Title: A\nURL: {a}\nContent: about a\n\n**Title:** B\n**URL:** {b}\nDescription: about b"
        );
        let links = format!("1. [A]({a}) - about a\n2. [B]({b} \"t\"): about b\n[no](mailto:x@y)");
        let text = results.to_string();
        let each = [
            format!(r#"{{"url":"{a}","title":"A","description":"about a"}}"#),
            format!(r#"{{"url":"{b}","title":"B","description":"about b"}}"#),
        ];
        let each: Vec<&str> = each.iter().map(String::as_str).collect();
        let cases = [
            answer(&["unused [x](https://x.example)"], Some(results.clone()), false),
            answer(&[&text], None, false),
            answer(&[&lines], None, false),
            answer(&[&links], None, false),
            answer(&each, None, false),
        ];
        for case in cases {
            let shown = format!("{case:?}");
            assert_eq!(read_answer(case).unwrap(), both, "{shown}");
        }
        assert_eq!(read_answer(answer(&["No results."], None, false)).unwrap(), []);
        let failed = read_answer(answer(&["quota exceeded"], None, true)).unwrap_err();
        assert_eq!(failed.detail.as_deref(), Some("quota exceeded"));
    }
}
