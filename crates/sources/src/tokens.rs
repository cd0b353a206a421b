//! Words, numbers and signs of a sentence.

use std::collections::HashSet;

use super::text::{self, fold, is_cjk, is_function_word, stem};

/// A word, number or sign of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// In lower case without accents.
    pub(crate) folded: String,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Capital,
    Number,
    Sign,
}

/// Words that were seen in lower case, or capitalised inside a sentence: they decide if the first word of a sentence
/// is a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) lower: HashSet<String>,
    pub(crate) inner_capitals: HashSet<String>,
}

impl Vocabulary {
    pub(crate) fn add(&mut self, text: &str) {
        for range in text::sentences(text) {
            let sentence = &text[range];
            let mut is_first = true;
            for token in tokens(sentence) {
                if token.kind == TokenKind::Word {
                    self.lower.insert(token.folded);
                } else if token.kind == TokenKind::Capital && !is_first {
                    self.inner_capitals.insert(token.folded);
                }
                // A cell or a label begins like a sentence.
                is_first = matches!(&sentence[token.start..token.end], "|" | ":" | "." | "\"");
            }
        }
    }
}

/// Splits a text into words, numbers and signs.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut signs = text.char_indices().peekable();
    while let Some((start, sign)) = signs.next() {
        if sign.is_whitespace() {
            continue;
        }
        let mut end = start + sign.len_utf8();
        let kind = if sign.is_numeric() && sign.is_ascii_digit() {
            while let Some((at, next)) = signs.peek().copied() {
                let after = text[at + next.len_utf8()..].chars().next();
                let joins =
                    matches!(next, '.' | ',' | '\'') && after.is_some_and(|c| c.is_ascii_digit());
                if !next.is_ascii_digit() && !joins {
                    break;
                }
                signs.next();
                end = at + next.len_utf8();
            }
            TokenKind::Number
        } else if is_cjk(sign) {
            let script = script(sign);
            while let Some((at, _)) =
                signs.next_if(|(_, c)| is_cjk(*c) && self::script(*c) == script)
            {
                end = at + text[at..].chars().next().map_or(1, char::len_utf8);
            }
            TokenKind::Word
        } else if sign.is_alphanumeric() || sign == '_' {
            while let Some((at, next)) = signs.peek().copied() {
                let after = text[at + next.len_utf8()..].chars().next();
                let joins = matches!(next, '\'' | '_') && after.is_some_and(char::is_alphanumeric);
                let is_mark = unicode_normalization::char::is_combining_mark(next);
                let is_letter = next.is_alphanumeric() && !is_cjk(next);
                if !is_letter && !joins && !is_mark {
                    break;
                }
                signs.next();
                end = at + next.len_utf8();
            }
            if sign.is_uppercase() { TokenKind::Capital } else { TokenKind::Word }
        } else {
            TokenKind::Sign
        };
        let mut word = &text[start..end];
        if kind != TokenKind::Sign {
            word = word.strip_suffix("'s").unwrap_or(word);
        }
        tokens.push(Token { start, end: start + word.len(), folded: fold(word), kind });
    }
    tokens
}

/// Returns the folded words and numbers of a text, separated by single spaces.
pub(crate) fn words_of(text: &str) -> String {
    let tokens = tokens(text).into_iter().filter(|token| token.kind != TokenKind::Sign);
    tokens.map(|token| token.folded).collect::<Vec<_>>().join(" ")
}

pub(super) fn script(sign: char) -> u8 {
    match sign {
        '\u{3040}'..='\u{309f}' => 0,
        '\u{30a0}'..='\u{30ff}' => 1,
        _ => 2,
    }
}

/// Returns the stems of the words that mean something alone.
pub(crate) fn content_stems(tokens: &[Token]) -> Vec<String> {
    let words =
        tokens.iter().filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Capital));
    words
        .filter(|token| !is_function_word(&token.folded))
        .map(|token| stem(&token.folded))
        .collect()
}
