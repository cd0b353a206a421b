//! Builds the report: its parts in order, and the Markdown of each passage.

use outlast_core::{
    Body, Cost, Effort, NanoUsd, Output, ResearchKind, ResearchRequest, Source, Usage,
};

use super::cite::Citations;
use super::clean::{self, shorten};
use super::document::{HEADING_SEPARATOR, PassageKind};
use super::note::{SearchScope, UNSURE, loose, note, write_nothing_found};
use super::query::Query;
use super::rank::{Ranking, Weights};
use super::select::{CitedPassages, ReportLimits};
use super::statements::{cells, statements};

/// The name used in place of a model name.
pub(super) const MODEL: &str = "library (extractive)";
/// The maximum number of passages in a report of normal effort.
const BEST: usize = 5;
/// The maximum number of loosely related passages.
const BEST_LOOSE: usize = 2;
/// Passages that cover a smaller share of the question are called loosely related.
const LOOSE: f64 = 0.4;
/// Passages that cover a smaller share do not answer the question.
const FOREIGN: f64 = 0.25;
/// A passage that covers this share of the words that occur in the library answers in spite of unknown words.
const WHOLLY_KNOWN: f64 = 0.8;
/// A longer listing is cut to the lines around the best one.
const CODE_LINES: usize = 30;

/// Returns the number and quality of passages for this kind of ask.
pub(super) fn read_limits(ask: &ResearchRequest) -> ReportLimits {
    let short = ReportLimits { blocks: 3, for_a_fact: 2, least: 0.5, few: 1, covers: 0.8 };
    match ask.kind {
        ResearchKind::Research => match ask.effort.unwrap_or(Effort::Medium) {
            Effort::Minimal | Effort::Low => ReportLimits { blocks: 2, ..short },
            Effort::Medium => ReportLimits { blocks: BEST, least: 0.35, few: 3, ..short },
            Effort::High => {
                ReportLimits { blocks: 18, for_a_fact: 18, least: 0.15, few: 8, covers: 0.3 }
            }
        },
        ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason => short,
        ResearchKind::Results => {
            let most = ask.filters.max_results.unwrap_or(10).clamp(1, 50);
            let blocks = usize::try_from(most).unwrap_or(10);
            ReportLimits { blocks, for_a_fact: blocks, least: 0.0, few: 1, covers: 0.0 }
        }
    }
}

pub(super) fn write(
    ask: &ResearchRequest,
    query: &Query,
    ranked: &Ranking,
    blocks: &[CitedPassages],
    searched: &SearchScope,
) -> Output {
    let mut citations = Citations::default();
    let mut page: Vec<String> = Vec::new();
    if ask.kind == ResearchKind::Research {
        page.push(format!("# {}", title(&query.question)));
    }
    let coverage = ranked.hits.first().map_or(0.0, |hit| hit.coverage);
    let known = ranked.hits.first().map_or(0.0, |hit| hit.known);
    let is_foreign = coverage < FOREIGN
        || coverage < LOOSE && ranked.known_words * 2 < ranked.known_words + ranked.missing.len();
    // Words that occur nowhere do not suppress a passage that has all the others.
    let is_whole = known >= WHOLLY_KNOWN && ranked.known_words > 1;
    if is_foreign && !is_whole || blocks.is_empty() {
        write_nothing_found(&mut page, query, ranked, searched);
        return output(page, citations.sources);
    }
    let is_loose = coverage < LOOSE && !is_whole;
    let blocks = if is_loose { &blocks[..blocks.len().min(BEST_LOOSE)] } else { blocks };
    if is_loose {
        page.push(loose(ranked));
    } else if !ranked.hits.first().is_some_and(|hit| hit.is_sure) {
        page.push(UNSURE.to_owned());
    }
    match ask.kind {
        ResearchKind::Research => {
            let (best, more) = blocks.split_at(blocks.len().min(BEST));
            page.push("## Best passages".to_owned());
            passages(&mut page, &mut citations, &ranked.weights, best);
            if !more.is_empty() {
                page.push("## More passages".to_owned());
                passages(&mut page, &mut citations, &ranked.weights, more);
            }
        }
        ResearchKind::Search | ResearchKind::Ask | ResearchKind::Reason => {
            for block in blocks {
                let number = citations.cite(block);
                page.push(format!("**{}** ({})", block.heading(), place(block)));
                page.push(format_block(block, &number, &ranked.weights));
            }
        }
        ResearchKind::Results => results(&mut page, &mut citations, &ranked.weights, blocks),
    }
    page.push("---".to_owned());
    page.push(note(ranked, searched));
    output(page, citations.sources)
}

fn output(page: Vec<String>, sources: Vec<Source>) -> Output {
    Output {
        body: Body::report(page.join("\n\n"), sources),
        model: Some(MODEL.to_owned()),
        usage: Usage { searches: 1, ..Usage::default() },
        cost: Cost::Reported(NanoUsd(0)),
    }
}

fn title(question: &str) -> String {
    const MAX_TITLE_CHARS: usize = 160;
    // A number in brackets would look like a citation.
    let question = clean::inline(question.trim_start_matches(['#', ' ']));
    if question.is_empty() {
        return "A question without words".to_owned();
    }
    shorten(&question, MAX_TITLE_CHARS)
}

/// Writes the blocks, best first, each under its heading from the file.
fn passages(
    page: &mut Vec<String>,
    citations: &mut Citations,
    weights: &Weights,
    blocks: &[CitedPassages],
) {
    let mut last = None;
    for block in blocks {
        let under = (block.best.file, &block.best.headings);
        if last.replace(under) != Some(under) {
            page.push(format!("### {}", block.heading()));
            if block.heading() != block.best.name {
                page.push(format!("*From {}*", place(block)));
            }
        }
        let number = citations.cite(block);
        page.push(format_block(block, &number, weights));
    }
}

fn place(block: &CitedPassages) -> String {
    let mut place = vec![format!("`{}`", block.best.name)];
    if !block.best.headings.is_empty() {
        place.extend(block.best.title.clone());
        place.extend(
            block.best.headings.rsplit_once(HEADING_SEPARATOR).map(|(above, _)| above.to_owned()),
        );
    }
    place.join(HEADING_SEPARATOR)
}

/// Formats a block as Markdown, with its number at the end.
fn format_block(block: &CitedPassages, number: &str, weights: &Weights) -> String {
    let mut text = String::new();
    let mut last = None;
    for part in &block.parts {
        match (last, part.kind) {
            (None, _) => {}
            (Some(PassageKind::Item), PassageKind::Item)
            | (Some(PassageKind::Head | PassageKind::Row), PassageKind::Row) => text.push('\n'),
            // Two spaces keep the line break in Markdown.
            (Some(PassageKind::Line), PassageKind::Line) => text.push_str("  \n"),
            (Some(_), _) => text.push_str("\n\n"),
        }
        match part.kind {
            PassageKind::Paragraph | PassageKind::Line | PassageKind::Item | PassageKind::Row => {
                text.push_str(&part.text)
            }
            PassageKind::Head => {
                let columns = cells(&part.text).len();
                text.push_str(&format!("{}\n|{}", part.text, "---|".repeat(columns)));
            }
            PassageKind::Code => text.push_str(&format_code(&part.text, weights)),
        }
        last = Some(part.kind);
    }
    let what = match last {
        Some(PassageKind::Item) => "item",
        Some(PassageKind::Line) => "line",
        _ => "row",
    };
    let left_out = match block.left_out {
        0 => String::new(),
        1 => format!(" (1 more {what} there)"),
        more => format!(" ({more} more {what}s there)"),
    };
    match last {
        // A number inside a table or a listing would become part of it.
        Some(PassageKind::Head | PassageKind::Row | PassageKind::Code) => {
            format!("{text}\n\n{number}{left_out}")
        }
        _ => format!("{text} {number}{left_out}"),
    }
}

fn format_code(code: &str, weights: &Weights) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let (language, code) = code.split_once('\n').unwrap_or(("", code));
    let lines: Vec<_> = code.lines().collect();
    let mut shown = lines.as_slice();
    let (mut before, mut after) = ("", "");
    if lines.len() > CODE_LINES {
        let best = |best: usize, at: usize| {
            if weights.share(lines[at]) > weights.share(lines[best]) { at } else { best }
        };
        let best = (0..lines.len()).fold(0, best);
        let from = best.saturating_sub(CODE_LINES / 3).min(lines.len() - CODE_LINES);
        shown = &lines[from..from + CODE_LINES];
        before = if from > 0 { "...\n" } else { "" };
        after = if from + CODE_LINES < lines.len() { "\n..." } else { "" };
    }
    format!("{fence}{language}\n{before}{}{after}\n{fence}", shown.join("\n"))
}

/// Writes ranked results: the place of each, and the relevant words.
fn results(
    page: &mut Vec<String>,
    citations: &mut Citations,
    weights: &Weights,
    blocks: &[CitedPassages],
) {
    let mut lines = Vec::new();
    for block in blocks {
        let said = statements(block);
        let most = said
            .iter()
            .enumerate()
            .max_by(|a, b| weights.share(a.1).total_cmp(&weights.share(b.1)).then(b.0.cmp(&a.0)));
        let snippet = match most {
            Some((at, _)) => said[at..].iter().take(2).cloned().collect::<Vec<_>>().join(" "),
            None => clean::squeeze(&block.best.text),
        };
        let snippet = shorten(&snippet, 400);
        let source = citations.source(block);
        // If a page has several passages, the first one, which is the best, represents it.
        source.snippet.get_or_insert_with(|| snippet.clone());
        let (number, url) = (source.number, &source.url);
        lines.push(format!("- [{number}] **{}** (`{url}`): {snippet}", block.heading()));
    }
    page.push(lines.join("\n"));
}
