//! Short functions to run statements, for all files with SQL.

use rusqlite::types::FromSql;
use rusqlite::{Connection, OptionalExtension as _, Params};

use super::fault::Fault;

/// Returns the single value that a statement selects.
pub(super) fn value<T: FromSql>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<T, Fault> {
    Ok(connection.prepare_cached(select)?.query_row(parameters, |row| row.get(0))?)
}

/// Returns the selected value, or `None` if there is no row.
pub(super) fn optional<T: FromSql>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<Option<T>, Fault> {
    let mut statement = connection.prepare_cached(select)?;
    Ok(statement.query_row(parameters, |row| row.get(0)).optional()?)
}

/// Returns the first column of all rows.
pub(super) fn column<T: FromSql>(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<Vec<T>, Fault> {
    let mut statement = connection.prepare_cached(select)?;
    let values = statement.query_map(parameters, |row| row.get(0))?;
    Ok(values.collect::<Result<_, _>>()?)
}

/// Runs a statement and returns the number of rows that it affected.
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

/// Moves the log into the database and closes the connection.
pub(super) fn close(connection: Connection) -> Result<(), Fault> {
    empty_log(&connection)?;
    Ok(connection.close().map_err(|(_, error)| error)?)
}

/// SQLite's plan for a statement, one line for each table, for tests.
#[cfg(test)]
pub(super) fn plan(connection: &Connection, select: &str) -> Vec<String> {
    let mut explained = connection.prepare(&format!("EXPLAIN QUERY PLAN {select}")).unwrap();
    explained.raw_query().mapped(|row| row.get("detail")).map(Result::unwrap).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::open;

    /// A statement that names a missing table or column is refused here.
    #[test]
    fn every_statement_fits_the_schema() {
        let dir = tempfile::TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        let mut prepared = 0;
        for entry in fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/src/sqlite")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "sql") {
                continue;
            }
            for named in fs::read_to_string(&path).unwrap().split("-- name: ").skip(1) {
                let (name, statement) = named.split_once('\n').unwrap();
                if let Err(error) = connection.prepare(statement) {
                    panic!("{}: {name}: {error}", path.display());
                }
                prepared += 1;
            }
        }
        assert!(prepared > 50, "{prepared}");
    }
}
