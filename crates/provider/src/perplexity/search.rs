//! The Search API: ranked results and no answer, in one bounded call. The same in every dialect.

use outlast_core::{
    BeginError, Body, Cost, Output, RecoverySemantics, ResearchRequest, ResendPolicy, ResumePolicy,
    Run, Source, Usage,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::with_filters;
use crate::prices::Prices;
use crate::responses::wire::is_name;
use crate::vendor::lenient::{Items, Lenient, object};
use crate::vendor::{DeliveredRun, Service, Submit};

/// The defaults of the vendor's own tool.
const MAX_RESULTS: u32 = 10;
const MAX_TOKENS_PER_PAGE: u32 = 1024;

/// A search is one call: nothing to resume, nothing to stop.
pub(super) const NATURE: RecoverySemantics =
    RecoverySemantics { resend: ResendPolicy::Never, resume: ResumePolicy::Never, can_stop: false };

fn request(ask: &ResearchRequest) -> Value {
    let body = json!({
        "query": ask.question(),
        "max_results": ask.filters.max_results.unwrap_or(MAX_RESULTS),
        "max_tokens_per_page": ask.filters.max_tokens_per_page.unwrap_or(MAX_TOKENS_PER_PAGE),
        "country": ask.filters.country,
    });
    with_filters(body, &ask.filters)
}

#[derive(Debug, Default, Deserialize)]
struct SearchAnswer {
    id: Lenient<String>,
    results: Items<Hit>,
}

#[derive(Debug, Default, Deserialize)]
struct Hit {
    url: Lenient<String>,
    title: Lenient<String>,
    snippet: Lenient<String>,
    date: Lenient<String>,
}

/// Makes the search; the run is done before it is followed. Where the provider gives the search no name it goes by
/// `key`.
pub(super) async fn begin(
    api: &Service,
    provider: &str,
    ask: &ResearchRequest,
    key: &str,
) -> Result<Box<dyn Run>, BeginError> {
    let request = api.post(&["search"], &request(ask))?;
    let submit = Submit::new(api);
    let response = submit.send(request, |answer| api.refusal(answer)).await?;
    let raw = submit.read(response).await?;
    let Some((id, output)) = read(&raw) else {
        let sentence = "the provider accepted the search but gave no results";
        return Err(BeginError::Unknown(api.report_malformed(sentence, &raw)));
    };
    let remote = api.remote(provider, id.unwrap_or_else(|| key.to_owned()));
    Ok(Box::new(DeliveredRun::new(remote, Box::new(output), raw)))
}

/// Reads the id and the results of a search; `None` if the body has no results.
pub(super) fn read(body: &[u8]) -> Option<(Option<String>, Output)> {
    let found: SearchAnswer = object(body)?;
    let sources = sources(found.results.0?);
    let output = Output {
        body: Body::report(list_sources(&sources), sources),
        model: None,
        usage: Usage { searches: 1, ..Usage::default() },
        cost: Cost::Computed(Prices::current().search()),
    };
    Some((found.id.0.filter(|id| is_name(id)), output))
}

/// Hits in their order, without those that have no address.
fn sources(hits: Vec<Hit>) -> Vec<Source> {
    let text = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let found = hits
        .into_iter()
        .filter_map(|hit| Some((text(hit.url.0)?, hit.title, hit.date, hit.snippet)));
    (1..)
        .zip(found)
        .map(|(number, (url, title, date, snippet))| Source {
            number,
            url,
            title: text(title.0),
            date: text(date.0),
            snippet: text(snippet.0),
            digest: None,
        })
        .collect()
}

/// The results as text, to the letter as the vendor's own tool words them (A9).
fn list_sources(sources: &[Source]) -> String {
    let mut list = format!("Found {} search results:\n\n", sources.len());
    for source in sources {
        let title = source.title.as_deref().unwrap_or(&source.url);
        list.push_str(&format!("{}. **{title}**\n   URL: {}\n", source.number, source.url));
        if let Some(snippet) = &source.snippet {
            list.push_str(&format!("   {snippet}\n"));
        }
        if let Some(date) = &source.date {
            list.push_str(&format!("   Date: {date}\n"));
        }
        list.push('\n');
    }
    list
}
