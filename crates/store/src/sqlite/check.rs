//! Checks that the store is sound: the file, the references, and the properties of rows that this program relies on.

use outlast_core::StoreError;
use rusqlite::{Connection, ErrorCode};

use super::fault::Fault;
use super::rows::{self, StoredRow};
use super::{SqliteStore, identities, keys};
use crate::columns::Columns as _;
use crate::problems::{MAX_PROBLEMS, of_job};

impl SqliteStore {
    /// Checks a snapshot of the whole store and returns its problems; none if the store is sound.
    ///
    /// Reads the whole file, which takes long if the file is large. No reader or writer waits for it.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.readers.run(problems).await
    }
}

fn problems(connection: &Connection) -> Result<Vec<String>, Fault> {
    let snapshot = connection.unchecked_transaction()?;
    let mut problems = file(&snapshot)?;
    // The rows of a damaged file prove nothing.
    if problems.is_empty() {
        problems.extend(by_query(&snapshot)?);
        problems.extend(by_rule(&snapshot)?);
    }
    problems.truncate(MAX_PROBLEMS);
    Ok(problems)
}

/// Refuses a file that is not sound.
pub(super) fn refuse_damaged(connection: &Connection) -> Result<(), Fault> {
    match file(connection)?.into_iter().next() {
        Some(at) => Err(StoreError::Corrupt { at }.into()),
        None => Ok(()),
    }
}

/// Checks the file itself: pages, indices, constraints, references.
fn file(connection: &Connection) -> Result<Vec<String>, Fault> {
    let integrity = lines(connection, sql!(sqlite::check::integrity));
    let references = lines(
        connection,
        r#"SELECT "table" || ' row ' || coalesce(rowid, '?') || ' has no ' || parent
           FROM pragma_foreign_key_check"#,
    );
    let mut problems = Vec::new();
    for found in [integrity, references] {
        match found {
            Ok(found) => problems.extend(found.into_iter().filter(|line| line != "ok")),
            Err(Fault::Sql(rusqlite::Error::SqliteFailure(failure, why)))
                if failure.code == ErrorCode::DatabaseCorrupt =>
            {
                problems.push(why.unwrap_or_else(|| failure.to_string()));
            }
            Err(other) => return Err(other),
        }
    }
    Ok(problems)
}

/// Checks rows by queries. Each query selects one line for every problem.
fn by_query(connection: &Connection) -> Result<Vec<String>, Fault> {
    const QUERIES: [&str; 9] = [
        sql!(sqlite::check::missing_body),
        sql!(sqlite::check::early_output),
        sql!(sqlite::check::busy_conversation),
        sql!(sqlite::check::unassigned_rev),
        sql!(sqlite::check::owner_counts),
        sql!(sqlite::check::reserved_run),
        sql!(sqlite::check::day_sums),
        sql!(sqlite::check::step_outputs),
        sql!(sqlite::check::unread_page),
    ];
    let mut problems = Vec::new();
    for query in QUERIES {
        problems.extend(lines(connection, query)?);
    }
    Ok(problems)
}

/// Checks rows by the rules: every job must be readable, and its columns must match the values that the rules compute.
fn by_rule(connection: &Connection) -> Result<Vec<String>, Fault> {
    let mut problems = Vec::new();
    let mut statement = connection.prepare(sql!(sqlite::check::times))?;
    let mut all = statement.query([])?;
    while let Some(row) = all.next()?
        && problems.len() < MAX_PROBLEMS
    {
        let times = [row.maybe_time("expires_at")?, row.maybe_time("removable_at")?];
        match rows::whole(connection, "seq = ?1", row.get::<_, i64>(0)?) {
            Ok(Some(StoredRow { seq, record })) => {
                let key = keys::of_job(connection, seq)?;
                problems.extend(of_job(&record, key.as_ref(), times));
                match identities::of_job(connection, seq) {
                    Err(Fault::Refused(StoreError::Corrupt { at })) => problems.push(at),
                    read => drop(read?),
                }
            }
            // It has no body, which a query reports.
            Ok(None) => {}
            Err(Fault::Refused(StoreError::Corrupt { at })) => problems.push(at),
            Err(other) => return Err(other),
        }
    }
    Ok(problems)
}

fn lines(connection: &Connection, query: &str) -> Result<Vec<String>, Fault> {
    let mut statement = connection.prepare(query)?;
    let lines =
        statement.query_map([], |row| row.get(0))?.take(MAX_PROBLEMS).collect::<Result<_, _>>()?;
    Ok(lines)
}
