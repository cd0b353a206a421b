//! What a client asks of the Search API, checked strictly.

use serde_json::Value;

use crate::errors::Refusal;
use crate::fastapi::{self, Form};
use crate::sonar::request::{MOST_DOMAINS, MOST_LANGUAGES, RECENCIES};

const FIELDS: [&str; 16] = [
    "query",
    "max_results",
    "max_tokens",
    "max_tokens_per_page",
    "country",
    "search_domain_filter",
    "search_language_filter",
    "search_recency_filter",
    "search_after_date_filter",
    "search_before_date_filter",
    "last_updated_after_filter",
    "last_updated_before_filter",
    "search_mode",
    "search_type",
    "search_context_size",
    "display_server_time",
];

const MOST_QUERIES: usize = 5;
const RESULTS: u64 = 10;
const MOST_RESULTS: u64 = 20;
const MOST_PEOPLE: u64 = 100;

/// One accepted search.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) texts: Vec<String>,
    pub(crate) results: usize,
    /// How long a snippet may be, in tokens.
    pub(crate) page_tokens: usize,
    pub(crate) fast: bool,
    pub(crate) shows_time: bool,
}

/// Reads `POST /search`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Query, Refusal> {
    let fields = fastapi::body(bytes)?;
    let mut form = Form::of(&fields, &["body"], &FIELDS);
    let texts = queries(&mut form);
    let kind = form.one_of("search_type", &["web", "people", "fast"]);
    let most = if kind == Some("people") { MOST_PEOPLE } else { MOST_RESULTS };
    let results = form.whole("max_results", 1, most).unwrap_or(RESULTS);
    form.whole("max_tokens", 1, 1_000_000);
    let page_tokens = form.whole("max_tokens_per_page", 1, 1_000_000).unwrap_or(1_024);
    if form.text("country").is_some_and(|country| {
        country.len() != 2 || !country.bytes().all(|letter| letter.is_ascii_uppercase())
    }) {
        form.wrong("country", "Input should be two capital letters", "string_pattern_mismatch");
    }
    form.texts("search_domain_filter", MOST_DOMAINS);
    form.texts("search_language_filter", MOST_LANGUAGES);
    form.one_of("search_recency_filter", &RECENCIES);
    for field in [
        "search_after_date_filter",
        "search_before_date_filter",
        "last_updated_after_filter",
        "last_updated_before_filter",
    ] {
        form.date(field);
    }
    form.one_of("search_mode", &["web", "academic", "sec"]);
    form.one_of("search_context_size", &["low", "medium", "high"]);
    let shows_time = form.flag("display_server_time").unwrap_or(false);
    form.finish()?;
    Ok(Query {
        texts,
        results: results as usize,
        page_tokens: page_tokens as usize,
        fast: kind == Some("fast"),
        shows_time,
    })
}

fn queries(form: &mut Form<'_>) -> Vec<String> {
    let texts = match form.required("query") {
        None => return Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(_)) => {
            let texts = form.texts("query", MOST_QUERIES).unwrap_or_default();
            texts.into_iter().map(str::to_owned).collect()
        }
        Some(_) => {
            form.wrong("query", "Input should be a string or a list of strings", "string_type");
            return Vec::new();
        }
    };
    if texts.is_empty() || texts.iter().any(|text| text.trim().is_empty()) {
        form.wrong("query", "Query should not be empty", "string_too_short");
    }
    texts
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_out_of_bounds_is_refused() {
        for body in [
            json!({}),
            json!({"query": ""}),
            json!({"query": []}),
            json!({"query": ["a", " "]}),
            json!({"query": ["a", "b", "c", "d", "e", "f"]}),
            json!({"query": 5}),
            json!({"query": "q", "max_results": 0}),
            json!({"query": "q", "max_results": 21}),
            json!({"query": "q", "max_results": 2.5}),
            json!({"query": "q", "max_tokens": 0}),
            json!({"query": "q", "max_tokens_per_page": -1}),
            json!({"query": "q", "country": "Germany"}),
            json!({"query": "q", "search_domain_filter": vec!["a.example"; 21]}),
            json!({"query": "q", "search_recency_filter": "decade"}),
            json!({"query": "q", "search_after_date_filter": "yesterday"}),
            json!({"query": "q", "search_mode": "deep"}),
            json!({"query": "q", "search_type": "slow"}),
            json!({"query": "q", "display_server_time": 1}),
            json!({"query": "q", "q": "r"}),
        ] {
            assert!(parse(body.to_string().as_bytes()).is_err(), "{body}");
        }
    }

    #[test]
    fn people_may_be_many_and_several_questions_be_asked_at_once() {
        let body = json!({
            "query": ["a", "b"], "max_results": 60, "search_type": "people", "country": "DE",
        });
        let query = parse(body.to_string().as_bytes()).unwrap();
        assert_eq!((query.texts.len(), query.results), (2, 60));
    }
}
