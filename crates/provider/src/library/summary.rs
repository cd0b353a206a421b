//! The summary: the sentences of the chosen passages that say most of what was asked.

use std::collections::HashSet;

use super::cite::Citations;
use super::document::Kind;
use super::page::{Page, shortened};
use super::rank::Weights;
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
    let mut candidates: Vec<(f64, Taken<'_>)> = Vec::new();
    for block in blocks.iter().take(8) {
        let context = weights.share(block.heading());
        let rank = (block.score / best).powf(0.4);
        for (nth, (sentence, is_first)) in statements(block).into_iter().enumerate() {
            let alone = sentences::stands_alone(&sentence);
            let said = weights.fit(&sentence);
            let worth = (said + 0.7 * context + if is_first { 0.08 } else { 0.0 }) * alone * rank;
            if worth > 0.0 && (said > 0.0 || context > 0.5) {
                candidates.push((worth, Taken { block, nth, sentence }));
            }
        }
    }
    candidates.sort_by(|a, b| b.0.total_cmp(&a.0));
    let best = candidates.first().map_or(0.0, |candidate| candidate.0);
    let mut taken: Vec<Taken<'_>> = Vec::new();
    for (worth, candidate) in candidates {
        let least = if taken.len() < 2 { 0.3 } else { 0.45 };
        let repeats = taken.iter().any(|other| overlap(&other.sentence, &candidate.sentence) > 0.6);
        let from_here =
            taken.iter().filter(|other| std::ptr::eq(other.block, candidate.block)).count();
        if taken.len() < most && worth >= best * least && !repeats && from_here < 3 {
            taken.push(candidate);
        }
    }
    if let [only] = taken.as_slice() {
        // One alone is often only half of what its passage says.
        let next = following(only);
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
    let lines: Vec<_> = in_reading_order(taken)
        .into_iter()
        .map(|taken| format!("- {} {}", taken.sentence, citations.cite(taken.block)))
        .collect();
    page.add(lines.join("\n"));
}

/// A sentence of the summary, and where it stands.
#[derive(Clone, Debug)]
struct Taken<'a> {
    block: &'a Block,
    /// Of the block's statements.
    nth: usize,
    sentence: String,
}

impl Taken<'_> {
    fn section(&self) -> (i64, u32) {
        (self.block.best.file, self.block.best.section)
    }

    /// Whether the other is the next sentence of the same paragraph.
    fn leads_to(&self, other: &Self) -> bool {
        let is_prose = self.block.parts.iter().all(|part| part.kind == Kind::Paragraph);
        is_prose && std::ptr::eq(self.block, other.block) && self.nth + 1 == other.nth
    }
}

/// The section of the best sentence first, each as its author wrote it; what followed at once follows at once.
fn in_reading_order(taken: Vec<Taken<'_>>) -> Vec<Taken<'_>> {
    let sections: Vec<_> = taken.iter().map(Taken::section).collect();
    let mut ordered = taken;
    ordered.sort_by_key(|taken| {
        let first = sections.iter().position(|section| *section == taken.section());
        (first, taken.block.best.block, taken.nth)
    });
    let mut joined: Vec<Taken<'_>> = Vec::new();
    for next in ordered {
        match joined.last_mut() {
            Some(last) if last.leads_to(&next) => {
                last.sentence = format!("{} {}", last.sentence, next.sentence);
                last.nth = next.nth;
            }
            Some(_) | None => joined.push(next),
        }
    }
    joined
}

/// The sentence after this one, if it can be understood.
fn following<'a>(taken: &Taken<'a>) -> Option<Taken<'a>> {
    let nth = taken.nth + 1;
    let (sentence, _) = statements(taken.block).into_iter().nth(nth)?;
    (sentences::stands_alone(&sentence) > 0.5).then_some(Taken {
        block: taken.block,
        nth,
        sentence,
    })
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

/// "`A` (default: 5; what it is: ...)", as one would read a row out. A row of two cells is a name and its meaning, or
/// two halves of a sentence that need the names of their columns.
fn row_in_words(head: &[String], cells: &[String]) -> String {
    let Some((first, rest)) = cells.split_first() else { return String::new() };
    if let [second] = rest {
        let second = second.trim_end_matches('.');
        let is_phrase =
            first.starts_with(char::is_lowercase) && first.split_whitespace().count() > 2;
        return match head {
            [one, other] if is_phrase && !one.is_empty() && !other.is_empty() => {
                format!("{one}: {first}; {other}: {second}.")
            }
            _ => format!("{first}: {second}."),
        };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_out_with_as_many_names_as_it_needs() {
        let row = |head: &[&str], cells: &[&str]| {
            let owned =
                |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            row_in_words(&owned(head), &owned(cells))
        };
        let cases = [
            (row(&["term", "meaning"], &["Fence", "a number."]), "Fence: a number."),
            (
                row(&["the server died", "the next one"], &["before anything was sent", "runs it"]),
                "the server died: before anything was sent; the next one: runs it.",
            ),
            (
                row(&["", ""], &["before anything was sent", "runs it"]),
                "before anything was sent: runs it.",
            ),
            (row(&["key", "default", "what"], &["`a`", "-", "b"]), "`a` (what: b)."),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
