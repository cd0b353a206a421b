//! A check of citations for a terminal: the claims and sources that a reader should look at, and a summary.

use outlast_sources::{CheckedClaim, CheckedSource, CitationCheck, SourceVerdict};

use crate::ui;

pub(crate) fn show(done: &CitationCheck) {
    done.claims.iter().filter(|claim| claim.verdict.is_doubtful()).for_each(show_claim);
    done.sources.iter().filter(|source| source.verdict != SourceVerdict::Ok).for_each(show_source);
    ui::line(&done.summary());
}

fn show_claim(claim: &CheckedClaim) {
    let numbers: Vec<_> = claim.citations.iter().map(|number| format!("[{number}]")).collect();
    let verdict = claim.verdict.as_str().replace('_', " ");
    ui::text(&format!("{verdict}  {} {}", claim.text, numbers.concat()));
    if let Some(found) = &claim.found {
        ui::text(&format!("  the source has: {found}"));
    } else if !claim.missing.is_empty() {
        ui::text(&format!("  not found: {}", claim.missing.join("; ")));
    }
    if let Some(passage) = &claim.passage {
        ui::text(&format!("  [{}] {}", passage.n, passage.text));
    }
    if let Some(reason) = claim.reason {
        ui::text(&format!("  reason: {}", reason.words()));
    }
}

fn show_source(source: &CheckedSource) {
    let status = source.http_status.filter(|status| *status != 200);
    let status = status.map(|status| format!(" ({status})")).unwrap_or_default();
    let verdict = source.verdict.as_str();
    ui::text(&format!("{verdict}  [{}] {}{status}", source.n, source.url));
    if let Some(detail) = &source.detail {
        ui::text(&format!("  {detail}"));
    }
}
