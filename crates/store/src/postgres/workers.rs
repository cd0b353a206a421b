//! Who works here, and who is dead. A free lock shows that a session ended, not that its process did: see [`Judgement`].

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::{Checkpoint, Dead, JobId, Profile, Rescued, StoreError, WorkerId, rules};
use tokio::time::Instant;

use super::Shared;
use super::fault::Fault;
use super::rows::{self, get};
use super::session::{SEEN_WITHIN, WakeupMode};
use super::step::Durability;
use super::text::{escaped, unescaped};
use super::tx::Tx;
use crate::{columns, unavailable};

/// When a worker whose lock is free counts as dead. After a restart of the database every worker looks dead to the process
/// that is back first.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// The lock must have been free for so long: a living worker has reconnected by then.
    pub free_for: Duration,
    /// The session of the process that judges must have lasted so long.
    pub session_for: Duration,
    /// The same for leases that ran out, which a living worker may not have been able to renew.
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

/// Since when each worker's lock has been seen free.
#[derive(Default)]
pub(super) struct Suspects(Mutex<HashMap<WorkerId, Instant>>);

impl Suspects {
    /// Remembers who is suspect now; those whose lock has been free for so long.
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

/// Workers on record or with jobs: whether each has a row, holds jobs, its lock is held, and it was seen within so long ($1).
const WORKERS: &str = "select coalesce(workers.worker, holders.worker) as worker, workers.nr,
       holders.worker is not null as holds_jobs, exists (select 1 from pg_locks
         where locktype = 'advisory' and objsubid = 1 and granted and mode = 'ExclusiveLock'
           and ((classid::bigint << 32) | objid::bigint) = (lock_class('workers') | workers.nr)
           and database = (select oid from pg_database where datname = current_database())) as is_locked,
       coalesce(workers.seen > (extract(epoch from clock_timestamp()) * 1000)::bigint - $1, false) as was_seen
     from workers full join (select distinct worker from jobs where state = 'running') as holders
       on holders.worker = workers.worker";

/// A row of [`WORKERS`].
struct Known {
    worker: WorkerId,
    nr: Option<i64>,
    holds_jobs: bool,
    lives: bool,
}

impl Shared {
    /// Makes sure that other processes can see the worker live before it claims.
    pub(super) async fn show_life(&self, worker: &WorkerId) -> Result<(), StoreError> {
        if self.session.is_own(worker) {
            return Ok(());
        }
        let name = escaped(worker.as_str());
        // Updated rather than left alone, so that a row made by another claim at this moment is returned too.
        let number = "insert into workers (worker) values ($1)
             on conflict (worker) do update set worker = excluded.worker returning nr";
        let rows = self.read(number, &[&name]).await?;
        let Some(row) = rows.first() else {
            return Err(unavailable("the worker could not be put on record"));
        };
        self.session.hold(worker, get(row, "nr")?).await
    }

    /// Whether a worker with this profile lives.
    pub(super) async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        let select = "select worker from worker_profiles where profile = $1";
        let name = escaped(profile.as_str());
        let rows = self.read(select, &[&name]).await?;
        let fitting: HashSet<WorkerId> = rows.iter().map(worker).collect::<Result<_, _>>()?;
        if fitting.iter().any(|worker| self.session.is_own(worker)) {
            return Ok(true);
        }
        if self.lineage.is_none() && self.is_standby().await? {
            // Locks are at the primary: a worker that is on record may live.
            return Ok(!fitting.is_empty());
        }
        let known = self.known().await?;
        Ok(known.iter().any(|known| known.lives && fitting.contains(&known.worker)))
    }

    async fn is_standby(&self) -> Result<bool, StoreError> {
        let rows = self.read("select pg_is_in_recovery() as is_standby", &[]).await?;
        Ok(rows.first().map_or(Ok(false), |row| get(row, "is_standby"))?)
    }

    /// Lets the worker's lock go, so that it counts as dead, and takes it off the record.
    pub(super) async fn dismiss(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.session.let_go(worker).await?;
        self.forget(std::slice::from_ref(worker)).await
    }

    async fn forget(&self, workers: &[WorkerId]) -> Result<(), StoreError> {
        let names: Vec<String> = workers.iter().map(|worker| escaped(worker.as_str())).collect();
        let delete = "with profiles as (delete from worker_profiles where worker = any($1::text[]))
             delete from workers where worker = any($1)";
        self.read(delete, &[&names]).await?;
        Ok(())
    }

    async fn known(&self) -> Result<Vec<Known>, StoreError> {
        let rows = self.read(WORKERS, &[&columns::millis(SEEN_WITHIN)]).await?;
        let lives = match self.session.mode() {
            WakeupMode::Sessions => "is_locked",
            WakeupMode::Looking => "was_seen",
        };
        let known = rows.iter().map(|row| {
            Ok(Known {
                worker: worker(row)?,
                nr: get(row, "nr")?,
                holds_jobs: get(row, "holds_jobs")?,
                lives: get(row, lives)?,
            })
        });
        Ok(known.collect::<Result<_, Fault>>()?)
    }

    /// Puts the jobs of dead workers back.
    pub(super) async fn rescue(self: &Arc<Self>, dead: &Dead) -> Result<Rescued, StoreError> {
        match dead {
            Dead::Proven => self.rescue_proven().await,
            Dead::LeasesExpired => {
                let stands = self.session.stands_since();
                let may_judge =
                    stands.is_some_and(|since| since.elapsed() >= self.judgement.leases_for);
                if !may_judge {
                    return Ok(Rescued { jobs: 0, watched: 1 });
                }
                let alive: HashSet<WorkerId> = self
                    .known()
                    .await?
                    .into_iter()
                    .filter(|known| known.lives)
                    .map(|known| known.worker)
                    .collect();
                let PutBack { rescued, .. } = self.put_back(Whose::LeaseExpired(alive)).await?;
                Ok(Rescued { jobs: rescued, watched: 0 })
            }
            Dead::Unheld { worker, held } => {
                let whose = Whose::Unheld { worker: worker.clone(), held: held.clone() };
                let PutBack { rescued, .. } = self.put_back(whose).await?;
                Ok(Rescued { jobs: rescued, watched: 0 })
            }
        }
    }

    async fn rescue_proven(self: &Arc<Self>) -> Result<Rescued, StoreError> {
        if self.lineage.is_none() {
            return Ok(Rescued::default());
        }
        let mut known = self.known().await?;
        known.retain(|known| !self.session.is_own(&known.worker));
        let holders = known.iter().filter(|known| known.holds_jobs).count();
        if self.session.mode() == WakeupMode::Looking {
            // Leases alone tell.
            return Ok(Rescued { jobs: 0, watched: u32::from(holders > 0) });
        }
        let stands = self.session.stands_since();
        if stands.is_none_or(|since| since.elapsed() < self.judgement.session_for) {
            // To this process every worker may look dead that is only reconnecting.
            let watched = u32::from(holders > 0);
            return Ok(Rescued { jobs: 0, watched });
        }
        let free: HashSet<WorkerId> = known
            .iter()
            .filter(|known| !known.lives && known.nr.is_some())
            .map(|known| known.worker.clone())
            .collect();
        let mut dead = self.suspects.dead(&free, self.judgement.free_for);
        // One that was taken off the record, and still has jobs.
        dead.extend(
            known.iter().filter(|known| known.nr.is_none()).map(|known| known.worker.clone()),
        );
        let (mut jobs, mut watched) = (0, 0);
        for Known { worker, nr, holds_jobs, .. } in known {
            if !dead.contains(&worker) {
                watched += u32::from(holds_jobs);
            } else if holds_jobs {
                let PutBack { rescued, left } = self.put_back(Whose::Worker(worker, nr)).await?;
                jobs += rescued;
                // Some wait for the end of their lease: worth looking again.
                watched += u32::from(left > 0);
            } else {
                self.forget(&[worker]).await?;
            }
        }
        Ok(Rescued { jobs, watched })
    }

    async fn put_back(self: &Arc<Self>, whose: Whose) -> Result<PutBack, StoreError> {
        let step = self.step(Durability::Commit, whose, |whose, tx| put_back(tx, whose).boxed());
        Ok(step.await?.0)
    }
}

/// Whose jobs are put back.
enum Whose {
    /// This worker's. With the number of its lock: only while the lock is free, which this step makes sure of, and a request on
    /// its way only once its lease has run out as well.
    Worker(WorkerId, Option<i64>),
    /// Of every worker that let a lease run out; a request on its way stays with those who live.
    LeaseExpired(HashSet<WorkerId>),
    /// Of a live worker that asks for it itself: those it does not hold, once their lease has run out.
    Unheld { worker: WorkerId, held: Vec<JobId> },
}

/// How many jobs were put back, and how many were looked at and left.
#[derive(Default)]
struct PutBack {
    rescued: u32,
    left: u32,
}

async fn put_back(tx: &mut Tx, whose: &Whose) -> Result<PutBack, Fault> {
    let (condition, name, nr) = match whose {
        Whose::Worker(worker, nr) => ("worker = $1", Some(escaped(worker.as_str())), *nr),
        Whose::LeaseExpired(_) => ("($1::text is null)", None, None),
        Whose::Unheld { worker, .. } => ("worker = $1", Some(escaped(worker.as_str())), None),
    };
    let free = "select $1::bigint is null or pg_try_advisory_xact_lock_shared(lock_class('workers') | $1) as is_free";
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
        let mut stored = rows::stored(row)?;
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
    Ok(WorkerId::new(unescaped(get(row, "worker")?)))
}
