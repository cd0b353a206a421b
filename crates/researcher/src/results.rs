//! Ranked results: one search, of which no model writes an answer (kind `Results`).

use outlast_core::{
    Body, Cost, Output, ProviderError, ProviderErrorKind, ResearchRequest, SearchHit, Source, Usage,
};

use crate::SharedState;
use crate::collect::is_wanted;
use crate::search::{SearchQuery, search};
use crate::steps::Steps;

/// The number of results if the request names none.
const USUAL: u32 = 10;
const MOST: u32 = 20;
const MAX_QUERY: usize = 1_000;

/// Searches once and lists the hits in the order of the search service.
pub(crate) async fn list_results(
    shared: &SharedState,
    ask: &ResearchRequest,
    steps: &Steps,
) -> Result<Output, ProviderError> {
    let at_most = ask.filters.max_results.unwrap_or(USUAL).clamp(1, MOST) as usize;
    let recency = ask.filters.recency;
    // The query is a part of an address, whose length servers limit.
    let text = ask.question().split_whitespace().collect::<Vec<_>>().join(" ");
    let text = text[..text.floor_char_boundary(MAX_QUERY)].trim_end();
    let query = SearchQuery { text, recency, at_most, per_host: usize::MAX };
    let found = search(shared, steps, "search:0:0".to_owned(), query).await?;
    let hits = found.map_err(|reason| {
        let kind = ProviderErrorKind::Unavailable { retry_after: None };
        ProviderError::new(kind, format!("the search failed: {reason}"))
    })?;
    let hits = hits.into_iter().filter(|hit| is_wanted(hit, &ask.filters));
    let sources: Vec<Source> = (1..).zip(hits).map(to_source).collect();
    let totals = steps.totals();
    Ok(Output {
        body: Body::report(list_sources(&sources), sources),
        model: None,
        usage: Usage { searches: totals.searches, ..Usage::default() },
        cost: match shared.settings.prices.search {
            Some(_) => Cost::Computed(totals.spent),
            None => Cost::Unknown,
        },
    })
}

fn to_source((number, hit): (u32, SearchHit)) -> Source {
    let text = |text: String| (!text.trim().is_empty()).then_some(text);
    Source {
        number,
        url: hit.url,
        title: text(hit.title),
        snippet: text(hit.snippet),
        ..Source::default()
    }
}

/// Returns the results as text, in the form of the vendor whose tool shows them.
fn list_sources(sources: &[Source]) -> String {
    let mut list = format!("Found {} search results:\n\n", sources.len());
    for source in sources {
        let title = source.title.as_deref().unwrap_or(&source.url);
        list.push_str(&format!("{}. **{title}**\n   URL: {}\n", source.number, source.url));
        if let Some(snippet) = &source.snippet {
            list.push_str(&format!("   {snippet}\n"));
        }
        list.push('\n');
    }
    list
}
