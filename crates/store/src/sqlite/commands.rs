//! The writer's steps on stored jobs: load, ask the rules, save.

use std::time::Duration;

use outlast_core::{
    CancelOutcome, ClaimedJob, EndNotices, Job, JobId, Lease, Profile, Record, Scope, Settlement,
    StoreError, Timestamp, WorkerId, rules,
};

use super::bodies;
use super::fault::Fault;
use super::liveness::Liveness;
use super::rows::{self, SaveScope, StoredRow};
use super::tx::Tx;
use super::{identities, keys, ledger, notices, owners, search, sql, worker_list};
use crate::columns;

/// Assigns the best claimable job to the worker.
pub(super) fn claim(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    profiles: &[Profile],
    lease: Duration,
) -> Result<Option<ClaimedJob>, Fault> {
    worker_list::add(tx.connection, worker, profiles)?;
    let now = tx.now();
    let Some(seq) = owners::next_job(tx.connection, profiles, now)? else { return Ok(None) };
    let Some(stored) = rows::whole(tx.connection, "seq = ?1", seq)? else { return Ok(None) };
    hand_over(tx, stored, worker, lease).map(Some)
}

/// Assigns this particular job to the worker.
pub(super) fn take(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    profiles: &[Profile],
    id: &JobId,
    lease: Duration,
) -> Result<Option<ClaimedJob>, Fault> {
    let now = tx.now();
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let takeable = found.filter(|stored| rules::is_claimable_by_id(&stored.record, profiles, now));
    takeable.map(|stored| hand_over(tx, stored, worker, lease)).transpose()
}

fn hand_over(
    tx: &mut Tx<'_>,
    StoredRow { seq, mut record }: StoredRow,
    worker: &WorkerId,
    lease: Duration,
) -> Result<ClaimedJob, Fault> {
    let now = tx.now();
    let lease = rules::claim(&mut record, worker, now.after(lease), now);
    rows::save(tx, seq, &mut record, SaveScope::BeforeEnd)?;
    Ok(ClaimedJob { job: record.job, lease })
}

/// Extends the valid leases and returns the jobs whose lease is lost. Not a change: no rev.
pub(super) fn renew(
    tx: &mut Tx<'_>,
    leases: &[Lease],
    lease: Duration,
) -> Result<Vec<JobId>, Fault> {
    let until = tx.now().after(lease).as_millis();
    // The same test as `rules::check_lease`: a holder with that name and that fence.
    let mut statement = tx.connection.prepare_cached(sql!(sqlite::commands::renew))?;
    let mut lost = Vec::new();
    for Lease { job, worker, fence } in leases {
        let row = (until, job.to_string(), worker.as_str(), columns::to_signed(fence.0));
        if statement.execute(row)? == 0 {
            lost.push(*job);
        }
    }
    Ok(lost)
}

/// Applies a write of the worker that holds the job. `rule` refuses a stale lease.
pub(super) fn write(
    tx: &mut Tx<'_>,
    id: &JobId,
    rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
) -> Result<(), Fault> {
    // Only a running job has a holder; in any other state the lease is lost.
    let held = rows::light(tx.connection, "id = ?1 AND state = 'running'", id.to_string())?;
    change(tx, held.ok_or(StoreError::LeaseLost)?, rule, SaveScope::WithinAttempt).map(drop)
}

fn change(
    tx: &mut Tx<'_>,
    StoredRow { seq, mut record }: StoredRow,
    rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
    scope: SaveScope,
) -> Result<Record, Fault> {
    rule(&mut record, tx.now())?;
    rows::save(tx, seq, &mut record, scope)?;
    Ok(record)
}

/// Stores the partial text. Not a change: no rev.
pub(super) fn show_text(tx: &Tx<'_>, lease: &Lease, text: &str) -> Result<(), Fault> {
    // The same test as `rules::check_lease`: a holder with that name and that fence.
    let upsert = sql!(sqlite::commands::show_text);
    let Lease { job, worker, fence } = lease;
    let row = (job.to_string(), worker.as_str(), columns::to_signed(fence.0), text);
    match sql::execute(tx.connection, upsert, row)? {
        0 => Err(StoreError::LeaseLost.into()),
        _ => Ok(()),
    }
}

/// Ends an attempt: stores the state, the output and the provider's raw response in one write.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    lease: &Lease,
    settlement: &Settlement,
    notices: EndNotices,
) -> Result<Job, Fault> {
    let found = rows::whole(tx.connection, "id = ?1", lease.job.to_string())?;
    let StoredRow { seq, mut record } = found.ok_or(StoreError::LeaseLost)?;
    let before = record.job.checkpoint.clone();
    rules::settle(&mut record, lease, settlement, tx.now())?;
    ledger::bind_another_run(tx, &before, &mut record)?;
    rows::save(tx, seq, &mut record, SaveScope::All)?;
    notices::add(tx, notices, &record)?;
    ledger::charge(tx, &before, &record.job)?;
    let (output, raw) = match settlement {
        Settlement::Succeed { output, raw } => (Some(&**output), raw),
        Settlement::Fail { failure: _, raw } => (None, raw),
        Settlement::Retry { .. } | Settlement::Release | Settlement::Wait => return Ok(record.job),
    };
    if output.is_some() {
        search::owe(tx.connection, seq)?;
    }
    bodies::write(tx.connection, seq, output, raw.as_deref().map(Vec::as_slice))?;
    Ok(record.job)
}

/// Ends an unfinished job.
pub(super) fn cancel(
    tx: &mut Tx<'_>,
    scope: &Scope,
    id: &JobId,
    notices: EndNotices,
) -> Result<CancelOutcome, Fault> {
    let now = tx.now();
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let visible = found.filter(|StoredRow { record: Record { job, .. }, .. }| {
        scope.sees(&job.new.owner) && !rules::is_expired(job, now)
    });
    let StoredRow { seq, mut record } = visible.ok_or(StoreError::NotFound)?;
    match rules::cancel(&mut record, now) {
        CancelOutcome::Already(job) => Ok(CancelOutcome::Already(job)),
        CancelOutcome::Now(_) => {
            rows::save(tx, seq, &mut record, SaveScope::All)?;
            notices::add(tx, notices, &record)?;
            ledger::charge(tx, &record.job.checkpoint, &record.job)?;
            Ok(CancelOutcome::Now(record.job))
        }
    }
}

/// Applies a write to a cancelled job: its pending stop, or the result of the stop.
pub(super) fn amend(
    tx: &mut Tx<'_>,
    id: &JobId,
    rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
) -> Result<(), Fault> {
    let found = rows::light(tx.connection, "id = ?1 AND state = 'cancelled'", id.to_string())?;
    let found = found.ok_or(StoreError::NotFound)?;
    let Record { job, .. } = change(tx, found, rule, SaveScope::All)?;
    ledger::charge(tx, &job.checkpoint, &job)
}

/// Records that a call was answered with the outcome of the job. Not a change: no rev.
pub(super) fn mark_answered(tx: &Tx<'_>, id: &JobId) -> Result<(), Fault> {
    let Some(stored) = rows::whole(tx.connection, "id = ?1", id.to_string())? else {
        return Ok(());
    };
    if let Some(key) = keys::of_job(tx.connection, stored.seq)?
        && let Some(key) = rules::record_answer(&key, &stored.record.job, tx.now())
    {
        keys::save_answered(tx.connection, stored.seq, key.answered_at)?;
        rows::save_removable_at(tx.connection, &stored, Some(&key))?;
    }
    if stored.record.job.state.kind().is_terminal() {
        identities::record_answer(tx.connection, stored.seq, tx.now())?;
    }
    Ok(())
}

/// Returns the jobs of these workers to the queue and removes the workers from the list.
pub(super) fn rescue_workers(tx: &mut Tx<'_>, workers: &[WorkerId]) -> Result<u32, Fault> {
    worker_list::remove(tx.connection, workers)?;
    let mut rescued = 0;
    for worker in workers {
        let select = sql!(sqlite::commands::rescue_workers);
        let seqs = sql::column(tx.connection, select, [worker.as_str()])?;
        rescued += put_back(tx, &seqs, |_| true)?;
    }
    Ok(rescued)
}

/// Returns jobs to the queue whose lease has expired and is void.
pub(super) fn rescue_expired(tx: &mut Tx<'_>, liveness: &Liveness) -> Result<u32, Fault> {
    let select = sql!(sqlite::commands::rescue_expired);
    let seqs = sql::column(tx.connection, select, [tx.now().as_millis()])?;
    let now = tx.now();
    let is_alive = |worker: &WorkerId| liveness.is_alive(worker);
    put_back(tx, &seqs, |record| rules::lease_is_void(record, is_alive, now))
}

/// Returns jobs to the queue that are recorded with a live worker that does not hold them.
pub(super) fn rescue_unheld(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    held: &[JobId],
) -> Result<u32, Fault> {
    let select = sql!(sqlite::commands::rescue_unheld);
    let (now, seqs) = (tx.now(), sql::column(tx.connection, select, [tx.now().as_millis()])?);
    put_back(tx, &seqs, |record| rules::is_unheld(record, worker, held, now))
}

fn put_back(tx: &mut Tx<'_>, seqs: &[i64], wanted: impl Fn(&Record) -> bool) -> Result<u32, Fault> {
    let mut rescued = 0;
    for seq in seqs {
        let found = rows::light(tx.connection, "seq = ?1 AND state = 'running'", seq)?;
        let Some(StoredRow { seq, mut record }) = found.filter(|stored| wanted(&stored.record))
        else {
            continue;
        };
        rules::rescue(&mut record, tx.now());
        rows::save(tx, seq, &mut record, SaveScope::BeforeEnd)?;
        rescued += 1;
    }
    Ok(rescued)
}
