//! Separates a model's thinking from its answer (P5). Works on whole texts only: a tag that a stream cut in two is
//! whole again once the pieces are joined.

use std::ops::Range;

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The distance within which the end of a code span, or of the line that opens a fence, is searched. This bounds the
/// cost of each mark in a text that is made to be slow.
const LOOK_AHEAD: usize = 4_000;

/// Returns the text without its closed think blocks, and the content of those blocks. A tag in code is text. A tag
/// that is never closed is also text, with everything after it. A text without blocks is returned unchanged.
pub fn split_thinking(text: String) -> (String, Option<String>) {
    let (blocks, _) = blocks(&text);
    if blocks.is_empty() {
        return (text, None);
    }
    let mut said = String::with_capacity(text.len());
    let mut done = 0;
    for block in &blocks {
        said.push_str(&text[done..block.start]);
        done = block.end;
    }
    said.push_str(&text[done..]);
    let thoughts = blocks.into_iter().map(|block| {
        let thought = &text[block.start + OPEN.len()..block.end - CLOSE.len()];
        thought.trim()
    });
    let thoughts: Vec<&str> = thoughts.filter(|thought| !thought.is_empty()).collect();
    let thinking = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
    (said.trim().to_owned(), thinking)
}

/// Returns the answer in a text that is still being written: without closed blocks, without an open block, and
/// without the beginning of a tag at the end.
pub(crate) fn strip_thinking_so_far(text: &str) -> String {
    let half = (1..OPEN.len()).rev().find(|length| text.ends_with(&OPEN[..*length]));
    let whole = &text[..text.len() - half.unwrap_or(0)];
    let (_, open) = blocks(whole);
    split_thinking(whole[..open.unwrap_or(whole.len())].to_owned()).0
}

/// Returns the ranges of the closed blocks, tags included, and the start of a block that is still open.
fn blocks(text: &str) -> (Vec<Range<usize>>, Option<usize>) {
    let mut blocks = Vec::new();
    let mut open = None;
    for (at, tag) in tags(text) {
        match (open, tag) {
            (None, OPEN) => open = Some(at),
            (Some(start), CLOSE) => {
                blocks.push(start..at + CLOSE.len());
                open = None;
            }
            // An open tag inside a block is part of it; a closing tag alone is text.
            (Some(_) | None, _) => {}
        }
    }
    (blocks, open)
}

/// Returns the tags outside code, in order.
fn tags(text: &str) -> Vec<(usize, &'static str)> {
    let mut tags = Vec::new();
    let mut at = 0;
    // Most texts have no tag and need no further search.
    if !text.contains(OPEN) {
        return tags;
    }
    while at < text.len() {
        let fenced = if is_line_start(text, at) { fenced_block(&text[at..]) } else { None };
        if let Some(length) = fenced {
            at += length;
            continue;
        }
        let rest = &text[at..];
        at += match rest.as_bytes()[0] {
            b'`' => code_span(rest),
            // An escaped character is text.
            b'\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            b'<' => match [OPEN, CLOSE].into_iter().find(|tag| rest.starts_with(tag)) {
                Some(tag) => {
                    tags.push((at, tag));
                    tag.len()
                }
                None => 1,
            },
            b'\n' => 1,
            // To the next character with a meaning.
            _ => rest.find(['`', '\\', '<', '\n']).unwrap_or(rest.len()),
        };
    }
    tags
}

/// Returns true after a tag, too: models write `<think>` and a fence without a line break between them.
fn is_line_start(text: &str, at: usize) -> bool {
    let before = &text[..at];
    before.is_empty() || [OPEN, CLOSE, "\n"].into_iter().any(|end| before.ends_with(end))
}

/// Returns the length of the fenced block that begins here, to the end of the line that closes it, or to the end of
/// the text if no line does.
fn fenced_block(text: &str) -> Option<usize> {
    let (mark, length) = fence(text)?;
    let first = text.bytes().take(LOOK_AHEAD).position(|byte| byte == b'\n');
    let mut end = match first {
        Some(newline) => newline + 1,
        None if text.len() < LOOK_AHEAD => text.len(),
        None => return None,
    };
    // An opening fence of backticks has no further backticks on its line; otherwise it is a code span.
    if mark == '`' && text[..end].trim_start().trim_start_matches('`').contains('`') {
        return None;
    }
    for line in text[end..].split_inclusive('\n') {
        end += line.len();
        let closes = fence(line).is_some_and(|(other, width)| other == mark && width >= length);
        if closes && line.trim().chars().all(|character| character == mark) {
            return Some(end);
        }
    }
    Some(text.len())
}

/// Returns the mark of the fence that begins this line, and the length of the fence.
fn fence(line: &str) -> Option<(char, usize)> {
    let inner = line.trim_start_matches(' ');
    let mark = inner.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = inner.len() - inner.trim_start_matches(mark).len();
    (length >= 3 && line.len() - inner.len() <= 3).then_some((mark, length))
}

/// Returns the length of the code span that begins here. If the paragraph does not close it, only its first marks
/// count.
fn code_span(text: &str) -> usize {
    let marks = text.len() - text.trim_start_matches('`').len();
    let near = &text[..text.floor_char_boundary(marks + LOOK_AHEAD)];
    let paragraph = near.split("\n\n").next().unwrap_or(near);
    let mut at = marks;
    while let Some(next) = paragraph.get(at..).and_then(|rest| rest.find('`')) {
        let run = &paragraph[at + next..];
        let length = run.len() - run.trim_start_matches('`').len();
        at += next + length;
        if length == marks {
            return at;
        }
    }
    marks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_think_blocks_leave_the_text_and_unclosed_ones_stay() {
        let cases = [
            ("plain\n", "plain\n", None),
            ("<think>a</think>b", "b", Some("a")),
            ("<think>\n a \n</think>\n\n# B\n", "# B", Some("a")),
            ("a <think>1</think>b<think>2</think> c", "a b c", Some("1\n\n2")),
            ("<think></think>b", "b", None),
            ("a <think>b", "a <think>b", None),
            ("<think>1</think>a <think>b", "a <think>b", Some("1")),
            ("a</think> b", "a</think> b", None),
            ("<think>1<think>2</think>b", "b", Some("1<think>2")),
            ("<think>caf\u{e9} \u{1F600}</think>\u{e9}", "\u{e9}", Some("caf\u{e9} \u{1F600}")),
            ("<think>1</think>", "", Some("1")),
        ];
        for (given, text, thinking) in cases {
            let expected = (text.to_owned(), thinking.map(str::to_owned));
            assert_eq!(split_thinking(given.to_owned()), expected, "{given:?}");
        }
    }

    /// P5: a report may mention the tags; its text stays.
    #[test]
    fn p5_only_closed_think_blocks_outside_code_go() {
        let kept = [
            "Models write `<think>` before and `</think>` after.",
            "``a ` <think>b</think>`` c",
            "`<think>x\ny</think>` one line on",
            "```xml\n<think>a</think>\n```\nb",
            "~~~\n<think>a</think>\n```\n~~~\nb",
            "   ````\n```\n<think>a</think>\n````",
            "```\n<think>never closed</think>",
            "The <think> tag is closed by `</think>`, and the rest of the report stays.",
            "# A\nthe literal <think> tag opens a thought\n\n# B\nall of it",
            "\\<think>a</think>",
        ];
        for text in kept {
            assert_eq!(split_thinking(text.to_owned()), (text.to_owned(), None), "{text:?}");
        }
        let gone = [
            ("<think>\n```\ncode\n```\n</think>\n\nA", "A"),
            ("<think>a `b` c</think>A `<think>x</think>` B", "A `<think>x</think>` B"),
            ("<think>a stray ` mark\n</think>\n\nA `b`", "A `b`"),
            (
                "<think>1</think>\n```\n<think>x</think>\n```\n<think>2</think>",
                "```\n<think>x</think>\n```",
            ),
            ("it's `unpaired\n\n<think>1</think>A", "it's `unpaired\n\nA"),
            ("a ```not a fence``` <think>1</think>b", "a ```not a fence``` b"),
        ];
        for (given, text) in gone {
            let (said, thinking) = split_thinking(given.to_owned());
            assert_eq!(said, text, "{given:?}");
            assert!(thinking.is_some(), "{given:?}");
        }
    }

    #[test]
    fn no_text_makes_it_stumble() {
        let pieces = ["<think>", "</think>", "`", "```", "~~~", "\n", "\\", " ", "\u{1F600}", "a"];
        // Every sequence of four pieces: only blocks are removed, and the rest has none outside code.
        for number in 0..10_usize.pow(4) {
            let text: String =
                (0..4).map(|place| pieces[number / 10_usize.pow(place) % 10]).collect();
            let (said, thinking) = split_thinking(text.clone());
            if thinking.is_none() && !text.contains(CLOSE) {
                assert_eq!(said, text);
            }
        }
    }
}
