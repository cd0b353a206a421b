//! Explains in plain words where a report comes from, what was searched and what was left out.

use outlast_core::LIBRARY_NOTE;

use super::query::Query;
use super::rank::Ranking;
use super::refresh::group_digits;
use super::skip::LeftOut;

/// The searched files and passages, for the closing note.
#[derive(Debug, Default)]
pub(super) struct SearchScope {
    pub(super) folders: usize,
    pub(super) files: usize,
    pub(super) passages: usize,
    pub(super) left_out: LeftOut,
    pub(super) gone: Vec<String>,
}

/// Writes the page for a question that has no answer in the library.
pub(super) fn write_nothing_found(
    page: &mut Vec<String>,
    query: &Query,
    ranked: &Ranking,
    searched: &SearchScope,
) {
    let asked = !query.terms.is_empty();
    page.push(if searched.files == 0 {
        "The library is empty: no file in its folders can be read.".to_owned()
    } else if asked {
        format!("Nothing in the library answers this question.{}", describe_missing_words(ranked))
    } else {
        "The question has no words to search for.".to_owned()
    });
    page.push(scope(searched));
    page.push(if searched.files == 0 {
        "Put documents into the folder: Markdown, text, HTML, PDF and office files are read.".to_owned()
    } else if asked {
        "Try other words for the same thing, fewer of them, or a name as the documents spell it; or add the folder \
         that has the answer to the library.".to_owned()
    } else {
        "Ask for a subject by name, for example \"How are backups made?\".".to_owned()
    });
}

/// Describes what was searched and what was left out.
fn scope(searched: &SearchScope) -> String {
    let plural = |count: usize, one: &str, many: &str| {
        format!("{} {}", group_digits(count), if count == 1 { one } else { many })
    };
    let mut scope = format!(
        "Searched: {} in {} of {}.",
        plural(searched.passages, "passage", "passages"),
        plural(searched.files, "file", "files"),
        plural(searched.folders, "folder", "folders"),
    );
    let left_out = searched.left_out.count();
    if left_out > 0 {
        let reasons = searched.left_out.reasons().join(", ");
        let files = plural(left_out, "file was", "files were");
        scope.push_str(&format!(" {files} left out: {reasons}."));
    }
    for folder in &searched.gone {
        scope.push_str(&format!(" The folder {folder} was missing."));
    }
    scope
}

/// The sentence that precedes passages that may not answer the question.
pub(super) const UNSURE: &str =
    "No passage has all of the question; those that follow come closest.";

/// Returns the sentence that precedes loosely related passages.
pub(super) fn loose(ranked: &Ranking) -> String {
    format!(
        "The library says little about this.{} What follows is only loosely related.",
        describe_missing_words(ranked)
    )
}

/// Returns the note at the end of a report that describes its sources.
pub(super) fn note(ranked: &Ranking, searched: &SearchScope) -> String {
    format!("{LIBRARY_NOTE} {}{}*", scope(searched), describe_missing_words(ranked))
}

/// Lists the words of the question that occur nowhere.
fn describe_missing_words(ranked: &Ranking) -> String {
    let missing: Vec<_> = ranked.missing.iter().take(8).map(|word| format!("\"{word}\"")).collect();
    if missing.is_empty() {
        return String::new();
    }
    format!(" Not found anywhere: {}.", missing.join(", "))
}
