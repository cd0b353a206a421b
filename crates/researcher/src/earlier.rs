//! The notes and pages of the conversation's earlier questions, from which a follow-up starts (K10).

use std::collections::HashMap;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::rules::MAX_STEP_OUTPUT;
use outlast_core::{ProviderError, ResearchRecord, Role, StepOutput, StoreError, digest_from_hex};
use outlast_library::{PassageDocument, PassageText, rank_passages};
use outlast_sources::Fetcher;
use serde::{Deserialize, Serialize};

use crate::collect::Findings;
use crate::notes::Note;
use crate::plan::Plan;
use crate::read::{ReadPage, load_page, read_page, to_hex};
use crate::search::canonical;
use crate::settings::SearchBackend;
use crate::steps::{store_error, to_json};
use crate::work::RunContext;

/// The age at which a page is read again.
const FRESH: Duration = Duration::from_secs(24 * 60 * 60);
/// The notes of earlier questions that are used for each sub-question.
const MAX_NOTES: usize = 12;

/// The pages that a follow-up starts from, as the run records them.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct EarlierPages {
    pages: Vec<EarlierPage>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct EarlierPage {
    url: String,
    /// The digest of the kept page; `None` for a page that is read again.
    page: Option<String>,
    /// Claims and quotations.
    notes: Vec<(String, String)>,
}

/// Adds the pages and notes of the earlier questions of the conversation.
pub(crate) async fn add_earlier(
    work: &RunContext,
    plan: &Plan,
    fetcher: &Fetcher,
    found: &mut Findings,
) -> Result<(), ProviderError> {
    if !work.ask.messages.iter().any(|message| message.role == Role::Assistant) {
        return Ok(());
    }
    let chosen = if work.steps.has_ended("earlier") {
        EarlierPages::default()
    } else {
        choose(work).await?
    };
    let chosen = work.steps.decide("earlier", || to_json(&chosen)).await?;
    let chosen: EarlierPages = serde_json::from_str(&chosen).unwrap_or_default();
    if chosen.pages.is_empty() {
        return Ok(());
    }
    work.report(4, format!("Looking at {} pages of this conversation", chosen.pages.len()));
    let opened = chosen.pages.iter().map(|page| open(work, fetcher, page));
    let opened: Result<Vec<_>, _> = join_all(opened).await.into_iter().collect();
    let mut notes = Vec::new();
    for (earlier, page) in chosen.pages.iter().zip(opened?) {
        let Some(page) = page else { continue };
        let at = found.pages.len();
        for (claim, quotation) in &earlier.notes {
            if page.quotable.contains(quotation) {
                notes.push((at, claim.clone(), quotation.clone()));
            }
        }
        found.pages.push(page);
    }
    found.notes.extend(sort_notes(plan, &notes).await);
    Ok(())
}

/// Chooses the pages that have notes, those of the newest question first, and keeps them for this run too.
async fn choose(work: &RunContext) -> Result<EarlierPages, ProviderError> {
    let journal = work.steps.journal();
    let runs = journal.earlier_outputs(&[ResearchRecord::NOTES]).await.map_err(store_error)?;
    let mut chosen = EarlierPages::default();
    let mut places: HashMap<String, usize> = HashMap::new();
    let mut bytes = 0;
    for note in runs.iter().flatten().flat_map(notes_of) {
        // Files are read by a run that searches them, and by no other: what it searches for elsewhere could reveal them
        // (K9).
        if !is_web(&note.url) && !matches!(work.shared.settings.search, SearchBackend::Library(_)) {
            continue;
        }
        // JSON may take twice the bytes of a text.
        bytes += 2 * (note.url.len() + note.claim.len() + note.quotation.len()) + 100;
        if bytes > MAX_STEP_OUTPUT {
            break;
        }
        let known = places.get(&canonical(&note.url)).copied();
        let at = match known {
            Some(at) => at,
            None if chosen.pages.len() == work.header.limits.pages => continue,
            None => {
                // A file is read again, which costs nothing and sends nothing.
                let page = if is_web(&note.url) { keep(work, &note.page).await? } else { None };
                places.insert(canonical(&note.url), chosen.pages.len());
                chosen.pages.push(EarlierPage { url: note.url, page, notes: Vec::new() });
                chosen.pages.len() - 1
            }
        };
        let text = (note.claim, note.quotation);
        if !chosen.pages[at].notes.contains(&text) {
            chosen.pages[at].notes.push(text);
        }
    }
    Ok(chosen)
}

fn notes_of(step: &StepOutput) -> Vec<outlast_core::NoteRecord> {
    match ResearchRecord::parse(step) {
        Some(ResearchRecord::Notes(record)) => record.notes,
        _ => Vec::new(),
    }
}

/// Keeps a page for this run, so that it stays when the job that read it is removed. Returns its digest; `None` if the page
/// has to be read again, because it is old or was removed.
async fn keep(work: &RunContext, digest: &str) -> Result<Option<String>, ProviderError> {
    let Some(digest) = digest_from_hex(digest) else { return Ok(None) };
    let journal = work.steps.journal();
    let Some(page) = journal.page(&digest).await.map_err(store_error)? else { return Ok(None) };
    if work.shared.clock.now().since(page.fetched_at) >= FRESH {
        return Ok(None);
    }
    match journal.save_page(&page).await {
        Ok(()) => Ok(Some(to_hex(&digest))),
        Err(StoreError::TooManyBytes) => Ok(None),
        Err(error) => Err(store_error(error)),
    }
}

async fn open(
    work: &RunContext,
    fetcher: &Fetcher,
    earlier: &EarlierPage,
) -> Result<Option<ReadPage>, ProviderError> {
    match earlier.page.as_deref().and_then(digest_from_hex) {
        Some(digest) => load_page(work, &digest).await,
        None => read_page(work, fetcher, &earlier.url).await,
    }
}

fn is_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Returns the notes that fit each sub-question best, in the order of the sub-questions.
async fn sort_notes(plan: &Plan, notes: &[(usize, String, String)]) -> Vec<Note> {
    let passage = |(_, claim, quotation): &(usize, String, String)| PassageText {
        headings: std::sync::Arc::from(""),
        text: format!("{claim}\n{quotation}"),
    };
    let documents: Vec<_> = notes
        .iter()
        .map(|note| PassageDocument { title: None, passages: vec![passage(note)] })
        .collect();
    let questions: Vec<String> = plan.questions.iter().map(|it| it.question.clone()).collect();
    let rank = move || rank_passages(&documents, &questions, MAX_NOTES);
    let ranked = tokio::task::spawn_blocking(rank).await.unwrap_or_default();
    let mut sorted = Vec::new();
    for (question, ranked) in ranked.iter().enumerate() {
        for hit in ranked {
            let (page, claim, quotation) = notes[hit.document].clone();
            sorted.push(Note { question, page, claim, quotation });
        }
    }
    sorted
}
