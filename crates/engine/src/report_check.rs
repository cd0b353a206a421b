//! Compares a report with its request: length, headings, a summary, citations with a source (C4). The check counts
//! and does not judge; the interface that shows the report states what is missing.

use std::collections::BTreeSet;

use outlast_core::{Body, Effort, Output, ResearchKind, ResearchRequest};
use serde::Serialize;

/// The minimum number of words of a report of the highest effort.
const MIN_WORDS_AT_HIGH_EFFORT: usize = 5000;
/// The maximum length of a citation: longer numbers in brackets are years.
const MAX_CITATION_DIGITS: usize = 3;

/// The findings about a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportCheck {
    /// The number of its words; in scripts without spaces, of its characters.
    pub words: usize,
    /// The number of words that was asked for, if any was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_words: Option<usize>,
    /// The number of its Markdown headings.
    pub headings: usize,
    /// True if one of the headings announces a summary.
    pub has_summary: bool,
    /// Citations without a source.
    pub dangling_citations: Vec<u32>,
    /// Sources without a citation.
    pub uncited_sources: Vec<u32>,
}

impl ReportCheck {
    /// Checks the report of deep research; `None` if the output is something else.
    pub fn check(ask: &ResearchRequest, output: &Output) -> Option<Self> {
        let Body::Report { text, sources, .. } = &output.body else { return None };
        if ask.kind != ResearchKind::Research {
            return None;
        }
        let numbers: Vec<u32> = sources.iter().map(|source| source.number).collect();
        Some(check(text, &numbers, ask.effort))
    }

    /// Returns whether it has fewer words than were asked for.
    pub fn is_short(&self) -> bool {
        self.min_words.is_some_and(|least| self.words < least)
    }
}

/// Checks a report and the numbers of its sources.
fn check(text: &str, sources: &[u32], effort: Option<Effort>) -> ReportCheck {
    let mut words = 0;
    let mut headings = 0;
    let mut has_summary = false;
    let mut cited = BTreeSet::new();
    let mut in_code = false;
    for line in text.lines() {
        words += line.split_whitespace().map(count_words).sum::<usize>();
        let line = line.trim_start();
        if line.starts_with("```") || line.starts_with("~~~") {
            in_code = !in_code;
        }
        if in_code {
            continue;
        }
        let is_heading = is_heading(line);
        headings += usize::from(is_heading);
        has_summary |= (is_heading || line.starts_with("**")) && announces_a_summary(line);
        cited.extend(citations(line));
    }
    let known: BTreeSet<u32> = sources.iter().copied().collect();
    ReportCheck {
        words,
        min_words: (effort == Some(Effort::High)).then_some(MIN_WORDS_AT_HIGH_EFFORT),
        headings,
        has_summary,
        dangling_citations: cited.difference(&known).copied().collect(),
        uncited_sources: known.difference(&cited).copied().collect(),
    }
}

/// Counts the words in a piece between spaces: one, or the number of its characters in a script without spaces
/// between words.
fn count_words(piece: &str) -> usize {
    let unspaced = piece.chars().filter(|character| {
        matches!(character, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}')
    });
    match unspaced.count() {
        0 => usize::from(piece.chars().any(char::is_alphanumeric)),
        characters => characters,
    }
}

fn is_heading(line: &str) -> bool {
    let marks = line.bytes().take_while(|byte| *byte == b'#').count();
    let rest = &line[marks..];
    (1..=6).contains(&marks) && rest.starts_with([' ', '\t']) && !rest.trim().is_empty()
}

fn announces_a_summary(line: &str) -> bool {
    let line = line.to_lowercase();
    ["summary", "key findings", "overview", "abstract", "tl;dr"]
        .iter()
        .any(|word| line.contains(word))
}

/// Returns the numbers of `[1]`, `[1][2]`, `[1, 2]` and `[1](url)`; not of `[1]: url`, which defines and does not
/// cite.
fn citations(line: &str) -> Vec<u32> {
    let mut numbers = Vec::new();
    let mut rest = line;
    while let Some((_, after)) = rest.split_once('[') {
        let Some((inside, behind)) = after.split_once(']') else { break };
        let pieces: Option<Vec<u32>> =
            inside.split(',').map(|piece| number(piece.trim())).collect();
        match pieces {
            Some(pieces) if !behind.starts_with(':') => numbers.extend(pieces),
            Some(_) => {}
            // Perhaps a bracket within brackets: `[see [1]]`.
            None => {
                rest = after;
                continue;
            }
        }
        rest = behind;
    }
    numbers
}

fn number(piece: &str) -> Option<u32> {
    let is_number = (1..=MAX_CITATION_DIGITS).contains(&piece.len())
        && piece.bytes().all(|byte| byte.is_ascii_digit());
    if is_number { piece.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C4: each citation must have a source, and each source should be cited.
    #[test]
    fn citations_and_sources_are_held_against_each_other() {
        type Case<'a> = (&'a str, &'a [u32], &'a [u32], &'a [u32]);
        let cases: [Case<'_>; 8] = [
            ("All good [1][2].", &[1, 2], &[], &[]),
            ("A list [1, 2] and a link [3](https://a.example).", &[1, 2, 3], &[], &[]),
            ("Not known [4].", &[1], &[4], &[1]),
            ("In [2024] nothing was cited.", &[], &[], &[]),
            ("[1]: https://a.example", &[1], &[], &[1]),
            ("[see [1]] and [an aside]", &[1], &[], &[]),
            ("```\nlist[7]\n```\nText [1].", &[1], &[], &[]),
            ("Never closed [1", &[1], &[], &[1]),
        ];
        for (text, sources, dangling, uncited) in cases {
            let found = check(text, sources, None);
            assert_eq!(found.dangling_citations, dangling, "{text}");
            assert_eq!(found.uncited_sources, uncited, "{text}");
        }
    }

    /// C4: headings and a summary.
    #[test]
    fn headings_and_a_summary_are_found() {
        let cases = [
            ("# Report\n\n## Executive Summary\ntext\n### Part", 3, true),
            ("**Summary**: short\n\n# Part", 1, true),
            ("# Part\nIn summary, no heading says so.", 1, false),
            ("#hashtag\n####### seven\n#  ", 0, false),
            ("```\n# a comment\n```\n## Overview", 1, true),
            ("", 0, false),
        ];
        for (text, headings, has_summary) in cases {
            let found = check(text, &[], None);
            assert_eq!((found.headings, found.has_summary), (headings, has_summary), "{text}");
        }
    }

    /// C4: at least 5000 words for the highest effort, and no minimum for the others.
    #[test]
    fn only_the_highest_effort_asks_for_a_length() {
        let long = "word ".repeat(5000);
        let cases = [
            ("one two - three", Some(Effort::High), 3, Some(5000), true),
            (long.as_str(), Some(Effort::High), 5000, Some(5000), false),
            ("one", Some(Effort::Medium), 1, None, false),
            ("one", None, 1, None, false),
            ("\u{6df1}\u{5ea6}\u{7814}\u{7a76} ok", None, 5, None, false),
        ];
        for (text, effort, words, min_words, is_short) in cases {
            let found = check(text, &[], effort);
            assert_eq!((found.words, found.min_words), (words, min_words));
            assert_eq!(found.is_short(), is_short);
        }
    }

    #[test]
    fn only_research_is_checked() {
        let output = |body| Output {
            body,
            model: None,
            usage: outlast_core::Usage::default(),
            cost: outlast_core::Cost::Unknown,
        };
        let ask = |kind| ResearchRequest { kind, ..ResearchRequest::default() };
        let report = output(Body::report("text", Vec::new()));
        assert!(ReportCheck::check(&ask(ResearchKind::Research), &report).is_some());
        assert!(ReportCheck::check(&ask(ResearchKind::Search), &report).is_none());
        let tool = Body::Tool { content: Vec::new(), structured: None, is_error: false };
        assert!(ReportCheck::check(&ask(ResearchKind::Research), &output(tool)).is_none());
    }
}
