//! What the writer does to jobs that are there: load, ask the rules, save.

use std::time::Duration;

use outlast_core::{
    Cancelled, Claimed, Job, JobId, Lease, Profile, Record, Scope, Settlement, StoreError,
    Timestamp, WorkerId, rules,
};

use super::bodies;
use super::fault::Fault;
use super::liveness::{Liveness, Sign};
use super::rows::{self, Stored};
use super::writer::Tx;
use super::{owners, workers};

/// Gives the best claimable job to the worker.
pub(super) fn claim(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    profiles: &[Profile],
    lease: Duration,
) -> Result<Option<Claimed>, Fault> {
    workers::list(tx, worker, profiles)?;
    let now = tx.now();
    let Some(seq) = owners::next_job(tx.connection, profiles, now)? else { return Ok(None) };
    let Some(stored) = rows::whole(tx.connection, "seq = ?1", seq)? else { return Ok(None) };
    hand_over(tx, stored, worker, lease).map(Some)
}

/// Gives this very job to the worker.
pub(super) fn take(
    tx: &mut Tx<'_>,
    worker: &WorkerId,
    profiles: &[Profile],
    id: &JobId,
    lease: Duration,
) -> Result<Option<Claimed>, Fault> {
    let now = tx.now();
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let takeable = found.filter(|stored| rules::takeable(&stored.record, profiles, now));
    takeable.map(|stored| hand_over(tx, stored, worker, lease)).transpose()
}

fn hand_over(
    tx: &mut Tx<'_>,
    Stored { seq, mut record }: Stored,
    worker: &WorkerId,
    lease: Duration,
) -> Result<Claimed, Fault> {
    let now = tx.now();
    let Claimed { lease, .. } = rules::claim(&mut record, worker, now.after(lease), now);
    rows::save(tx, seq, &mut record)?;
    Ok(Claimed { job: record.job, lease })
}

/// Extends the leases that hold and returns the jobs of those that do not. Not a change: no rev.
pub(super) fn renew(
    tx: &mut Tx<'_>,
    leases: &[Lease],
    lease: Duration,
) -> Result<Vec<JobId>, Fault> {
    let until = tx.now().after(lease).as_millis();
    // The same test as `rules::check_lease`: a holder of that name under that fence.
    let mut statement = tx.connection.prepare_cached(
        "UPDATE jobs SET lease_until = ?1
         WHERE id = ?2 AND state = 'running' AND worker = ?3 AND fence = ?4",
    )?;
    let mut lost = Vec::new();
    for Lease { job, worker, fence } in leases {
        let row = (until, job.to_string(), worker.as_str(), rows::signed(fence.0));
        if statement.execute(row)? == 0 {
            lost.push(*job);
        }
    }
    Ok(lost)
}

/// A write of the worker that holds the job; `rule` refuses a stale lease.
pub(super) fn write(
    tx: &mut Tx<'_>,
    lease: &Lease,
    rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
) -> Result<(), Fault> {
    // Only a running job has a holder, so anything else is a lost lease without looking further.
    let held = rows::light(tx.connection, "id = ?1 AND state = 'running'", lease.job.to_string())?;
    let Stored { seq, mut record } = held.ok_or(StoreError::LeaseLost)?;
    rule(&mut record, tx.now())?;
    rows::save(tx, seq, &mut record)
}

/// Ends a try: state, output and the provider's last word in one write.
pub(super) fn settle(
    tx: &mut Tx<'_>,
    lease: &Lease,
    settlement: &Settlement,
) -> Result<Job, Fault> {
    let found = rows::whole(tx.connection, "id = ?1", lease.job.to_string())?;
    let Stored { seq, mut record } = found.ok_or(StoreError::LeaseLost)?;
    rules::settle(&mut record, lease, settlement, tx.now())?;
    rows::save(tx, seq, &mut record)?;
    let (output, raw) = match settlement {
        Settlement::Succeed { output, raw } => (Some(&**output), raw),
        Settlement::Fail { failure: _, raw } => (None, raw),
        Settlement::Retry { .. } | Settlement::Release => return Ok(record.job),
    };
    bodies::write(tx.connection, seq, output, raw.as_deref().map(Vec::as_slice))?;
    Ok(record.job)
}

/// Ends an unfinished job on its owner's word.
pub(super) fn cancel(tx: &mut Tx<'_>, scope: &Scope, id: &JobId) -> Result<Cancelled, Fault> {
    let now = tx.now();
    let found = rows::whole(tx.connection, "id = ?1", id.to_string())?;
    let visible = found.filter(|Stored { record: Record { job, .. }, .. }| {
        scope.sees(&job.new.owner) && !rules::expired(job, now)
    });
    let Stored { seq, mut record } = visible.ok_or(StoreError::NotFound)?;
    match rules::cancel(&mut record, now) {
        Cancelled::Already(job) => Ok(Cancelled::Already(job)),
        Cancelled::Now(_) => {
            rows::save(tx, seq, &mut record)?;
            Ok(Cancelled::Now(record.job))
        }
    }
}

/// A write to a cancelled job: what is owed, and what came of it.
pub(super) fn amend(
    tx: &mut Tx<'_>,
    id: &JobId,
    rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
) -> Result<(), Fault> {
    let found = rows::light(tx.connection, "id = ?1 AND state = 'cancelled'", id.to_string())?;
    let Stored { seq, mut record } = found.ok_or(StoreError::NotFound)?;
    rule(&mut record, tx.now())?;
    rows::save(tx, seq, &mut record)
}

/// Puts back what these workers hold and takes them off the list of the living.
pub(super) fn rescue_workers(tx: &mut Tx<'_>, workers: &[WorkerId]) -> Result<u32, Fault> {
    workers::forget(tx, workers)?;
    let mut rescued = 0;
    for worker in workers {
        let seqs: Vec<i64> = tx
            .connection
            .prepare_cached("SELECT seq FROM jobs WHERE state = 'running' AND worker = ?1")?
            .query_map([worker.as_str()], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        rescued += put_back(tx, &seqs, |_, _| true)?;
    }
    Ok(rescued)
}

/// Puts back the jobs whose lease has ended and is void.
pub(super) fn rescue_expired(tx: &mut Tx<'_>, liveness: &Liveness) -> Result<u32, Fault> {
    let seqs: Vec<i64> = tx
        .connection
        .prepare_cached("SELECT seq FROM jobs WHERE state = 'running' AND lease_until <= ?1")?
        .query_map([tx.now().as_millis()], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let is_alive = |worker: &WorkerId| liveness.sign(worker) == Sign::Alive;
    put_back(tx, &seqs, |record, now| rules::lease_is_void(record, is_alive, now))
}

fn put_back(
    tx: &mut Tx<'_>,
    seqs: &[i64],
    is_dead: impl Fn(&Record, Timestamp) -> bool,
) -> Result<u32, Fault> {
    let now = tx.now();
    let mut rescued = 0;
    for seq in seqs {
        let found = rows::light(tx.connection, "seq = ?1 AND state = 'running'", seq)?;
        let Some(Stored { seq, mut record }) = found.filter(|stored| is_dead(&stored.record, now))
        else {
            continue;
        };
        rules::rescue(&mut record, now);
        rows::save(tx, seq, &mut record)?;
        rescued += 1;
    }
    Ok(rescued)
}
