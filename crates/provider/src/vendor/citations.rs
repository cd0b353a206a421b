//! Citations of a report, for every vendor: markers in Markdown, and numbers for sources that are cited by address.
//! Links, definitions, escapes and code are not markers and are left alone.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use outlast_core::Source;

/// A marker as the provider writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Marker {
    /// `[3]`
    Number(u32),
    /// One of `[web:2]` or `[web:2, web:5]`, counted from zero.
    Web(u32),
}

/// Longer brackets hold no marker.
const LONGEST: usize = 120;

/// The text with each marker as `[n]`; `number` returns `n`. A text that needs no change is not copied.
pub(crate) fn rewrite_markers(text: String, number: impl FnMut(Marker) -> u32) -> String {
    let edits = edits(&text, number);
    apply_edits(text, &edits)
}

/// The numbers of the markers in the text.
pub(crate) fn numbers(text: &str) -> HashSet<u32> {
    let mut numbers = HashSet::new();
    edits(text, |marker| {
        let (Marker::Number(number) | Marker::Web(number)) = marker;
        numbers.insert(number);
        number
    });
    numbers
}

/// Returns true if the address is in the text, and not as the beginning of a longer one.
pub(crate) fn links_to(text: &str, url: &str) -> bool {
    text.match_indices(url).any(|(at, _)| {
        let next = text[at + url.len()..].chars().next();
        !next.is_some_and(|next| next.is_alphanumeric() || "/:_%?&=#-~+".contains(next))
    })
}

fn edits(text: &str, mut number: impl FnMut(Marker) -> u32) -> Vec<Edit> {
    let mut edits = Vec::new();
    let (mut at, mut fence) = (0, None);
    for line in text.split_inclusive('\n') {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, None) => find_edits(line, at, &mut edits, &mut number),
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
        }
        at += line.len();
    }
    edits
}

/// A range of the text and its replacement.
pub(crate) type Edit = (Range<usize>, String);

/// The text with these changes, which are in its order and do not overlap.
pub(crate) fn apply_edits(text: String, edits: &[Edit]) -> String {
    if edits.is_empty() {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, replacement) in edits {
        out.push_str(&text[done..range.start]);
        out.push_str(replacement);
        done = range.end;
    }
    out.push_str(&text[done..]);
    out
}

/// The changes that a line needs, which begins at this byte of the text.
fn find_edits(
    line: &str,
    start: usize,
    edits: &mut Vec<Edit>,
    number: &mut impl FnMut(Marker) -> u32,
) {
    let mut at = 0;
    let mut is_first = true;
    let is_special = |byte: &u8| matches!(byte, b'[' | b'`' | b'\\' | b'!');
    while let Some(next) = line.as_bytes()[at..].iter().position(is_special) {
        is_first &= line[at..at + next].trim().is_empty();
        at += next;
        let special = &line[at..];
        let taken = match special.as_bytes()[0] {
            b'`' => code_span(special),
            b'\\' => 1 + special[1..].chars().next().map_or(0, char::len_utf8),
            b'!' => 1 + usize::from(special[1..].starts_with('[')),
            _ => match bracket(special, is_first) {
                Some((markers, length)) => {
                    let ours = markers.iter().map(|marker| format!("[{}]", number(*marker)));
                    let ours: String = ours.collect();
                    if ours != special[..length] {
                        edits.push((start + at..start + at + length, ours));
                    }
                    length
                }
                None => 1,
            },
        };
        at += taken;
        is_first = false;
    }
}

/// The length of the code that begins here; without an end it is only its first marks.
fn code_span(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches('`').len();
    let mut at = marks;
    while let Some(next) = text[at..].find('`') {
        let run = &text[at + next..];
        let length = run.len() - run.trim_start_matches('`').len();
        at += next + length;
        if length == marks {
            return at;
        }
    }
    marks
}

/// The markers of the bracket that begins here, and its length.
fn bracket(text: &str, is_first: bool) -> Option<(Vec<Marker>, usize)> {
    let end = text.bytes().take(LONGEST).position(|byte| byte == b']')?;
    let after = &text[end + 1..];
    let is_link = after.starts_with('(') || after.starts_with("](");
    if is_link || (is_first && after.starts_with(':')) {
        return None;
    }
    let inner = text.get(1..end)?;
    let markers = match digits(inner) {
        Some(number) => vec![Marker::Number(number)],
        None => inner.split(',').map(web).collect::<Option<_>>()?,
    };
    Some((markers, end + 1))
}

fn web(text: &str) -> Option<Marker> {
    digits(text.trim().strip_prefix("web:")?.trim_start()).map(Marker::Web)
}

fn digits(text: &str) -> Option<u32> {
    let plain = (1..=6).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| plain)
}

/// The numbers of addresses, in the order they are cited.
#[derive(Default)]
pub(crate) struct NumberedSources {
    pub(crate) all: Vec<Source>,
    by_url: HashMap<String, u32>,
    /// Numbers that are in the text already and may mean anything.
    taken: HashSet<u32>,
}

impl NumberedSources {
    /// No sources yet; these numbers will not be given.
    pub(crate) fn beside(taken: HashSet<u32>) -> Self {
        Self { taken, ..Self::default() }
    }

    /// The number of what is at this address, which has one from its first citation on.
    pub(crate) fn number(&mut self, url: &str, title: Option<&str>) -> u32 {
        if let Some(number) = self.by_url.get(url) {
            return *number;
        }
        let last = self.all.last().map_or(0, |source| source.number);
        let next = (last.saturating_add(1)..).find(|number| !self.taken.contains(number));
        let number = next.unwrap_or(u32::MAX);
        self.by_url.insert(url.to_owned(), number);
        let (url, title) = (url.to_owned(), title.map(str::to_owned));
        self.all.push(Source { number, url, title, ..Source::default() });
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markers_are_found_and_everything_else_is_left_alone() {
        let cases = [
            ("no marker", "no marker"),
            ("a[1].", "a[101]."),
            ("a[1][2]", "a[101][102]"),
            ("[web:0] [web:12]", "[900] [912]"),
            ("x [web:1, web:2] y", "x [901][902] y"),
            ("x [web:1,web: 2]", "x [901][902]"),
            (
                "[1, 2] [a] [] [1a] [-1] [^1] [web:] [web:a]",
                "[1, 2] [a] [] [1a] [-1] [^1] [web:] [web:a]",
            ),
            ("[1](https://a) [web:1](b) [[1]](c)", "[1](https://a) [web:1](b) [[1]](c)"),
            ("![1] \\[1\\]", "![1] \\[1\\]"),
            ("[1]: https://a", "[1]: https://a"),
            ("so [1]: yes", "so [101]: yes"),
            ("`a[1]` b[1] ``c`[1]`` d[1] ` e[1]", "`a[1]` b[101] ``c`[1]`` d[101] ` e[101]"),
            ("[1]\n```rust\na[1]\n~~~\n```\n[2]", "[101]\n```rust\na[1]\n~~~\n```\n[102]"),
            ("\u{e9}[1]\u{1f600}[", "\u{e9}[101]\u{1f600}["),
            ("[1]\r\n[2]\r\n\r\n", "[101]\r\n[102]\r\n\r\n"),
            ("[9999999] \\", "[9999999] \\"),
        ];
        for (given, expected) in cases {
            let text = rewrite_markers(given.to_owned(), |marker| match marker {
                Marker::Number(number) => 100 + number,
                Marker::Web(index) => 900 + index,
            });
            assert_eq!(text, expected);
        }
    }
}
