//! Styled words, broken into lines that fit.

use anstyle::Style;
use unicode_width::UnicodeWidthStr;

/// A block of prose before it is broken into lines.
#[derive(Default)]
pub(super) struct Paragraph {
    words: Vec<Word>,
    /// Whether the next text goes on with the last word.
    open: bool,
}

/// Pieces that no line break comes between; empty for a break that was asked for.
#[derive(Default)]
struct Word(Vec<(String, Style)>);

impl Word {
    fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }
}

impl Paragraph {
    pub(super) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Adds text; white space in it is where lines may break.
    pub(super) fn push(&mut self, text: &str, style: Style) {
        if text.is_empty() {
            return;
        }
        if text.starts_with(char::is_whitespace) {
            self.open = false;
        }
        for piece in text.split_whitespace() {
            if !self.open {
                self.words.push(Word::default());
            }
            if let Some(Word(pieces)) = self.words.last_mut() {
                pieces.push((piece.to_owned(), style));
            }
            self.open = false;
        }
        self.open = !text.ends_with(char::is_whitespace);
    }

    /// Ends the line here.
    pub(super) fn break_line(&mut self) {
        self.words.push(Word::default());
        self.open = false;
    }

    /// Writes it as lines; the first begins with `first`, the others with `rest`.
    pub(super) fn wrap_into(self, out: &mut String, columns: usize, first: &str, rest: &str) {
        let mut at = first.width();
        out.push_str(first);
        let mut begins = true;
        for word in self.words {
            let width = word.width();
            let asked_for = word.0.is_empty();
            if asked_for || (!begins && at + 1 + width > columns) {
                out.push('\n');
                out.push_str(rest);
                at = rest.width();
                begins = true;
            }
            if asked_for {
                continue;
            }
            if !begins {
                out.push(' ');
                at += 1;
            }
            for (text, style) in word.0 {
                out.push_str(&format!("{style}{text}{style:#}"));
            }
            at += width;
            begins = false;
        }
        out.push('\n');
    }
}
