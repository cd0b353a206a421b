//! Followers see changes in order, none twice and none missed, however many processes write.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::{
    ChangeWait, ConversationId, Insert, InsertOutcome, JobId, OwnerId, Rev, Settlement, StateKind,
    Store, StoreError,
};
use outlast_store::PostgresStore;
use outlast_testkit::store_suite::{LEASE, a_job, a_key, a_report, an_insert, profiles, worker};

use crate::database::Database;

const WRITERS: usize = 8;
const JOBS: usize = 60;

/// F4: writers pause between drawing a number and committing, and some of them roll back, during inserts by two processes.
/// Two followers see every acknowledged job as queued exactly once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_no_change_is_missed_or_reported_twice() {
    let database = Database::fresh().await;
    let stores = [Arc::new(database.open().await), Arc::new(database.open().await)];
    let start = stores[0].rev().await.unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let followers: Vec<_> = stores
        .iter()
        .map(|store| tokio::spawn(follow(Arc::clone(store), start, Arc::clone(&done))))
        .collect();
    let slow = tokio::spawn(slow_writers(database.client().await, Arc::clone(&done)));
    let mut inserting = tokio::task::JoinSet::new();
    for number in 0..WRITERS {
        let store = Arc::clone(&stores[number % 2]);
        inserting.spawn(async move {
            let mut ids = Vec::new();
            for _ in 0..JOBS {
                ids.push(insert(&store, number).await);
            }
            ids
        });
    }
    let ids: Vec<JobId> = inserting.join_all().await.into_iter().flatten().collect();
    done.store(true, Ordering::SeqCst);
    slow.await.unwrap();
    for follower in followers {
        let seen = follower.await.unwrap();
        for id in &ids {
            assert_eq!(seen.get(id), Some(&1), "reported once");
        }
        assert_eq!(seen.len(), ids.len(), "nothing else is reported");
    }
}

async fn insert(store: &PostgresStore, number: usize) -> JobId {
    let mut job = a_job();
    job.owner = outlast_core::OwnerId::new(format!("owner-{number}"));
    let insert = Insert {
        job,
        key: None,
        max_unfinished: 10_000,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    };
    match store.insert(insert).await.unwrap() {
        InsertOutcome::New(job) => job.id,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// Draws numbers, waits, and commits or rolls back.
async fn slow_writers(client: tokio_postgres::Client, done: Arc<AtomicBool>) {
    let mut round = 0_u32;
    while !done.load(Ordering::SeqCst) {
        round += 1;
        let end = if round.is_multiple_of(2) { "commit" } else { "rollback" };
        let pause = format!("begin; select next_rev(); select pg_sleep(0.015); {end}");
        client.batch_execute(&pause).await.unwrap();
    }
}

async fn follow(
    store: Arc<PostgresStore>,
    mut after: Rev,
    done: Arc<AtomicBool>,
) -> HashMap<JobId, u32> {
    let mut seen = HashMap::new();
    loop {
        let was_done = done.load(Ordering::SeqCst);
        let wait = ChangeWait {
            at_most: Duration::from_millis(300),
            look_every: Duration::from_millis(25),
        };
        let changes = store.changes(after, wait).await.unwrap();
        assert!(changes.rev >= after, "revs never go back");
        after = changes.rev;
        for change in &changes.jobs {
            *seen.entry(change.id).or_insert(0) += 1;
        }
        if was_done && changes.jobs.is_empty() {
            return seen;
        }
    }
}

/// F4: a change in one process ends a wait in another long before the next regular look.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_changes_of_other_processes_are_noticed() {
    let database = Database::fresh().await;
    let (here, there) = (database.open().await, database.open().await);
    for _ in 0..20 {
        let after = there.rev().await.unwrap();
        let wait =
            ChangeWait { at_most: Duration::from_secs(30), look_every: Duration::from_secs(30) };
        let began = tokio::time::Instant::now();
        let (changes, id) = tokio::join!(there.changes(after, wait), async {
            tokio::time::sleep(Duration::from_millis(5)).await;
            insert(&here, 0).await
        });
        assert_eq!(changes.unwrap().jobs.first().unwrap().id, id);
        assert!(began.elapsed() < Duration::from_millis(1_500), "notified, not looked for");
    }
}

/// F4: a caller that waits without receiving changes sends almost no queries to the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f4_a_wait_in_which_nothing_changes_is_no_work_for_the_server() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let counted = "create sequence looks;
        alter function seen_revs() rename to seen;
        create function seen_revs(out safe bigint, out last bigint) language plpgsql as $$ begin
            perform nextval('looks');
            select seen.safe, seen.last into safe, last from seen();
        end $$";
    let client = database.client().await;
    client.batch_execute(counted).await.unwrap();
    let after = store.rev().await.unwrap();
    let wait = ChangeWait { at_most: Duration::from_secs(1), look_every: Duration::from_secs(30) };
    assert!(store.changes(after, wait).await.unwrap().jobs.is_empty());
    let looks: i64 = client.query_one("select last_value from looks", &[]).await.unwrap().get(0);
    assert!((2..10).contains(&looks), "{looks}");
}

/// F2: claims of many callers in two processes return each job once, and no claim reports an empty queue while jobs wait.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_no_claim_comes_back_empty_while_jobs_wait() {
    let database = Database::fresh().await;
    let stores = [Arc::new(database.open().await), Arc::new(database.open().await)];
    let mut inserting = tokio::task::JoinSet::new();
    for number in 0..200 {
        let store = Arc::clone(&stores[number % 2]);
        inserting.spawn(async move { insert(&store, number % 5).await });
    }
    inserting.join_all().await;
    let mut claiming = tokio::task::JoinSet::new();
    for number in 0..200 {
        let store = Arc::clone(&stores[number % 2]);
        claiming.spawn(async move {
            let claimed =
                store.claim(&worker(&format!("w{}", number % 2)), &profiles(), LEASE).await;
            claimed.unwrap().expect("a job waits for every claim").job
        });
    }
    let mut claimed: Vec<_> = claiming.join_all().await;
    assert!(claimed.iter().all(|job| job.state.kind() == StateKind::Running));
    claimed.sort_by_key(|job| job.id);
    claimed.dedup_by_key(|job| job.id);
    assert_eq!(claimed.len(), 200);
}

/// F2: a claim does not wait for rows that another transaction has locked.
#[tokio::test]
async fn f2_a_claim_does_not_wait_for_a_job_that_another_has() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let id = insert(&store, 0).await;
    let mut other = database.client().await;
    let held = other.transaction().await.unwrap();
    held.query("select from jobs for update", &[]).await.unwrap();
    assert!(store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().is_none());
    held.rollback().await.unwrap();
    let claimed = store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().unwrap();
    assert_eq!(claimed.job.id, id);
}

/// F2: concurrent claims serve owners in the same order as claims one after the other.
#[tokio::test]
async fn f2_owners_take_turns_in_claims_of_one_moment() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let (w1, profiles) = (worker("w1"), profiles());
    // The worker is known from here on, so later claims wait for nothing before they are combined.
    assert!(store.claim(&w1, &profiles, LEASE).await.unwrap().is_none());
    let served = async |jobs: usize| {
        let mut owners = Vec::new();
        for claimed in join_all((0..jobs).map(|_| store.claim(&w1, &profiles, LEASE))).await {
            let claimed = claimed.unwrap().unwrap();
            let success = Settlement::Succeed { output: a_report().into(), raw: None };
            store.settle(&claimed.lease, success).await.unwrap();
            owners.push(claimed.job.new.owner.as_str().replace("owner-", ""));
        }
        owners.concat()
    };
    for (queued, order) in
        [(vec![0, 1], "01"), (vec![0], "0"), (vec![0, 0, 1, 1, 2, 2], "21021"), (vec![1, 2], "021")]
    {
        for owner in queued {
            insert(&store, owner).await;
        }
        assert_eq!(served(order.len()).await, order);
    }
}

/// F2: concurrent inserts share a transaction, and each is decided as if it were alone: two owners with the same key, one
/// conversation, and a limit on unfinished jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f2_inserts_of_one_moment_are_decided_one_after_the_other() {
    let database = Database::fresh().await;
    let store = database.open().await;
    let of =
        |owner: &str| an_insert(outlast_core::NewJob { owner: OwnerId::new(owner), ..a_job() });
    let made = |inserted: &[Result<InsertOutcome, StoreError>]| {
        inserted.iter().filter(|one| matches!(one, Ok(InsertOutcome::New(_)))).count()
    };
    let keyed = (0..60).map(|number| {
        let owner = ["ann", "bob"][number % 2];
        store.insert(Insert { key: Some(a_key("same", 1)), ..of(owner) })
    });
    let keyed = join_all(keyed).await;
    assert!(keyed.iter().all(Result::is_ok), "{keyed:?}");
    assert_eq!(made(&keyed), 2, "one for each owner");

    let talking = (0..30).map(|_| {
        let mut insert = of("carl");
        insert.job.conversation = Some(ConversationId::new("talk"));
        store.insert(insert)
    });
    assert_eq!(made(&join_all(talking).await), 1);

    let limited = (0..30).map(|_| store.insert(Insert { max_unfinished: 7, ..of("dora") }));
    let limited = join_all(limited).await;
    assert_eq!(made(&limited), 7);
    let refused =
        |one: &&Result<InsertOutcome, StoreError>| matches!(one, Err(StoreError::TooManyJobs));
    assert_eq!(limited.iter().filter(refused).count(), 23);
}
