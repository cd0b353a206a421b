//! Inserting: key, busy conversation and quota, decided in the transaction that adds the job.

use outlast_core::{
    ConversationId, Insert, Inserted, Job, JobId, Key, OwnerId, StoreError, Timestamp, rules,
};
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::fault::Fault;
use super::rows;
use super::writer::Tx;

/// Adds a job, or finds the one its key names.
pub(super) fn insert(tx: &mut Tx<'_>, insert: Insert) -> Result<Inserted, Fault> {
    let Insert { job: new, key, max_unfinished } = insert;
    let now = tx.now();
    if let Some(key) = &key
        && let Some(job) = named_by(tx.connection, &new.owner, key, now)?
    {
        return Ok(Inserted::Existing(job));
    }
    let turn = match &new.conversation {
        Some(conversation) => next_turn(tx.connection, &new.owner, conversation)?,
        None => 1,
    };
    if unfinished(tx.connection, &new.owner)? >= i64::from(max_unfinished) {
        return Err(StoreError::TooManyJobs.into());
    }
    let mut job = rules::accept(new, JobId::new(Uuid::new_v4()), turn, now);
    let seq = rows::add(tx, &mut job, now)?;
    if let Some(key) = &key {
        take(tx.connection, &job.new.owner, key, seq, now)?;
    }
    Ok(Inserted::New(job))
}

/// The job the key stands for, if it holds: within its window, and longer while the job is unfinished.
fn named_by(
    connection: &Connection,
    owner: &OwnerId,
    key: &Key,
    now: Timestamp,
) -> Result<Option<Job>, Fault> {
    let held: Option<(i64, Vec<u8>, i64)> = connection
        .prepare_cached("SELECT job, input_hash, until FROM keys WHERE owner = ?1 AND text = ?2")?
        .query_row((owner.as_str(), &key.text), |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .optional()?;
    let Some((seq, input_hash, until)) = held else { return Ok(None) };
    let Some(stored) = rows::whole(connection, "seq = ?1", seq)? else { return Ok(None) };
    let job = stored.record.job;
    if now.as_millis() >= until && job.state.kind().is_terminal() {
        return Ok(None);
    }
    if input_hash != key.input_hash {
        return Err(StoreError::KeyConflict(job.id).into());
    }
    Ok(Some(job))
}

/// Makes the key stand for the job, in the place of one whose time is over.
fn take(
    connection: &Connection,
    owner: &OwnerId,
    key: &Key,
    seq: i64,
    now: Timestamp,
) -> Result<(), Fault> {
    connection
        .prepare_cached(
            "INSERT INTO keys (owner, text, job, input_hash, until) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (owner, text) DO UPDATE
               SET job = excluded.job, input_hash = excluded.input_hash, until = excluded.until",
        )?
        .execute((
            owner.as_str(),
            &key.text,
            seq,
            &key.input_hash[..],
            now.after(key.window).as_millis(),
        ))?;
    Ok(())
}

/// The number of the turn to come, unless the one before it is unfinished.
fn next_turn(
    connection: &Connection,
    owner: &OwnerId,
    conversation: &ConversationId,
) -> Result<u32, Fault> {
    let place = (owner.as_str(), conversation.as_str());
    let busy: Option<String> = connection
        .prepare_cached(
            "SELECT id FROM jobs
             WHERE owner = ?1 AND conversation = ?2 AND state IN ('queued', 'running')",
        )?
        .query_row(place, |row| row.get(0))
        .optional()?;
    if let Some(id) = busy {
        return Err(StoreError::ConversationBusy(rows::job_id(&id)?).into());
    }
    let last: u32 = connection
        .prepare_cached(
            "SELECT coalesce(max(turn), 0) FROM jobs WHERE owner = ?1 AND conversation = ?2",
        )?
        .query_row(place, |row| row.get(0))?;
    Ok(last + 1)
}

fn unfinished(connection: &Connection, owner: &OwnerId) -> Result<i64, Fault> {
    let count = "SELECT count(*) FROM jobs WHERE owner = ?1 AND state IN ('queued', 'running')";
    Ok(connection.prepare_cached(count)?.query_row([owner.as_str()], |row| row.get(0))?)
}
