//! The store of a team: one PostgreSQL database, shared by the processes of many machines.
//!
//! A step is one transaction: lock, load, ask core's rules, save. Steps of one kind that come together share one. Change
//! numbers come from a sequence with marks, so that writers do not wait for one another and readers miss nothing; a session
//! with locks proves workers alive. The server's clock dates everything.

mod connect;
mod schema;

mod tx;
mod step;
mod batch;

mod insert;
mod room;
mod ledger;
mod claims;
mod writes;
mod notices;
mod partials;
mod prune;
mod upkeep;
mod alone;
mod restore;
mod transfer;
mod reads;
mod rows;
mod words;
mod text;

mod session;
mod workers;
mod changes;
mod time;

mod fault;

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use deadpool_postgres::Pool;
use futures_util::FutureExt as _;
use outlast_core::{
    Cancelled, ChangeWait, Changes, Checkpoint, Claimed, ClaimedNotice, Clock, ConversationId,
    ConversationPage, ConversationQuery, Dead, EndNotices, Insert, Inserted, Job, JobId, JobPage,
    JobQuery, Lease, NoticeClaim, NoticeOutcome, OwnerId, Profile, Progress, Prune, Pruned, Record,
    RemoteRun, RemoteStop, Rescued, Rev, Scope, Settlement, SpendQuery, SpendSum, StateCount,
    Store, StoreError, Timestamp, WorkerId, rules,
};
use tokio::sync::{Notify, RwLock};
use tokio_util::sync::CancellationToken;

pub use session::WakeupMode;
pub(crate) use transfer::PostgresSide;
pub use upkeep::DatabaseInspection;
pub use workers::Judgement;

use crate::columns;
use batch::Queue;
use claims::Claim;
use connect::Target;
use fault::Fault;
use rows::get;
use session::{Session, Wakeups};
use step::Durability;
use text::escaped;
use time::Time;
use tx::Tx;
use workers::Suspects;
use writes::{Effect, Reads, Write, light, lost};

/// How a store is opened.
pub struct PostgresOptions {
    /// The database: `postgres://user:password@host[:port][,host...]/database?sslmode=...`.
    pub url: String,
    /// Dates everything in the place of the server's clock: for tests.
    pub clock: Option<Arc<dyn Clock>>,
    /// When a worker counts as dead.
    pub judgement: Judgement,
    /// Whether a notice is kept of every end.
    pub notices: EndNotices,
}

/// Keeps jobs in a PostgreSQL database.
pub struct PostgresStore {
    shared: Arc<Shared>,
    closed: CancellationToken,
    id: String,
}

/// The connections of one process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connections {
    /// Open connections of the pool.
    pub open: usize,
    /// Those that do nothing.
    pub idle: usize,
    /// Steps that wait for one.
    pub waiting: usize,
    /// How late other processes hear of a change of this one.
    pub lag: Duration,
}

/// What the parts of a store share.
struct Shared {
    pool: Pool,
    time: Time,
    session: Arc<Session>,
    wakeups: Arc<Wakeups>,
    suspects: Suspects,
    judgement: Judgement,
    notices: EndNotices,
    inserts: Queue<(Insert, JobId), Inserted>,
    writes: Queue<Write, (Job, Effect)>,
    notes: Queue<Write, (Job, Effect)>,
    claims: Queue<Claim, Option<Claimed>>,
    /// Told when the words of a job are to be put.
    owed_words: Arc<Notify>,
    /// Shared by answers that are being recorded; an insert waits for them, because its key may be theirs.
    answers: RwLock<()>,
}

impl PostgresStore {
    /// Connects, and makes or updates the tables.
    pub async fn open(options: PostgresOptions) -> Result<Self, StoreError> {
        let target = Arc::new(Target::parse(&options.url)?);
        let (mut client, connection) = target.connect().await?;
        let driving = tokio::spawn(connection);
        target.prepare(&client).await?;
        schema::prepare(&mut client).await?;
        alone::refuse_closed(&client).await?;
        let time = Time::of(options.clock, &client).await?;
        let id = schema::store_id(&client).await?;
        drop(client);
        driving.abort();
        let pool = target.pool()?;
        let (session, wakeups) = (Arc::new(Session::new()), Arc::new(Wakeups::new()));
        let closed = CancellationToken::new();
        let running =
            Arc::clone(&session).run(Arc::clone(&target), Arc::clone(&wakeups), closed.clone());
        tokio::spawn(running.boxed());
        let shared = Arc::new(Shared {
            pool,
            time,
            session,
            wakeups,
            suspects: Suspects::default(),
            judgement: options.judgement,
            notices: options.notices,
            inserts: OnceLock::new(),
            writes: OnceLock::new(),
            notes: OnceLock::new(),
            claims: OnceLock::new(),
            owed_words: Arc::new(Notify::new()),
            answers: RwLock::new(()),
        });
        // A store that cannot be opened ends its session when it is dropped.
        let store = Self { shared, closed, id };
        let Self { shared, closed, .. } = &store;
        shared.session.live().await?;
        shared.session.probe(&shared.pool, &shared.wakeups).await?;
        Shared::gather(shared);
        let owed_words = Arc::clone(&shared.owed_words);
        tokio::spawn(words::run(Arc::downgrade(shared), owed_words, closed.clone()).boxed());
        Ok(store)
    }

    /// Names this store, whatever its address.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// How this process hears of others.
    pub fn wakeup_mode(&self) -> WakeupMode {
        self.shared.session.mode()
    }

    /// How the connections of this process stand.
    pub fn connections(&self) -> Connections {
        let pool = self.shared.pool.status();
        Connections {
            open: pool.size,
            idle: pool.available,
            waiting: pool.waiting,
            lag: self.shared.session.lag(),
        }
    }

    /// Ends the session: this process's workers count as dead from now on.
    pub async fn close(&self) {
        self.shared.session.let_all_go().await;
        self.closed.cancel();
        self.shared.pool.close();
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.closed.cancel();
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        self.time.now()
    }
}

#[async_trait]
impl Store for PostgresStore {
    fn now(&self) -> Timestamp {
        self.shared.now()
    }

    async fn rev(&self) -> Result<Rev, StoreError> {
        self.shared.rev().await
    }

    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        drop(self.shared.answers.write().await);
        self.shared.insert(insert).await
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        self.shared.show_life(worker).await?;
        self.shared.claim(worker, profiles, lease).await
    }

    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        self.shared.show_life(worker).await?;
        self.shared.take(worker, profiles, id, lease).await
    }

    async fn orphans(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        self.shared.orphans(profiles).await
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let renewal = (leases.to_vec(), lease);
        let step = self.shared.step(Durability::Commit, renewal, |(leases, lease), tx| {
            renew(tx, leases, *lease).boxed()
        });
        Ok(step.await?.0)
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let (held, checkpoint) = (lease.clone(), checkpoint.clone());
        let write = light(&lease.job, move |record, now| {
            rules::checkpoint(record, &held, &checkpoint, now)
        });
        self.shared.write(write).await.map(drop).map_err(lost)
    }

    async fn note(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        let (held, progress) = (lease.clone(), progress.clone());
        let write =
            light(&lease.job, move |record, now| rules::note(record, &held, &progress, now));
        self.shared.show(write).await.map(drop).map_err(lost)
    }

    async fn show_text(&self, lease: &Lease, text: &str) -> Result<(), StoreError> {
        let shown = (lease.clone(), text.to_owned());
        let step = self.shared.step(Durability::Soon, shown, |(lease, text), tx| {
            partials::show(tx, lease, text).boxed()
        });
        step.await.map(drop)
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let (held, settlement) = (lease.clone(), Arc::new(settlement));
        let settled = Arc::clone(&settlement);
        let write = Write {
            reads: Reads::Whole,
            settlement: Some(settlement),
            ..light(&lease.job, move |record, now| rules::settle(record, &held, &settled, now))
        };
        self.shared.write(write).await.map(|(job, _)| job).map_err(lost)
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Cancelled, StoreError> {
        let scope = scope.clone();
        let rule = move |record: &mut Record, now| {
            let job = &record.job;
            if !scope.sees(&job.new.owner) || rules::expired(job, now) {
                return Err(StoreError::NotFound);
            }
            Ok(match rules::cancel(record, now) {
                Cancelled::Now(_) => Effect::Changed,
                Cancelled::Already(_) => Effect::LeftAlone,
            })
        };
        let write = Write { id: *id, reads: Reads::Whole, rule: Arc::new(rule), settlement: None };
        Ok(match self.shared.write(write).await? {
            (job, Effect::Changed) => Cancelled::Now(job),
            (job, Effect::LeftAlone) => Cancelled::Already(job),
        })
    }

    async fn rescue(&self, dead: &Dead) -> Result<Rescued, StoreError> {
        self.shared.rescue(dead).await
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        let run = run.clone();
        let write = light(id, move |record, now| rules::record_late_run(record, &run, now));
        self.shared.write(write).await.map(drop)
    }

    async fn owed_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        self.shared.owed_stops(profiles, limit).await
    }

    async fn record_stop(&self, id: &JobId, outcome: RemoteStop) -> Result<(), StoreError> {
        let write = light(id, move |record, now| rules::record_stop(record, outcome, now));
        self.shared.write(write).await.map(drop)
    }

    async fn claim_notice(&self, lease: Duration) -> Result<NoticeClaim, StoreError> {
        let step = self
            .shared
            .step(Durability::Commit, lease, |lease, tx| notices::claim(tx, *lease).boxed());
        Ok(step.await?.0)
    }

    async fn record_notice(
        &self,
        claimed: &ClaimedNotice,
        outcome: NoticeOutcome,
    ) -> Result<(), StoreError> {
        let recorded = (claimed.clone(), outcome);
        let step = self.shared.step(Durability::Commit, recorded, |(claimed, outcome), tx| {
            notices::record(tx, claimed, *outcome).boxed()
        });
        step.await.map(drop)
    }

    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        let _recording = self.shared.answers.read().await;
        let step = self.shared.step(Durability::Commit, *id, |id, tx| answered(tx, id).boxed());
        step.await.map(drop)
    }

    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        self.shared.has_worker(profile).await
    }

    async fn queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        self.shared.queued(profiles).await
    }

    async fn ahead(&self, id: &JobId) -> Result<u64, StoreError> {
        self.shared.ahead(id).await
    }

    async fn dismiss(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.shared.dismiss(worker).await
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        self.shared.prune(scope, prune).await
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.shared.read_job(scope, id).await
    }

    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        self.shared.list(scope, query).await
    }

    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        self.shared.turns(scope, conversation).await
    }

    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        self.shared.conversations(owner, query).await
    }

    async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError> {
        self.shared.counts(scope, at_most).await
    }

    async fn spend(&self, scope: &Scope, query: &SpendQuery) -> Result<Vec<SpendSum>, StoreError> {
        self.shared.spend(scope, query).await
    }

    async fn kept(&self, name: &str) -> Result<Option<String>, StoreError> {
        let rows = self.shared.read("select value from kept where name = $1", &[&name]).await?;
        let value = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(value.map_err(Fault::from)?)
    }

    async fn keep(&self, name: &str, value: &str) -> Result<(), StoreError> {
        const REPLACE: &str = "insert into kept (name, value) values ($1, $2)
             on conflict (name) do update set value = excluded.value";
        let kept = (name.to_owned(), value.to_owned());
        let step = self.shared.step(Durability::Commit, kept, |(name, value), tx| {
            Box::pin(async move { tx.load([(REPLACE, &[name, value])]).await.map(drop) })
        });
        step.await.map(drop)
    }

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        self.shared.changes(after, wait).await
    }
}

/// Extends the leases that hold and returns the jobs of those that do not. Not a change: no rev.
async fn renew(tx: &mut Tx, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, Fault> {
    // The same test as `rules::check_lease`. Locked in the order of arrival, as every step does.
    const RENEW: &str = "with held as (select jobs.seq from jobs
           join unnest($1::text[], $2::text[], $3::bigint[]) as lease (id, worker, fence)
             on jobs.id = lease.id and jobs.worker = lease.worker and jobs.fence = lease.fence
           where state = 'running' order by jobs.seq for update of jobs)
         update jobs set lease_until = coalesce($4::bigint, (extract(epoch from clock_timestamp()) * 1000)::bigint) + $5
         from held where jobs.seq = held.seq returning jobs.id, jobs.fence";
    let ids: Vec<String> = leases.iter().map(|lease| lease.job.to_string()).collect();
    let workers: Vec<String> = leases.iter().map(|lease| escaped(lease.worker.as_str())).collect();
    let fences: Vec<i64> = leases.iter().map(|lease| columns::signed(lease.fence.0)).collect();
    let (given, millis) = (tx.given(), columns::millis(lease));
    let [renewed] = tx.load([(RENEW, &[&ids, &workers, &fences, &given, &millis])]).await?;
    let renewed: HashSet<(String, i64)> = renewed
        .iter()
        .map(|row| Ok((get(row, "id")?, get(row, "fence")?)))
        .collect::<Result<_, Fault>>()?;
    let is_lost = |lease: &&Lease| {
        !renewed.contains(&(lease.job.to_string(), columns::signed(lease.fence.0)))
    };
    Ok(leases.iter().filter(is_lost).map(|lease| lease.job).collect())
}

/// Records that a call was answered with the outcome of the job. Not a change: no rev.
async fn answered(tx: &mut Tx, id: &JobId) -> Result<(), Fault> {
    let ids = vec![id.to_string()];
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, loaded] = tx.load([(writes::LOCK, &[&ids]), (&select, &[&ids])]).await?;
    let Some(row) = loaded.first() else { return Ok(()) };
    let stored = rows::stored(row)?;
    let Some(key) = &stored.key else { return Ok(()) };
    let Some(key) = rules::record_answer(key, &stored.record.job, tx.now()) else { return Ok(()) };
    let answered_at = key.answered_at.map(Timestamp::as_millis);
    tx.write(
        "update keys set answered_at = $2 where job = $1",
        vec![Box::new(stored.seq), Box::new(answered_at)],
    )
    .await?;
    insert::keep_by_key(tx, &stored.record.job, stored.seq, Some(&key)).await
}
