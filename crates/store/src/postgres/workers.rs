//! Determines which workers are alive or dead. A free lock shows that a session ended, not that its process did: see
//! [`Judgement`].

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::{
    Checkpoint, JobId, Profile, RescueBy, RescueOutcome, StoreError, WorkerId, rules,
};
use tokio::time::Instant;

use super::StoreShared;
use super::fault::Fault;
use super::rows::{self, get};
use super::session::{SEEN_WITHIN, WakeupMode};
use super::step::Durability;
use super::text::{escape, unescape};
use super::tx::Tx;
use crate::{columns, unavailable};

/// The conditions under which a worker with a free lock counts as dead. After a restart of the database, every worker looks
/// dead to the process that reconnects first.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// The minimum time for which the lock must have been free. A running worker has reconnected by then.
    pub free_for: Duration,
    /// The minimum age of the session of the process that judges.
    pub session_for: Duration,
    /// The minimum age of that session for judging by expired leases, which a running worker may not have been able to renew.
    pub leases_for: Duration,
}

impl Default for Judgement {
    fn default() -> Self {
        Self {
            free_for: Duration::from_millis(500),
            session_for: Duration::from_secs(10),
            leases_for: Duration::from_secs(30),
        }
    }
}

/// The time since which each worker's lock has been free.
#[derive(Default)]
pub(super) struct Suspects(Mutex<HashMap<WorkerId, Instant>>);

impl Suspects {
    /// Records the workers whose lock is free now. Returns those whose lock has been free for at least `free_for`.
    fn dead(&self, free: &HashSet<WorkerId>, free_for: Duration) -> HashSet<WorkerId> {
        let mut suspects = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        suspects.retain(|worker, _| free.contains(worker));
        let now = Instant::now();
        let long = |since: &Instant| now.duration_since(*since) >= free_for;
        free.iter()
            .filter(|worker| long(suspects.entry((*worker).clone()).or_insert(now)))
            .cloned()
            .collect()
    }
}

/// Selects listed workers and workers with jobs: the lock's number if listed, and flags for running jobs, a held lock and a
/// heartbeat within this time ($1).
const WORKERS: &str = sql!(postgres::workers::workers);

/// A row of [`WORKERS`].
struct KnownWorker {
    worker: WorkerId,
    nr: Option<i64>,
    holds_jobs: bool,
    lives: bool,
}

impl StoreShared {
    /// Ensures that other processes can see that the worker is alive before it claims.
    pub(super) async fn show_life(&self, worker: &WorkerId) -> Result<(), StoreError> {
        if self.session.is_own(worker) {
            return Ok(());
        }
        let name = escape(worker.as_str());
        // Updated instead of ignored, so that a row created by a concurrent claim is returned too.
        let number = sql!(postgres::workers::show_life);
        let rows = self.read(number, &[&name]).await?;
        let Some(row) = rows.first() else {
            return Err(unavailable("the worker could not be put on record"));
        };
        self.session.hold(worker, get(row, "nr")?).await
    }

    /// Returns true if a worker with this profile is alive.
    pub(super) async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        let select = sql!(postgres::workers::has_worker);
        let name = escape(profile.as_str());
        let rows = self.read(select, &[&name]).await?;
        let fitting: HashSet<WorkerId> = rows.iter().map(worker).collect::<Result<_, _>>()?;
        if fitting.iter().any(|worker| self.session.is_own(worker)) {
            return Ok(true);
        }
        if self.lineage.is_none() && self.is_standby().await? {
            // Locks exist only on the primary: a listed worker may be alive.
            return Ok(!fitting.is_empty());
        }
        let known = self.list_known().await?;
        Ok(known.iter().any(|known| known.lives && fitting.contains(&known.worker)))
    }

    async fn is_standby(&self) -> Result<bool, StoreError> {
        let rows = self.read(sql!(postgres::workers::is_standby), &[]).await?;
        Ok(rows.first().map_or(Ok(false), |row| get(row, "is_standby"))?)
    }

    /// Releases the worker's lock, so that the worker counts as dead, and removes the worker from the list.
    pub(super) async fn dismiss(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.session.let_go(worker).await?;
        self.forget(std::slice::from_ref(worker)).await
    }

    async fn forget(&self, workers: &[WorkerId]) -> Result<(), StoreError> {
        let names: Vec<String> = workers.iter().map(|worker| escape(worker.as_str())).collect();
        let delete = sql!(postgres::workers::forget);
        self.read(delete, &[&names]).await?;
        Ok(())
    }

    async fn list_known(&self) -> Result<Vec<KnownWorker>, StoreError> {
        let rows = self.read(WORKERS, &[&columns::millis(SEEN_WITHIN)]).await?;
        let lives = match self.session.mode() {
            WakeupMode::Sessions => "is_locked",
            WakeupMode::Looking => "was_seen",
        };
        let known = rows.iter().map(|row| {
            Ok(KnownWorker {
                worker: worker(row)?,
                nr: get(row, "nr")?,
                holds_jobs: get(row, "holds_jobs")?,
                lives: get(row, lives)?,
            })
        });
        Ok(known.collect::<Result<_, Fault>>()?)
    }

    /// Returns the jobs of dead workers to the queue.
    pub(super) async fn rescue(
        self: &Arc<Self>,
        dead: &RescueBy,
    ) -> Result<RescueOutcome, StoreError> {
        match dead {
            RescueBy::DeadProcess => self.rescue_proven().await,
            RescueBy::ExpiredLease => {
                let stands = self.session.stands_since();
                let may_judge =
                    stands.is_some_and(|since| since.elapsed() >= self.judgement.leases_for);
                if !may_judge {
                    return Ok(RescueOutcome { jobs: 0, watched: 1 });
                }
                let alive: HashSet<WorkerId> = self
                    .list_known()
                    .await?
                    .into_iter()
                    .filter(|known| known.lives)
                    .map(|known| known.worker)
                    .collect();
                let PutBack { rescued, .. } = self.put_back(Whose::LeaseExpired(alive)).await?;
                Ok(RescueOutcome { jobs: rescued, watched: 0 })
            }
            RescueBy::UnheldByWorker { worker, held } => {
                let whose = Whose::Unheld { worker: worker.clone(), held: held.clone() };
                let PutBack { rescued, .. } = self.put_back(whose).await?;
                Ok(RescueOutcome { jobs: rescued, watched: 0 })
            }
        }
    }

    async fn rescue_proven(self: &Arc<Self>) -> Result<RescueOutcome, StoreError> {
        if self.lineage.is_none() {
            return Ok(RescueOutcome::default());
        }
        let mut known = self.list_known().await?;
        known.retain(|known| !self.session.is_own(&known.worker));
        let holders = known.iter().filter(|known| known.holds_jobs).count();
        if self.session.mode() == WakeupMode::Looking {
            // Only leases show which workers are alive.
            return Ok(RescueOutcome { jobs: 0, watched: u32::from(holders > 0) });
        }
        let stands = self.session.stands_since();
        if stands.is_none_or(|since| since.elapsed() < self.judgement.session_for) {
            // A worker that is only reconnecting may look dead to this process.
            let watched = u32::from(holders > 0);
            return Ok(RescueOutcome { jobs: 0, watched });
        }
        let free: HashSet<WorkerId> = known
            .iter()
            .filter(|known| !known.lives && known.nr.is_some())
            .map(|known| known.worker.clone())
            .collect();
        let mut dead = self.suspects.dead(&free, self.judgement.free_for);
        // Workers that were removed from the list and still have jobs.
        dead.extend(
            known.iter().filter(|known| known.nr.is_none()).map(|known| known.worker.clone()),
        );
        let (mut jobs, mut watched) = (0, 0);
        for KnownWorker { worker, nr, holds_jobs, .. } in known {
            if !dead.contains(&worker) {
                watched += u32::from(holds_jobs);
            } else if holds_jobs {
                let PutBack { rescued, left } = self.put_back(Whose::Worker(worker, nr)).await?;
                jobs += rescued;
                // Some jobs wait for their lease to expire, so another rescue is useful.
                watched += u32::from(left > 0);
            } else {
                self.forget(&[worker]).await?;
            }
        }
        Ok(RescueOutcome { jobs, watched })
    }

    async fn put_back(self: &Arc<Self>, whose: Whose) -> Result<PutBack, StoreError> {
        let step = self.step(Durability::Commit, whose, |whose, tx| put_back(tx, whose).boxed());
        Ok(step.await?.0)
    }
}

/// The jobs to return to the queue.
enum Whose {
    /// The jobs of this worker. With the number of its lock: only while the lock is free, which this step verifies; a job
    /// whose request may be on its way also waits until its lease has expired.
    Worker(WorkerId, Option<i64>),
    /// The jobs of all workers that let a lease expire. A job whose request may be on its way stays with its worker if the
    /// worker is alive.
    LeaseExpired(HashSet<WorkerId>),
    /// The jobs that a live worker does not hold, after their leases have expired. The worker itself asks for this.
    Unheld { worker: WorkerId, held: Vec<JobId> },
}

/// The number of jobs returned to the queue, and the number of jobs examined and left.
#[derive(Default)]
struct PutBack {
    rescued: u32,
    left: u32,
}

async fn put_back(tx: &mut Tx, whose: &Whose) -> Result<PutBack, Fault> {
    let (condition, name, nr) = match whose {
        Whose::Worker(worker, nr) => ("worker = $1", Some(escape(worker.as_str())), *nr),
        Whose::LeaseExpired(_) => ("($1::text is null)", None, None),
        Whose::Unheld { worker, .. } => ("worker = $1", Some(escape(worker.as_str())), None),
    };
    let free = sql!(postgres::workers::put_back);
    let lock = format!(
        "select seq from jobs where state = 'running' and {condition}
           and ($2::bigint is null or lease_until <= $2) order by seq for update skip locked"
    );
    let [free] = tx.load([(free, &[&nr])]).await?;
    if !free.first().map_or(Ok(false), |row| get::<bool>(row, "is_free"))? {
        return Ok(PutBack::default());
    }
    let until = match whose {
        Whose::Worker(..) => None,
        Whose::LeaseExpired(_) | Whose::Unheld { .. } => Some(tx.now().as_millis()),
    };
    let [locked] = tx.load([(&lock, &[&name, &until])]).await?;
    let seqs: Vec<i64> = locked.iter().map(|row| get(row, "seq")).collect::<Result<_, _>>()?;
    let select =
        format!("{} where jobs.seq = any($1::bigint[]) and state = 'running'", rows::LIGHT);
    let [loaded] = tx.load([(&select, &[&seqs])]).await?;
    let mut put_back = PutBack::default();
    for row in &loaded {
        let mut stored = rows::read_stored(row)?;
        let now = tx.now();
        let goes = match whose {
            Whose::Worker(_, None) => true,
            Whose::Worker(_, Some(_)) => {
                let is_beginning =
                    matches!(stored.record.job.checkpoint, Checkpoint::Beginning { .. });
                !is_beginning || rules::lease_is_void(&stored.record, |_| false, now)
            }
            Whose::LeaseExpired(alive) => {
                rules::lease_is_void(&stored.record, |worker| alive.contains(worker), now)
            }
            Whose::Unheld { worker, held } => rules::is_unheld(&stored.record, worker, held, now),
        };
        if goes {
            rules::rescue(&mut stored.record, now);
            rows::save(tx, stored.seq, &stored.record, stored.key.as_ref()).await?;
            put_back.rescued += 1;
        } else {
            put_back.left += 1;
        }
    }
    Ok(put_back)
}

fn worker(row: &tokio_postgres::Row) -> Result<WorkerId, Fault> {
    Ok(WorkerId::new(unescape(get(row, "worker")?)))
}
