//! Reports that are too long for one answer (L4): the answer has the beginning up to a heading, and the list of headings. The
//! rest is read by offset, or as a resource.

use outlast_core::ConversationId;

use crate::resources::ResourceId;
use crate::tool_names::research::HISTORY;

/// The number of characters of an answer that are neither the report nor its sources.
pub(super) const BESIDE: usize = 1_000;
/// The maximum number of headings in the list.
const MAX_HEADINGS: usize = 200;
/// The maximum number of characters of a heading in the list.
const MAX_HEADING_CHARS: usize = 100;

/// A part of a long report.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReportPart {
    pub(super) text: String,
    /// The length of the whole report, in Unicode scalar values.
    pub(super) total: usize,
    /// The offset of the next part; `None` for the last part.
    pub(super) next: Option<usize>,
}

impl ReportPart {
    /// Returns the beginning of a report that is longer than `limit`, with the list of its headings: together at most this
    /// long, without `beside` further characters. `None` for a report that fits.
    pub(super) fn cut_beginning(report: &str, limit: usize, beside: usize) -> Option<Self> {
        // A report has at most as many characters as bytes.
        let total = if report.len() <= limit { 0 } else { report.chars().count() };
        if total <= limit {
            return None;
        }
        let contents = contents(report);
        let room = limit.saturating_sub(contents.chars().count() + beside).max(limit / 4);
        let part = Self::at(report, 0, room)?;
        Some(Self { text: format!("{}\n\n{contents}", part.text.trim_end()), ..part })
    }

    /// Returns the part that begins at an offset; `None` if the report ends before it.
    pub(super) fn at(report: &str, offset: usize, room: usize) -> Option<Self> {
        let total = report.chars().count();
        if offset >= total {
            return None;
        }
        let rest = &report[byte_at(report, offset)..];
        let text = &rest[..end(rest, room)];
        let next = offset + text.chars().count();
        Some(Self { text: text.to_owned(), total, next: (next < total).then_some(next) })
    }

    /// Returns the sentence that says how to read on.
    pub(super) fn how_to_read_on(&self, id: &ConversationId) -> String {
        let Some(next) = self.next else { return "The report ends here.".to_owned() };
        let uri = ResourceId::Report(id.clone()).uri();
        format!(
            "The report goes on: {next} of {} characters were shown so far. Call `{HISTORY}` with conversationId \"{id}\" and \
             offset {next} for the next part, or read the resource {uri}.",
            self.total
        )
    }
}

/// Returns the position of a character in bytes.
fn byte_at(text: &str, offset: usize) -> usize {
    text.char_indices().nth(offset).map_or(text.len(), |(at, _)| at)
}

/// Returns the end of a part of at most `room` characters, in bytes: before a heading if there is one in its second half,
/// else after a paragraph, else after a word.
fn end(text: &str, room: usize) -> usize {
    let end = byte_at(text, room.max(1));
    if end == text.len() {
        return end;
    }
    let window = &text[..end];
    let after_half = |at: &usize| *at > end / 2;
    let heading = headings(text).map(|(at, _)| at).take_while(|at| *at <= end).last();
    let paragraph = || window.rfind("\n\n").map(|at| at + 2);
    let word = || window.rfind(char::is_whitespace).map(|at| at + 1);
    let found = heading.filter(after_half).or_else(|| paragraph().filter(after_half));
    let at = found.or_else(|| word().filter(after_half)).unwrap_or(end);
    // A break character may take more than one byte.
    (at..=end).find(|at| text.is_char_boundary(*at)).unwrap_or(end)
}

/// Returns the headings of a Markdown text with their positions in bytes, without those in fenced code.
fn headings(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut is_code = false;
    let mut at = 0;
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at += line.len();
        if line.starts_with("```") || line.starts_with("~~~") {
            is_code = !is_code;
        }
        let level = line.bytes().take_while(|byte| *byte == b'#').count();
        let is_heading = (1..=6).contains(&level) && line[level..].starts_with(' ') && !is_code;
        is_heading.then(|| (start, line.trim_end()))
    })
}

fn contents(report: &str) -> String {
    let mut text = "## Contents\n".to_owned();
    // Offsets count characters; a second pass over the text would cost its length for each heading.
    let (mut at, mut offset, mut left_out) = (0, 0, 0);
    for (number, (start, heading)) in headings(report).enumerate() {
        if number >= MAX_HEADINGS {
            left_out += 1;
            continue;
        }
        offset += report[at..start].chars().count();
        at = start;
        let level = heading.bytes().take_while(|byte| *byte == b'#').count();
        let name: String = heading[level..].trim().chars().take(MAX_HEADING_CHARS).collect();
        text.push_str(&format!("\n{}- {name} (offset {offset})", "  ".repeat(level - 1)));
    }
    if left_out > 0 {
        text.push_str(&format!("\n- and {left_out} more"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> String {
        let section = |number: usize| {
            format!(
                "## Section {number}\n\n{}\n\n```\n# no heading\n```\n\n",
                "\u{e9}t\u{e9} [1] ".repeat(100)
            )
        };
        format!("# R\u{e9}sum\u{e9}\n\nIn short.\n\n{}", (1..=20).map(section).collect::<String>())
    }

    /// L4: the parts are within the limit, begin with headings, and joined they are the report.
    #[test]
    fn l4_the_parts_of_a_report_are_the_report() {
        let report = report();
        let first = ReportPart::at(&report, 0, 2000).unwrap();
        assert_eq!(first.total, report.chars().count());
        let mut joined = first.text.clone();
        let mut next = first.next;
        while let Some(offset) = next {
            let part = ReportPart::at(&report, offset, 2000).unwrap();
            assert!(part.text.starts_with("## Section"), "{}", part.text);
            assert!(part.text.chars().count() <= 2000);
            joined.push_str(&part.text);
            next = part.next;
        }
        assert_eq!(joined, report);
        assert_eq!(ReportPart::at(&report, first.total, 2000), None);
    }

    /// L4: the beginning ends before a heading and lists all headings with their offsets; a report that fits is not cut.
    #[test]
    fn l4_the_beginning_lists_all_headings() {
        let report = report();
        let total = report.chars().count();
        assert_eq!(ReportPart::cut_beginning(&report, total, 0), None);
        let part = ReportPart::cut_beginning(&report, 6000, 500).unwrap();
        assert!(part.text.chars().count() <= 5500, "{}", part.text.chars().count());
        let (beginning, contents) = part.text.split_once("\n\n## Contents\n").unwrap();
        assert!(report.starts_with(beginning), "{beginning}");
        assert_eq!(contents.matches("Section").count(), 20, "{contents}");
        assert!(!contents.contains("no heading"), "{contents}");
        let last = contents.rsplit("(offset ").next().unwrap().trim_end_matches(')');
        let section = ReportPart::at(&report, last.parse().unwrap(), 100).unwrap();
        assert!(section.text.starts_with("## Section 20"), "{}", section.text);
    }

    #[test]
    fn a_text_without_breaks_is_cut_all_the_same() {
        for text in ["\u{1f600}".repeat(50), "a".repeat(50), "word ".repeat(10)] {
            let part = ReportPart::at(&text, 0, 20).unwrap();
            assert!((10..=20).contains(&part.text.chars().count()), "{part:?}");
        }
    }
}
