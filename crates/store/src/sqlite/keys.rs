//! Idempotency keys: finds the job of a key and the key of a job. Only this file knows their columns.

use std::sync::LazyLock;

use outlast_core::rules::KeyRecord;
use outlast_core::{OwnerId, StoreError, Timestamp};
use rusqlite::{Connection, Params, Row, params_from_iter};

use super::fault::Fault;
use super::sql;
use crate::columns::Columns as _;
use crate::tables::{self, KEYS, insert, names};

/// Returns the number of the job that the owner's key names, and the stored key.
pub(super) fn find(
    connection: &Connection,
    owner: &OwnerId,
    text: &str,
) -> Result<Option<(i64, KeyRecord)>, Fault> {
    first(connection, sql!(sqlite::keys::find), (owner.as_str(), text))
}

/// The key that names the job, if there is one.
pub(super) fn of_job(connection: &Connection, seq: i64) -> Result<Option<KeyRecord>, Fault> {
    let found = first(connection, sql!(sqlite::keys::of_job), [seq])?;
    Ok(found.map(|(_, record)| record))
}

/// The text of the key that names the job.
pub(super) fn text_of(connection: &Connection, seq: i64) -> Result<Option<String>, Fault> {
    sql::optional(connection, sql!(sqlite::keys::text_of), [seq])
}

/// Makes the key name this job. Returns the job that it named before.
pub(super) fn put(
    connection: &Connection,
    owner: &OwnerId,
    text: &str,
    key: &KeyRecord,
    seq: i64,
) -> Result<Option<i64>, Fault> {
    static PUT: LazyLock<String> = LazyLock::new(|| insert("INSERT INTO keys", &names(KEYS)));
    let delete = sql!(sqlite::keys::put);
    let before = sql::optional(connection, delete, (owner.as_str(), text))?;
    let values = tables::key(owner, text, key, seq)?;
    sql::execute(connection, &PUT, params_from_iter(values))?;
    Ok(before)
}

/// Records the time at which a call was answered with the job's outcome.
pub(super) fn save_answered(
    connection: &Connection,
    seq: i64,
    answered_at: Option<Timestamp>,
) -> Result<(), Fault> {
    let update = sql!(sqlite::keys::save_answered);
    sql::execute(connection, update, (seq, answered_at.map(Timestamp::as_millis))).map(drop)
}

fn first(
    connection: &Connection,
    select: &str,
    parameters: impl Params,
) -> Result<Option<(i64, KeyRecord)>, Fault> {
    let mut statement = connection.prepare_cached(select)?;
    statement.query_and_then(parameters, record)?.next().transpose()
}

fn record(row: &Row<'_>) -> Result<(i64, KeyRecord), Fault> {
    let text: String = row.get("text")?;
    let key =
        row.key()?.ok_or(StoreError::Corrupt { at: format!("input_hash of key {text:?}") })?;
    Ok((row.get("job")?, key))
}
