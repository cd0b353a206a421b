//! What every file of SQL shares: short statements, and numbers as SQLite keeps them.

use std::time::Duration;

use outlast_core::Rev;
use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension as _, Params};
use serde::Serialize;

use super::fault::{Fault, unavailable};

/// The one value that a statement selects.
pub(super) fn value<T: FromSql>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<T, Fault> {
    Ok(connection.prepare_cached(select)?.query_row(parameters, |row| row.get(0))?)
}

/// The same where there may be no row.
pub(super) fn optional<T: FromSql>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<Option<T>, Fault> {
    let mut statement = connection.prepare_cached(select)?;
    Ok(statement.query_row(parameters, |row| row.get(0)).optional()?)
}

/// The first column of every row.
pub(super) fn column<T: FromSql>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare_cached(select)?;
    let values = statement.query_map(parameters, |row| row.get(0))?;
    Ok(values.collect::<Result<_, _>>()?)
}

/// Runs a statement and says how many rows it touched.
pub(super) fn execute(
    connection: &Connection,
    statement: &str,
    parameters: impl Params,
) -> Result<usize, Fault> {
    Ok(connection.prepare_cached(statement)?.execute(parameters)?)
}

/// Moves the log into the database file and empties it.
pub(super) fn empty_log(connection: &Connection) -> rusqlite::Result<()> {
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
}

/// A number counted up from zero.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The change number that a column holds.
pub(super) fn rev(value: i64) -> Rev {
    Rev(value.unsigned_abs())
}

/// A duration in milliseconds.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A value as JSON text.
pub(super) fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| unavailable(error).into())
}
