//! Idempotency keys: which job a key stands for, and which key a job has. The only file that knows their columns.

use std::time::Duration;

use outlast_core::rules::KeyRecord;
use outlast_core::{Holds, Job, JobId, Key, OwnerId, StoreError, Timestamp, rules};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::Fault;
use super::rows::{self, Stored};
use super::writer::Tx;

/// The job the key stands for, if it holds.
pub(super) fn named_by(
    connection: &Connection,
    owner: &OwnerId,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Job>, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT * FROM keys WHERE owner = ?1 AND text = ?2")?;
    let mut found = statement.query((owner.as_str(), &key.text))?;
    let Some(row) = found.next()? else { return Ok(None) };
    let (seq, record): (i64, KeyRecord) = (row.get("job")?, record(row)?);
    let Some(stored) = rows::whole(connection, "seq = ?1", seq)? else { return Ok(None) };
    let job = stored.record.job;
    if !rules::key_holds(&record, &job, now) {
        return Ok(None);
    }
    if record.input_hash != key.input_hash {
        return Err(StoreError::KeyConflict(job.id).into());
    }
    Ok(Some(job))
}

/// Makes the key stand for the job, in the place of one whose time is over.
pub(super) fn take(
    tx: &mut Tx<'_>,
    owner: &OwnerId,
    key: &Key,
    seq: i64,
    now: Timestamp,
) -> Result<(), Fault> {
    let (holds, span) = match key.holds {
        Holds::For(window) => ("for", window),
        Holds::UntilAnswered { after_end } => ("until_answered", after_end),
    };
    let before: Option<i64> = tx
        .connection
        .prepare_cached("DELETE FROM keys WHERE owner = ?1 AND text = ?2 RETURNING job")?
        .query_row((owner.as_str(), &key.text), |row| row.get(0))
        .optional()?;
    tx.connection
        .prepare_cached(
            "INSERT INTO keys (owner, text, job, input_hash, made_at, holds, span)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute((
            owner.as_str(),
            &key.text,
            seq,
            &key.input_hash[..],
            now.as_millis(),
            holds,
            rows::millis(span),
        ))?;
    match before {
        Some(seq) => rows::keep_no_longer(tx.connection, seq),
        None => Ok(()),
    }
}

/// Frees the key of a held call whose outcome a caller has received. Not a change: no rev.
pub(super) fn answered(tx: &mut Tx<'_>, id: &JobId) -> Result<(), Fault> {
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let Some(Stored { seq, record }) = found else { return Ok(()) };
    let Some(key) = of_job(tx.connection, seq)? else { return Ok(()) };
    if !rules::answer_frees(&key, &record.job) {
        return Ok(());
    }
    tx.connection.prepare_cached("DELETE FROM keys WHERE job = ?1")?.execute([seq])?;
    rows::keep_no_longer(tx.connection, seq)
}

/// The key that names the job, if there is one.
pub(super) fn of_job(connection: &Connection, seq: i64) -> Result<Option<KeyRecord>, Fault> {
    let mut statement = connection.prepare_cached("SELECT * FROM keys WHERE job = ?1")?;
    statement.query_and_then([seq], record)?.next().transpose()
}

fn record(row: &Row<'_>) -> Result<KeyRecord, Fault> {
    let damaged = |column: &str| -> Fault {
        let text: String = row.get("text").unwrap_or_default();
        StoreError::Corrupt { at: format!("{column} of key {text:?}") }.into()
    };
    let input_hash: Vec<u8> = row.get("input_hash")?;
    let span = Duration::from_millis(row.get::<_, i64>("span")?.unsigned_abs());
    Ok(KeyRecord {
        input_hash: input_hash.try_into().map_err(|_| damaged("input_hash"))?,
        made_at: Timestamp::from_millis(row.get("made_at")?),
        holds: match row.get::<_, String>("holds")?.as_str() {
            "for" => Holds::For(span),
            "until_answered" => Holds::UntilAnswered { after_end: span },
            _ => return Err(damaged("holds")),
        },
    })
}
