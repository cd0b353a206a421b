//! Reads pages: fetches them under the rules of J5, keeps their text, and splits it into passages.

use std::sync::Arc;

use futures_util::FutureExt as _;
use outlast_core::rules::MAX_PAGE_TEXT;
use outlast_core::{Page as StoredPage, ProviderError, ReadRecord, StoreError, digest_from_hex};
use outlast_library::{PassageDocument, PassageText};
use outlast_sources::{
    Block, BlockKind, FetchedPage, Fetcher, Obstacle, Page, PreparedPage, Quotable,
};

use crate::settings::SearchBackend;
use crate::steps::{RequestResult, StepOutcome, StepSpec, StepUsage, digest_of, to_json};
use crate::work::RunContext;

/// The size of a passage in bytes: about 200 tokens.
const PASSAGE: usize = 700;

/// A page that was read.
pub(crate) struct ReadPage {
    pub(crate) digest: [u8; 32],
    /// The address under which it was found, which the report cites.
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) facts: Arc<PreparedPage>,
    pub(crate) quotable: Quotable,
    pub(crate) passages: Vec<PassageText>,
}

/// Reads a page as a step; `None` if it cannot be read.
pub(crate) async fn read_page(
    work: &RunContext,
    fetcher: &Fetcher,
    url: &str,
) -> Result<Option<ReadPage>, ProviderError> {
    let digest = digest_of(&[url]);
    let spec = StepSpec {
        needs_room: true,
        subject: Some(url.to_owned()),
        ..StepSpec::free(format!("read:{}", to_hex(&digest[..16])), "read", &[url])
    };
    let send = || fetch_and_save(work, fetcher, url).boxed();
    let output = match work.steps.take(&spec, None, send).await? {
        StepOutcome::Done(output) => output,
        StepOutcome::Failed(reason) => {
            tracing::debug!(url, reason, "a page cannot be used");
            return Ok(None);
        }
        StepOutcome::NoRoom => return Ok(None),
    };
    let record = serde_json::from_str::<ReadRecord>(&output).ok();
    let Some(digest) = record.and_then(|record| digest_from_hex(&record.page)) else {
        return Ok(None);
    };
    load_page(work, &digest).await
}

/// Returns a page that the run has kept.
pub(crate) async fn load_page(
    work: &RunContext,
    digest: &[u8; 32],
) -> Result<Option<ReadPage>, ProviderError> {
    let stored = work.steps.journal().page(digest).await.map_err(crate::steps::store_error)?;
    let Some(stored) = stored else { return Ok(None) };
    let page = tokio::task::spawn_blocking(move || ReadPage::new(stored)).await;
    Ok(page.ok())
}

/// Fetches a page and keeps it.
async fn fetch_and_save(work: &RunContext, fetcher: &Fetcher, url: &str) -> RequestResult {
    let failed = |reason: String| RequestResult::Failed { reason, usage: StepUsage::default() };
    let stored = match &work.shared.settings.search {
        SearchBackend::Library(_) => read_file(work, url).await,
        SearchBackend::Searxng { .. } | SearchBackend::Tool { .. } => {
            fetch(work, fetcher, url).await
        }
    };
    let stored = match stored {
        Ok(stored) => stored,
        Err(reason) => return failed(reason),
    };
    match work.steps.journal().save_page(&stored).await {
        Ok(()) => {}
        Err(StoreError::TooManyBytes) => {
            return failed("there is no room for the page".to_owned());
        }
        Err(error) => return RequestResult::Unanswered(crate::steps::store_error(error)),
    }
    let record = ReadRecord { url: url.to_owned(), page: to_hex(&stored.digest) };
    RequestResult::Done { output: to_json(&record), usage: StepUsage::default() }
}

/// Fetches a page and returns it as it is kept; otherwise the reason.
async fn fetch(work: &RunContext, fetcher: &Fetcher, url: &str) -> Result<StoredPage, String> {
    let fetched = fetcher.fetch(url).await.map_err(|error| error.to_string())?;
    if !matches!(fetched.status, 200 | 203) {
        return Err(format!("the site answered with {}", fetched.status));
    }
    let pdf = work.shared.settings.pdf.clone();
    let parse = move || {
        let page = Page::read(&fetched, pdf.as_ref());
        (page, fetched)
    };
    let parsed = tokio::task::spawn_blocking(parse).await;
    let (page, fetched) = parsed.map_err(|_| "the page cannot be parsed".to_owned())?;
    let page = page.map_err(|error| format!("the page cannot be read: {error:?}"))?;
    match page.obstacle {
        None | Some(Obstacle::Paywall) => {}
        Some(obstacle) => {
            return Err(format!("the page has no readable text: {}", obstacle.as_str()));
        }
    }
    let FetchedPage { url: final_url, status, content_type, .. } = fetched;
    Ok(to_stored(work, url, final_url.as_str(), status, Some(content_type), &page))
}

/// Reads a file of the library like a page.
async fn read_file(work: &RunContext, name: &str) -> Result<StoredPage, String> {
    let SearchBackend::Library(library) = &work.shared.settings.search else {
        return Err("there is no library".to_owned());
    };
    let (library, file) = (library.clone(), name.to_owned());
    let read = tokio::task::spawn_blocking(move || library.read_file(&file)).await;
    let read = read.map_err(|_| "the file cannot be read".to_owned())?;
    let read = read.map_err(|error| error.to_string())?;
    let PassageDocument { title, passages } = read.ok_or("the library does not have the file")?;
    let blocks = passages.into_iter().map(|passage| Block {
        headings: passage.headings,
        text: passage.text,
        kind: BlockKind::Paragraph,
        header: None,
    });
    let mut page = Page::default();
    (page.title, page.blocks) = (title, blocks.collect());
    Ok(to_stored(work, name, name, 200, None, &page))
}

fn to_stored(
    work: &RunContext,
    url: &str,
    final_url: &str,
    status: u16,
    media_type: Option<String>,
    page: &Page,
) -> StoredPage {
    let mut text = page.to_stored().replace('\0', "");
    let is_cut = text.len() > MAX_PAGE_TEXT;
    text.truncate(text.floor_char_boundary(MAX_PAGE_TEXT));
    StoredPage {
        digest: digest_of(&[url, &text]),
        url: url.to_owned(),
        final_url: final_url.to_owned(),
        status,
        media_type,
        fetched_at: work.shared.clock.now(),
        truncated: page.truncated || is_cut,
        text,
    }
}

impl ReadPage {
    fn new(stored: StoredPage) -> Self {
        let page = Page::from_stored(&stored.text, stored.truncated);
        Self {
            digest: stored.digest,
            title: page.title.clone().unwrap_or_else(|| stored.url.clone()),
            url: stored.url,
            quotable: Quotable::new(&page),
            passages: passages(&page),
            facts: Arc::new(PreparedPage::new(&page)),
        }
    }

    /// Returns the page as a document to rank.
    pub(crate) fn document(&self) -> PassageDocument {
        PassageDocument { title: Some(self.title.clone()), passages: self.passages.clone() }
    }
}

/// Splits a page into passages: neighbours under the same headings are joined, and long blocks are split between
/// sentences. The row of a table brings its head along.
fn passages(page: &Page) -> Vec<PassageText> {
    let mut all: Vec<PassageText> = Vec::new();
    let mut header = None;
    for block in &page.blocks {
        let mut parts: Vec<String> = Vec::new();
        if block.header != header {
            header.clone_from(&block.header);
            parts.extend(header.as_deref().map(|cells| cells.join(" | ")));
        }
        match block.kind {
            BlockKind::Paragraph if block.text.len() > PASSAGE => {
                parts.extend(
                    outlast_sources::split_sentences(&block.text).into_iter().map(str::to_owned),
                );
            }
            BlockKind::Paragraph | BlockKind::Item | BlockKind::Row => {
                parts.push(block.text.clone())
            }
        }
        for part in parts.iter().flat_map(|part| cut(part)) {
            match all.last_mut() {
                Some(last)
                    if last.headings == block.headings
                        && last.text.len() + part.len() < PASSAGE =>
                {
                    last.text.push('\n');
                    last.text.push_str(part);
                }
                _ => all.push(PassageText {
                    headings: Arc::clone(&block.headings),
                    text: part.to_owned(),
                }),
            }
        }
    }
    all
}

/// Cuts a part that is longer than two passages, such as a line of a machine.
fn cut(mut part: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while part.len() > 2 * PASSAGE {
        let end = part.floor_char_boundary(PASSAGE);
        let end = part[..end].rfind(' ').filter(|at| *at > 0).unwrap_or(end);
        pieces.push(&part[..end]);
        part = part[end..].trim_start();
    }
    pieces.push(part);
    pieces
}

pub(crate) fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_keep_all_words_and_stay_short() {
        let long = "A sentence of some words that goes on. ".repeat(100);
        let text =
            format!("# One\n\nShort.\n\nAlso short.\n\n{long}\n\n# Two\n\n{}", "x".repeat(5_000));
        let page = Page::from_text(&text);
        let all = passages(&page);
        assert_eq!(all[0].text.lines().take(2).collect::<Vec<_>>(), ["Short.", "Also short."]);
        assert!(all.iter().all(|passage| passage.text.len() <= 2 * PASSAGE));
        let words: usize = all.iter().map(|passage| passage.text.split_whitespace().count()).sum();
        assert!(words >= 804, "{words}");
        assert_eq!(digest_from_hex(&to_hex(&[7; 32])), Some([7; 32]));
        assert_eq!(digest_from_hex("zz"), None);
    }
}
