//! The pages from which the researcher wrote a report (J4): its run has kept them, and they are not fetched again.

use std::collections::HashSet;
use std::sync::Arc;

use outlast_core::{CheckRequest, Page as KeptPage, RunJournal};
use outlast_sources::{CitedSource, LocalReader, LocalSource, Page};

/// Returns the reader of the kept pages that a report cites; `None` if there are none, or if the check is to fetch again.
pub(super) async fn kept_reader(
    request: &CheckRequest,
    journal: Option<&RunJournal>,
) -> Option<LocalReader> {
    let journal = journal.filter(|_| !request.fetch_again)?;
    let cited: HashSet<&str> = request.sources.iter().map(|source| &*source.url).collect();
    let pages = match journal.pages_of_subject(|url| cited.contains(url)).await {
        Ok(pages) => pages,
        Err(error) => {
            tracing::warn!(%error, "failed to read the kept pages of a report; fetching them");
            return None;
        }
    };
    if pages.is_empty() {
        return None;
    }
    Some(Arc::new(move |source: &CitedSource| pages.get(&source.url).map(local_source)))
}

fn local_source(kept: &KeptPage) -> LocalSource {
    let is_of_web = kept.url.contains("://");
    LocalSource::Kept {
        page: Page::from_stored(&kept.text, kept.truncated),
        final_url: (kept.final_url != kept.url).then(|| kept.final_url.clone()),
        status: is_of_web.then_some(kept.status),
    }
}
