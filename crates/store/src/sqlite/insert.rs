//! Inserting: key, busy conversation and quota, decided in the transaction that adds the job.

use outlast_core::{ConversationId, Insert, Inserted, JobId, OwnerId, StoreError, rules};
use rusqlite::{Connection, OptionalExtension};
use uuid::Uuid;

use super::fault::Fault;
use super::keys::{self, Named};
use super::writer::Tx;
use super::{owners, rows};

/// Adds a job, or finds the one its key names.
pub(super) fn insert(tx: &mut Tx<'_>, insert: Insert) -> Result<Inserted, Fault> {
    let Insert { job: new, key, max_unfinished, max_bytes, mut takes_up } = insert;
    let now = tx.now();
    if let Some(key) = &key {
        match keys::named_by(tx.connection, key, &new, now)? {
            Named::Job(job, key) => return Ok(Inserted::Existing { job: *job, key }),
            Named::Free(left) => takes_up = takes_up.or(left),
        }
    }
    let turn = match &new.conversation {
        Some(conversation) => next_turn(tx.connection, &new.owner, conversation)?,
        None => 1,
    };
    if unfinished(tx.connection, &new.owner)? >= i64::from(max_unfinished) {
        return Err(StoreError::TooManyJobs.into());
    }
    let bytes = rules::ask_bytes(&new);
    if !rules::has_room(owners::bytes(tx.connection, &new.owner)?, bytes, max_bytes) {
        return Err(StoreError::TooManyBytes.into());
    }
    let mut job = rules::accept(new, takes_up, JobId::new(Uuid::new_v4()), turn, now);
    let seq = rows::add(tx, &mut job, bytes, now)?;
    if let Some(key) = &key {
        keys::take(tx, &job.new.owner, key, seq, now)?;
    }
    Ok(Inserted::New(job))
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
             WHERE owner = ?1 AND conversation = ?2 AND ended_at IS NULL",
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
    let count = "SELECT count(*) FROM jobs WHERE owner = ?1 AND ended_at IS NULL";
    Ok(connection.prepare_cached(count)?.query_row([owner.as_str()], |row| row.get(0))?)
}
