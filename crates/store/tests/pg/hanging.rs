//! A database that is connected and does not respond: a full disk of the host, a frozen machine, a firewall that drops
//! packets.

use std::time::Duration;

use outlast_core::{EndNotices, InsertOutcome, Job, Scope, Store, StoreError};
use outlast_store::{ConnectionLimits, PostgresOptions, PostgresStore};
use outlast_testkit::postgres::{Passing, Relay};
use outlast_testkit::store_suite::{a_job, an_insert};
use tokio::net::TcpListener;
use tokio::time::Instant;

use crate::database::{AT_ONCE, Database};

const LIMITS: ConnectionLimits =
    ConnectionLimits { connect: Duration::ZERO, statement: Duration::from_secs(1), pool_size: 4 };

async fn open(url: String, limits: ConnectionLimits) -> PostgresStore {
    let options = PostgresOptions {
        url,
        clock: None,
        judgement: AT_ONCE,
        notices: EndNotices::Off,
        limits,
        state_dir: None,
    };
    PostgresStore::open(options).await.unwrap()
}

async fn relayed(database: &Database) -> (Relay, PostgresStore) {
    let relay = Relay::start().await;
    let store = open(relay.url(database.url()), LIMITS).await;
    (relay, store)
}

async fn insert(store: &PostgresStore) -> Result<Job, StoreError> {
    match store.insert(an_insert(a_job())).await? {
        InsertOutcome::New(job) => Ok(job),
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// Waits until a store works again after its database was unavailable.
async fn recovered(store: &PostgresStore) -> Job {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        match insert(store).await {
            Ok(job) => return job,
            Err(error) => assert!(Instant::now() < deadline, "{error:?}"),
        }
    }
}

/// F2: an unresponsive database is reported within the limit of a statement, and used again when it responds.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_a_database_that_does_not_answer_is_reported_in_time() {
    let database = Database::fresh().await;
    let (relay, store) = relayed(&database).await;
    insert(&store).await.unwrap();
    relay.pass(Passing::Nothing);
    let read = store.job(&Scope::Operator, &a_known_id()).await;
    assert!(matches!(read, Err(StoreError::Unavailable(_))), "{read:?}");
    let written = insert(&store).await;
    assert!(matches!(written, Err(StoreError::NotInserted(_))), "{written:?}");
    relay.pass(Passing::Everything);
    let job = recovered(&store).await;
    assert!(store.job(&Scope::Operator, &job.id).await.unwrap().is_some());
    store.close().await;
}

/// F2: an insert whose commit gets no response reports that it may have been stored.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_an_insert_that_is_not_answered_may_have_been_stored() {
    let database = Database::fresh().await;
    let (relay, store) = relayed(&database).await;
    insert(&store).await.unwrap();
    let before = count(&database).await;
    // The step can read but not write, so that the relay can be changed between the reads and the writes.
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
        relay.pass(Passing::Requests);
        tx.rollback().await.unwrap();
    };
    let (inserted, ()) = tokio::join!(inserting, stopping);
    let Err(StoreError::InsertUnconfirmed { job, .. }) = inserted else { panic!("{inserted:?}") };
    let stored = async {
        while count(&database).await == before {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), stored).await.expect("the job was stored");
    let client = database.client().await;
    let named =
        client.query("select 1 from jobs where id = $1", &[&job.to_string()]).await.unwrap();
    assert_eq!(named.len(), 1, "the error names the job that was stored");
    store.close().await;
}

/// F6: opening a store waits for an unavailable database for as long as configured.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f6_opening_waits_for_a_database_that_is_away() {
    let database = Database::fresh().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let limits = ConnectionLimits { connect: Duration::from_secs(30), ..LIMITS };
    let options = database.url().split_once("options=").unwrap().1;
    let url =
        format!("postgres://outlast@127.0.0.1:{port}/postgres?sslmode=disable&options={options}");
    let begun = Instant::now();
    let opening = tokio::spawn(open(url, limits));
    // Nothing is listening for a while; the open must still be waiting after that.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(!opening.is_finished());
    let _relay = Relay::on(TcpListener::bind(("127.0.0.1", port)).await.unwrap());
    let store = opening.await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(30));
    insert(&store).await.unwrap();
    store.close().await;
}

/// F2: a check of an idle store detects an unresponsive database within the limit of a statement; the store detects by
/// itself that it responds again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_an_idle_store_notices_a_database_that_hangs() {
    let database = Database::fresh().await;
    let (relay, store) = relayed(&database).await;
    assert_eq!(store.connections().silent_for, None);
    relay.pass(Passing::Nothing);
    let hung = Instant::now();
    let noticed = async {
        while store.connections().silent_for.is_none() {
            store.check_responds().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), noticed).await.expect("it notices");
    println!("noticed after {:.0?}", hung.elapsed());
    relay.pass(Passing::Everything);
    let recovered = async {
        while store.connections().silent_for.is_some() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), recovered).await.expect("it answers again");
    store.close().await;
}

async fn count(database: &Database) -> i64 {
    database.client().await.query_one("select count(*) from jobs", &[]).await.unwrap().get(0)
}

fn a_known_id() -> outlast_core::JobId {
    "00000000000000000000000000000001".parse().unwrap()
}
