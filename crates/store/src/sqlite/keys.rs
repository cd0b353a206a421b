//! Idempotency keys: finds the job of a key and the key of a job. Only this file knows their columns.

use outlast_core::rules::KeyRecord;
use outlast_core::{OwnerId, StoreError, Timestamp};
use rusqlite::{Connection, Params, Row};

use super::fault::Fault;
use super::sql;
use crate::columns::{Columns as _, key_life};

/// Returns the number of the job that the owner's key names, and the stored key.
pub(super) fn find(
    connection: &Connection,
    owner: &OwnerId,
    text: &str,
) -> Result<Option<(i64, KeyRecord)>, Fault> {
    first(connection, "SELECT * FROM keys WHERE owner = ?1 AND text = ?2", (owner.as_str(), text))
}

/// The key that names the job, if there is one.
pub(super) fn of_job(connection: &Connection, seq: i64) -> Result<Option<KeyRecord>, Fault> {
    let found = first(connection, "SELECT * FROM keys WHERE job = ?1", [seq])?;
    Ok(found.map(|(_, record)| record))
}

/// The text of the key that names the job.
pub(super) fn text_of(connection: &Connection, seq: i64) -> Result<Option<String>, Fault> {
    sql::optional(connection, "SELECT text FROM keys WHERE job = ?1", [seq])
}

/// Makes the key name this job. Returns the job that it named before.
pub(super) fn put(
    connection: &Connection,
    owner: &OwnerId,
    text: &str,
    key: &KeyRecord,
    seq: i64,
) -> Result<Option<i64>, Fault> {
    let (holds, span, span_answered) = key_life(key.life);
    let delete = "DELETE FROM keys WHERE owner = ?1 AND text = ?2 RETURNING job";
    let before = sql::optional(connection, delete, (owner.as_str(), text))?;
    sql::execute(
        connection,
        "INSERT INTO keys (owner, text, job, input_hash, made_at, holds, span, span_answered, answered_at)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        (
            owner.as_str(),
            text,
            seq,
            &key.input_hash[..],
            key.made_at.as_millis(),
            holds,
            span,
            span_answered,
            key.answered_at.map(Timestamp::as_millis),
        ),
    )?;
    Ok(before)
}

/// Records the time at which a call was answered with the job's outcome.
pub(super) fn save_answered(
    connection: &Connection,
    seq: i64,
    answered_at: Option<Timestamp>,
) -> Result<(), Fault> {
    let update = "UPDATE keys SET answered_at = ?2 WHERE job = ?1";
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
