//! Citations become markers `[n]` in the text, and `n` the number of a source. If the provider has its own
//! marker, ours takes its place; a citation that points nowhere in the text leaves the text alone.

use std::ops::Range;

use outlast_core::Source;

use crate::gemini::wire::{Citation, TextPart};
use crate::vendor::citations::NumberedSources;

/// Longer texts are no marker.
const MAX_MARKER_BYTES: usize = 120;

/// The whole text with our markers, and its sources in the order in which they are first cited.
pub(super) fn cite(parts: Vec<TextPart>) -> (String, Vec<Source>) {
    let mut sources = NumberedSources::default();
    let mut whole = String::new();
    for mut part in parts {
        let text = part.take_text();
        let citations = part.annotations.0.unwrap_or_default();
        let text = insert_markers(&mut sources, text, &citations);
        // The usual report is one part, which may be megabytes.
        if whole.is_empty() {
            whole = text;
        } else {
            whole.push_str(&text);
        }
    }
    (whole, sources.all)
}

/// The text with a marker for each citation.
fn insert_markers(sources: &mut NumberedSources, text: String, citations: &[Citation]) -> String {
    let mut places: Vec<(Option<Range<usize>>, &Citation)> =
        citations.iter().map(|citation| (place(&text, citation), citation)).collect();
    // Those without a place come last, so that numbers rise with the text.
    places.sort_by_key(|(place, _)| {
        place.as_ref().map_or((usize::MAX, 0), |place| (place.end, place.start))
    });
    let mut marked = String::new();
    let mut done = 0;
    let mut last: Option<(usize, Vec<u32>)> = None;
    for (place, citation) in places {
        let Some(url) = citation.address() else { continue };
        let number = sources.number(url, citation.title());
        let Some(place) = place else { continue };
        let (start, end) = if is_marker(&text[place.clone()]) {
            (place.start, place.end)
        } else {
            (place.end, place.end)
        };
        match &mut last {
            Some((at, numbers)) if *at == end => {
                if numbers.contains(&number) {
                    continue;
                }
                numbers.push(number);
            }
            _ => last = Some((end, vec![number])),
        }
        // A marker that was replaced already is not copied.
        marked.push_str(&text[done..start.max(done)]);
        marked.push_str(&format!("[{number}]"));
        done = end.max(done);
    }
    if done == 0 && marked.is_empty() {
        return text;
    }
    marked.push_str(&text[done..]);
    marked
}

/// The range of a citation, without the blanks at its end; `None` if it is not within the text, or begins or ends
/// inside a character.
fn place(text: &str, citation: &Citation) -> Option<Range<usize>> {
    let end = (*citation.end_index)?;
    let start = citation.start_index.unwrap_or(end);
    let covered = text.get(start..end)?;
    Some(start..start + covered.trim_end().len())
}

/// Returns true if the text is a marker of the provider's, such as `[cite: 1, 2]` or `[3]`.
fn is_marker(text: &str) -> bool {
    let inner = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let Some(inner) = inner.filter(|inner| inner.len() <= MAX_MARKER_BYTES) else { return false };
    let numbers = inner.strip_prefix("cite:").unwrap_or(inner);
    numbers.split(',').all(|number| {
        let number = number.trim();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn part(text: &str, citations: &[(i64, i64, &str)]) -> TextPart {
        let annotations = citations.iter().map(|(start, end, url)| {
            json!({"type": "url_citation", "start_index": start, "end_index": end, "url": url, "title": "t"})
        });
        let annotations: Vec<_> = annotations.collect();
        let part = json!({"type": "text", "text": text, "annotations": annotations});
        serde_json::from_str(&part.to_string()).unwrap()
    }

    fn shown(parts: Vec<TextPart>) -> (String, Vec<String>) {
        let (text, sources) = cite(parts);
        let urls = sources.into_iter().map(|source| format!("{}={}", source.number, source.url));
        (text, urls.collect())
    }

    /// G3: markers where the provider gives positions, in bytes; numbers rise with the text.
    #[test]
    fn g3_citations_become_numbered_markers_in_place() {
        type Case = (
            &'static str,
            &'static [(i64, i64, &'static str)],
            &'static str,
            &'static [&'static str],
        );
        let cases: &[Case] = &[
            ("plain", &[], "plain", &[]),
            ("A b. C d.", &[(5, 9, "v"), (0, 4, "u")], "A b.[1] C d.[2]", &["1=u", "2=v"]),
            ("A b. C d.", &[(0, 4, "u"), (5, 9, "u"), (0, 4, "u")], "A b.[1] C d.[1]", &["1=u"]),
            ("A b.", &[(0, 4, "u"), (0, 4, "v")], "A b.[1][2]", &["1=u", "2=v"]),
            ("A b. \n\nC", &[(0, 7, "u")], "A b.[1] \n\nC", &["1=u"]),
            (
                "A[cite: 4, 7] b[3]",
                &[(1, 13, "u"), (1, 13, "v"), (15, 18, "w")],
                "A[1][2] b[3]",
                &["1=u", "2=v", "3=w"],
            ),
            ("\u{e9}t\u{e9} oui", &[(0, 5, "u")], "\u{e9}t\u{e9}[1] oui", &["1=u"]),
            ("overlap here", &[(0, 7, "u"), (3, 12, "v")], "overlap[1] here[2]", &["1=u", "2=v"]),
            ("at 0", &[(0, 0, "u")], "[1]at 0", &["1=u"]),
        ];
        for (text, citations, expected, urls) in cases {
            let (text, sources) = shown(vec![part(text, citations)]);
            assert_eq!(text, *expected);
            assert_eq!(sources, *urls, "{expected}");
        }
    }

    /// G3: outside the text, backwards, negative, or inside a character: the source is listed, the text stays.
    #[test]
    fn g3_a_citation_that_points_nowhere_is_harmless() {
        for (start, end) in
            [(0, 99), (50, 60), (3, 1), (-4, 2), (1, 2), (0, 1), (2, -1), (i64::MAX, i64::MAX)]
        {
            let (text, sources) = shown(vec![part("\u{1f600} ok", &[(start, end, "u")])]);
            assert_eq!(
                (text.as_str(), sources),
                ("\u{1f600} ok", vec!["1=u".to_owned()]),
                "{start} {end}"
            );
        }
        let (text, sources) = shown(vec![part("ok", &[(0, 2, "")])]);
        assert_eq!((text.as_str(), sources.len()), ("ok", 0), "without an address it is no source");
    }

    #[test]
    fn parts_have_their_own_positions_and_one_list_of_sources() {
        let parts = vec![part("One.", &[(0, 4, "u")]), part(" Two.", &[(1, 5, "v"), (1, 5, "u")])];
        assert_eq!(
            shown(parts),
            ("One.[1] Two.[2][1]".to_owned(), vec!["1=u".to_owned(), "2=v".to_owned()])
        );
    }

    /// The addresses of the vendor's search are redirects: kept as they are, distinguished by their titles.
    #[test]
    fn g3_other_kinds_of_citations_have_other_names_for_the_same_things() {
        let part = json!({"type": "text", "text": "abc", "annotations": [
            {"type": "url_citation", "url": "https://vertexaisearch.cloud.google.com/grounding-api-redirect/x", "title": "a.example"},
            {"type": "place_citation", "url": "p", "name": "Place"},
            {"type": "file_citation", "document_uri": "d", "file_name": "File"},
            {"start_index": 0, "end_index": 3, "source": "old"}, {"type": "word_info"}, 7]});
        let (text, sources) = cite(vec![serde_json::from_str(&part.to_string()).unwrap()]);
        assert_eq!(text, "abc[1]");
        let sources: Vec<_> =
            sources.iter().map(|source| (source.url.as_str(), source.title.as_deref())).collect();
        let redirect = "https://vertexaisearch.cloud.google.com/grounding-api-redirect/x";
        assert_eq!(
            sources,
            [
                ("old", None),
                (redirect, Some("a.example")),
                ("p", Some("Place")),
                ("d", Some("File"))
            ]
        );
    }
}
