//! The words by which jobs are found. The only file that knows their table.

use std::collections::BTreeSet;

use outlast_core::{NewJob, Output, search};
use rusqlite::Connection;

use super::fault::Fault;
use super::sql;

/// Keeps the words of a job, in the place of those it had.
pub(super) fn put(
    connection: &Connection,
    seq: i64,
    new: &NewJob,
    output: Option<&Output>,
) -> Result<(), Fault> {
    let mut words = search::words_of_question(new);
    words.extend(output.map(search::words_of_output).unwrap_or_default());
    let words = words.into_iter().collect::<Vec<_>>().join(" ");
    let insert = "INSERT OR REPLACE INTO search (rowid, words) VALUES (?1, ?2)";
    sql::execute(connection, insert, (seq, words)).map(drop)
}

/// What finds the jobs in which each of these words begins a word, or `None` where there is no word to look for.
pub(super) fn expression(text: &str) -> Option<String> {
    let words: BTreeSet<String> = search::words(text);
    // Quoted, so that no word is an operator; no word has a quote in it.
    let begun: Vec<String> = words.iter().map(|word| format!("\"{word}\" *")).collect();
    (!begun.is_empty()).then(|| begun.join(" "))
}
