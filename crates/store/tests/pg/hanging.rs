//! A database that is connected and does not answer: a full disk of the host, a frozen machine, a firewall that drops packets.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{EndNotices, Inserted, Job, Scope, Store, StoreError};
use outlast_store::{ConnectionLimits, PostgresOptions, PostgresStore};
use outlast_testkit::store_suite::{a_job, an_insert};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::database::{AT_ONCE, Database};

/// The part of the bytes that a relay lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passing {
    Everything,
    /// From the store to the server alone: the server works, and nobody hears of it.
    Requests,
    Nothing,
}

/// Passes bytes on between a store and the server, and keeps connections open while it does not.
struct Relay {
    passing: watch::Sender<Passing>,
}

impl Relay {
    async fn start(listener: TcpListener) -> Self {
        let passing = watch::Sender::new(Passing::Everything);
        let (sender, socket) = (passing.clone(), outlast_testkit::postgres::socket());
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = UnixStream::connect(&socket).await.unwrap();
                let ((near_read, near_write), (far_read, far_write)) =
                    (near.into_split(), far.into_split());
                let may_ask = |passing: Passing| passing != Passing::Nothing;
                let may_answer = |passing: Passing| passing == Passing::Everything;
                tokio::spawn(pass(near_read, far_write, sender.subscribe(), may_ask));
                tokio::spawn(pass(far_read, near_write, sender.subscribe(), may_answer));
            }
        });
        Self { passing }
    }
}

async fn pass(
    mut from: impl AsyncReadExt + Unpin,
    mut to: impl AsyncWriteExt + Unpin,
    mut passing: watch::Receiver<Passing>,
    may_pass: fn(Passing) -> bool,
) {
    let mut bytes = [0; 16_384];
    while let Ok(read @ 1..) = from.read(&mut bytes).await {
        if passing.wait_for(|passing| may_pass(*passing)).await.is_err()
            || to.write_all(&bytes[..read]).await.is_err()
        {
            return;
        }
    }
}

const LIMITS: ConnectionLimits =
    ConnectionLimits { connect: Duration::ZERO, statement: Duration::from_secs(1), pool_size: 4 };

async fn open(database: &Database, port: u16, limits: ConnectionLimits) -> PostgresStore {
    let options = database.url().split_once("options=").unwrap().1;
    let url =
        format!("postgres://outlast@127.0.0.1:{port}/postgres?sslmode=disable&options={options}");
    let options =
        PostgresOptions { url, clock: None, judgement: AT_ONCE, notices: EndNotices::Off, limits };
    PostgresStore::open(options).await.unwrap()
}

async fn relayed(database: &Database) -> (Relay, PostgresStore) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let relay = Relay::start(listener).await;
    (relay, open(database, port, LIMITS).await)
}

async fn insert(store: &PostgresStore) -> Result<Job, StoreError> {
    match store.insert(an_insert(a_job())).await? {
        Inserted::New(job) => Ok(job),
        Inserted::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// Waits until a store works again after its database was away.
async fn recovered(store: &PostgresStore) -> Job {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match insert(store).await {
            Ok(job) => return job,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
    }
}

/// F2: a database that does not answer is reported within the limit of a statement, and used again when it answers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_a_database_that_does_not_answer_is_reported_in_time() {
    let database = Database::fresh().await;
    let (relay, store) = relayed(&database).await;
    insert(&store).await.unwrap();
    relay.passing.send_replace(Passing::Nothing);
    let read = store.job(&Scope::Operator, &a_known_id()).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    let written = insert(&store).await;
    assert!(matches!(written, Err(StoreError::Unavailable(_))), "{written:?}");
    relay.passing.send_replace(Passing::Everything);
    let job = recovered(&store).await;
    assert!(store.job(&Scope::Operator, &job.id).await.unwrap().is_some());
    store.close().await;
}

/// F2: an insert whose commit is not answered says that it may have been stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_an_insert_that_is_not_answered_may_have_been_stored() {
    let database = Database::fresh().await;
    let (relay, store) = relayed(&database).await;
    insert(&store).await.unwrap();
    let before = count(&database).await;
    // The step can read but not write, so that the relay changes between its two halves.
    let mut other = database.client().await;
    let tx = other.transaction().await.unwrap();
    tx.batch_execute("lock table bodies in exclusive mode").await.unwrap();
    let inserting = insert(&store);
    let stopping = async {
        let watcher = database.client().await;
        let waits =
            "select count(*) from pg_locks where not granted and relation = 'bodies'::regclass";
        while watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        relay.passing.send_replace(Passing::Requests);
        tx.rollback().await.unwrap();
    };
    let (inserted, ()) = tokio::join!(inserting, stopping);
    assert!(matches!(inserted, Err(StoreError::Unconfirmed(_))), "{inserted:?}");
    let stored = async {
        while count(&database).await == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), stored).await.expect("the job was stored");
    store.close().await;
}

/// F6: a store whose database is away waits for it as long as it was told to.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f6_opening_waits_for_a_database_that_is_away() {
    let database = Database::fresh().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let limits = ConnectionLimits { connect: Duration::from_secs(30), ..LIMITS };
    let (begun, database) = (Instant::now(), Arc::new(database));
    let opening = tokio::spawn({
        let database = Arc::clone(&database);
        async move { open(&database, port, limits).await }
    });
    // Nothing listens for a while; the open is still under way then.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!opening.is_finished());
    let _relay = Relay::start(TcpListener::bind(("127.0.0.1", port)).await.unwrap()).await;
    let store = opening.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    insert(&store).await.unwrap();
    store.close().await;
}

async fn count(database: &Database) -> i64 {
    database.client().await.query_one("select count(*) from jobs", &[]).await.unwrap().get(0)
}

fn a_known_id() -> outlast_core::JobId {
    "00000000000000000000000000000001".parse().unwrap()
}
