//! Inserts jobs. The transaction that adds the job also checks the key, the conversation and the quota.

use outlast_core::rules::{Earlier, EarlierCall, IdentityRecord};
use outlast_core::{
    Checkpoint, CountedSpend, EndNotices, Insert, Inserted, Job, JobId, NewJob, Record, StoreError,
    rules,
};
use rusqlite::Connection;
use uuid::Uuid;

use super::fault::Fault;
use super::writer::Tx;
use super::{identities, keys, ledger, owners, rows, sql};
use crate::columns;

/// Counts the owner's jobs that have not ended. The statement names the index because SQLite would choose one with all of the
/// owner's jobs.
const UNFINISHED: &str =
    "SELECT count(*) FROM jobs INDEXED BY jobs_unfinished WHERE owner = ?1 AND ended_at IS NULL";

/// Adds a job, or finds the job that its key names.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    insert: Insert,
    notice: EndNotices,
) -> Result<Inserted, Fault> {
    let Insert { job: new, key, max_unfinished, max_bytes, mut takes_up, reservation, carrier } =
        insert;
    let now = tx.now();
    if let Some(key) = &key
        && let Some(EarlierCall { seq, job, key: found }) =
            identities::earlier_call(tx.connection, &new, key)?
    {
        match rules::earlier(key, &found, &job, &new, now) {
            Earlier::MakeNew(run) => takes_up = takes_up.or(run),
            Earlier::Conflict => return Err(StoreError::KeyConflict(job.id).into()),
            Earlier::Attach => {
                let job = promise(tx, seq, job, &new)?;
                return Ok(Inserted::Existing { job, key: found });
            }
        }
    }
    let turn = next_turn(tx.connection, &new)?;
    let unfinished: i64 = sql::value(tx.connection, UNFINISHED, [new.owner.as_str()])?;
    if unfinished >= i64::from(max_unfinished) {
        return Err(StoreError::TooManyJobs.into());
    }
    let bytes = rules::ask_bytes(&new);
    if !rules::has_room(owners::bytes(tx.connection, &new.owner)?, bytes, max_bytes) {
        return Err(StoreError::TooManyBytes.into());
    }
    let is_resumed = takes_up.is_some();
    let allowance = match &reservation {
        None => None,
        Some(reservation) if is_resumed => Some(rules::allowance_of_resumed(&reservation.terms)),
        Some(reservation) => {
            let mut counted = CountedSpend::default();
            if reservation.terms.limits.per_day.is_some() {
                counted.day = ledger::counted(tx.connection, &new.owner, now.day())?;
            }
            let decided = rules::may_spend(&reservation.terms, counted, now);
            Some(decided.map_err(StoreError::BudgetExceeded)?)
        }
    };
    let mut job = rules::accept(new, takes_up, JobId::new(Uuid::new_v4()), turn, now);
    job.allowance = allowance;
    let seq = rows::add(tx, None, &mut job, bytes, notice, now)?;
    if let (Some(reservation), Some(allowance), false) = (&reservation, &allowance, is_resumed) {
        let row = rules::reserve(reservation, allowance, job.id, &job.new.owner, now);
        ledger::put(tx.connection, &row)?;
    } else if let Checkpoint::Running(run) = &job.checkpoint {
        ledger::move_row(tx.connection, run, &job)?;
    }
    if let Some(identity) = key.as_ref().and_then(|key| key.identity.as_ref()) {
        let record = IdentityRecord::new(identity, &job.new, now);
        identities::put(tx.connection, &job.new.owner, &record, seq)?;
    }
    if let Some(key) = &key
        && let Some(before) = keys::put(tx.connection, &job.new.owner, key, seq, now)?
        && let Some(before) = rows::whole(tx.connection, "seq = ?1", before)?
    {
        rows::save_removable_at(tx.connection, &before, None)?;
    }
    if let Some(carrier) = &carrier {
        let mut record = Record { job, holder: None, bytes, notice };
        rules::carry(&mut record, carrier, now);
        rows::save(tx, seq, &mut record)?;
        job = record.job;
    }
    Ok(Inserted::New(job))
}

/// Turns a held job into a promised one if the call that attaches to it returns its id.
fn promise(tx: &mut Tx<'_>, seq: i64, job: Job, new: &NewJob) -> Result<Job, Fault> {
    if !rules::is_promised_by(&job, new) {
        return Ok(job);
    }
    let Some(mut stored) = rows::whole(tx.connection, "seq = ?1", seq)? else { return Ok(job) };
    rules::promise(&mut stored.record, new, tx.now());
    let NewJob { visibility, keep, .. } = &stored.record.job.new;
    let update = "UPDATE jobs SET visibility = ?2, keep = ?3 WHERE seq = ?1";
    let values = (seq, columns::word(visibility)?, keep.map(columns::millis));
    sql::execute(tx.connection, update, values)?;
    rows::save(tx, seq, &mut stored.record)?;
    Ok(stored.record.job)
}

/// Returns the number of the job's turn. Refuses it while an earlier turn of its conversation is unfinished.
fn next_turn(connection: &Connection, new: &NewJob) -> Result<u32, Fault> {
    const TURNS: &str = "FROM jobs WHERE owner = ?1 AND conversation = ?2";
    let Some(conversation) = &new.conversation else { return Ok(1) };
    let turns = (new.owner.as_str(), conversation.as_str());
    let busy = format!("SELECT id {TURNS} AND ended_at IS NULL");
    if let Some(id) = sql::optional::<String>(connection, &busy, turns)? {
        return Err(StoreError::ConversationBusy(columns::job_id(&id)?).into());
    }
    let last = format!("SELECT coalesce(max(turn), 0) {TURNS}");
    Ok(sql::value::<u32>(connection, &last, turns)? + 1)
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::open;

    #[test]
    fn an_insert_counts_only_jobs_that_have_not_ended() {
        let dir = TempDir::new().unwrap();
        let plan = sql::plan(&open::made_for_test(&dir), UNFINISHED);
        assert_eq!(plan, ["SEARCH jobs USING INDEX jobs_unfinished (owner=?)"]);
    }
}
