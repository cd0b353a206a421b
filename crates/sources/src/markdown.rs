//! Finds the citations of a Markdown report: numbered sources as vendors write them, footnotes and links. A citation
//! covers the text since the previous citation or sentence end; adjacent citations are one group (J2).

mod definitions;
mod markers;

use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};
use serde::{Deserialize, Serialize};

use self::definitions::{Numbers, url_at, without_definitions};
use self::markers::{bracket, full_width_bracket};
use super::text::{is_function_word, sentences, squeeze};

/// A source that a report cites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CitedSource {
    /// The number by which claims cite it.
    pub number: u32,
    /// The address.
    pub url: String,
}

/// A part of a report that cites sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The text that the citations cover, without them.
    pub text: String,
    /// The numbers of the sources, in order.
    pub citations: Vec<u32>,
}

/// A report with its citations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The sources that are cited, and those that are only listed, by number.
    pub sources: Vec<CitedSource>,
    /// The claims in reading order. A claim may cite numbers that have no source.
    pub claims: Vec<Claim>,
    pub(crate) prose: Vec<String>,
}

impl Report {
    /// Parses a Markdown document that contains its sources.
    pub fn parse(markdown: &str) -> Self {
        Self::with_sources(markdown, Vec::new())
    }

    /// Parses a report whose sources are listed elsewhere. Sources in the document are added.
    pub fn with_sources(markdown: &str, sources: Vec<CitedSource>) -> Self {
        let mut numbers = Numbers::default();
        for source in sources {
            numbers.define(source.number, &source.url);
        }
        let body = without_definitions(markdown, &mut numbers);
        let mut reader = ReportReader { numbers, ..ReportReader::default() };
        let options =
            Options::ENABLE_TABLES | Options::ENABLE_FOOTNOTES | Options::ENABLE_STRIKETHROUGH;
        for event in Parser::new_ext(&body, options) {
            reader.event(event);
        }
        reader.flush();
        let ReportReader { numbers, claims, prose, .. } = reader;
        let mut sources: Vec<_> =
            numbers.urls.into_iter().map(|(number, url)| CitedSource { number, url }).collect();
        sources.sort_by_key(|source| source.number);
        Self { sources, claims, prose }
    }
}

/// A citation in the text of a block.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: usize,
    number: u32,
    /// True for a link whose text is part of the sentence.
    is_link: bool,
}

#[derive(Default)]
struct ReportReader {
    numbers: Numbers,
    claims: Vec<Claim>,
    prose: Vec<String>,
    text: String,
    marks: Vec<Mark>,
    links: Vec<(usize, Option<String>)>,
    skipped: u32,
    in_row: bool,
}

impl ReportReader {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(
                Tag::CodeBlock(_) | Tag::Image { .. } | Tag::MetadataBlock(_) | Tag::HtmlBlock,
            ) => {
                self.flush_unless_inline(&event);
                self.skipped += 1;
            }
            Event::End(
                TagEnd::CodeBlock | TagEnd::Image | TagEnd::MetadataBlock(_) | TagEnd::HtmlBlock,
            ) => {
                self.skipped = self.skipped.saturating_sub(1);
            }
            _ if self.skipped > 0 => {}
            Event::Start(Tag::Link { dest_url, .. }) => {
                let is_web = dest_url.starts_with("https://") || dest_url.starts_with("http://");
                self.links.push((self.text.len(), is_web.then(|| dest_url.into_string())));
            }
            Event::End(TagEnd::Link) => self.end_link(),
            Event::Text(text) => self.text.push_str(&text),
            Event::Code(code) => self.text.push_str(&format!("`{code}`")),
            Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            Event::FootnoteReference(name) => {
                let number = self
                    .numbers
                    .footnotes
                    .get(name.as_ref())
                    .copied()
                    .or_else(|| name.parse().ok());
                if let Some(number) = number {
                    self.marks.push(Mark { at: self.text.len(), number, is_link: false });
                }
            }
            Event::End(TagEnd::TableCell) => self.text.push_str(" | "),
            Event::Start(Tag::TableRow | Tag::TableHead) => {
                self.flush();
                self.in_row = true;
            }
            Event::End(TagEnd::TableRow | TagEnd::TableHead) => {
                self.flush();
                self.in_row = false;
            }
            Event::Start(Tag::Emphasis | Tag::Strong | Tag::Strikethrough | Tag::TableCell)
            | Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough)
            | Event::InlineHtml(_) => {}
            _ => self.flush(),
        }
    }

    fn flush_unless_inline(&mut self, event: &Event<'_>) {
        if !matches!(event, Event::Start(Tag::Image { .. })) {
            self.flush();
        }
    }

    fn end_link(&mut self) {
        let Some((start, Some(url))) = self.links.pop() else { return };
        let number = self.numbers.of_url(&url);
        let inner = self.text[start..].trim_matches(['[', ']', '^', ' ', '(', ')']).to_lowercase();
        let is_marker = inner.chars().all(|c| c.is_ascii_digit())
            || matches!(
                inner.as_str(),
                "source" | "sources" | "link" | "ref" | "quelle" | "here" | "url"
            )
            || inner.starts_with("http")
            || (!inner.contains(' ') && inner.contains('.') && url.contains(&inner));
        if is_marker {
            // The number of the list of sources wins over the number of the address.
            let number =
                inner.parse().ok().filter(|n| self.numbers.urls.contains_key(n)).unwrap_or(number);
            self.text.truncate(start);
            self.marks.push(Mark { at: start, number, is_link: false });
        } else {
            self.marks.push(Mark { at: self.text.len(), number, is_link: true });
        }
    }

    /// Ends a block: finds its remaining markers and its claims.
    fn flush(&mut self) {
        let text = std::mem::take(&mut self.text);
        let mut marks = std::mem::take(&mut self.marks);
        self.links.clear();
        if text.trim().is_empty() && marks.is_empty() {
            return;
        }
        let (text, found) = self.take_markers(&text, &mut marks);
        marks.extend(found);
        marks.sort_by_key(|mark| mark.at);
        self.prose.push(text.clone());
        let whole = Range { start: 0, end: text.len() };
        let ranges = if self.in_row { vec![whole] } else { sentences(&text) };
        let mut sentence_marks: Vec<Vec<Mark>> = vec![Vec::new(); ranges.len()];
        for mark in marks {
            let mut at = ranges
                .partition_point(|range| range.end < mark.at)
                .min(ranges.len().saturating_sub(1));
            let Some(range) = ranges.get(at) else { continue };
            // A marker after a full stop belongs to the sentence before it.
            let is_before_text =
                text.get(range.start..mark.at).is_none_or(|before| before.trim().is_empty());
            if at > 0 && !mark.is_link && is_before_text {
                at -= 1;
            }
            sentence_marks[at].push(mark);
        }
        for (range, marks) in ranges.iter().zip(sentence_marks) {
            self.claims_of(&text, range.clone(), &marks);
        }
    }

    fn claims_of(&mut self, text: &str, range: Range<usize>, marks: &[Mark]) {
        let mut groups: Vec<(usize, Vec<u32>)> = Vec::new();
        let ends_with_link = marks.last().is_some_and(|mark| mark.is_link);
        for mark in marks {
            let at = mark.at.min(range.end);
            let is_adjacent = groups.last().is_some_and(|(before, _)| {
                !text[(*before).min(at)..at].contains(char::is_alphanumeric)
            });
            match groups.last_mut().filter(|_| is_adjacent) {
                Some((before, numbers)) => {
                    *before = at;
                    if !numbers.contains(&mark.number) {
                        numbers.push(mark.number);
                    }
                }
                None => groups.push((at, vec![mark.number])),
            }
        }
        let subject = text.split(" | ").next().unwrap_or("").trim();
        let mut from = range.start;
        let last = groups.len().saturating_sub(1);
        for (place, (at, citations)) in groups.into_iter().enumerate() {
            let mut covered = squeeze(&text[from.min(at)..at]);
            // "According to [a page](...), 12 % ..." states its fact after the citation.
            let is_complete = match ends_with_link {
                true => has_statement(&covered),
                false => covered.contains(char::is_alphanumeric),
            };
            if place == last && !is_complete {
                covered = squeeze(&text[from..range.end]);
            }
            if self.in_row && from > 0 {
                covered = format!("{subject} {covered}");
            }
            from = at;
            let covered = covered.replace("()", "").replace("( )", "");
            let covered = covered.trim_end_matches(['(', '[', '|', ' ', ',', ';', ':']);
            let covered = covered.trim_start_matches([')', ']', '|', ' ', ',', ';', '.']);
            self.claims.push(Claim { text: squeeze(covered), citations });
        }
    }

    /// Removes `[3]`, `[1, 2]`, `[1-3]`, `[^3]`, `【3†source】` and bare addresses from a text.
    fn take_markers(&mut self, text: &str, marks: &mut [Mark]) -> (String, Vec<Mark>) {
        let mut clean = String::with_capacity(text.len());
        let mut found = Vec::new();
        let mut moved: Vec<(usize, usize)> = Vec::new();
        let (mut at, mut in_code) = (0, false);
        while at < text.len() {
            let rest = &text[at..];
            in_code ^= rest.starts_with('`');
            let marker = if in_code {
                None
            } else if rest.starts_with('[') {
                bracket(rest)
            } else if rest.starts_with('【') {
                full_width_bracket(rest)
            } else if rest.starts_with("http://") || rest.starts_with("https://") {
                let url = url_at(text, at);
                (url.len() > 10).then(|| (vec![self.numbers.of_url(url)], url.len()))
            } else {
                None
            };
            match marker {
                Some((numbers, length)) => {
                    found.extend(numbers.into_iter().map(|number| Mark {
                        at: clean.len(),
                        number,
                        is_link: false,
                    }));
                    at += length;
                    moved.push((at, clean.len()));
                }
                None => {
                    let length = rest.chars().next().map_or(1, char::len_utf8);
                    clean.push_str(&rest[..length]);
                    at += length;
                }
            }
        }
        for mark in marks {
            if let Some((before, after)) = moved.iter().rev().find(|(before, _)| *before <= mark.at)
            {
                mark.at = mark.at - before + after;
            }
        }
        (clean, found)
    }
}

fn has_statement(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.filter(|word| !is_function_word(&word.to_lowercase())).count() >= 3
        || text.chars().any(super::text::is_cjk)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claims(markdown: &str) -> Vec<(String, Vec<u32>)> {
        Report::parse(markdown)
            .claims
            .into_iter()
            .map(|claim| (claim.text, claim.citations))
            .collect()
    }

    fn owned(expected: &[(&str, &[u32])]) -> Vec<(String, Vec<u32>)> {
        expected.iter().map(|(text, numbers)| ((*text).to_owned(), numbers.to_vec())).collect()
    }

    /// J2
    #[test]
    fn a_citation_covers_the_text_since_the_previous_one() {
        type Expected<'a> = &'a [(&'a str, &'a [u32])];
        let cases: &[(&str, Expected<'_>)] = &[
            (
                "A is 5 [1]. B is 6.[2] C is 7. [3]",
                &[("A is 5", &[1]), ("B is 6.", &[2]), ("C is 7.", &[3])],
            ),
            (
                "Not cited. A is 5 [1][2], and B is 6 [3, 4].",
                &[("A is 5", &[1, 2]), (", and B is 6", &[3, 4])],
            ),
            ("A is 5 [1-3].", &[("A is 5", &[1, 2, 3])]),
            ("- A is 5【4†source】\n- B", &[("A is 5", &[4])]),
            (
                "| City | People |\n|---|---|\n| Rome [1] | 3 million [2] |",
                &[("Rome", &[1]), ("Rome | 3 million", &[2])],
            ),
            ("`a[1]` and\n\n```\nx [1]\n```\n", &[]),
        ];
        for (markdown, expected) in cases {
            let found: Vec<_> = claims(markdown)
                .into_iter()
                .map(|(text, numbers)| (text.trim_start_matches([',', ' ']).to_owned(), numbers))
                .collect();
            let expected: Vec<_> = owned(expected)
                .into_iter()
                .map(|(text, numbers)| (text.trim_start_matches([',', ' ']).to_owned(), numbers))
                .collect();
            assert_eq!(found, expected, "{markdown}");
        }
    }

    /// J1
    #[test]
    fn sources_are_found_in_every_form_that_vendors_write() {
        let forms = [
            "A is 5 [1].\n\n## Sources\n\n1. Title <https://a.example/x_(y)>\n",
            "A is 5 [1].\n\nSources:\n[1] Title: https://a.example/x_(y)\n",
            "A is 5 [1].\n\nCitations:\n[1] https://a.example/x_(y)\n",
            "A is 5 [1].\n\n[1]: https://a.example/x_(y) \"Title\"\n",
            "A is 5 [^1].\n\n[^1]: Title, https://a.example/x_(y).\n",
            "A is 5 ([source](https://a.example/x_(y))).\n",
            "A is 5 <https://a.example/x_(y)>.\n",
            "A is 5 (https://a.example/x_(y)).\n",
            "A is 5 [[1]](https://a.example/x_(y)).\n",
            "## References\n- [1] [Title](https://a.example/x_(y))\n\n# Text\nA is 5 [1].",
        ];
        for markdown in forms {
            let report = Report::parse(markdown);
            let source = CitedSource { number: 1, url: "https://a.example/x_(y)".to_owned() };
            assert_eq!(report.sources, [source], "{markdown}");
            assert_eq!(report.claims.len(), 1, "{markdown}");
            assert_eq!(
                report.claims[0].text.trim_end_matches('.').trim_end(),
                "A is 5",
                "{markdown}"
            );
            assert_eq!(report.claims[0].citations, [1], "{markdown}");
        }
    }

    /// J2
    #[test]
    fn a_link_at_the_beginning_cites_the_whole_sentence() {
        let found = claims("According to [WHO](https://a.example/), 12 % of people smoke. More.");
        assert_eq!(found, owned(&[("According to WHO, 12 % of people smoke.", &[1])]));
    }

    /// J7
    #[test]
    fn odd_documents_break_nothing() {
        for odd in [
            "",
            "[",
            "[1",
            "[1]",
            "[[1]](",
            "【",
            "[1](",
            "|a|\n|-|",
            "http://",
            "[^1]:",
            "[99999999999]",
            "- [1] http://\u{0}",
            "\u{0}[1]",
        ] {
            Report::parse(odd);
            Report::parse(&format!("a {odd} b\n\n{odd}\n{odd}"));
        }
        let many: String = (1..=500)
            .map(|n| format!("Claim {n} is {n}00 [{n}].\n\n[{n}]: https://a.example/{n}\n\n"))
            .collect();
        let report = Report::parse(&many);
        assert_eq!((report.sources.len(), report.claims.len()), (500, 500));
    }
}
