//! Words: stop words, stems and synonyms.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

/// Returns true if a word of a question says nothing about its subject.
pub(super) fn is_stop(word: &str) -> bool {
    STOP.contains(word)
}

/// Returns the words of a text in lower case, without punctuation.
pub(super) fn of(text: &str) -> impl Iterator<Item = String> + '_ {
    surface_words(text).map(str::to_lowercase)
}

/// Returns the words of a text as they are written.
pub(super) fn surface_words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// Appends the parts of the names in a text, so that `SubmitUnknown` is also found by "submit".
pub(super) fn with_parts(text: &str) -> String {
    let mut all = text.to_owned();
    for part in parts(text) {
        all.push(' ');
        all.push_str(part);
    }
    all
}

/// Returns the parts of names that are joined by capitals.
pub(super) fn parts(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    for word in surface_words(text) {
        let mut from = 0;
        let mut after_lowercase = false;
        for (at, sign) in word.char_indices() {
            if after_lowercase && sign.is_uppercase() {
                parts.push(&word[from..at]);
                from = at;
            }
            after_lowercase = sign.is_lowercase();
        }
        if from > 0 {
            parts.push(&word[from..]);
        }
    }
    parts
}

/// Returns the stem that the forms of an English word share; codes and numbers have no other forms.
pub(super) fn stem(word: &str) -> String {
    if let Some((_, base)) = IRREGULAR.iter().find(|(form, _)| *form == word) {
        return stem(base);
    }
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
    RELATED.get(&stem(word)).cloned().unwrap_or_default()
}

/// Returns the forms of a word that do not begin like its stem.
pub(super) fn irregular(wanted: &str) -> impl Iterator<Item = &'static str> {
    IRREGULAR.iter().filter(move |(_, base)| stem(base) == wanted).map(|(form, _)| *form)
}

/// Forms that no rule leads back to their word.
const IRREGULAR: &[(&str, &str)] = &[
    ("began", "begin"),
    ("begun", "begin"),
    ("broke", "break"),
    ("broken", "break"),
    ("brought", "bring"),
    ("built", "build"),
    ("chose", "choose"),
    ("chosen", "choose"),
    ("done", "do"),
    ("found", "find"),
    ("given", "give"),
    ("held", "hold"),
    ("hidden", "hide"),
    ("kept", "keep"),
    ("known", "know"),
    ("led", "lead"),
    ("left", "leave"),
    ("lost", "lose"),
    ("made", "make"),
    ("meant", "mean"),
    ("ran", "run"),
    ("sent", "send"),
    ("shown", "show"),
    ("stolen", "steal"),
    ("taken", "take"),
    ("thrown", "throw"),
    ("threw", "throw"),
    ("took", "take"),
    ("understood", "understand"),
    ("written", "write"),
    ("wrote", "write"),
];

/// Words that writers use interchangeably, by their stems; the file has one group per line.
static RELATED: LazyLock<HashMap<String, Vec<&str>>> = LazyLock::new(|| {
    let mut related: HashMap<String, Vec<&str>> = HashMap::new();
    for group in include_str!("words/related.txt").lines() {
        for word in group.split_whitespace() {
            let wanted = stem(word);
            let others = group.split_whitespace().filter(|other| stem(other) != wanted);
            related.entry(wanted.clone()).or_default().extend(others);
        }
    }
    for others in related.values_mut() {
        others.sort_unstable();
        others.dedup();
    }
    related
});

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
            ("send", "sent"),
        ];
        for (a, b) in same {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
        for (a, b) in [("status", "stat"), ("note", "not"), ("e17", "e1"), ("v8", "v8s")] {
            assert_ne!(stem(a), stem(b), "{a} {b}");
        }
    }

    #[test]
    fn names_are_found_by_their_parts() {
        assert_eq!(with_parts("a SubmitUnknown b"), "a SubmitUnknown b Submit Unknown");
        assert!(parts("HTTP README v8").is_empty());
    }

    #[test]
    fn synonyms_do_not_include_the_word_itself() {
        assert!(synonyms("crashes").contains(&"kill") && !synonyms("crashes").contains(&"crash"));
        assert!(synonyms("zebra").is_empty());
    }
}
