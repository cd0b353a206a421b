//! The report: a summary of extracted sentences, the passages under their headings, and plain words about where it all
//! comes from.

use std::collections::BTreeMap;

use outlast_core::{AskKind, Body, Cost, Effort, NanoUsd, Output, ResearchAsk, Source, Usage};

use super::cite::Citations;
use super::clean;
use super::document::{Kind, UNDER};
use super::rank::{Ranked, Weights};
use super::refresh::grouped;
use super::select::{Block, Wanted};
use super::sentences;
use super::walk::Skip;
use super::words;

/// What the provider calls itself where others name their model.
const MODEL: &str = "library (extractive)";
/// Below this share of the question, what was found is called loosely related.
const LOOSE: f64 = 0.4;
/// Longer listings are cut.
const CODE_LINES: usize = 30;

/// What was searched, for the note that says so.
#[derive(Debug, Default)]
pub(super) struct Searched {
    pub(super) folders: usize,
    pub(super) files: usize,
    pub(super) passages: usize,
    pub(super) skipped: BTreeMap<Skip, usize>,
    pub(super) gone: Vec<String>,
}

/// How much a kind of ask wants to see.
pub(super) fn wanted(ask: &ResearchAsk) -> Wanted {
    match ask.kind {
        AskKind::Research => match ask.effort.unwrap_or(Effort::Medium) {
            Effort::Minimal | Effort::Low => {
                Wanted { blocks: 4, least: 0.35, covers: 0.4, sections: 1 }
            }
            Effort::Medium => Wanted { blocks: 8, least: 0.25, covers: 0.4, sections: 3 },
            Effort::High => Wanted { blocks: 18, least: 0.15, covers: 0.3, sections: 6 },
        },
        AskKind::Search | AskKind::Ask | AskKind::Reason => {
            Wanted { blocks: 3, least: 0.45, covers: 0.4, sections: 0 }
        }
        AskKind::Results => {
            let most = ask.filters.max_results.unwrap_or(10).clamp(1, 50);
            Wanted {
                blocks: usize::try_from(most).unwrap_or(10),
                least: 0.1,
                covers: 0.0,
                sections: 0,
            }
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

/// Blocks of text with a blank line between them.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn add(&mut self, block: impl AsRef<str>) {
        if !self.text.is_empty() {
            self.text.push_str("\n\n");
        }
        self.text.push_str(block.as_ref());
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

/// At most so many characters, cut between words.
fn shortened(text: &str, longest: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(longest) else { return text.to_owned() };
    let cut = text[..end].rfind(' ').filter(|at| *at > end / 2).unwrap_or(end);
    format!("{}…", text[..cut].trim_end())
}

/// The best sentences, each with its source.
fn summary(
    page: &mut Page,
    citations: &mut Citations,
    weights: &Weights,
    blocks: &[Block],
    most: usize,
) {
    let best = blocks.first().map_or(1.0, |block| block.score).max(f64::MIN_POSITIVE);
    let mut candidates: Vec<(f64, &Block, String)> = Vec::new();
    for block in blocks.iter().take(8) {
        let context = weights.share(&heading(block));
        let rank = (block.score / best).powf(0.4);
        for (sentence, is_first) in statements(block) {
            let alone = sentences::stands_alone(&sentence);
            let said = weights.fit(&sentence);
            let worth = (said + 0.7 * context + if is_first { 0.08 } else { 0.0 }) * alone * rank;
            if worth > 0.0 && (said > 0.0 || context > 0.5) {
                candidates.push((worth, block, sentence));
            }
        }
    }
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = candidates.first().map_or(0.0, |candidate| candidate.0);
    let mut taken: Vec<(&Block, String)> = Vec::new();
    for (worth, block, sentence) in candidates {
        let least = if taken.len() < 2 { 0.3 } else { 0.45 };
        let repeats = taken.iter().any(|(_, other)| overlap(other, &sentence) > 0.6);
        let from_here = taken.iter().filter(|(other, _)| std::ptr::eq(*other, block)).count();
        if taken.len() < most && worth >= best * least && !repeats && from_here < 3 {
            taken.push((block, sentence));
        }
    }
    if let [(block, sentence)] = taken.as_slice() {
        // One alone is often only half of what its passage says.
        let next = following(block, sentence).map(|next| (*block, next));
        taken.extend(next);
    }
    if taken.is_empty() {
        // Nothing but listings and scraps: the best of them speaks for itself below.
        let Some(block) = blocks.first() else { return };
        let number = citations.cite(block);
        return page.add(format!(
            "The library answers with an example rather than in words: see the passage {number}."
        ));
    }
    let lines: Vec<_> = taken
        .into_iter()
        .map(|(block, sentence)| format!("- {} {}", sentence, citations.cite(block)))
        .collect();
    page.add(lines.join("\n"));
}

/// The sentence after this one, if it can be understood.
fn following(block: &Block, sentence: &str) -> Option<String> {
    let mut rest = statements(block).into_iter().skip_while(|(text, _)| text != sentence).skip(1);
    let (next, _) = rest.next()?;
    (sentences::stands_alone(&next) > 0.5).then_some(next)
}

/// What a block says in sentences; whether each is the first of its passage.
fn statements(block: &Block) -> Vec<(String, bool)> {
    let mut statements = Vec::new();
    let mut head = Vec::new();
    for part in &block.parts {
        match part.kind {
            Kind::Paragraph => {
                let split = sentences::split(&part.text);
                statements.extend(
                    split.into_iter().enumerate().map(|(at, text)| (text.to_owned(), at == 0)),
                );
            }
            Kind::Item => {
                let text = part.text.trim_start();
                let text = text.split_once(' ').map_or("", |(_, text)| text);
                let split = sentences::split(text);
                statements.extend(
                    split.into_iter().enumerate().map(|(at, text)| (text.to_owned(), at == 0)),
                );
            }
            Kind::Head => head = cells(&part.text),
            Kind::Row => {
                let words = row_in_words(&head, &cells(&part.text));
                statements.push((shortened(&words, 300), true));
            }
            Kind::Code => {}
        }
    }
    statements
}

fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches("| ").trim_end_matches(" |").replace("\\|", "\u{1}");
    row.split(" | ").map(|cell| cell.replace('\u{1}', "|")).collect()
}

/// "`A` (default: 5; what it is: ...)", as one would read a row out.
fn row_in_words(head: &[String], cells: &[String]) -> String {
    let Some((first, rest)) = cells.split_first() else { return String::new() };
    if rest.len() == 1 {
        return format!("{first}: {}.", rest[0].trim_end_matches('.'));
    }
    let named = rest.iter().enumerate().filter(|(_, cell)| !cell.is_empty() && *cell != "-").map(
        |(at, cell)| match head.get(at + 1).filter(|name| !name.is_empty()) {
            Some(name) => format!("{name}: {cell}"),
            None => cell.clone(),
        },
    );
    format!("{first} ({}).", named.collect::<Vec<_>>().join("; "))
}

fn overlap(a: &str, b: &str) -> f64 {
    let a: std::collections::HashSet<_> = words::of(a).collect();
    let b: std::collections::HashSet<_> = words::of(b).collect();
    let smaller = a.len().min(b.len()).max(1) as f64;
    a.intersection(&b).count() as f64 / smaller
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
        page.add(format!("## {}", heading(first)));
        if heading(first) != first.best.name {
            page.add(format!("*From {}*", place(first)));
        }
        for block in group {
            let number = citations.cite(block);
            page.add(shown(block, &number));
        }
    }
}

fn heading(block: &Block) -> String {
    let nearest = block.best.headings.rsplit(UNDER).next().filter(|heading| !heading.is_empty());
    nearest.or(block.best.title.as_deref()).unwrap_or(&block.best.name).to_owned()
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
        page.add(format!("**{}** ({})", heading(block), place(block)));
        page.add(shown(block, &number));
    }
}

/// For ranked results: where, and the words that matter.
fn results(page: &mut Page, citations: &mut Citations, weights: &Weights, blocks: &[Block]) {
    let mut lines = Vec::new();
    for block in blocks {
        let number = citations.cite(block);
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
        citations.snippet(snippet.clone());
        let source = citations.sources.last();
        let url = source.map_or("", |source| source.url.as_str());
        lines.push(format!("- {number} **{}** (`{url}`): {snippet}", heading(block)));
    }
    page.add(lines.join("\n"));
}

fn nothing(page: &mut Page, question: &str, searched: &Searched) {
    let asked = words::of(question).any(|word| !words::is_stop(&word));
    page.add(if asked {
        "Nothing in the library answers this question."
    } else {
        "The question has no words to search for."
    });
    page.add(scope(searched));
    page.add(if asked {
        "Try other words for the same thing, fewer of them, or a name as the documents spell it; or add the folder \
         that has the answer to the library."
    } else {
        "Ask for a subject by name, for example \"How are backups made?\"."
    });
}

/// What was searched and what was left out.
fn scope(searched: &Searched) -> String {
    let plural = |count: usize, one: &str, many: &str| {
        format!("{} {}", grouped(count), if count == 1 { one } else { many })
    };
    let mut scope = format!(
        "Searched: {} in {} of {}.",
        plural(searched.passages, "passage", "passages"),
        plural(searched.files, "file", "files"),
        plural(searched.folders, "folder", "folders"),
    );
    let left_out: usize = searched.skipped.values().sum();
    if left_out > 0 {
        let reasons: Vec<_> =
            searched.skipped.iter().map(|(skip, count)| skip.counted(*count)).collect();
        let files = plural(left_out, "file was", "files were");
        scope.push_str(&format!(" {files} left out: {}.", reasons.join(", ")));
    }
    for folder in &searched.gone {
        scope.push_str(&format!(" The folder {folder} was not there."));
    }
    scope
}

fn note(ranked: &Ranked, searched: &Searched) -> String {
    let mut note = format!(
        "*The text above is extracted word for word from the library's own files; no model wrote it. {}",
        scope(searched)
    );
    if !ranked.missing.is_empty() {
        let missing: Vec<_> =
            ranked.missing.iter().take(8).map(|word| format!("\"{word}\"")).collect();
        note.push_str(&format!(" Not found anywhere: {}.", missing.join(", ")));
    }
    note.push('*');
    note
}
