//! What a web search is narrowed to, in the vendor's words; what is not set is not sent.

use outlast_core::{Recency, SearchFilters};
use serde::Serialize;

/// What every endpoint knows.
#[derive(Debug, Serialize)]
pub(super) struct Filters<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    search_recency_filter: Option<Recency>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    search_domain_filter: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    search_after_date_filter: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_before_date_filter: Option<&'a str>,
}

impl Filters<'_> {
    pub(super) fn is_empty(&self) -> bool {
        self.search_recency_filter.is_none()
            && self.search_domain_filter.is_empty()
            && self.search_after_date_filter.is_none()
            && self.search_before_date_filter.is_none()
    }
}

impl<'a> From<&'a SearchFilters> for Filters<'a> {
    fn from(filters: &'a SearchFilters) -> Self {
        Self {
            search_recency_filter: filters.recency,
            search_domain_filter: &filters.domains,
            search_after_date_filter: filters.after.as_deref(),
            search_before_date_filter: filters.before.as_deref(),
        }
    }
}

/// The same with what the Sonar and the Search endpoints know beyond it.
#[derive(Debug, Serialize)]
pub(super) struct Narrowing<'a> {
    #[serde(flatten)]
    filters: Filters<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_mode: Option<&'static str>,
}

impl<'a> From<&'a SearchFilters> for Narrowing<'a> {
    fn from(filters: &'a SearchFilters) -> Self {
        let search_mode = filters.academic.then_some("academic");
        Self { filters: Filters::from(filters), search_mode }
    }
}
