//! The report: its parts in order, and how a passage looks in Markdown.

use outlast_core::{AskKind, Body, Cost, Effort, NanoUsd, Output, ResearchAsk, Source, Usage};

use super::cite::Citations;
use super::clean;
use super::document::{Kind, UNDER};
use super::note::{Searched, note, nothing};
use super::page::{Page, shortened};
use super::rank::{Ranked, Weights};
use super::select::{Block, Wanted};
use super::summary::{cells, statements, summary};

/// What the provider calls itself where others name their model.
pub(super) const MODEL: &str = "library (extractive)";
/// Below this share of the question, what was found is called loosely related.
const LOOSE: f64 = 0.4;
/// Longer listings are cut.
const CODE_LINES: usize = 30;

/// How much a kind of ask wants to see.
pub(super) fn wanted(ask: &ResearchAsk) -> Wanted {
    let short = Wanted { blocks: 3, least: 0.45, few: 1, covers: 0.4, sections: 0 };
    match ask.kind {
        AskKind::Research => match ask.effort.unwrap_or(Effort::Medium) {
            Effort::Minimal | Effort::Low => {
                Wanted { blocks: 4, least: 0.35, few: 2, sections: 1, ..short }
            }
            Effort::Medium => Wanted { blocks: 8, least: 0.25, few: 5, sections: 3, ..short },
            Effort::High => Wanted { blocks: 18, least: 0.15, few: 8, covers: 0.3, sections: 6 },
        },
        AskKind::Search | AskKind::Ask | AskKind::Reason => short,
        AskKind::Results => {
            let most = ask.filters.max_results.unwrap_or(10).clamp(1, 50);
            let blocks = usize::try_from(most).unwrap_or(10);
            Wanted { blocks, least: 0.0, covers: 0.0, ..short }
        }
    }
}

/// Writes the report.
pub(super) fn write(
    ask: &ResearchAsk,
    question: &str,
    ranked: &Ranked,
    blocks: &[Block],
    searched: &Searched,
) -> Output {
    let mut citations = Citations::default();
    let mut page = Page::default();
    if ask.kind == AskKind::Research {
        page.add(format!("# {}", title(question)));
    }
    if blocks.is_empty() {
        nothing(&mut page, question, searched);
    } else {
        if ranked.hits.first().is_none_or(|hit| hit.coverage < LOOSE) {
            page.add("The library says little about this: what follows is only loosely related.");
        }
        match ask.kind {
            AskKind::Research => {
                page.add("## Executive summary");
                let most = match ask.effort.unwrap_or(Effort::Medium) {
                    Effort::Minimal | Effort::Low => 2,
                    Effort::Medium => 4,
                    Effort::High => 5,
                };
                summary(&mut page, &mut citations, &ranked.weights, blocks, most);
                sections(&mut page, &mut citations, blocks);
            }
            AskKind::Search | AskKind::Ask | AskKind::Reason => {
                summary(&mut page, &mut citations, &ranked.weights, blocks, 3);
                passages(&mut page, &mut citations, blocks);
            }
            AskKind::Results => results(&mut page, &mut citations, &ranked.weights, blocks),
        }
        page.add("---");
        page.add(note(ranked, searched));
    }
    output(page.text, citations.sources)
}

fn output(text: String, sources: Vec<Source>) -> Output {
    Output {
        body: Body::report(text, sources),
        model: Some(MODEL.to_owned()),
        usage: Usage { searches: 1, ..Usage::default() },
        cost: Cost::Reported(NanoUsd(0)),
    }
}

fn title(question: &str) -> String {
    const LONGEST: usize = 160;
    // A number in brackets would look like a citation.
    let question = clean::inline(question.trim_start_matches(['#', ' ']));
    if question.is_empty() {
        return "A question without words".to_owned();
    }
    shortened(&question, LONGEST)
}

/// The blocks under the headings they stand under in their files, in the order of their worth.
fn sections(page: &mut Page, citations: &mut Citations, blocks: &[Block]) {
    let mut groups: Vec<Vec<&Block>> = Vec::new();
    for block in blocks {
        let same = |other: &&Block| {
            (other.best.file, &other.best.headings) == (block.best.file, &block.best.headings)
        };
        match groups.iter_mut().find(|group| group.first().is_some_and(same)) {
            Some(group) => group.push(block),
            None => groups.push(vec![block]),
        }
    }
    for mut group in groups {
        group.sort_by_key(|block| block.best.line);
        let Some(first) = group.first() else { continue };
        page.add(format!("## {}", first.heading()));
        if first.heading() != first.best.name {
            page.add(format!("*From {}*", place(first)));
        }
        for block in group {
            let number = citations.cite(block);
            page.add(shown(block, &number));
        }
    }
}

fn place(block: &Block) -> String {
    let mut place = vec![format!("`{}`", block.best.name)];
    if !block.best.headings.is_empty() {
        place.extend(block.best.title.clone());
        place.extend(block.best.headings.rsplit_once(UNDER).map(|(above, _)| above.to_owned()));
    }
    place.join(UNDER)
}

/// A block as Markdown, with its number at its end.
fn shown(block: &Block, number: &str) -> String {
    let mut text = String::new();
    let mut last = None;
    for part in &block.parts {
        match (last, part.kind) {
            (None, _) => {}
            (Some(Kind::Item), Kind::Item) | (Some(Kind::Head | Kind::Row), Kind::Row) => {
                text.push('\n')
            }
            (Some(_), _) => text.push_str("\n\n"),
        }
        match part.kind {
            Kind::Paragraph | Kind::Item | Kind::Row => text.push_str(&part.text),
            Kind::Head => {
                let columns = cells(&part.text).len();
                text.push_str(&format!("{}\n|{}", part.text, "---|".repeat(columns)));
            }
            Kind::Code => text.push_str(&fenced(&part.text)),
        }
        last = Some(part.kind);
    }
    let what = match (last, block.left_out) {
        (Some(Kind::Item), 1) => "item",
        (Some(Kind::Item), _) => "items",
        (_, 1) => "row",
        (_, _) => "rows",
    };
    let left_out = match block.left_out {
        0 => String::new(),
        more => format!(" ({more} more {what} there)"),
    };
    match last {
        // A number in a table or a listing would be part of it.
        Some(Kind::Head | Kind::Row | Kind::Code) => format!("{text}\n\n{number}{left_out}"),
        _ => format!("{text} {number}{left_out}"),
    }
}

fn fenced(code: &str) -> String {
    let longest = code.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let lines: Vec<_> = code.lines().collect();
    let cut = if lines.len() > CODE_LINES { "\n..." } else { "" };
    format!("{fence}\n{}{cut}\n{fence}", lines[..lines.len().min(CODE_LINES)].join("\n"))
}

/// For a short answer: the passages as they are.
fn passages(page: &mut Page, citations: &mut Citations, blocks: &[Block]) {
    for block in blocks {
        let number = citations.cite(block);
        page.add(format!("**{}** ({})", block.heading(), place(block)));
        page.add(shown(block, &number));
    }
}

/// For ranked results: where, and the words that matter.
fn results(page: &mut Page, citations: &mut Citations, weights: &Weights, blocks: &[Block]) {
    let mut lines = Vec::new();
    for block in blocks {
        let said: Vec<_> = statements(block).into_iter().map(|(text, _)| text).collect();
        let most = said
            .iter()
            .enumerate()
            .max_by(|a, b| weights.share(a.1).total_cmp(&weights.share(b.1)).then(b.0.cmp(&a.0)));
        let snippet = match most {
            Some((at, _)) => said[at..].iter().take(2).cloned().collect::<Vec<_>>().join(" "),
            None => clean::squeeze(&block.best.text),
        };
        let snippet = shortened(&snippet, 400);
        let source = citations.source(block);
        // Of several passages of one page the first, which is the best, speaks for it.
        source.snippet.get_or_insert_with(|| snippet.clone());
        let (number, url) = (source.number, &source.url);
        lines.push(format!("- [{number}] **{}** (`{url}`): {snippet}", block.heading()));
    }
    page.add(lines.join("\n"));
}
