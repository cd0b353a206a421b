//! The words by which jobs are found. The only file that knows their table.

use std::collections::BTreeSet;

use outlast_core::{JobQuery, NewJob, Output, Scope, search};
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
    words.extend(search::marks(new));
    words.extend(output.map(|_| search::SUCCEEDED_MARK.to_owned()));
    let words = words.into_iter().collect::<Vec<_>>().join(" ");
    let insert = "INSERT OR REPLACE INTO search (rowid, words) VALUES (?1, ?2)";
    sql::execute(connection, insert, (seq, words)).map(drop)
}

/// What finds the jobs that have the words of a query, and few others; `None` where there is no word to look for.
pub(super) fn expression(scope: &Scope, query: &JobQuery) -> Option<String> {
    let words: BTreeSet<String> = search::words(query.words.as_deref()?);
    if words.is_empty() {
        return None;
    }
    // Quoted, so that no word is an operator; no word has a quote in it.
    let wanted = words.iter().map(|word| match search::is_beginning(word) {
        true => format!("\"{word}\" *"),
        false => format!("\"{word}\""),
    });
    let marks = search::wanted_marks(scope, query).into_iter().map(|mark| format!("\"{mark}\""));
    let all = wanted.chain(marks).collect::<Vec<_>>().join(" ");
    match search::is_without_success(query) {
        true => Some(format!("{all} NOT \"{}\"", search::SUCCEEDED_MARK)),
        false => Some(all),
    }
}
