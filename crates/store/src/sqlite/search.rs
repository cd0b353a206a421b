//! The search index of jobs. Only this file knows its table.

use std::collections::BTreeSet;
use std::time::Duration;

use outlast_core::{Job, JobQuery, Scope, StoreError, search};
use rusqlite::Connection;
use tokio::time::Instant;

use super::fault::Fault;
use super::rows::{self, StoredRow};
use super::sql;

/// The time for which one commit indexes words. Commands that arrive meanwhile wait for it.
const SLICE: Duration = Duration::from_millis(10);

/// Shows whether more words must be indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PendingText {
    More,
    Nothing,
}

/// Records that the words of a job must be indexed.
pub(super) fn owe(connection: &Connection, seq: i64) -> Result<(), Fault> {
    let insert = sql!(sqlite::search::owe);
    sql::execute(connection, insert, [seq]).map(drop)
}

/// Removes that record.
fn forget(connection: &Connection, seq: i64) -> Result<(), Fault> {
    sql::execute(connection, sql!(sqlite::search::forget), [seq]).map(drop)
}

/// Returns whether any job still has words to index.
pub(super) fn read_owed(connection: &Connection) -> Result<PendingText, Fault> {
    Ok(if next(connection)?.is_some() { PendingText::More } else { PendingText::Nothing })
}

fn next(connection: &Connection) -> Result<Option<i64>, Fault> {
    sql::optional(connection, sql!(sqlite::search::next), [])
}

/// Indexes pending words, for a limited time.
pub(super) fn catch_up(connection: &Connection) -> Result<PendingText, Fault> {
    let until = Instant::now() + SLICE;
    while let Some(seq) = next(connection)? {
        match rows::whole(connection, "seq = ?1", seq) {
            Ok(Some(StoredRow { record, .. })) => {
                put(connection, seq, &record.job)?;
            }
            Ok(None) => {}
            Err(fault) => match StoreError::from(fault) {
                // No search finds an unreadable job, and it blocks no other job.
                StoreError::Corrupt { at } => {
                    tracing::warn!(at, "a job has no words: it is damaged")
                }
                error => return Err(error.into()),
            },
        }
        forget(connection, seq)?;
        if Instant::now() >= until {
            return read_owed(connection);
        }
    }
    Ok(PendingText::Nothing)
}

/// Stores the words of a job, replacing its earlier ones.
pub(super) fn put(connection: &Connection, seq: i64, job: &Job) -> Result<(), Fault> {
    let words = search::words_and_marks(job).into_iter().collect::<Vec<_>>().join(" ");
    let insert = sql!(sqlite::search::put);
    sql::execute(connection, insert, (seq, words)).map(drop)
}

/// The maximum number of words that replace the beginning of words. The index reads the jobs of given words one by one, in the
/// order of the list, but those of a beginning all at once.
const MAX_WORDS: usize = 2_000;

/// Builds the expression that finds the jobs with the words of a query, and few others. Returns `None` if there is no word to
/// search for.
pub(super) fn expression(
    connection: &Connection,
    scope: &Scope,
    query: &JobQuery,
) -> Result<Option<String>, Fault> {
    let words = collect_words(query);
    if words.is_empty() {
        return Ok(None);
    }
    // Quoted, so that no word is an operator. No word contains a quote.
    let quoted = |word: &String| format!("\"{word}\"");
    let mut all = Vec::new();
    for word in &words {
        all.push(match search::is_beginning(word) {
            false => quoted(word),
            true => match words_beginning_with(connection, word)? {
                None => format!("\"{word}\" *"),
                Some(found) if found.is_empty() => quoted(word),
                Some(found) => {
                    format!("({})", found.iter().map(quoted).collect::<Vec<_>>().join(" OR "))
                }
            },
        });
    }
    all.extend(search::query_marks(scope, query).iter().map(quoted));
    let all = all.join(" AND ");
    Ok(Some(match search::is_without_success(query) {
        true => format!("({all}) NOT \"{}\"", search::SUCCEEDED_MARK),
        false => all,
    }))
}

/// Returns the words that a query searches for.
pub(super) fn collect_words(query: &JobQuery) -> BTreeSet<String> {
    query.words.as_deref().map(search::words).unwrap_or_default()
}

/// Returns all words of the index that begin with this text, unless there are very many.
fn words_beginning_with(connection: &Connection, text: &str) -> Result<Option<Vec<String>>, Fault> {
    // Each step is a search for one word. To read on would read every job of a word.
    const NEXT: &str = sql!(sqlite::search::with_beginning);
    let (mut found, mut from) = (Vec::new(), text.to_owned());
    while let Some(word) = sql::optional::<String>(connection, NEXT, [&from])? {
        if !word.starts_with(text) {
            break;
        }
        if found.len() == MAX_WORDS {
            return Ok(None);
        }
        from = format!("{word}\u{1}");
        found.push(word);
    }
    Ok(Some(found))
}
