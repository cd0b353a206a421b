//! The permanent connection of a process. It holds the locks that prove that the process's workers are alive, receives
//! notifications of other processes' changes and sends notifications of this process's changes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use deadpool_postgres::Pool;
use outlast_core::{StoreError, WorkerId};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_postgres::{AsyncMessage, Client};
use tokio_util::sync::CancellationToken;

use super::connect::DatabaseTarget;
use super::fault::{Fault, within};
use crate::copy_side::IS_CLOSED;
use crate::unavailable;

/// The name of the channel for changes.
const CHANNEL: &str = sql!(postgres::session::channel);
const CHANNEL_NAME: &str = "'outlast_' || 'revs'::regclass::oid";

/// No write of this connection needs to be durable. The server commits each NOTIFY separately, one after the other for all
/// sessions, so waiting for the disk would delay all of them.
const NEED_NOT_LAST: &str = "set synchronous_commit = off";

/// Excludes commands that need the store exclusively: see `alone`.
const IN_USE: &str = sql!(postgres::session::in_use);
const TRY_IN_USE: &str = sql!(postgres::session::try_in_use);

/// The time for which a claim waits for the session to return.
const WAIT: Duration = Duration::from_secs(5);

/// The pause between the end of a connection and the next attempt, doubled while attempts fail.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// The time for which a probe waits to be received.
const PROBE_WAIT: Duration = Duration::from_secs(1);

/// The interval of the heartbeats of a process's workers, if no lock proves that they are alive.
const SHOW_LIFE_EVERY: Duration = Duration::from_secs(10);

/// The longest time for which a missing response is not reported.
const MAX_PATIENCE: Duration = Duration::from_secs(10);

/// A response as recent as this shows that the database still responds.
const FRESH: Duration = Duration::from_secs(1);

/// A worker without a heartbeat for this long may be dead: the length of a lease.
pub(super) const SEEN_WITHIN: Duration = Duration::from_secs(30);

/// The way in which processes learn of each other's changes and exits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WakeupMode {
    /// By LISTEN, and by locks that last as long as a connection.
    Sessions,
    /// By polling, and by leases: this process has no dedicated connection to the database, for example because a pooler
    /// assigns connections per transaction.
    Looking,
}

/// Notifies waiting readers that something may have changed.
pub(super) struct Wakeups {
    /// Counts the notifications received.
    heard: watch::Sender<u64>,
    /// Signals own commits of which others must be notified.
    tell: Notify,
}

impl Wakeups {
    pub(super) fn new() -> Self {
        Self { heard: watch::Sender::new(0), tell: Notify::new() }
    }

    /// Records that this process committed a change.
    pub(super) fn note_commit(&self) {
        self.hear();
        self.tell.notify_one();
    }

    /// Returns a receiver for the notifications from now on.
    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.heard.subscribe()
    }

    fn hear(&self) {
        self.heard.send_modify(|count| *count += 1);
    }
}

/// The session, which may use several connections one after the other.
pub(super) struct Session {
    live: watch::Sender<Option<Live>>,
    mode: OnceLock<WakeupMode>,
    /// The time that the latest notification of other processes took.
    told_in: Mutex<Duration>,
    /// The time since which there is no connection; `None` while connected and until the first attempt has ended.
    down_since: Mutex<Option<Instant>>,
    /// The time of the request to which the database has not responded for too long.
    silent_since: Mutex<Option<Instant>>,
    /// The time of the latest response, and the signal that it or the silence has changed.
    answered: watch::Sender<Option<Instant>>,
    /// Requests a check that the database still responds.
    check_wanted: Notify,
    /// The time of the latest recovery from such a silence.
    recovered_at: Mutex<Option<Instant>>,
    /// The latest probe that was received.
    probed: watch::Sender<String>,
    /// The workers of this process, with the numbers of their locks.
    own: Mutex<HashMap<WorkerId, i64>>,
    /// Held while locks are taken, by a new session or for a new worker.
    holding: tokio::sync::Mutex<()>,
    /// The time limit of each statement.
    limit: Duration,
}

/// An established connection.
#[derive(Clone)]
pub(super) struct Live {
    client: Arc<Client>,
    pub(super) since: Instant,
}

impl Session {
    pub(super) fn new(limit: Duration) -> Self {
        Self {
            limit,
            live: watch::Sender::new(None),
            mode: OnceLock::new(),
            told_in: Mutex::default(),
            down_since: Mutex::default(),
            silent_since: Mutex::default(),
            answered: watch::Sender::default(),
            check_wanted: Notify::new(),
            recovered_at: Mutex::default(),
            probed: watch::Sender::default(),
            own: Mutex::default(),
            holding: tokio::sync::Mutex::default(),
        }
    }

    /// Keeps the session connected until the store is closed.
    pub(super) async fn run(
        self: Arc<Self>,
        target: Arc<DatabaseTarget>,
        wakeups: Arc<Wakeups>,
        closed: CancellationToken,
    ) {
        let mut pause = FIRST_PAUSE;
        loop {
            let ended = tokio::select! {
                () = closed.cancelled() => return,
                ended = self.last(&target, &wakeups, &closed) => ended,
            };
            let stood = self.live.send_replace(None).map(|live| live.since.elapsed());
            lock_mutex(&self.down_since).get_or_insert_with(Instant::now);
            self.answered.send_modify(|_| {});
            // Changes of the meantime are read again.
            wakeups.hear();
            if let Err(fault) = ended {
                let is_silent = lock_mutex(&self.silent_since).is_some();
                if stood.is_some() && !is_silent {
                    tracing::warn!(error = %fault.describe(), "lost the session with the database; reconnecting");
                } else {
                    tracing::debug!(error = %fault.describe(), "failed to open a session with the database");
                }
            }
            // A worker that reconnects soon is not considered dead.
            let was_up = stood.is_some_and(|stood| stood >= pause);
            pause = if was_up { FIRST_PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
            tokio::select! {
                () = closed.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Runs one connection from its beginning to its end.
    async fn last(
        &self,
        target: &DatabaseTarget,
        wakeups: &Wakeups,
        closed: &CancellationToken,
    ) -> Result<(), Fault> {
        let (client, mut connection) = target.connect().await?;
        let client = Arc::new(client);
        let heard = Arc::clone(&client);
        let mut driving = std::pin::pin!(async {
            while let Some(message) =
                std::future::poll_fn(|context| connection.poll_message(context)).await
            {
                match message? {
                    AsyncMessage::Notification(told) if told.payload().is_empty() => wakeups.hear(),
                    AsyncMessage::Notification(told) => {
                        self.probed.send_replace(told.payload().to_owned());
                    }
                    AsyncMessage::Notice(notice) => tracing::debug!(%notice, "the database says"),
                    _ => {}
                }
            }
            Ok::<(), Fault>(())
        });
        let mut telling = std::pin::pin!(async {
            let channel = within(self.limit, self.begin(&heard, target)).await?;
            wakeups.hear();
            loop {
                match self.mode() {
                    WakeupMode::Sessions => {
                        tokio::select! {
                            () = wakeups.tell.notified() => {}
                            () = self.check_wanted.notified() => {
                                self.watch(heard.batch_execute("")).await?;
                                continue;
                            }
                        }
                        let begun = Instant::now();
                        let notify = sql!(postgres::session::last);
                        self.watch(heard.execute(notify, &[&channel])).await?;
                        *lock_mutex(&self.told_in) = begun.elapsed();
                    }
                    WakeupMode::Looking => {
                        let wanted = self.check_wanted.notified();
                        let _ = tokio::time::timeout(SHOW_LIFE_EVERY, wanted).await;
                        self.watch(self.say_alive(&heard)).await?;
                    }
                }
            }
        });
        let ended: Result<(), Fault> = tokio::select! {
            ended = &mut driving => ended,
            ended = &mut telling => ended,
            () = closed.cancelled() => Ok(()),
        };
        ended
    }

    /// The time after which a missing response is reported.
    fn patience(&self) -> Duration {
        (self.limit / 3).min(MAX_PATIENCE)
    }

    /// Checks that the database responds, unless it did so a moment ago. Returns when it has responded or counts as silent.
    /// Without a caller of this and without work, an unresponsive database is not noticed: an idle process sends nothing.
    pub(super) async fn check(&self) {
        let recent = Instant::now().checked_sub(FRESH);
        let is_known = |at: &Option<Instant>| *at > recent || self.silent_for().is_some();
        let mut answered = self.answered.subscribe();
        if !is_known(&answered.borrow()) {
            self.want_check();
            // Longer than the patience with this check and with a request before it.
            let limit = 3 * self.patience();
            let _ = tokio::time::timeout(limit, answered.wait_for(is_known)).await;
        }
    }

    /// Requests a check whose result is logged, and waits for nothing.
    pub(super) fn want_check(&self) {
        self.check_wanted.notify_one();
    }

    /// Waits for a response, and reports an unresponsive database long before the connection is given up.
    async fn watch<T, E: Into<Fault>>(
        &self,
        answer: impl Future<Output = Result<T, E>>,
    ) -> Result<T, Fault> {
        let asked = Instant::now();
        let mut answer = std::pin::pin!(within(self.limit, answer));
        let soon = tokio::time::timeout(self.patience(), &mut answer).await;
        let answered = match soon {
            Ok(answered) => answered,
            Err(_) => {
                self.fall_silent(asked);
                answer.await
            }
        };
        if answered.is_ok() {
            self.end_silence();
        }
        answered
    }

    fn fall_silent(&self, since: Instant) {
        let mut silent_since = lock_mutex(&self.silent_since);
        if silent_since.is_none() {
            *silent_since = Some(since);
            drop(silent_since);
            self.answered.send_modify(|_| {});
            let seconds = since.elapsed().as_secs_f32();
            tracing::warn!(
                "the database does not answer, for {seconds:.1} s now; calls are refused until it does"
            );
        }
    }

    fn end_silence(&self) {
        let (silent, down) =
            (lock_mutex(&self.silent_since).take(), lock_mutex(&self.down_since).take());
        if let Some(since) = silent.into_iter().chain(down).min() {
            *lock_mutex(&self.recovered_at) = Some(Instant::now());
            let seconds = since.elapsed().as_secs_f32();
            tracing::info!("the database answers again, after {seconds:.1} s");
        }
        self.answered.send_replace(Some(Instant::now()));
    }

    /// The time for which the database has not responded to a request, or this process has had no connection.
    pub(super) fn silent_for(&self) -> Option<Duration> {
        let since = [*lock_mutex(&self.silent_since), *lock_mutex(&self.down_since)];
        since.into_iter().flatten().min().map(|since| since.elapsed())
    }

    /// The time since the database responded again after a silence.
    pub(super) fn time_since_recovery(&self) -> Option<Duration> {
        lock_mutex(&self.recovered_at).map(|at| at.elapsed())
    }

    /// Takes the locks of this process's workers first, then listens.
    async fn begin(&self, client: &Arc<Client>, target: &DatabaseTarget) -> Result<String, Fault> {
        target.prepare(client).await?;
        client.batch_execute(NEED_NOT_LAST).await?;
        let _no_new_worker = self.holding.lock().await;
        // Not before the first probe: behind a pooler the lock would stay on a connection that others get.
        if self.mode.get() == Some(&WakeupMode::Sessions) {
            let numbers: Vec<i64> = self.own().values().copied().collect();
            for nr in numbers {
                lock(client, nr).await?;
            }
            client.batch_execute(IN_USE).await?;
        }
        let channel: String = client.query_one(CHANNEL, &[]).await?.try_get(0)?;
        match client.batch_execute(&format!("listen {channel}")).await {
            Err(error) if error.code().is_some() => self.look_from_now_on(),
            listening => listening?,
        }
        self.live.send_replace(Some(Live { client: Arc::clone(client), since: Instant::now() }));
        self.end_silence();
        Ok(channel)
    }

    /// The way in which this process receives changes of other processes.
    pub(super) fn mode(&self) -> WakeupMode {
        self.mode.get().copied().unwrap_or(WakeupMode::Sessions)
    }

    fn look_from_now_on(&self) {
        if self.mode.set(WakeupMode::Looking).is_ok() {
            tracing::warn!(
                "the database gives this process no connection for itself (a pooler?): changes are looked for, and dead \
                 workers are known by their leases alone"
            );
        }
    }

    /// Tests that the session has a dedicated connection: that it receives the notifications of another connection, and that
    /// its lock excludes that connection.
    pub(super) async fn probe(&self, pool: &Pool, wakeups: &Wakeups) -> Result<(), StoreError> {
        let mut probed = self.probed.subscribe();
        let lasts = async {
            let token = i64::from(uuid::Uuid::new_v4().as_fields().0) + 2;
            let session = self.live().await?.client;
            let other = pool.get().await?;
            let payload = token.to_string();
            other.execute(&format!("select pg_notify({CHANNEL_NAME}, $1)"), &[&payload]).await?;
            let heard = probed.wait_for(|heard| *heard == payload);
            if !matches!(tokio::time::timeout(PROBE_WAIT, heard).await, Ok(Ok(_))) {
                // A broken connection received nothing either.
                session.batch_execute("select 1").await?;
                return Ok(false);
            }
            session.execute(sql!(postgres::session::probe_select), &[&token]).await?;
            let take = sql!(postgres::session::probe_take);
            let is_given: bool = other.query_one(take, &[&token]).await?.try_get(0)?;
            let unlock = sql!(postgres::session::probe_unlock);
            session.execute(unlock, &[&token]).await?;
            Ok::<_, Fault>(!is_given)
        };
        if !lasts.await? {
            self.look_from_now_on();
        }
        if *self.mode.get_or_init(|| WakeupMode::Sessions) == WakeupMode::Looking {
            // From now on the session sends heartbeats for this process's workers.
            wakeups.tell.notify_one();
            return Ok(());
        }
        let session = self.live().await?.client;
        let row = session.query_one(TRY_IN_USE, &[]).await.map_err(Fault::from)?;
        if row.try_get(0).map_err(Fault::from)? { Ok(()) } else { Err(unavailable(IS_CLOSED)) }
    }

    /// Sends a heartbeat for this process's workers, if no lock proves that they are alive.
    async fn say_alive(&self, client: &Client) -> Result<(), Fault> {
        let numbers: Vec<i64> = self.own().values().copied().collect();
        let update = sql!(postgres::session::say_alive);
        client.execute(update, &[&numbers]).await?;
        Ok(())
    }

    /// Returns the session, if it is connected or connects soon.
    pub(super) async fn live(&self) -> Result<Live, StoreError> {
        let mut live = self.live.subscribe();
        let waited = tokio::time::timeout(WAIT, live.wait_for(Option::is_some)).await;
        match waited {
            Ok(Ok(live)) => live.clone().ok_or_else(|| unavailable("the database is away")),
            Ok(Err(_)) | Err(_) => Err(unavailable("the database is away")),
        }
    }

    /// The delay until other processes receive a change of this one: the duration of the latest notification or, without a
    /// connection, the time since it was lost.
    pub(super) fn lag(&self) -> Duration {
        let down_since = *lock_mutex(&self.down_since);
        down_since.map_or_else(|| *lock_mutex(&self.told_in), |since| since.elapsed())
    }

    /// The time since which the session is connected, if it is.
    pub(super) fn stands_since(&self) -> Option<Instant> {
        self.live.borrow().as_ref().map(|live| live.since)
    }

    /// Returns true if the worker belongs to this process.
    pub(super) fn is_own(&self, worker: &WorkerId) -> bool {
        self.own().contains_key(worker)
    }

    /// Holds the lock with this number for the worker from now on.
    pub(super) async fn hold(&self, worker: &WorkerId, nr: i64) -> Result<(), StoreError> {
        loop {
            let live = self.live().await?;
            let _no_change_of_session = self.holding.lock().await;
            // A session counts repeated locks, and would have to release each of them.
            if self.is_own(worker) {
                return Ok(());
            }
            let is_current = |now: &Live| Arc::ptr_eq(&now.client, &live.client);
            if !self.live.borrow().as_ref().is_some_and(is_current) {
                continue;
            }
            if self.mode() == WakeupMode::Sessions {
                lock(&live.client, nr).await?;
            }
            self.own().insert(worker.clone(), nr);
            if self.mode() == WakeupMode::Looking {
                self.say_alive(&live.client).await?;
            }
        }
    }

    /// Releases the worker's lock.
    pub(super) async fn let_go(&self, worker: &WorkerId) -> Result<(), StoreError> {
        let Some(nr) = self.own().remove(worker) else { return Ok(()) };
        if self.mode() == WakeupMode::Looking {
            return Ok(());
        }
        let live = self.live().await?;
        let unlock = sql!(postgres::session::let_go);
        live.client.execute(unlock, &[&nr]).await.map_err(Fault::from)?;
        Ok(())
    }

    /// Releases all locks at once, before the connection ends. If that fails, the end of the connection releases them.
    pub(super) async fn let_all_go(&self) {
        let live = self.live.borrow().clone();
        if let Some(live) = live
            && self.silent_for().is_none()
        {
            let unlock = live.client.batch_execute(sql!(postgres::session::let_all_go));
            let _ = tokio::time::timeout(PROBE_WAIT, unlock).await;
        }
    }

    fn own(&self) -> MutexGuard<'_, HashMap<WorkerId, i64>> {
        lock_mutex(&self.own)
    }
}

/// Locks the mutex even if a holder panicked: the values here are never half written.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn lock(client: &Client, nr: i64) -> Result<(), Fault> {
    client.execute(sql!(postgres::session::lock), &[&nr]).await?;
    Ok(())
}
