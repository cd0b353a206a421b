//! The words by which a job is found: those of its question and of its report.
//!
//! Every store splits text into words with these functions, so that all stores find the same jobs.

use std::collections::{BTreeSet, HashSet};

use crate::{Body, Job, JobQuery, NewJob, Output, Role, Scope, StateKind};

/// The maximum number of different words of one job in the search index.
const MAX_WORDS: usize = 20_000;
/// The maximum length of a word; longer ones are cut.
const MAX_WORD_CHARS: usize = 64;
/// The minimum length in bytes of a wanted word that also matches the beginning of longer words. With one or two
/// letters, the number of matching words is so large that merging their jobs takes longer than any caller waits.
const MIN_BEGINNING: usize = 3;
/// The maximum number of bytes of a name in its mark.
const MAX_MARKED: usize = 100;

/// Returns the words of a text, in lower case and each once. A word is a longest run of letters and numbers.
pub fn words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    add_words(&mut found, text);
    found
}

/// Returns the words by which a job is found.
pub fn words_of_job(job: &Job) -> BTreeSet<String> {
    let mut found = words_of_question(&job.new);
    found.extend(job.output().map(words_of_output).unwrap_or_default());
    found
}

/// Returns the words by which a job is found, with its marks.
pub fn words_and_marks(job: &Job) -> BTreeSet<String> {
    let mut found = words_of_job(job);
    found.extend(marks(&job.new));
    found.extend(job.output().map(|_| SUCCEEDED_MARK.to_owned()));
    found
}

fn words_of_question(new: &NewJob) -> BTreeSet<String> {
    let mut found = words(&new.title);
    let messages = new.request.research().map(|ask| ask.messages.iter());
    if let Some(question) = messages.into_iter().flatten().rfind(|it| it.role == Role::User) {
        add_words(&mut found, &question.content);
    }
    found
}

fn words_of_output(output: &Output) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    match &output.body {
        Body::Report { text, sources, .. } => {
            add_words(&mut found, text);
            for title in sources.iter().filter_map(|source| source.title.as_deref()) {
                add_words(&mut found, title);
            }
        }
        Body::Tool { .. } => {}
    }
    found
}

/// The mark of a job that has succeeded.
pub const SUCCEEDED_MARK: &str = "\u{a7}s";

/// Returns the marks of a job: words that no text has. With them an index skips the jobs of other owners and
/// providers while it searches for words, however many of those jobs have the words.
fn marks(new: &NewJob) -> [String; 2] {
    [mark('o', new.owner.as_str()), mark('p', new.profile.provider())]
}

/// Returns the marks of all jobs that a query can find, in addition to its words.
pub fn query_marks(scope: &Scope, query: &JobQuery) -> Vec<String> {
    let owner = scope.owner().map(|owner| mark('o', owner.as_str()));
    let provider = query.provider.as_deref().map(|provider| mark('p', provider));
    let is_success = query.states == [StateKind::Succeeded];
    owner.into_iter().chain(provider).chain(is_success.then(|| SUCCEEDED_MARK.to_owned())).collect()
}

/// Returns whether a query excludes the jobs that succeeded. Most jobs succeed.
pub fn is_without_success(query: &JobQuery) -> bool {
    !query.states.is_empty() && !query.states.contains(&StateKind::Succeeded)
}

fn mark(kind: char, name: &str) -> String {
    let hex: String = name.bytes().take(MAX_MARKED).map(|byte| format!("{byte:02x}")).collect();
    format!("\u{a7}{kind}{hex}")
}

/// Returns whether a wanted word may match the beginning of a longer word.
pub fn is_beginning(wanted: &str) -> bool {
    wanted.len() >= MIN_BEGINNING
}

/// Returns whether each wanted word is a word of the job, or the beginning of one.
pub fn finds(wanted: &BTreeSet<String>, words: &BTreeSet<String>) -> bool {
    let begins = |wanted: &String| {
        words.range(wanted.clone()..).next().is_some_and(|word| word.starts_with(wanted.as_str()))
    };
    wanted.iter().all(|word| if is_beginning(word) { begins(word) } else { words.contains(word) })
}

fn add_words(found: &mut BTreeSet<String>, text: &str) {
    // Most words occur many times, in the same form.
    let mut seen = HashSet::new();
    let words = text.split(|sign: char| !sign.is_alphanumeric()).filter(|word| !word.is_empty());
    for word in words.filter(|word| seen.insert(*word)) {
        if found.len() >= MAX_WORDS {
            return;
        }
        found.insert(word.chars().take(MAX_WORD_CHARS).flat_map(char::to_lowercase).collect());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_letters_and_numbers_in_lower_case() {
        let table = [
            ("Über LEASES, and 3-way fences!", vec!["3", "and", "fences", "leases", "way", "über"]),
            ("a_b \"c\" d*", vec!["a", "b", "c", "d"]),
            ("  ", vec![]),
        ];
        for (text, expected) in table {
            assert_eq!(words(text).into_iter().collect::<Vec<_>>(), expected, "{text}");
        }
    }

    #[test]
    fn every_word_that_is_looked_for_must_begin_one() {
        let job = words("How leases outlive workers");
        for (wanted, expected) in [
            ("lease work", true),
            ("leases", true),
            ("ease", false),
            ("lease stores", false),
            ("wor", true),
            ("wo", false),
            ("", true),
        ] {
            assert_eq!(finds(&words(wanted), &job), expected, "{wanted}");
        }
    }

    #[test]
    fn a_long_text_gives_a_limited_number_of_words() {
        let text: String = (0..MAX_WORDS + 10).map(|number| format!("w{number} ")).collect();
        assert_eq!(words(&text).len(), MAX_WORDS);
        assert!(words(&"x".repeat(1000)).iter().all(|word| word.chars().count() == MAX_WORD_CHARS));
    }
}
