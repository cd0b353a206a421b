//! Long lines on a terminal, broken between words. Texts that people copy stay whole: paths, addresses, ids, and the
//! commands between backquotes.

use unicode_width::UnicodeWidthChar;

/// Wraps the text to lines of at most this number of columns, if its words allow it; continuation lines are indented by
/// `hang`.
pub(super) fn wrap(text: &str, columns: usize, hang: usize) -> String {
    wrap_behind(&" ".repeat(hang), text, columns)
}

/// Wraps the text; continuation lines begin with `hang`.
pub(super) fn wrap_behind(hang: &str, text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| break_line(hang, line, columns)).collect();
    lines.join("\n")
}

fn break_line(hang: &str, line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut out = String::new();
    let mut at = 0;
    for (gap, word) in words(line) {
        // A word that the next line would not start further to the left stays in this line.
        if at + gap.len() > width(hang) && at + gap.len() + width(word) > columns {
            out.push('\n');
            out.push_str(hang);
            at = width(hang);
        } else {
            out.push_str(gap);
            at += gap.len();
        }
        out.push_str(word);
        at += width(word);
    }
    out
}

/// Returns each word with the spaces before it; a command between backquotes is one word.
fn words(line: &str) -> Vec<(&str, &str)> {
    let mut words = Vec::new();
    let mut rest = line;
    while !rest.is_empty() {
        let (gap, from_word) = rest.split_at(rest.len() - rest.trim_start_matches(' ').len());
        let mut quoted = false;
        let end = from_word.find(|character| {
            quoted ^= character == '`';
            character == ' ' && !quoted
        });
        let (word, after) = from_word.split_at(end.unwrap_or(from_word.len()));
        words.push((gap, word));
        rest = after;
    }
    words
}

/// Returns the columns of a text; colour takes none.
pub(super) fn width(text: &str) -> usize {
    let mut width = 0;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character == '\x1b' {
            characters.by_ref().find(|character| *character == 'm');
        } else {
            width += character.width().unwrap_or(0);
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_go_on_set_in() {
        let cases = [
            ("all of it fits", 14, "all of it fits"),
            ("all of it fits", 13, "all of it\n  fits"),
            ("  set  apart stays", 12, "  set  apart\n  stays"),
            ("two\nlines that are long", 10, "two\nlines that\n  are long"),
            ("\x1b[2mcolour takes\x1b[0m no room", 12, "\x1b[2mcolour takes\x1b[0m\n  no room"),
        ];
        for (text, columns, expected) in cases {
            assert_eq!(wrap(text, columns, 2), expected);
        }
    }

    #[test]
    fn what_people_copy_stays_whole() {
        let long = "see https://example.com/a/very/long/path/indeed now";
        assert_eq!(wrap(long, 12, 0), "see\nhttps://example.com/a/very/long/path/indeed\nnow");
        let numbered = "[1] https://example.com/a/very/long/path now";
        assert_eq!(wrap(numbered, 12, 4), "[1] https://example.com/a/very/long/path\n    now");
        let command = "then `outlast jobs show 1` has it";
        assert_eq!(wrap(command, 24, 2), "then\n  `outlast jobs show 1`\n  has it");
        assert_eq!(wrap("a lone ` is no command", 8, 0), "a lone\n` is no command");
    }
}
