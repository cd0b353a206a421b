//! What a web search is narrowed to, in the words that the Sonar and the Search endpoints share.

use outlast_core::{Recency, SearchFilters};
use serde::Serialize;

/// Filters at the top level of a request; what is not set is not sent.
#[derive(Debug, Serialize)]
pub(super) struct Narrowing<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    search_recency_filter: Option<Recency>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    search_domain_filter: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    search_after_date_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_before_date_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_mode: Option<&'static str>,
}

impl<'a> From<&'a SearchFilters> for Narrowing<'a> {
    fn from(filters: &'a SearchFilters) -> Self {
        Self {
            search_recency_filter: filters.recency,
            search_domain_filter: &filters.domains,
            search_after_date_filter: filters.after.as_deref(),
            search_before_date_filter: filters.before.as_deref(),
            search_mode: filters.academic.then_some("academic"),
        }
    }
}
