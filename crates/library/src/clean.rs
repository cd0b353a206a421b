//! Cleans untrusted text from files: removes characters that could steer a terminal or hide words, and markup
//! that is noise in an extract.

use super::{tags, words};

/// The maximum distance between the two ends of a pair, so that a file full of opening marks takes linear time.
const NEAR: usize = 1_000;
/// Pairs that are nested more deeply are treated as text.
const DEEP: u32 = 8;

/// Removes escape sequences, control characters and invisible direction marks; keeps line ends and tabs.
pub(super) fn text(dirty: &str) -> String {
    let mut clean = String::with_capacity(dirty.len());
    let mut rest = dirty.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '\u{1b}' => skip_escape(&mut rest),
            '\r' => {
                if rest.peek() != Some(&'\n') {
                    clean.push('\n');
                }
            }
            '\n' | '\t' => clean.push(next),
            '\u{a0}' | '\u{2007}' | '\u{202f}' => clean.push(' '),
            _ if next.is_control() || is_invisible(next) => {}
            _ => clean.push(next),
        }
    }
    clean
}

/// Like [`text`], but returns a single line.
pub(super) fn line(dirty: &str) -> String {
    squeeze(&text(dirty))
}

/// Joins the words with single spaces.
pub(super) fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates the text to a number of characters.
pub(super) fn truncate(text: &str, longest: usize) -> &str {
    text.char_indices().nth(longest).map_or(text, |(at, _)| &text[..at])
}

/// Truncates the text between words and marks the cut.
pub(super) fn shorten(text: &str, longest: usize) -> String {
    let cut = truncate(text, longest);
    if cut.len() == text.len() {
        return text.to_owned();
    }
    let end = cut.rfind(' ').filter(|at| *at > cut.len() / 2).unwrap_or(cut.len());
    format!("{}…", cut[..end].trim_end())
}

fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek() {
        // CSI: parameters, then one final letter.
        Some('[') => {
            rest.next();
            while let Some(next) = rest.next_if(|next| (' '..='~').contains(next)) {
                if ('@'..='~').contains(&next) {
                    break;
                }
            }
        }
        // OSC and similar sequences: up to BEL or ESC \, but never beyond the line.
        Some(']' | 'P' | '_' | '^' | 'X') => {
            while let Some(next) = rest.next_if(|next| *next != '\n') {
                if matches!(next, '\u{7}' | '\u{1b}') {
                    rest.next_if(|end| next == '\u{1b}' && *end == '\\');
                    break;
                }
            }
        }
        Some(_) | None => {}
    }
}

fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Strips images, link targets, emphasis and tags from one line of Markdown; code is unchanged.
pub(super) fn inline(markdown: &str) -> String {
    let mut clean = String::with_capacity(markdown.len());
    let mut rest = markdown;
    while let Some(next) = rest.chars().next() {
        let step = match next {
            '`' => code_span(rest, &mut clean),
            '!' if rest.starts_with("![") => link(&rest[1..]).map(|(_, length)| length + 1),
            '[' => bracket(rest, &mut clean),
            '*' => Some(if rest.starts_with("**") { 2 } else { emphasis(rest, &mut clean) }),
            '<' => tags::tag(rest).map(|tag| {
                if tag.breaks {
                    clean.push(' ');
                }
                tag.length
            }),
            '\\' => rest[1..].chars().next().filter(char::is_ascii_punctuation).map(|escaped| {
                clean.push(escaped);
                1 + escaped.len_utf8()
            }),
            _ => None,
        };
        let step = step.unwrap_or_else(|| {
            clean.push(next);
            next.len_utf8()
        });
        rest = &rest[step..];
    }
    squeeze(&clean)
}

fn code_span(rest: &str, clean: &mut String) -> Option<usize> {
    let ticks = rest.len() - rest.trim_start_matches('`').len();
    let fence = &rest[..ticks];
    // Backticks that are not closed nearby are text, all of them together.
    let near = rest.floor_char_boundary(ticks + NEAR);
    let length = rest[ticks..near].find(fence).map_or(ticks, |at| ticks + at + ticks);
    clean.push_str(&rest[..length]);
    Some(length)
}

/// A single `*` at the edge of a word is emphasis; elsewhere it is a character.
fn emphasis(rest: &str, clean: &mut String) -> usize {
    let opens = rest[1..].chars().next().is_some_and(|c| !c.is_whitespace());
    let closes = clean.chars().next_back().is_some_and(|c| !c.is_whitespace());
    let is_inside = opens && closes && rest[1..].starts_with(char::is_alphanumeric);
    if is_inside || !(opens || closes) {
        clean.push('*');
    }
    1
}

/// A link becomes its text and a footnote is removed. A bare number must not look like one of our citations.
fn bracket(rest: &str, clean: &mut String) -> Option<usize> {
    let (text, length) = link(rest)?;
    if text.starts_with('^') {
        return Some(length);
    }
    let is_link = length > text.len() + 2;
    if is_link {
        clean.push_str(&inline(text));
    } else if text.chars().all(|c| c.is_ascii_digit()) {
        clean.push_str(&format!("({text})"));
    } else if matches!(text, " " | "x" | "X") {
        // A task's checkbox.
    } else {
        clean.push_str(&format!("[{}]", inline(text)));
    }
    Some(length)
}

/// Returns true for text that only leads to another place in the documents: "See [Dispatcher](Dispatcher.md)".
pub(super) fn is_navigation(markdown: &str) -> bool {
    const WORDS: [&str; 16] = [
        "a",
        "also",
        "and",
        "details",
        "extends",
        "for",
        "implements",
        "in",
        "information",
        "more",
        "of",
        "on",
        "or",
        "refer",
        "see",
        "the",
    ];
    let mut around = String::new();
    let mut rest = markdown;
    let mut links = 0;
    while let Some(at) = rest.find('[') {
        around.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((text, length)) = link(rest) else { return false };
        let target = &rest[text.len() + 2..length];
        if !target.starts_with('(') || target.contains("://") {
            return false;
        }
        links += 1;
        rest = &rest[length..];
    }
    around.push_str(rest);
    links > 0 && words::of(&around).all(|word| WORDS.contains(&word.as_str()))
}

/// Parses `[text]`, `[text](target)` or `[text][reference]`; returns the text and the total length.
fn link(rest: &str) -> Option<(&str, usize)> {
    let text = strip_enclosing(rest, '[', ']')?;
    let after = &rest[text.len() + 2..];
    let target = match after.chars().next() {
        Some('(') => strip_enclosing(after, '(', ')').map(|target| target.len() + 2),
        Some('[') => strip_enclosing(after, '[', ']')
            .filter(|target| {
                !target.is_empty() && !target.bytes().all(|byte| byte.is_ascii_digit())
            })
            .map(|target| target.len() + 2),
        Some(_) | None => None,
    };
    Some((text, text.len() + 2 + target.unwrap_or(0)))
}

/// Returns the text inside the pair that `rest` opens; nested pairs are counted.
fn strip_enclosing(rest: &str, open: char, close: char) -> Option<&str> {
    let mut depth = 0_u32;
    for (at, c) in rest.char_indices().take(NEAR) {
        if c == open {
            depth += 1;
            if depth > DEEP {
                return None;
            }
        } else if c == close {
            depth = depth.checked_sub(1)?;
            if depth == 0 {
                return rest.get(open.len_utf8()..at);
            }
        } else if c == '\n' && rest[at + 1..].starts_with('\n') {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_steer_a_terminal_or_hide_words_are_removed() {
        let cases = [
            ("a\u{1b}[31mred\u{1b}[0m b", "ared b"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]8;;http://e\u{1b}\\y", "y"),
            ("nul\0 bell\u{7}", "nul bell"),
            ("\u{202e}evil\u{2066}", "evil"),
            ("one\r\ntwo\rthree\u{9b}", "one\ntwo\nthree"),
            ("soft\u{ad}hyphen\u{feff}", "softhyphen"),
        ];
        for (dirty, clean) in cases {
            assert_eq!(text(dirty), clean, "{dirty:?}");
        }
    }

    #[test]
    fn only_links_within_the_documents_are_navigation() {
        for text in
            ["[a](#a)", "See [`Client.close()`](Client.md#close) for more.", "[a](a.md), [b](b.md)"]
        {
            assert!(is_navigation(text), "{text}");
        }
        for text in
            ["", "plain", "[a](https://b.example)", "[a](#a) closes it", "[a][b]", "[open", "a[1]"]
        {
            assert!(!is_navigation(text), "{text}");
        }
    }

    #[test]
    fn markup_is_removed_and_words_and_code_stay() {
        let cases = [
            ("![logo](a.png) Hello", "Hello"),
            ("see [the docs](docs/a.md) and [b][ref]", "see the docs and b"),
            ("**bold** and *soft* and 2 * 3 = a*b", "bold and soft and 2 * 3 = a*b"),
            ("`a[1]` and [1] and [^2]", "`a[1]` and (1) and"),
            ("[![badge](x)](y) text", "text"),
            ("line<br>break <b>x</b> Vec<T>", "line break x Vec<T>"),
            ("\\*not\\* [ ] todo [x] done", "*not* todo done"),
            ("[open", "[open"),
            ("`open", "`open"),
            ("[link](broken", "[link](broken"),
        ];
        for (markdown, clean) in cases {
            assert_eq!(inline(markdown), clean, "{markdown:?}");
        }
    }
}
