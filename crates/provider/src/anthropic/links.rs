//! Sources of a report whose only citations are the links in its text: each address gets a number, and each link its
//! `[n]`.

use std::collections::{HashMap, HashSet};

use outlast_core::Source;
use pulldown_cmark::{Event, LinkType, Parser, Tag};

use crate::vendor::citations::{Edit, NumberedSources, apply_edits};

/// A page that a tool found or read.
pub(super) struct FoundPage<'a> {
    pub(super) url: &'a str,
    pub(super) title: Option<&'a str>,
}

/// The text with a number behind each link, and its sources: those it links to in the order of their first link, then
/// the other pages that were found.
pub(super) fn number_links(text: String, found: &[FoundPage<'_>]) -> (String, Vec<Source>) {
    let mut sources = NumberedSources::beside(bare_numbers(&text));
    let mut titles = HashMap::new();
    for page in found {
        let title = titles.entry(page.url).or_insert(page.title);
        *title = title.or(page.title);
    }
    let mut edits: Vec<Edit> = Vec::new();
    for (event, range) in Parser::new(&text).into_offset_iter() {
        let Event::Start(Tag::Link { link_type: LinkType::Inline, dest_url, .. }) = event else {
            continue;
        };
        let done = edits.last().map_or(0, |(last, _)| last.end);
        if !is_web_address(&dest_url) || range.start < done {
            continue;
        }
        let number = sources.number(&dest_url, titles.get(&*dest_url).copied().flatten());
        let label = text[range.clone()].split_once("](").map_or("", |(label, _)| &label[1..]);
        let is_marker = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
        // `[3](address)` is a marker of the model's own count; any other label is part of the sentence.
        let start = if is_marker { range.start } else { range.end };
        edits.push((start..range.end, format!("[{number}]")));
    }
    for page in found.iter().filter(|page| is_web_address(page.url)) {
        sources.number(page.url, titles.get(page.url).copied().flatten());
    }
    (apply_edits(text, &edits), sources.all)
}

fn is_web_address(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// The numbers in brackets that are not links.
fn bare_numbers(text: &str) -> HashSet<u32> {
    let brackets = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let bare = brackets.filter(|(_, after)| !after.starts_with('('));
    bare.filter_map(|(inner, _)| inner.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Addresses and titles.
    type Pages = &'static [(&'static str, Option<&'static str>)];

    /// A text, what was found, the text with numbers, and its sources.
    type Case = (&'static str, Pages, &'static str, &'static [(u32, &'static str)]);

    fn numbers(text: &str, found: Pages) -> (String, Vec<(u32, String)>) {
        let found: Vec<FoundPage<'_>> =
            found.iter().map(|(url, title)| FoundPage { url, title: *title }).collect();
        let (text, sources) = number_links(text.to_owned(), &found);
        (text, sources.into_iter().map(|source| (source.number, source.url)).collect())
    }

    /// G3: every link has the number of its source, and no number means two things.
    #[test]
    fn g3_links_are_numbered_and_everything_else_is_left_alone() {
        let cases: [Case; 8] = [
            ("plain", &[], "plain", &[]),
            (
                "so [A](https://a) and [B](https://b), [again](https://a).",
                &[],
                "so [A](https://a)[1] and [B](https://b)[2], [again](https://a)[1].",
                &[(1, "https://a"), (2, "https://b")],
            ),
            // The model's own count is not ours.
            (
                "x [7](https://a)[9](https://b)",
                &[],
                "x [1][2]",
                &[(1, "https://a"), (2, "https://b")],
            ),
            // A number that is in the text may mean anything.
            ("x [1] y [A](https://a)", &[], "x [1] y [A](https://a)[2]", &[(2, "https://a")]),
            // Code, and links that are not web addresses, are left alone.
            (
                "`[A](https://a)` [m](mailto:x) [l](#part)",
                &[],
                "`[A](https://a)` [m](mailto:x) [l](#part)",
                &[],
            ),
            // Pages that were found and are not linked come last.
            (
                "[B](https://b)",
                &[("https://a", None), ("https://b", None), ("ftp://c", None), ("", None)],
                "[B](https://b)[1]",
                &[(1, "https://b"), (2, "https://a")],
            ),
            (
                "\u{1f600}[\u{e9}](https://a)\u{1f600}",
                &[],
                "\u{1f600}[\u{e9}](https://a)[1]\u{1f600}",
                &[(1, "https://a")],
            ),
            ("broken [A](https://a", &[], "broken [A](https://a", &[]),
        ];
        for (text, found, expected, sources) in cases {
            let (text, number_links) = numbers(text, found);
            let number_links: Vec<_> =
                number_links.iter().map(|(n, url)| (*n, url.as_str())).collect();
            assert_eq!((text.as_str(), &number_links[..]), (expected, sources));
        }
    }

    #[test]
    fn a_source_has_the_title_that_a_tool_gave_it() {
        let found = [
            FoundPage { url: "https://a", title: None },
            FoundPage { url: "https://a", title: Some("A page") },
        ];
        let (_, sources) = number_links("[x](https://a)".to_owned(), &found);
        assert_eq!(sources[0].title.as_deref(), Some("A page"));
    }
}
