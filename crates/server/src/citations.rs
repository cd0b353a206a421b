//! Checks of citations in answers, on the page and in exports: their results, and their summaries.

use outlast_core::conversation::Conversation;
use outlast_core::{Body, Job, Scope, Source, StoreError};
use outlast_engine::Engine;
use outlast_sources::{CitationCheck, CitedSource, Report, Totals};
use serde::{Deserialize as _, Serialize};

/// Returns the result of a check that has succeeded.
pub fn citation_check(check: &Job) -> Option<CitationCheck> {
    if !check.new.request.is_citation_check() {
        return None;
    }
    let Body::Tool { structured: Some(structured), .. } = &check.output()?.body else {
        return None;
    };
    CitationCheck::deserialize(structured).ok()
}

/// The part of a check that answers with a report contain.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckSummary {
    checked_at: String,
    complete: bool,
    totals: Totals,
    dead_sources: usize,
    /// The same in one line, for a reader.
    #[serde(skip)]
    pub(crate) line: String,
}

impl From<&CitationCheck> for CheckSummary {
    fn from(check: &CitationCheck) -> Self {
        Self {
            checked_at: check.checked_at.clone(),
            complete: check.complete,
            totals: check.totals,
            dead_sources: check.dead_sources(),
            line: format!("Citations checked at {}: {}.", check.checked_at, check.summary()),
        }
    }
}

/// Returns the newest result of a check of this report, if it was checked.
pub(crate) async fn check_of(
    engine: &Engine,
    scope: &Scope,
    report: &Job,
) -> Result<Option<CitationCheck>, StoreError> {
    if report.output().is_none() {
        return Ok(None);
    }
    let check = engine.finished_check(scope, &report.id).await?;
    Ok(check.as_ref().and_then(citation_check))
}

/// Returns true if a report cites addresses, which a check would fetch.
pub fn has_web_sources(report: &Job) -> bool {
    let Some(Body::Report { text, sources, .. }) = report.output().map(|output| &output.body)
    else {
        return false;
    };
    let cited = |source: &Source| CitedSource { number: source.number, url: source.url.clone() };
    let sources = Report::with_sources(text, sources.iter().map(cited).collect()).sources;
    sources.iter().any(|it| it.url.starts_with("https://") || it.url.starts_with("http://"))
}

/// Returns the last turn with a report that can be checked.
pub(crate) fn last_report(conversation: &Conversation) -> Option<&Job> {
    conversation.turns().filter(|turn| turn.has_report()).last()
}
