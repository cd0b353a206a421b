//! Inserts jobs. The transaction that adds the job also checks the key, the conversation and the quota.

use outlast_core::rules::{AdmittedRows, EarlierCall, FirstCharge, OwnerUsage};
use outlast_core::{EndNotices, Insert, InsertOutcome, Job, JobId, NewJob, Timestamp, rules};
use rusqlite::Connection;
use uuid::Uuid;

use super::fault::Fault;
use super::rows::{self, FirstState, SaveScope};
use super::tx::Tx;
use super::{identities, journal, keys, ledger, owners, search, sql};
use crate::columns;

/// Counts the owner's jobs that have not ended. The statement names the index because SQLite would choose one with all of the
/// owner's jobs.
const UNFINISHED: &str = sql!(sqlite::insert::unfinished);

/// Adds a job, or finds the job that its key names.
pub(super) fn insert(
    tx: &mut Tx<'_>,
    mut insert: Insert,
    notice: EndNotices,
) -> Result<InsertOutcome, Fault> {
    let now = tx.now();
    if let Some(key) = &insert.key
        && let Some(found) = identities::earlier_call(tx.connection, &insert.job, key)?
        && let Some(EarlierCall { seq, job, key }) = rules::attach(&mut insert, found, now)?
    {
        let job = promise(tx, seq, job, &insert.job)?;
        return Ok(InsertOutcome::Existing { job, key });
    }
    let taken = match insert.takeover {
        Some(takeover) => journal::run_left(tx.connection, takeover, &insert.job)?,
        None => None,
    };
    let run_left = taken.as_ref().map(|taken| taken.left.clone());
    let usage = OwnerUsage { run_left, ..usage(tx.connection, &insert, now)? };
    let initial_worker = insert.initial_worker.take();
    let admitted = rules::admit(insert, &usage, JobId::new(Uuid::new_v4()), notice, now)?;
    let AdmittedRows { mut record, charge, key, identity } = admitted;
    let first = match &initial_worker {
        Some(initial_worker) => {
            rules::claim_on_insert(&mut record, initial_worker, now);
            FirstState::Claimed
        }
        None => FirstState::Queued,
    };
    let seq = rows::add(tx, None, &mut record, first)?;
    search::owe(tx.connection, seq)?;
    let job = &record.job;
    let owner = &job.new.owner;
    match charge {
        FirstCharge::None => {}
        FirstCharge::Reserve(row) => ledger::put(tx.connection, &row)?,
        FirstCharge::Move(run) => ledger::move_row(tx.connection, &run, job)?,
        FirstCharge::Replace(row) => {
            if let Some(before) = taken.as_ref().and_then(|taken| taken.left.row.as_ref()) {
                ledger::remove(tx.connection, before)?;
            }
            ledger::put(tx.connection, &row)?;
        }
    }
    if let Some(identity) = identity {
        identities::put(tx.connection, owner, &identity, seq)?;
    }
    if let Some((text, key)) = key
        && let Some(before) = keys::put(tx.connection, owner, &text, &key, seq)?
        && let Some(before) = rows::whole(tx.connection, "seq = ?1", before)?
    {
        rows::save_removable_at(tx.connection, &before, None)?;
    }
    if let Some(taken) = taken {
        journal::move_to(tx, taken, seq)?;
    }
    Ok(InsertOutcome::New(record.job))
}

/// Reads what decides about a new job.
fn usage(connection: &Connection, insert: &Insert, now: Timestamp) -> Result<OwnerUsage, Fault> {
    const TURNS: &str = "FROM jobs WHERE owner = ?1 AND conversation = ?2";
    let NewJob { owner, conversation, subject, .. } = &insert.job;
    let mut usage = OwnerUsage {
        unfinished: sql::value::<i64>(connection, UNFINISHED, [owner.as_str()])?.unsigned_abs(),
        bytes: owners::bytes(connection, owner)?,
        ..OwnerUsage::default()
    };
    if let Some(subject) = subject {
        let select = sql!(sqlite::insert::has_subject);
        let found: bool = sql::value(connection, select, (subject.to_string(), owner.as_str()))?;
        usage.lacks_subject = !found;
    }
    if let Some(conversation) = conversation {
        let turns = (owner.as_str(), conversation.as_str());
        let busy = format!("SELECT id {TURNS} AND ended_at IS NULL");
        let busy = sql::optional::<String>(connection, &busy, turns)?;
        usage.busy = busy.map(|id| columns::job_id(&id)).transpose()?;
        let last = format!("SELECT coalesce(max(turn), 0) {TURNS}");
        usage.last_turn = sql::value(connection, &last, turns)?;
    }
    if rules::counts_toward_day(insert) {
        usage.spent_today = ledger::sum_of_day(connection, owner, now.day())?;
    }
    Ok(usage)
}

/// Turns a held job into a promised one if the call that attaches to it returns its id.
fn promise(tx: &mut Tx<'_>, seq: i64, job: Job, new: &NewJob) -> Result<Job, Fault> {
    if !rules::is_promised_by(&job, new) {
        return Ok(job);
    }
    let Some(mut stored) = rows::whole(tx.connection, "seq = ?1", seq)? else { return Ok(job) };
    rules::promise(&mut stored.record, new, tx.now());
    let NewJob { visibility, keep, .. } = &stored.record.job.new;
    let update = sql!(sqlite::insert::promise);
    let values = (seq, columns::word(visibility)?, keep.map(columns::millis));
    sql::execute(tx.connection, update, values)?;
    rows::save(tx, seq, &mut stored.record, SaveScope::All)?;
    Ok(stored.record.job)
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
