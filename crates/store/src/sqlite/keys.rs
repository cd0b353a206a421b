//! Idempotency keys: which job a key names, and which key names a job. The only file that knows their columns.

use std::time::Duration;

use outlast_core::rules::KeyRecord;
use outlast_core::{Key, KeyLife, OwnerId, StoreError, Timestamp};
use rusqlite::{Connection, Params, Row};

use super::fault::Fault;
use super::sql;

/// The number of the job that the owner's key names, and the key as it is stored.
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

/// Makes the key name this job; returns the job it named before.
pub(super) fn put(
    connection: &Connection,
    owner: &OwnerId,
    key: &Key,
    seq: i64,
    now: Timestamp,
) -> Result<Option<i64>, Fault> {
    let (holds, span, span_answered) = match key.life {
        KeyLife::For(window) => ("for", window, None),
        KeyLife::UntilAnswered { after_end } => ("until_answered", after_end, None),
        KeyLife::Replays { unanswered, answered } => ("until_answered", unanswered, Some(answered)),
    };
    let delete = "DELETE FROM keys WHERE owner = ?1 AND text = ?2 RETURNING job";
    let before = sql::optional(connection, delete, (owner.as_str(), &key.text))?;
    sql::execute(
        connection,
        "INSERT INTO keys (owner, text, job, input_hash, made_at, holds, span, span_answered)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        (
            owner.as_str(),
            &key.text,
            seq,
            &key.input_hash[..],
            now.as_millis(),
            holds,
            sql::millis(span),
            span_answered.map(sql::millis),
        ),
    )?;
    Ok(before)
}

/// Records when a call was answered with the outcome of the job.
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
    let damaged = |column: &str| -> Fault {
        let text: String = row.get("text").unwrap_or_default();
        StoreError::Corrupt { at: format!("{column} of key {text:?}") }.into()
    };
    let input_hash: Vec<u8> = row.get("input_hash")?;
    let span = |millis: i64| Duration::from_millis(millis.unsigned_abs());
    let after_end = span(row.get("span")?);
    let answered = row.get::<_, Option<i64>>("span_answered")?.map(span);
    let holds: String = row.get("holds")?;
    let record = KeyRecord {
        input_hash: input_hash.try_into().map_err(|_| damaged("input_hash"))?,
        made_at: Timestamp::from_millis(row.get("made_at")?),
        life: match (holds.as_str(), answered) {
            ("for", _) => KeyLife::For(after_end),
            ("until_answered", None) => KeyLife::UntilAnswered { after_end },
            ("until_answered", Some(answered)) => {
                KeyLife::Replays { unanswered: after_end, answered }
            }
            _ => return Err(damaged("holds")),
        },
        answered_at: row.get::<_, Option<i64>>("answered_at")?.map(Timestamp::from_millis),
    };
    Ok((row.get("job")?, record))
}
