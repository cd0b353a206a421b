//! Idempotency keys: which job a key stands for, and which key a job has. The only file that knows their columns.

use std::time::Duration;

use outlast_core::rules::KeyRecord;
use outlast_core::{
    Job, JobId, Key, KeyLife, NewJob, OwnerId, RemoteRun, StoreError, Timestamp, rules,
};
use rusqlite::{Connection, OptionalExtension, Row};

use super::fault::Fault;
use super::rows;
use super::writer::Tx;

/// What a call under a key meets.
pub(super) enum Named {
    /// The job its key stands for.
    Job(Box<Job>, KeyRecord),
    /// None: the call makes a job of its own, which takes up this run.
    Free(Option<RemoteRun>),
}

/// What this call meets under its key.
pub(super) fn named_by(
    connection: &Connection,
    key: &Key,
    new: &NewJob,
    now: Timestamp,
) -> Result<Named, Fault> {
    let mut statement =
        connection.prepare_cached("SELECT * FROM keys WHERE owner = ?1 AND text = ?2")?;
    let mut found = statement.query((new.owner.as_str(), &key.text))?;
    let Some(row) = found.next()? else { return Ok(Named::Free(None)) };
    let (seq, record): (i64, KeyRecord) = (row.get("job")?, record(row)?);
    let Some(stored) = rows::whole(connection, "seq = ?1", seq)? else {
        return Ok(Named::Free(None));
    };
    let job = stored.record.job;
    if !rules::key_is_valid(&record, &job, now) {
        return Ok(Named::Free(rules::run_taken_up(&record, &job, new)));
    }
    if record.input_hash != key.input_hash {
        return Err(StoreError::KeyConflict(job.id).into());
    }
    Ok(Named::Job(Box::new(job), record))
}

/// Makes the key stand for the job, in the place of one whose time is over.
pub(super) fn take(
    tx: &mut Tx<'_>,
    owner: &OwnerId,
    key: &Key,
    seq: i64,
    now: Timestamp,
) -> Result<(), Fault> {
    let (holds, span, span_answered) = match key.life {
        KeyLife::For(window) => ("for", window, None),
        KeyLife::UntilAnswered { after_end } => ("until_answered", after_end, None),
        KeyLife::Replays { unanswered, answered } => ("until_answered", unanswered, Some(answered)),
    };
    let before: Option<i64> = tx
        .connection
        .prepare_cached("DELETE FROM keys WHERE owner = ?1 AND text = ?2 RETURNING job")?
        .query_row((owner.as_str(), &key.text), |row| row.get(0))
        .optional()?;
    tx.connection
        .prepare_cached(
            "INSERT INTO keys (owner, text, job, input_hash, made_at, holds, span, span_answered)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute((
            owner.as_str(),
            &key.text,
            seq,
            &key.input_hash[..],
            now.as_millis(),
            holds,
            rows::millis(span),
            span_answered.map(rows::millis),
        ))?;
    let Some(before) = before else { return Ok(()) };
    match rows::whole(tx.connection, "seq = ?1", before)? {
        Some(before) => rows::keep_by_key(tx.connection, &before, None),
        None => Ok(()),
    }
}

/// Records that a call was answered with the outcome of the job. Not a change: no rev.
pub(super) fn answered(tx: &mut Tx<'_>, id: &JobId) -> Result<(), Fault> {
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let Some(stored) = found else { return Ok(()) };
    let Some(key) = of_job(tx.connection, stored.seq)? else { return Ok(()) };
    let Some(key) = rules::record_answer(&key, &stored.record.job, tx.now()) else { return Ok(()) };
    tx.connection
        .prepare_cached("UPDATE keys SET answered_at = ?2 WHERE job = ?1")?
        .execute((stored.seq, key.answered_at.map(Timestamp::as_millis)))?;
    rows::keep_by_key(tx.connection, &stored, Some(&key))
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
    let span = |millis: i64| Duration::from_millis(millis.unsigned_abs());
    let after_end = span(row.get("span")?);
    let answered = row.get::<_, Option<i64>>("span_answered")?.map(span);
    Ok(KeyRecord {
        input_hash: input_hash.try_into().map_err(|_| damaged("input_hash"))?,
        made_at: Timestamp::from_millis(row.get("made_at")?),
        life: match row.get::<_, String>("holds")?.as_str() {
            "for" => KeyLife::For(after_end),
            "until_answered" => match answered {
                None => KeyLife::UntilAnswered { after_end },
                Some(answered) => KeyLife::Replays { unanswered: after_end, answered },
            },
            _ => return Err(damaged("holds")),
        },
        answered_at: row.get::<_, Option<i64>>("answered_at")?.map(Timestamp::from_millis),
    })
}
