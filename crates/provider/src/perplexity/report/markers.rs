//! Finds citation markers in Markdown. Links, definitions, escapes and code are not markers and are left alone.

/// A marker as the provider writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    /// `[3]`
    Number(u32),
    /// One of `[web:2]` or `[web:2, web:5]`, counted from zero.
    Web(u32),
}

/// Longer brackets hold no marker.
const LONGEST: usize = 120;

/// The text with each marker as `[n]`, where `number` says which `n`.
pub(super) fn rewritten(text: String, mut number: impl FnMut(Marker) -> u32) -> String {
    if !text.contains('[') {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut fence = None;
    for line in text.split_inclusive('\n') {
        let mark = ["```", "~~~"].into_iter().find(|mark| line.trim_start().starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                rewrite_line(line, &mut out, &mut number);
                continue;
            }
            (Some(_), _) => {}
        }
        out.push_str(line);
    }
    out
}

fn rewrite_line(line: &str, out: &mut String, number: &mut impl FnMut(Marker) -> u32) {
    let mut rest = line;
    let mut at_start = true;
    while let Some(at) = rest.find(['[', '`', '\\', '!']) {
        let (before, special) = rest.split_at(at);
        out.push_str(before);
        at_start &= before.trim().is_empty();
        let taken = match special.as_bytes()[0] {
            b'`' => code_span(special),
            b'\\' => 1 + special[1..].chars().next().map_or(0, char::len_utf8),
            b'!' => 1 + usize::from(special[1..].starts_with('[')),
            _ => match bracket(special, at_start) {
                Some((markers, length)) => {
                    markers.iter().for_each(|marker| push(out, number(*marker)));
                    rest = &special[length..];
                    at_start = false;
                    continue;
                }
                None => 1,
            },
        };
        out.push_str(&special[..taken]);
        rest = &special[taken..];
        at_start = false;
    }
    out.push_str(rest);
}

fn push(out: &mut String, number: u32) {
    out.push('[');
    out.push_str(&number.to_string());
    out.push(']');
}

/// How long the code that begins here is; without an end it is only its first marks.
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
fn bracket(text: &str, at_start: bool) -> Option<(Vec<Marker>, usize)> {
    let end = text.bytes().take(LONGEST).position(|byte| byte == b']')?;
    let after = &text[end + 1..];
    let is_link = after.starts_with('(') || after.starts_with("](");
    if is_link || (at_start && after.starts_with(':')) {
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
            let text = rewritten(given.to_owned(), |marker| match marker {
                Marker::Number(number) => 100 + number,
                Marker::Web(index) => 900 + index,
            });
            assert_eq!(text, expected);
        }
    }
}
