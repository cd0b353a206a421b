//! The search backends.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use outlast_core::{
    NanoUsd, ProviderError, ProviderErrorKind, Recency, ResearchRecord, SearchHit, SearchRecord,
};
use outlast_http::{error_chain, read_body};
use reqwest::header;
use serde::Deserialize;
use url::Url;

use crate::SharedState;
use crate::settings::SearchBackend;
use crate::steps::{RequestResult, StepOutcome, StepSpec, StepUsage, Steps, digest_of, to_json};
use crate::waits::unreachable;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 4 << 20;
const MAX_TEXT: usize = 500;
/// The hits of one query that are used.
const MAX_HITS: usize = 8;
/// The hits of one host and query that are used.
const MAX_PER_HOST: usize = 2;

/// A search tool of another server.
#[async_trait]
pub trait SearchTool: Send + Sync {
    /// Calls the tool with `{query}` and returns the hits in the order of the tool. An empty list means that nothing
    /// was found. The caller limits the time: a dropped call may have been answered.
    async fn search(&self, query: &str) -> Result<Vec<SearchHit>, ProviderError>;
}

/// A query, and the way to ask it.
#[derive(Clone, Copy)]
pub(crate) struct SearchQuery<'a> {
    pub(crate) text: &'a str,
    pub(crate) recency: Option<Recency>,
    /// The maximum number of hits.
    pub(crate) at_most: usize,
    /// The maximum number of hits of one host.
    pub(crate) per_host: usize,
}

impl<'a> SearchQuery<'a> {
    /// Creates a query whose hits are candidates for reading.
    pub(crate) fn for_reading(text: &'a str, recency: Option<Recency>) -> Self {
        Self { text, recency, at_most: MAX_HITS, per_host: MAX_PER_HOST }
    }
}

/// Runs a query as a step and returns its hits, or the reason why it failed.
pub(crate) async fn search(
    shared: &SharedState,
    steps: &Steps,
    key: String,
    query: SearchQuery<'_>,
) -> Result<Result<Vec<SearchHit>, String>, ProviderError> {
    let is_local = matches!(shared.settings.search, SearchBackend::Library(_));
    let price = match is_local {
        true => Some(NanoUsd(0)),
        false => shared.settings.prices.search.map(|price| NanoUsd(price.0.div_ceil(1_000))),
    };
    let spec = StepSpec {
        key,
        kind: ResearchRecord::SEARCH,
        digest: digest_of(&[query.text]),
        bound: price,
        needs_room: true,
        subject: Some(query.text.to_owned()),
    };
    let usage = StepUsage { spent: price.unwrap_or_default(), read: 0, written: 0 };
    let send = || send_query(shared, query, usage).boxed();
    match steps.take(&spec, None, send).await? {
        StepOutcome::Done(output) => {
            let record: SearchRecord = serde_json::from_str(&output).unwrap_or_default();
            Ok(Ok(record.hits))
        }
        StepOutcome::Failed(reason) => {
            tracing::warn!(query = query.text, reason, "a search failed");
            Ok(Err(reason))
        }
        StepOutcome::NoRoom => Ok(Err("the run has no room".to_owned())),
    }
}

async fn send_query(
    shared: &SharedState,
    query: SearchQuery<'_>,
    usage: StepUsage,
) -> RequestResult {
    match tokio::time::timeout(TIMEOUT, run_query(shared, query)).await {
        Ok(Ok(hits)) => {
            let hits = clean(hits, query);
            let output = to_json(&SearchRecord { query: query.text.to_owned(), hits });
            RequestResult::Done { output, usage }
        }
        Ok(Err(error)) => to_sent(error, usage),
        Err(_) => {
            let sentence = "the search service did not answer in time";
            RequestResult::Unanswered(ProviderError::new(ProviderErrorKind::TimedOut, sentence))
        }
    }
}

fn to_sent(error: ProviderError, usage: StepUsage) -> RequestResult {
    match error.kind {
        ProviderErrorKind::RateLimited { retry_after } => {
            let wait = retry_after.unwrap_or(Duration::from_secs(2)).min(Duration::from_secs(60));
            RequestResult::Busy { wait, error }
        }
        ProviderErrorKind::Unreachable => {
            RequestResult::Busy { wait: Duration::from_secs(1), error }
        }
        ProviderErrorKind::Unauthorized
        | ProviderErrorKind::QuotaExhausted
        | ProviderErrorKind::Misconfigured => RequestResult::Stop(error),
        ProviderErrorKind::TimedOut | ProviderErrorKind::StepUnknown => {
            RequestResult::Unanswered(error)
        }
        _ => RequestResult::Failed { reason: error.sentence, usage },
    }
}

async fn run_query(
    shared: &SharedState,
    query: SearchQuery<'_>,
) -> Result<Vec<SearchHit>, ProviderError> {
    match &shared.settings.search {
        SearchBackend::Searxng { url, api_key } => {
            ask_searxng(shared, url, api_key.as_deref(), query.text, query.recency).await
        }
        SearchBackend::Tool { tool, .. } => tool.search(query.text).await,
        SearchBackend::Library(library) => {
            let (library, text, at_most) = (library.clone(), query.text.to_owned(), query.at_most);
            let found =
                tokio::task::spawn_blocking(move || library.find_files(&text, at_most)).await;
            let found = found
                .map_err(|error| failed("the library could not be searched", error.to_string()))?;
            let found = found
                .map_err(|error| failed("the library could not be searched", error.to_string()))?;
            let hits = found.into_iter().map(|file| SearchHit {
                url: file.name,
                title: file.title.unwrap_or_default(),
                snippet: file.snippet,
            });
            Ok(hits.collect())
        }
    }
}

fn failed(sentence: &str, detail: String) -> ProviderError {
    let kind = ProviderErrorKind::Unavailable { retry_after: None };
    ProviderError { detail: Some(detail), ..ProviderError::new(kind, sentence) }
}

/// Asks a SearXNG server.
pub(crate) async fn ask_searxng(
    shared: &SharedState,
    address: &str,
    api_key: Option<&str>,
    query: &str,
    recency: Option<Recency>,
) -> Result<Vec<SearchHit>, ProviderError> {
    #[derive(Deserialize)]
    struct SearxngAnswer {
        #[serde(default)]
        results: Vec<FoundPage>,
    }
    #[derive(Deserialize)]
    struct FoundPage {
        #[serde(default)]
        url: String,
        #[serde(default)]
        title: Option<String>,
        #[serde(default)]
        content: Option<String>,
    }
    let base = address.trim_end_matches('/');
    let Ok(mut url) = Url::parse(&format!("{base}/search")) else {
        let sentence = "researcher.search_url is not an address";
        return Err(ProviderError::new(ProviderErrorKind::Misconfigured, sentence));
    };
    url.query_pairs_mut().append_pair("q", query).append_pair("format", "json");
    if let Some(recency) = recency {
        let range = match recency {
            Recency::Hour | Recency::Day => "day",
            Recency::Week => "week",
            Recency::Month => "month",
            Recency::Year => "year",
        };
        url.query_pairs_mut().append_pair("time_range", range);
    }
    let request = shared.client.get(url);
    let request = match api_key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    let response = request.send().await.map_err(|error| {
        let is_connect = error.is_connect();
        let error = error.without_url();
        if is_connect && let Ok(address) = Url::parse(base) {
            let (what, setting) = ("the search service", "researcher.search_url");
            return unreachable(what, &address, setting, &error);
        }
        let sentence = "the search service did not answer; check researcher.search_url";
        let detail = Some(error_chain(&error));
        ProviderError { detail, ..ProviderError::new(ProviderErrorKind::TimedOut, sentence) }
    })?;
    let status = response.status().as_u16();
    let wait = response.headers().get(header::RETRY_AFTER).and_then(|value| value.to_str().ok());
    let wait = wait.and_then(|text| text.parse().ok()).map(Duration::from_secs);
    let (kind, sentence) = match status {
        200 => {
            let body = read_body(response, MAX_BODY).await;
            let body = body.map_err(|error| {
                failed("the answer of the search service broke off", error_chain(&error))
            })?;
            let found: SearxngAnswer = serde_json::from_slice(&body).map_err(|error| {
                failed("the search service did not answer with JSON", error.to_string())
            })?;
            let hits = found.results.into_iter().map(|page| SearchHit {
                url: page.url,
                title: page.title.unwrap_or_default(),
                snippet: page.content.unwrap_or_default(),
            });
            return Ok(hits.collect());
        }
        401 => (
            ProviderErrorKind::Unauthorized,
            "the search service refused the key; check researcher.search_api_key",
        ),
        403 => (
            ProviderErrorKind::Misconfigured,
            "SearXNG answers with 403, because JSON answers are off; add `search: formats: [html, json]` to its settings.yml (key search.formats) and restart it",
        ),
        404 => (
            ProviderErrorKind::Misconfigured,
            "the address of the search service has no /search; check researcher.search_url",
        ),
        429 | 503 => {
            (ProviderErrorKind::RateLimited { retry_after: wait }, "the search service is busy")
        }
        _ => (ProviderErrorKind::Unavailable { retry_after: wait }, "the search service failed"),
    };
    Err(ProviderError {
        detail: Some(format!("HTTP {status}")),
        ..ProviderError::new(kind, sentence)
    })
}

/// Returns the usable hits of a query: short texts, few of one host, no address twice.
fn clean(hits: Vec<SearchHit>, query: SearchQuery<'_>) -> Vec<SearchHit> {
    let short = |text: &str| {
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        text[..text.floor_char_boundary(MAX_TEXT)].to_owned()
    };
    let mut hosts = std::collections::HashMap::<String, usize>::new();
    let mut seen = std::collections::HashSet::new();
    let mut cleaned = Vec::new();
    for hit in hits {
        if hit.url.is_empty() || hit.url.len() > 2_000 || !seen.insert(canonical(&hit.url)) {
            continue;
        }
        if let Some(host) =
            Url::parse(&hit.url).ok().and_then(|url| url.host_str().map(str::to_owned))
        {
            let host = host.strip_prefix("www.").unwrap_or(&host).to_owned();
            let count = hosts.entry(host).or_default();
            *count += 1;
            if *count > query.per_host {
                continue;
            }
        }
        cleaned.push(SearchHit {
            url: hit.url,
            title: short(&hit.title),
            snippet: short(&hit.snippet),
        });
        if cleaned.len() == query.at_most {
            break;
        }
    }
    cleaned
}

/// Returns the form of an address in which copies of a page are equal: without scheme, `www.`, fragment, marks of
/// campaigns and a slash at the end.
pub(crate) fn canonical(address: &str) -> String {
    let Ok(url) = Url::parse(address) else { return address.to_owned() };
    let Some(host) = url.host_str() else { return address.to_owned() };
    let host = host.strip_prefix("www.").unwrap_or(host);
    let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
    let is_kept = |name: &str| !name.starts_with("utm_") && !matches!(name, "gclid" | "fbclid");
    let mut pairs: Vec<_> = url
        .query_pairs()
        .filter(|(name, _)| is_kept(name))
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    pairs.sort();
    let query = if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) };
    format!("{host}{port}{}{query}", url.path().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_of_an_address_and_too_many_of_a_host_are_dropped() {
        let hit = |url: &str| SearchHit { url: url.to_owned(), ..SearchHit::default() };
        let hits = [
            "https://www.a.example/x/?utm_source=1#top",
            "http://a.example/x",
            "https://a.example/y?b=2&a=1",
            "https://www.a.example/y?a=1&b=2",
            "https://www.a.example/z",
            "https://www.a.example/w",
            "",
            "notes/file.md",
        ];
        let query = SearchQuery::for_reading("x", None);
        let cleaned = clean(hits.iter().map(|url| hit(url)).collect(), query);
        let urls: Vec<_> = cleaned.iter().map(|hit| hit.url.as_str()).collect();
        assert_eq!(
            urls,
            [
                "https://www.a.example/x/?utm_source=1#top",
                "https://a.example/y?b=2&a=1",
                "notes/file.md"
            ]
        );
    }
}
