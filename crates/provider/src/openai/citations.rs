//! Citations by their places in the text: each becomes a marker `[n]`, and every `n` is a source.

use std::collections::BTreeMap;
use std::ops::Range;

use outlast_core::Source;

use crate::responses::wire::Annotation;
use crate::vendor::citations::{Edit, NumberedSources, apply_edits, links_to, numbers};

/// The text with our markers, and its sources by number. Pages that were read are sources if the text links to them.
pub(super) fn number_citations<'a>(
    text: String,
    citations: Vec<Annotation>,
    read: impl Iterator<Item = &'a str>,
) -> (String, Vec<Source>) {
    let citations: Vec<Annotation> = citations
        .into_iter()
        .filter(|citation| citation.url.as_deref().is_some_and(|url| !url.is_empty()))
        .collect();
    let edits = places(&text, &citations);
    let mut sources = NumberedSources::beside(numbers(&without(&text, &edits)));
    let mut number = |citation: &Annotation| {
        let title = citation.title.as_deref().filter(|title| !title.is_empty());
        sources.number(citation.url.as_deref().unwrap_or_default(), title)
    };
    let mut written: Vec<Edit> = Vec::with_capacity(edits.len());
    let mut last = None;
    for (range, nth) in edits {
        let number = number(&citations[nth]);
        // The same page twice at one place is cited once.
        let again = last == Some((range.start, number));
        last = Some((range.end, number));
        let marker = if again { String::new() } else { format!("[{number}]") };
        written.push((range, marker));
    }
    for citation in &citations {
        // One without a place in the text is a source all the same.
        number(citation);
    }
    let text = apply_edits(text, &written);
    for url in read.filter(|url| !url.is_empty() && links_to(&text, url)) {
        sources.number(url, None);
    }
    (text, sources.all)
}

/// The ranges to replace in the text, in its order, each with its citation.
fn places(text: &str, citations: &[Annotation]) -> Vec<(Range<usize>, usize)> {
    let spans: Vec<(Range<usize>, usize)> = (0..)
        .zip(citations)
        .filter_map(|(nth, citation)| {
            let (start, end) = (citation.start_index.0?, citation.end_index.0?);
            (start <= end).then_some((start..end, nth))
        })
        .collect();
    let bytes = bytes_of(text, spans.iter().flat_map(|(span, _)| [span.start, span.end]));
    let mut replaced: Vec<(Range<usize>, usize)> = Vec::new();
    let mut added = Vec::new();
    for (span, nth) in spans {
        let (Some(start), Some(end)) = (bytes.get(&span.start), bytes.get(&span.end)) else {
            continue;
        };
        match renders_a_citation(text, *start..*end) {
            Some(range) => replaced.push((range, nth)),
            None => added.push((after_the_word(text, *end), nth)),
        }
    }
    replaced.sort_by_key(|(range, _)| (range.start, range.end));
    let mut edits: Vec<(Range<usize>, usize)> = Vec::with_capacity(citations.len());
    for (range, nth) in replaced {
        let done = edits.last().map_or(0, |(last, _)| last.end);
        edits.push((range.start.max(done)..range.end.max(done), nth));
    }
    let inside = |at: usize| edits.iter().map(|(range, _)| range).find(|range| range.contains(&at));
    let added: Vec<_> = added
        .into_iter()
        .map(|(at, nth)| {
            let at = inside(at).map_or(at, |range| range.end);
            (at..at, nth)
        })
        .collect();
    edits.extend(added);
    edits.sort_by_key(|(range, _)| (range.start, range.end));
    edits
}

/// The byte offsets of these characters of the text, as far as it has them; its end counts as one.
fn bytes_of(text: &str, places: impl Iterator<Item = usize>) -> BTreeMap<usize, usize> {
    let mut wanted: Vec<usize> = places.collect();
    wanted.sort_unstable();
    wanted.dedup();
    let mut wanted = wanted.into_iter().peekable();
    let mut bytes = BTreeMap::new();
    if wanted.peek().is_none() {
        return bytes;
    }
    let ends = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    for (place, byte) in ends.enumerate() {
        if wanted.next_if_eq(&place).is_some() {
            bytes.insert(place, byte);
        }
    }
    bytes
}

/// The whole citation as the text renders it here: a link in parentheses, `【...】`, `[3]`. `None` when it is a statement, or a
/// link whose words belong to a sentence: then nothing may be removed.
fn renders_a_citation(text: &str, span: Range<usize>) -> Option<Range<usize>> {
    let shown = &text[span.clone()];
    let is_link = |link: &str| {
        let parts = link.strip_prefix('[').and_then(|rest| rest.split_once("]("));
        parts.is_some_and(|(label, rest)| {
            !label.contains('\n') && rest.ends_with(')') && !rest.contains(char::is_whitespace)
        })
    };
    if shown.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')).is_some_and(is_link) {
        return Some(span);
    }
    if is_link(shown) && text[..span.start].ends_with('(') && text[span.end..].starts_with(')') {
        return Some(span.start - 1..span.end + 1);
    }
    let digits = shown.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_number = digits.is_some_and(|digits| {
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    });
    let is_token = shown.starts_with('\u{3010}') && shown.ends_with('\u{3011}');
    (is_number || is_token).then_some(span)
}

/// The end of the word that this place is in.
fn after_the_word(text: &str, at: usize) -> usize {
    let in_word = text[..at].chars().next_back().is_some_and(char::is_alphanumeric);
    let rest = &text[at..];
    match in_word {
        true => at + rest.find(|char: char| !char.is_alphanumeric()).unwrap_or(rest.len()),
        false => at,
    }
}

/// The text without what is to be replaced.
fn without(text: &str, edits: &[(Range<usize>, usize)]) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut done = 0;
    for (range, _) in edits {
        kept.push_str(&text[done..range.start]);
        done = range.end;
    }
    kept.push_str(&text[done..]);
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(url: &str, start: i64, end: i64) -> Annotation {
        let citation = json!({"type": "url_citation", "url": url, "title": "T", "start_index": start, "end_index": end});
        serde_json::from_str(&citation.to_string()).unwrap()
    }

    fn check(text: &str, citations: &[(&str, i64, i64)], expected: &str, urls: &[(u32, &str)]) {
        let citations = citations.iter().map(|(url, start, end)| at(url, *start, *end)).collect();
        let (text, sources) =
            number_citations(text.to_owned(), citations, ["https://read.example"].into_iter());
        let sources: Vec<_> =
            sources.iter().map(|source| (source.number, source.url.as_str())).collect();
        assert_eq!((text.as_str(), &sources[..]), (expected, urls));
    }

    /// G3: places are characters, not bytes.
    #[test]
    fn g3_a_citation_becomes_a_marker_in_place() {
        check("plain", &[], "plain", &[]);
        check(
            "\u{1f600}\u{e9} ([a](https://a))!",
            &[("https://a", 3, 19)],
            "\u{1f600}\u{e9} [1]!",
            &[(1, "https://a")],
        );
        // The range may leave the parentheses out.
        check("x ([a](https://a)).", &[("https://a", 3, 17)], "x [1].", &[(1, "https://a")]);
        // A link whose words belong to the sentence stays; so does a statement.
        check(
            "So [says](https://a) he.",
            &[("https://a", 3, 20)],
            "So [says](https://a)[1] he.",
            &[(1, "https://a")],
        );
        check("It is so. Yes.", &[("u", 0, 9)], "It is so.[1] Yes.", &[(1, "u")]);
        check("(as of 2025) yes", &[("u", 0, 12)], "(as of 2025)[1] yes", &[(1, "u")]);
        check(
            "a\u{3010}4\u{2020}source\u{3011} b[7]",
            &[("u", 1, 11), ("v", 13, 16)],
            "a[1] b[2]",
            &[(1, "u"), (2, "v")],
        );
        // One page has one number; two at one place follow each other, the same twice once.
        check(
            "ab cd",
            &[("u", 0, 2), ("v", 0, 2), ("u", 3, 5), ("u", 3, 5)],
            "ab[1][2] cd[1]",
            &[(1, "u"), (2, "v")],
        );
    }

    /// G3: a citation outside the text, or in the middle of something, harms nothing.
    #[test]
    fn g3_a_citation_out_of_place_is_harmless() {
        check("ab", &[("u", 0, 3)], "ab", &[(1, "u")]);
        check("ab", &[("u", -1, 2)], "ab", &[(1, "u")]);
        check("ab", &[("u", 2, 1)], "ab", &[(1, "u")]);
        check("ab", &[("", 0, 2)], "ab", &[]);
        check("word end", &[("u", 0, 2)], "word[1] end", &[(1, "u")]);
        check("", &[("u", 0, 0)], "[1]", &[(1, "u")]);
        // Overlapping ranges lose no text, and no citation.
        check(
            "x ([a](https://a)) y",
            &[("https://a", 2, 18), ("v", 0, 10)],
            "x [1][2] y",
            &[(1, "https://a"), (2, "v")],
        );
        check(
            "x ([a](https://a)) y",
            &[("https://a", 2, 18), ("v", 3, 17)],
            "x [1][2] y",
            &[(1, "https://a"), (2, "v")],
        );
    }

    /// G3: a number that is in the text may mean anything, so no source gets it.
    #[test]
    fn g3_numbers_of_the_text_are_not_ours() {
        check(
            "It is[1]. So ([a](https://a)).",
            &[("https://a", 13, 29)],
            "It is[1]. So [2].",
            &[(2, "https://a")],
        );
        check(
            "See https://read.example.",
            &[],
            "See https://read.example.",
            &[(1, "https://read.example")],
        );
    }
}
