//! Acronyms that a page writes out in one place and uses in another.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{Acronym, Unit};
use crate::facts::{Token, TokenKind};
use crate::text::{is_function_word, stem};

/// Shorter ones are the initials of too many words.
const MIN_LETTERS: usize = 3;
/// Longer words in capitals are names or emphasis.
const MAX_LETTERS: usize = 6;

/// Finds the words that the acronyms of a page mean, and adds them to the sentences that use one: "MSRV" after
/// "minimum supported Rust version".
pub(super) fn write_out(units: &mut [Unit]) {
    let used: HashSet<_> = units.iter().flat_map(acronyms).map(|(_, letters)| letters).collect();
    if used.is_empty() {
        return;
    }
    let lengths: HashSet<_> = used.iter().map(String::len).collect();
    let mut meanings: HashMap<String, Arc<[String]>> = HashMap::new();
    for unit in units.iter() {
        let words: Vec<_> =
            unit.tokens.iter().filter(|token| token.kind != TokenKind::Sign).collect();
        let initials: Vec<_> = words.iter().map(|token| initial(token)).collect();
        for length in &lengths {
            for (at, window) in initials.windows(*length).enumerate() {
                let Some(letters) = window.iter().copied().collect::<Option<String>>() else {
                    continue;
                };
                if used.contains(&letters) && !meanings.contains_key(&letters) {
                    let words = &words[at..at + length];
                    let words = words.iter().map(|token| token.folded.clone()).collect();
                    meanings.insert(letters, words);
                }
            }
        }
    }
    for unit in units {
        for (at, letters) in acronyms(unit) {
            if let Some(words) = meanings.get(&letters) {
                unit.stems.extend(words.iter().map(|word| stem(word)));
                unit.acronyms.push(Acronym { at, words: Arc::clone(words) });
            }
        }
    }
}

/// Returns the places and the letters of the acronyms of a sentence.
fn acronyms(unit: &Unit) -> Vec<(usize, String)> {
    let is_acronym = |token: &&Token| {
        token.kind == TokenKind::Capital
            && (MIN_LETTERS..=MAX_LETTERS).contains(&token.folded.len())
            && unit.text[token.start..token.end].bytes().all(|byte| byte.is_ascii_uppercase())
    };
    let found = unit.tokens.iter().filter(is_acronym);
    found.map(|token| (token.start, token.folded.clone())).collect()
}

/// Returns the first letter of a word that may be a part of an acronym.
fn initial(token: &Token) -> Option<char> {
    let is_part = token.kind != TokenKind::Number
        && token.folded.len() > 1
        && !is_function_word(&token.folded);
    token.folded.chars().next().filter(|first| is_part && first.is_ascii_lowercase())
}
