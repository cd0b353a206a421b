//! A connection that breaks at any statement: before it is sent, after it was sent, or before its response arrives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use outlast_core::{
    ChangeWait, EndNotices, Insert, InsertOutcome, JobState, RescueBy, RescueOutcome, Scope,
    Settlement, Store, StoreError,
};
use outlast_store::{PostgresStore, WakeupMode};
use outlast_testkit::store_suite::{LEASE, a_job, a_key, profiles, worker};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};

use crate::database::{AT_ONCE, Database};

/// Forwards bytes between a store and the server.
struct Relay {
    port: u16,
    link: Arc<Link>,
}

/// The treatment of the bytes.
struct Link {
    /// The number of reads after which all connections are cut, once.
    left: AtomicI64,
    /// The number of commits that are done but whose responses are dropped.
    unheard: AtomicI64,
    /// Set to stop all forwarding after those commits.
    ends: AtomicBool,
    has_ended: AtomicBool,
}

/// The server's messages that are forwarded.
#[derive(Clone, Copy)]
enum Through {
    Everything,
    /// As behind a pooler that assigns connections per transaction: no notifications for LISTEN.
    NoNotifications,
}

impl Relay {
    async fn start(through: Through) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let link = Arc::new(Link {
            left: AtomicI64::new(i64::MAX),
            unheard: AtomicI64::new(0),
            ends: AtomicBool::new(false),
            has_ended: AtomicBool::new(false),
        });
        let passed = Arc::clone(&link);
        let socket = outlast_testkit::postgres::socket();
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let (link, socket) = (Arc::clone(&passed), socket.clone());
                tokio::spawn(async move {
                    let Ok(far) = UnixStream::connect(socket).await else { return };
                    match through {
                        Through::Everything => pass(near, far, &link).await,
                        Through::NoNotifications => pass_quietly(near, far).await,
                    }
                });
            }
        });
        Self { port, link }
    }

    /// Cuts the connections after this many more reads from either side.
    fn cut_after(&self, reads: i64) {
        self.link.left.store(reads, Ordering::SeqCst);
    }
}

async fn pass(mut near: tokio::net::TcpStream, mut far: UnixStream, link: &Link) {
    let (mut to, mut back) = ([0; 16_384], [0; 16_384]);
    loop {
        let (bytes, is_to) = tokio::select! {
            read = near.read(&mut to) => (read, true),
            read = far.read(&mut back) => (read, false),
        };
        let Ok(bytes) = bytes else { return };
        let is_cut = link.left.fetch_sub(1, Ordering::SeqCst) == 0;
        if bytes == 0 || is_cut || link.has_ended.load(Ordering::SeqCst) {
            return;
        }
        let sent = match is_to {
            true => far.write_all(&to[..bytes]).await,
            false => near.write_all(&back[..bytes]).await,
        };
        if sent.is_err() {
            return;
        }
        let commits = is_to && contains(&to[..bytes], b"commit\0");
        let unheard = if commits { link.unheard.fetch_sub(1, Ordering::SeqCst) } else { 0 };
        if unheard > 0 {
            let mut answers = Vec::new();
            while !contains(&answers, b"COMMIT\0") && far.read_buf(&mut answers).await.unwrap() > 0
            {
            }
            let ends = unheard == 1 && link.ends.load(Ordering::SeqCst);
            link.has_ended.store(ends, Ordering::SeqCst);
            return;
        }
    }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|some| some == what)
}

/// Forwards whole messages of the server, except notifications.
async fn pass_quietly(near: tokio::net::TcpStream, far: UnixStream) {
    let ((mut from_near, mut to_near), (mut from_far, mut to_far)) =
        (near.into_split(), far.into_split());
    let back = async move {
        let mut kept = Vec::new();
        while from_far.read_buf(&mut kept).await? > 0 {
            while let Some(length) = kept.get(1..5) {
                let length = u32::from_be_bytes(length.try_into().unwrap()) as usize + 1;
                if kept.len() < length {
                    break;
                }
                let message: Vec<u8> = kept.drain(..length).collect();
                if message[0] != b'A' {
                    to_near.write_all(&message).await?;
                }
            }
        }
        std::io::Result::Ok(())
    };
    let _ = tokio::join!(tokio::io::copy(&mut from_near, &mut to_far), back);
}

/// F2: an insert, a claim and a settle over a link that is cut once, at each of the first reads. Acknowledged writes are
/// stored, a caller without a key never creates two jobs, and a job is never claimed or settled twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_a_cut_at_any_moment_loses_and_doubles_nothing() {
    for cut in 0..40 {
        let database = Database::fresh().await;
        let relay = Relay::start(Through::Everything).await;
        let direct = database.open().await;
        let store = open_over(&relay, &database).await;
        relay.cut_after(cut);
        let inserted = store.insert(an_insert()).await;
        let claimed = store.claim(&worker("w"), &profiles(), LEASE).await;
        let settled = match &claimed {
            Ok(Some(claimed)) => {
                let release = Settlement::Release;
                Some(store.settle(&claimed.lease, release).await)
            }
            Ok(None) | Err(_) => None,
        };
        relay.cut_after(i64::MAX);
        let query = outlast_core::JobQuery { limit: 10, ..Default::default() };
        let jobs = direct.list(&Scope::Operator, &query).await.unwrap().jobs;
        match inserted {
            Ok(InsertOutcome::New(job)) => {
                assert_eq!(jobs.len(), 1, "cut {cut}: an acknowledged job is there, once");
                assert_eq!(jobs[0].id, job.id);
            }
            Ok(InsertOutcome::Existing { .. }) => panic!("cut {cut}: it had no key"),
            Err(error) => {
                assert!(jobs.is_empty(), "cut {cut}: it is there, and its caller got {error}")
            }
        }
        if let (Ok(Some(claimed)), Some(Ok(job))) = (&claimed, &settled) {
            assert_eq!(job.id, claimed.job.id);
        }
        // Under its key, the call is answered with one job, whatever the outcome of the first attempt.
        let keyed = Insert { key: Some(a_key("k", 1)), ..an_insert() };
        relay.cut_after(cut);
        let first = store.insert(keyed.clone()).await;
        relay.cut_after(i64::MAX);
        let second = store.insert(keyed).await.expect("the link is whole again");
        if let Ok(InsertOutcome::New(first) | InsertOutcome::Existing { job: first, .. }) = first {
            let (InsertOutcome::New(second) | InsertOutcome::Existing { job: second, .. }) = second;
            assert_eq!(first.id, second.id, "cut {cut}");
        }
    }
}

/// F2: inserts share a transaction whose commit is done but not acknowledged, even twice. Each caller gets its one job,
/// although the jobs fill the quota, and not an error after which it would ask, and pay, again.
#[tokio::test]
async fn f2_inserts_whose_commit_is_not_acknowledged_are_answered_with_their_jobs() {
    for (unheard, key) in [(1, None), (1, Some(a_key("k", 1))), (2, None)] {
        let database = Database::fresh().await;
        let relay = Relay::start(Through::Everything).await;
        let store = open_over(&relay, &database).await;
        relay.link.unheard.store(unheard, Ordering::SeqCst);
        let one = Insert { key, max_unfinished: 2, ..an_insert() };
        let other = Insert { max_unfinished: 2, ..an_insert() };
        let (one, other) = tokio::join!(store.insert(one), store.insert(other));
        let mut inserted = Vec::new();
        for answer in [one, other] {
            let Ok(InsertOutcome::New(job)) = answer else { panic!("{answer:?}") };
            assert_eq!(store.job(&Scope::Operator, &job.id).await.unwrap(), Some(job.clone()));
            inserted.push(job.id);
        }
        let query = outlast_core::JobQuery { limit: 10, ..Default::default() };
        let jobs = store.list(&Scope::Operator, &query).await.unwrap().jobs;
        assert_eq!(jobs.len(), 2, "{inserted:?}");
        assert!(
            relay.link.unheard.load(Ordering::SeqCst) < 0,
            "the commit was lost, and another sent"
        );
    }
}

/// F2: if the database then stays unavailable, the error says that the job may be stored, not that the caller may try again.
#[tokio::test]
async fn f2_an_insert_whose_commit_stays_unheard_of_says_so() {
    for ends in [true, false] {
        let database = Database::fresh().await;
        let relay = Relay::start(Through::Everything).await;
        let direct = database.open().await;
        let store = open_over(&relay, &database).await;
        relay.link.ends.store(ends, Ordering::SeqCst);
        relay.link.unheard.store(if ends { 1 } else { 3 }, Ordering::SeqCst);
        let inserted = store.insert(an_insert()).await;
        let Err(StoreError::InsertUnconfirmed { job, .. }) = inserted else {
            panic!("{ends}: {inserted:?}")
        };
        let query = outlast_core::JobQuery { limit: 10, ..Default::default() };
        let listed = direct.list(&Scope::Operator, &query).await.unwrap().jobs;
        assert_eq!(listed.iter().map(|it| it.id).collect::<Vec<_>>(), [job]);
    }
}

/// F2: writes that share a transaction whose commit is done but not acknowledged are not repeated: a worker whose write was
/// done would receive an error that its lease is lost.
#[tokio::test]
async fn f2_writes_whose_commit_is_not_acknowledged_are_not_written_again() {
    let database = Database::fresh().await;
    let relay = Relay::start(Through::Everything).await;
    let store = open_over(&relay, &database).await;
    let mut leases = Vec::new();
    for _ in 0..2 {
        store.insert(an_insert()).await.unwrap();
        let claimed = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap();
        leases.push(claimed.expect("it waits for a worker").lease);
    }
    relay.link.unheard.store(1, Ordering::SeqCst);
    // Both calls are made before the task that collects them runs, because the test has one thread.
    let (one, other) = tokio::join!(
        store.settle(&leases[0], Settlement::Release),
        store.settle(&leases[1], Settlement::Release),
    );
    for (lease, settled) in leases.iter().zip([one, other]) {
        assert!(matches!(settled, Err(StoreError::Unconfirmed(_))), "{settled:?}");
        let job = store.job(&Scope::Operator, &lease.job).await.unwrap().unwrap();
        assert!(matches!(job.state, JobState::Queued { .. }), "both were written: {job:?}");
    }
}

fn an_insert() -> Insert {
    Insert {
        job: a_job(),
        key: None,
        max_unfinished: 100,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    }
}

async fn open_over(relay: &Relay, database: &Database) -> PostgresStore {
    let options = database.url().split("options=").nth(1).expect("it names its schema");
    let url = format!(
        "postgres://outlast@127.0.0.1:{}/postgres?sslmode=disable&options={options}",
        relay.port
    );
    let options = outlast_store::PostgresOptions {
        url,
        clock: None,
        judgement: AT_ONCE,
        notices: EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: None,
    };
    let opening = PostgresStore::open(options);
    tokio::time::timeout(Duration::from_secs(20), opening).await.unwrap().unwrap()
}

/// F4: without a lasting connection, stores poll for changes, workers count as alive while they send heartbeats, and only an
/// expired lease shows that a worker is dead.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_without_sessions_changes_are_looked_for_and_leases_tell() {
    let database = Database::fresh().await;
    let relay = Relay::start(Through::NoNotifications).await;
    let (here, there) = (open_over(&relay, &database).await, open_over(&relay, &database).await);
    assert_eq!(here.wakeup_mode(), WakeupMode::Looking);
    let held = "select count(*) from pg_locks where locktype = 'advisory'
         and (classid::bigint >> 16) in (lock_class('meta') >> 48, lock_class('workers') >> 48)";
    let held: i64 = database.client().await.query_one(held, &[]).await.unwrap().get(0);
    assert_eq!(held, 0, "a lock would stay with a connection that a pooler gives to others");
    let after = there.rev().await.unwrap();
    let wait = ChangeWait { at_most: Duration::from_secs(30), look_every: Duration::from_secs(1) };
    let (changes, inserted) = tokio::join!(there.changes(after, wait), here.insert(an_insert()));
    let (InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) = inserted.unwrap();
    assert_eq!(changes.unwrap().jobs.first().unwrap().id, job.id);

    let lease = Duration::from_secs(2);
    here.claim(&worker("w"), &profiles(), lease).await.unwrap().unwrap();
    assert!(there.has_worker(&profiles()[0]).await.unwrap(), "it says that it is running");
    here.close().await;
    let proven = there.rescue(&RescueBy::DeadProcess).await.unwrap();
    assert_eq!(proven, RescueOutcome { jobs: 0, watched: 1 }, "no lock shows it");
    let put_back = async {
        while there.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs == 0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), put_back).await.expect("its lease ends");
}

/// F4: without sessions, a worker sends heartbeats even if it has nothing to do.
#[tokio::test]
async fn f4_without_sessions_an_idle_worker_says_that_it_is_running() {
    let database = Database::fresh().await;
    let relay = Relay::start(Through::NoNotifications).await;
    let store = open_over(&relay, &database).await;
    assert!(
        store.claim(&worker("w"), &profiles(), Duration::from_secs(2)).await.unwrap().is_none()
    );
    let client = database.client().await;
    let seen = async || {
        let row = client.query_one("select seen from workers", &[]).await.unwrap();
        row.get::<_, i64>(0)
    };
    let first = seen().await;
    let again = async {
        while seen().await == first {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), again).await.expect("it says so again");
}
