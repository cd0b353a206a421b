//! Short statements, which every file of SQL shares.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension as _, Params};

use super::fault::Fault;

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

/// Empties the log into the database and closes it.
pub(super) fn close(connection: Connection) -> Result<(), Fault> {
    empty_log(&connection)?;
    Ok(connection.close().map_err(|(_, error)| error)?)
}

/// How SQLite carries a statement out, a line for each table: for tests.
#[cfg(test)]
pub(super) fn plan(connection: &Connection, select: &str) -> Vec<String> {
    let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {select}")).unwrap();
    explained.raw_query().mapped(|row| row.get("detail")).map(Result::unwrap).collect()
}
