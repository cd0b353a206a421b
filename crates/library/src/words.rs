//! Words: stop words, stems and synonyms.

use std::collections::HashSet;
use std::sync::LazyLock;

/// Returns true if a word of a question says nothing about its subject.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.contains(word)
}

/// Returns the words of a text in lower case, without punctuation.
pub(super) fn of(text: &str) -> impl Iterator<Item = String> + '_ {
    written(text).map(str::to_lowercase)
}

/// Returns the words of a text as they are written.
pub(super) fn written(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Returns the stem that the forms of an English word share; codes and numbers have no other forms.
pub(super) fn stem(word: &str) -> String {
    let mut stem = word.to_owned();
    if stem.len() < 4 || !stem.bytes().all(|byte| byte.is_ascii_alphabetic()) {
        return stem;
    }
    if stem.ends_with("ies") {
        stem.truncate(stem.len() - 3);
        stem.push('y');
    } else if ["sses", "xes", "zes", "ches", "shes"].iter().any(|ending| stem.ends_with(ending)) {
        stem.truncate(stem.len() - 2);
    } else if stem.ends_with('s') && !["ss", "us", "is"].iter().any(|ending| stem.ends_with(ending))
    {
        stem.pop();
    }
    for (ending, least) in
        [("ation", 4), ("ate", 4), ("ion", 4), ("ment", 4), ("ing", 3), ("ed", 3), ("ly", 3)]
    {
        let Some(rest) = stem.strip_suffix(ending) else { continue };
        if rest.len() >= least && rest.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
            stem = if matches!(ending, "ing" | "ed") {
                without_doubled_end(rest)
            } else {
                rest.to_owned()
            };
        }
        break;
    }
    // "valid" for "validated" and "validating" too, as for "validate".
    if let Some(rest) = stem.strip_suffix("at").filter(|rest| rest.len() >= 4) {
        stem.truncate(rest.len());
    }
    if stem.len() > 4 && stem.ends_with('e') {
        stem.pop();
    }
    if stem.len() > 4 && stem.ends_with('y') {
        stem.pop();
        stem.push('i');
    }
    stem
}

/// Turns "stopp" into "stop" and "mak" into "make".
fn without_doubled_end(rest: &str) -> String {
    let is_vowel = |sign: u8| b"aeiou".contains(&sign);
    match rest.as_bytes() {
        [.., a, b] if a == b && !b"lsz".contains(b) => rest[..rest.len() - 1].to_owned(),
        [a, b, c] if !is_vowel(*a) && is_vowel(*b) && !is_vowel(*c) && !b"wxy".contains(c) => {
            format!("{rest}e")
        }
        _ => rest.to_owned(),
    }
}

/// Returns words with nearly the same meaning; they weigh less.
pub(super) fn synonyms(word: &str) -> Vec<&'static str> {
    let wanted = stem(word);
    let groups = RELATED.lines().map(str::split_whitespace);
    let mut all: Vec<_> =
        groups.filter(|group| group.clone().any(|kin| stem(kin) == wanted)).flatten().collect();
    all.retain(|kin| stem(kin) != wanted);
    all.sort_unstable();
    all.dedup();
    all
}

/// Words that writers use interchangeably, one group per line.
const RELATED: &str = include_str!("words/related.txt");

/// Words that say nothing about the subject of a question.
static STOP: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("words/stop.txt").split_whitespace().collect());

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_word_share_a_stem() {
        let same = [
            ("job", "jobs"),
            ("survive", "survives"),
            ("survive", "surviving"),
            ("retry", "retries"),
            ("stop", "stopped"),
            ("box", "boxes"),
            ("configure", "configured"),
            ("pass", "passes"),
            ("crash", "crashes"),
            ("lease", "leases"),
            ("make", "making"),
            ("log", "logging"),
            ("validate", "validation"),
            ("validating", "validated"),
            ("install", "installation"),
            ("require", "requirement"),
        ];
        for (a, b) in same {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        for (a, b) in [("status", "stat"), ("note", "not"), ("e17", "e1"), ("v8", "v8s")] {
            assert_ne!(stem(a), stem(b), "{a} {b}");
        }
    }

    #[test]
    fn synonyms_do_not_include_the_word_itself() {
        assert!(synonyms("crashes").contains(&"kill") && !synonyms("crashes").contains(&"crash"));
        assert!(synonyms("zebra").is_empty());
    }
}
