//! The summary: the sentences of the chosen passages that say most of what was asked.

use std::collections::HashSet;

use super::cite::Citations;
use super::document::Kind;
use super::rank::Weights;
use super::report::{Page, heading, shortened};
use super::select::Block;
use super::{sentences, words};

/// The best sentences, each with its source.
pub(super) fn summary(
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
pub(super) fn statements(block: &Block) -> Vec<(String, bool)> {
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

pub(super) fn cells(row: &str) -> Vec<String> {
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
    let a: HashSet<_> = words::of(a).collect();
    let b: HashSet<_> = words::of(b).collect();
    let smaller = a.len().min(b.len()).max(1) as f64;
    a.intersection(&b).count() as f64 / smaller
}
