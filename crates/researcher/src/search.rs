//! The search backends.

use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use outlast_core::{NanoUsd, ProviderError, ProviderErrorKind, Recency};
use outlast_http::{error_chain, read_body};
use reqwest::header;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::SharedState;
use crate::settings::SearchBackend;
use crate::steps::{RequestResult, StepOutcome, StepSpec, StepUsage, digest_of};
use crate::waits::unreachable;
use crate::work::RunContext;

const TIMEOUT: Duration = Duration::from_secs(30);
const MAX_BODY: usize = 4 << 20;
const MAX_TEXT: usize = 500;
/// The hits of one query that are used.
pub(crate) const MAX_HITS: usize = 8;
/// The hits of one host and query that are used.
const MAX_PER_HOST: usize = 2;

/// A search tool of another server.
#[async_trait]
pub trait SearchTool: Send + Sync {
    /// Calls the tool with `{query}` and returns the hits in the order of the tool. An empty list means that nothing
    /// was found. The caller limits the time: a dropped call may have been answered.
    async fn search(&self, query: &str) -> Result<Vec<SearchHit>, ProviderError>;
}

/// A hit of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub url: String,
    #[serde(default)]
    pub title: String,
    /// A few words of the page, as the search service shows them.
    #[serde(default)]
    pub snippet: String,
}

/// Runs a query as a step and returns its hits; `None` if it failed.
pub(crate) async fn search(
    work: &RunContext,
    key: String,
    query: &str,
) -> Result<Option<Vec<SearchHit>>, ProviderError> {
    let shared = &work.shared;
    let is_local = matches!(shared.settings.search, SearchBackend::Library(_));
    let price = match is_local {
        true => Some(NanoUsd(0)),
        false => shared.settings.prices.search.map(|price| NanoUsd(price.0.div_ceil(1_000))),
    };
    let spec = StepSpec {
        key,
        kind: "search",
        digest: digest_of(&[query]),
        bound: price,
        needs_room: true,
    };
    let usage = StepUsage { spent: price.unwrap_or_default(), read: 0, written: 0 };
    let send = || send_query(work, query, usage).boxed();
    match work.steps.take(&spec, None, send).await? {
        StepOutcome::Done(output) => Ok(Some(serde_json::from_str(&output).unwrap_or_default())),
        StepOutcome::Failed(reason) => {
            tracing::warn!(query, reason, "a search failed");
            Ok(None)
        }
        StepOutcome::NoRoom => Ok(None),
    }
}

async fn send_query(work: &RunContext, query: &str, usage: StepUsage) -> RequestResult {
    match tokio::time::timeout(TIMEOUT, run_query(work, query)).await {
        Ok(Ok(hits)) => RequestResult::Done {
            output: serde_json::to_string(&clean(hits)).unwrap_or_default(),
            usage,
        },
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

async fn run_query(work: &RunContext, query: &str) -> Result<Vec<SearchHit>, ProviderError> {
    let shared = &work.shared;
    match &shared.settings.search {
        SearchBackend::Searxng { url, api_key } => {
            ask_searxng(shared, url, api_key.as_deref(), query, work.ask.filters.recency).await
        }
        SearchBackend::Tool { tool, .. } => tool.search(query).await,
        SearchBackend::Library(library) => {
            let (library, query) = (library.clone(), query.to_owned());
            let found =
                tokio::task::spawn_blocking(move || library.find_files(&query, MAX_HITS)).await;
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
fn clean(hits: Vec<SearchHit>) -> Vec<SearchHit> {
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
            if *count > MAX_PER_HOST {
                continue;
            }
        }
        cleaned.push(SearchHit {
            url: hit.url,
            title: short(&hit.title),
            snippet: short(&hit.snippet),
        });
        if cleaned.len() == MAX_HITS {
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
        let cleaned = clean(hits.iter().map(|url| hit(url)).collect());
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
