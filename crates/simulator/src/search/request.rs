//! What a client asks of the Search API, checked strictly.

use serde_json::Value;

use crate::errors::Refusal;
use crate::fastapi::{self, Form, Rule, Rules};
use crate::sonar::request::FILTERS;

const FIELDS: Rules = &[
    ("query", Rule::Any),
    ("max_results", Rule::Whole(1, 20)),
    ("max_tokens", Rule::Whole(1, 1_000_000)),
    ("max_tokens_per_page", Rule::Whole(1, 1_000_000)),
    ("country", Rule::Text),
    ("search_type", Rule::OneOf(&["web", "fast"])),
    ("search_context_size", Rule::OneOf(&["low", "medium", "high"])),
];

const MAX_QUERIES: usize = 5;
const RESULTS: usize = 10;

/// One accepted search.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) texts: Vec<String>,
    pub(crate) results: usize,
    /// How long a snippet may be, in tokens.
    pub(crate) page_tokens: usize,
    pub(crate) fast: bool,
}

/// Reads `POST /search`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Query, Refusal> {
    let fields = fastapi::body(bytes)?;
    let mut form = Form::of(&fields, &["body"], &[FIELDS, FILTERS]);
    let texts = queries(&mut form);
    if form.text("country").is_some_and(|country| {
        country.len() != 2 || !country.bytes().all(|letter| letter.is_ascii_uppercase())
    }) {
        form.wrong("country", "Input should be two capital letters", "string_pattern_mismatch");
    }
    let query = Query {
        texts,
        results: form.whole("max_results").unwrap_or(RESULTS),
        page_tokens: form.whole("max_tokens_per_page").unwrap_or(1_024),
        fast: form.text("search_type") == Some("fast"),
    };
    form.finish()?;
    Ok(query)
}

fn queries(form: &mut Form<'_>) -> Vec<String> {
    let texts = match form.required("query") {
        None => return Vec::new(),
        Some(Value::String(text)) => vec![text.clone()],
        Some(Value::Array(items)) if items.len() <= MAX_QUERIES => {
            items.iter().map(|item| item.as_str().unwrap_or_default().to_owned()).collect()
        }
        Some(_) => {
            form.wrong(
                "query",
                "Input should be a string or a list of at most 5 strings",
                "string_type",
            );
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
    fn several_questions_can_be_asked_at_once() {
        let body = json!({"query": ["a", "b"], "max_results": 20, "country": "DE"});
        let query = parse(body.to_string().as_bytes()).unwrap();
        assert_eq!((query.texts.len(), query.results), (2, 20));
    }
}
