//! Lines become paragraphs, headings and items, and words that were broken at a line's end become whole.

use std::collections::HashSet;

use super::super::clean;
use super::super::document::{Builder, Document, Unit};
use super::lines::Line;
use super::setting::{Body, Edges, body, drop_running, halves, right_edges};

/// Lines of one paragraph; what goes on for longer is a list or worse.
const LONGEST: usize = 200;
/// Bytes that a word may have.
const WORD: usize = 400;

/// Lines that stand together.
#[derive(Debug)]
struct Paragraph {
    lines: Vec<Line>,
}

/// Makes a document of the lines of all pages, in their order.
pub(super) fn document(mut lines: Vec<Line>, pages: usize, title: Option<String>) -> Document {
    drop_running(&mut lines, pages);
    let hyphenated = hyphenated(&lines);
    let body = body(&lines);
    let edges = right_edges(&lines, &body);
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    for line in lines {
        match paragraphs.last_mut().filter(|paragraph| goes_on(paragraph, &line, &body, &edges)) {
            Some(paragraph) => paragraph.lines.push(line),
            None => paragraphs.push(Paragraph { lines: vec![line] }),
        }
    }
    let sizes = heading_sizes(&paragraphs, &body);
    let levels: Vec<_> =
        paragraphs.iter().map(|paragraph| heading(paragraph, &body, &sizes)).collect();
    let mut builder = Builder::counting(Unit::Page);
    // One heading above all others is the title; of several none is.
    if levels.iter().filter(|level| **level == Some(1)).count() != 1
        && let Some(title) = &title
    {
        builder.title(title);
    }
    for (paragraph, level) in paragraphs.iter().zip(levels) {
        let Some(first) = paragraph.lines.first() else { continue };
        let signs: usize = paragraph.lines.iter().map(|line| line.text.len()).sum();
        let unknown: u32 = paragraph.lines.iter().map(|line| line.unknown).sum();
        // Half guessed is worse than not said.
        if unknown as usize * 10 > signs {
            continue;
        }
        let text = clean::text(&joined(&paragraph.lines, &hyphenated));
        if let Some(level) = level {
            builder.heading(level, &text);
        } else if let Some((marker, item)) = item(&text) {
            builder.item(marker, item, first.page);
        } else {
            builder.paragraph(&text, first.page);
        }
    }
    let mut document = builder.finish();
    document.title = document.title.or(title);
    document
}

/// The words that have a hyphen of their own in the middle of a line.
fn hyphenated(lines: &[Line]) -> HashSet<String> {
    let words = lines.iter().flat_map(|line| line.text.split_whitespace());
    let inner = words.filter(|word| word.trim_matches('-').contains('-'));
    inner.map(bare).collect()
}

/// A word without the signs around it.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

/// Whether a line belongs to what was read before it.
fn goes_on(paragraph: &Paragraph, line: &Line, body: &Body, edges: &Edges) -> bool {
    let Some(last) = paragraph.lines.last() else { return false };
    let is_same = (0.92..1.09).contains(&(line.size / last.size)) && line.is_bold == last.is_bold;
    let is_long = paragraph.lines.len() >= LONGEST;
    if is_long || !is_same || last.is_row || line.is_row || item(&line.text).is_some() {
        return false;
    }
    let ends = ends_sentence(&last.text);
    let down = last.y - line.y;
    if line.page != last.page || down <= 0.0 || down > line.size * 6.0 {
        // The next column or page goes on only with the middle of a sentence.
        return !ends && !last.is_bold && line.text.starts_with(char::is_lowercase);
    }
    let shared = last.end.min(line.end) - last.x.max(line.x);
    if shared <= 0.0 || down > line.size * body.leading.max(1.1) * 1.25 {
        return false;
    }
    // A line that had room for the next word was ended on purpose.
    let word = line.text.trim_start().split(' ').next().unwrap_or("").chars().count() + 1;
    let share = word as f64 / line.text.chars().count().max(1) as f64;
    let had_room = last.end + share * (line.end - line.x) + line.size * 0.5 < edges.of(last);
    let left = paragraph.lines.iter().fold(f64::MAX, |left, line| left.min(line.x));
    let indent = line.x - left;
    let is_indented = indent > line.size * 0.8 && indent < line.size * 4.0;
    let opens = line.text.trim_start().starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    !(had_room && (ends || opens) || is_indented && ends)
}

fn ends_sentence(text: &str) -> bool {
    text.trim_end().trim_end_matches(['"', '”', '’', ')', '»']).ends_with(['.', '!', '?', ':'])
}

/// The text of lines. A hyphen at a line's end goes, unless the file writes the same word with one elsewhere.
fn joined(lines: &[Line], hyphenated: &HashSet<String>) -> String {
    let mut text = String::new();
    for line in lines {
        let next = line.text.trim();
        let end = text.chars().next_back();
        let before_end = text.chars().rev().nth(1);
        let is_broken = matches!(end, Some('-' | '\u{ad}' | '‐'))
            && before_end.is_some_and(char::is_alphabetic)
            && next.starts_with(char::is_lowercase);
        if is_broken {
            let head = text.rsplit(' ').next().unwrap_or("");
            let tail = next.split(' ').next().unwrap_or("");
            // What is longer than any word would be copied for each of its lines.
            let is_compound = end != Some('\u{ad}')
                && head.len() + tail.len() <= WORD
                && (hyphenated.contains(&bare(&format!("{head}{tail}")))
                    // `state-of-the-` has hyphens of its own.
                    || head.trim_end_matches(['-', '‐']).contains('-'));
            if !is_compound {
                text.pop();
            }
        } else if !text.is_empty() && end != Some('\u{ad}') {
            text.push(' ');
        }
        text.push_str(next);
    }
    text
}

/// The sizes above the body's that headings are set in, largest first.
fn heading_sizes(paragraphs: &[Paragraph], body: &Body) -> Vec<i64> {
    let large = paragraphs.iter().filter(|paragraph| is_large_heading(paragraph, body));
    let mut sizes: Vec<_> = large
        .filter_map(|paragraph| paragraph.lines.first())
        .map(|line| halves(line.size))
        .collect();
    sizes.sort_unstable_by(|a, b| b.cmp(a));
    sizes.dedup();
    sizes
}

/// The level of a heading. Only what is set larger than the rest, or one bold line among lines that are not, is one.
fn heading(paragraph: &Paragraph, body: &Body, sizes: &[i64]) -> Option<u8> {
    let first = paragraph.lines.first()?;
    if is_large_heading(paragraph, body) {
        let at = sizes.iter().position(|size| *size == halves(first.size)).unwrap_or(0);
        return u8::try_from(at + 1).ok().map(|level| level.min(5));
    }
    let is_bold_line = first.is_bold
        && !body.is_bold
        && paragraph.lines.len() == 1
        && first.size >= body.size * 0.95
        && could_be_heading(paragraph)
        && !first.text.trim_end().ends_with(':');
    is_bold_line.then_some(6)
}

fn is_large_heading(paragraph: &Paragraph, body: &Body) -> bool {
    let is_large = paragraph.lines.first().is_some_and(|line| line.size >= body.size * 1.15);
    is_large && paragraph.lines.len() <= 3 && could_be_heading(paragraph)
}

fn could_be_heading(paragraph: &Paragraph) -> bool {
    let length: usize = paragraph.lines.iter().map(|line| line.text.chars().count()).sum();
    let is_row = paragraph.lines.iter().any(|line| line.is_row);
    let Some((first, last)) = paragraph.lines.first().zip(paragraph.lines.last()) else {
        return false;
    };
    let opens = first.text.trim_start().starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    let letters = first.text.chars().filter(|c| c.is_alphabetic()).count();
    let is_open = last.text.trim_end().ends_with(['.', ',', ';', '-']);
    !is_row && opens && letters >= 3 && length <= 140 && !is_open
}

/// The marker of an item and its text.
fn item(text: &str) -> Option<(&'static str, &str)> {
    let text = text.trim_start();
    let rest = text.strip_prefix(['•', '◦', '‣', '∙', '·', '▪', '■', '–', '*', '-'])?;
    let item = rest.trim_start();
    (rest.len() > item.len() && !item.is_empty() || text.starts_with('•')).then_some(("-", item))
}

#[cfg(test)]
mod tests;
