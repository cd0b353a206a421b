//! Requests to the Search API, validated strictly.

use serde_json::Value;

use crate::errors::Refusal;
use crate::fastapi::{self, Rule, Rules};
use crate::sonar::request::FILTERS;

const FIELDS: Rules = &[
    ("query", Rule::Required(&Rule::Is(is_query, "a string or a list of at most 5 strings"))),
    ("max_results", Rule::Whole(1, 20)),
    ("max_tokens", Rule::Whole(1, 1_000_000)),
    ("max_tokens_per_page", Rule::Whole(1, 1_000_000)),
    ("country", Rule::Is(is_country, "two capital letters")),
    ("search_type", Rule::OneOf(&["web", "fast"])),
    ("search_context_size", Rule::OneOf(&["low", "medium", "high"])),
];

/// One accepted search.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) texts: Vec<String>,
    pub(crate) results: usize,
    /// The maximum length of a snippet in tokens.
    pub(crate) page_tokens: usize,
    pub(crate) fast: bool,
}

/// Parses `POST /search`.
pub(crate) fn parse(bytes: &[u8]) -> Result<Query, Refusal> {
    let body = fastapi::body(bytes, &[FIELDS, FILTERS])?;
    let whole = |name: &str, otherwise| body[name].as_u64().map_or(otherwise, |n| n as usize);
    Ok(Query {
        texts: texts(&body["query"]).into_iter().map(str::to_owned).collect(),
        results: whole("max_results", 10),
        page_tokens: whole("max_tokens_per_page", 1_024),
        fast: body["search_type"] == "fast",
    })
}

fn texts(query: &Value) -> Vec<&str> {
    match query {
        Value::Array(items) => items.iter().map(|item| item.as_str().unwrap_or_default()).collect(),
        query => vec![query.as_str().unwrap_or_default()],
    }
}

fn is_query(query: &Value) -> bool {
    let texts = texts(query);
    (1..=5).contains(&texts.len()) && texts.iter().all(|text| !text.trim().is_empty())
}

fn is_country(value: &Value) -> bool {
    let country = value.as_str().unwrap_or_default().as_bytes();
    country.len() == 2 && country.iter().all(u8::is_ascii_uppercase)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn out_of_bounds_values_are_refused() {
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
