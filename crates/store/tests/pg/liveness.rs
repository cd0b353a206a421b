//! Only a process whose session ended and did not return counts as dead.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Checkpoint, Clock, Insert, InsertOutcome, Job, JobState, RescueBy, RescueOutcome, Scope, Store,
};
use outlast_store::{Judgement, PostgresStore};
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{LEASE, a_job, profiles, worker};

use crate::database::{AT_ONCE, Database};

/// Judges after a short time, so that a test shows the difference between immediately and later.
const SOON: Judgement = Judgement {
    free_for: Duration::from_millis(300),
    session_for: Duration::from_millis(0),
    leases_for: Duration::ZERO,
};

async fn add(store: &PostgresStore) -> Job {
    let insert = Insert {
        job: a_job(),
        key: None,
        max_unfinished: 1_000,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    };
    match store.insert(insert).await.unwrap() {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// Repeats the rescue until the judge has returned this many jobs to the queue.
async fn rescued(judge: &PostgresStore, jobs: u32) -> RescueOutcome {
    let asking = async {
        let mut put_back = 0;
        loop {
            let rescued = judge.rescue(&RescueBy::DeadProcess).await.unwrap();
            put_back += rescued.jobs;
            if put_back == jobs {
                return RescueOutcome { jobs: put_back, ..rescued };
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect("they are put back")
}

/// F3: another process finds that an exited process is dead before its leases expire.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_jobs_of_a_closed_process_are_put_back() {
    let database = Database::fresh().await;
    let (leaves, stays) = (database.open().await, database.open().await);
    let job = add(&leaves).await;
    leaves.claim(&worker("leaves"), &profiles(), LEASE).await.unwrap().unwrap();
    assert_eq!(
        stays.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 0, watched: 1 }
    );
    leaves.close().await;
    rescued(&stays, 1).await;
    let job = stays.job(&Scope::Operator, &job.id).await.unwrap().unwrap();
    assert!(matches!(job.state, JobState::Queued { .. }));
}

/// F3: a session that broke and reconnected keeps its jobs: a free lock alone proves nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_worker_that_reconnects_is_not_taken_for_dead() {
    let database = Database::fresh().await;
    let (works, judges) = (database.open().await, database.open_judging(None, SOON).await);
    add(&works).await;
    let claimed = works.claim(&worker("works"), &profiles(), LEASE).await.unwrap().unwrap();
    let admin = database.client().await;
    for _ in 0..5 {
        // Ends every connection of every process except this one, as a restart of the server would.
        admin
            .batch_execute(
                "select pg_terminate_backend(pid) from pg_stat_activity
                 where application_name = 'outlast' and pid <> pg_backend_pid()
                   and query not like '%pg_terminate%' and datname = current_database()
                   and pid in (select pid from pg_locks where locktype = 'advisory'
                     and (classid::bigint >> 16) = lock_class('workers') >> 48)",
            )
            .await
            .unwrap();
        for _ in 0..20 {
            assert_eq!(judges.rescue(&RescueBy::DeadProcess).await.unwrap().jobs, 0);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
    let checkpoint = Checkpoint::Beginning { key: "k".to_owned() };
    works.checkpoint(&claimed.lease, &checkpoint).await.unwrap();
}

/// F3: a dead process's job whose request was on its way returns to the queue only after its lease has expired as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_request_on_its_way_waits_for_the_end_of_the_lease() {
    let database = Database::fresh().await;
    let clock = Arc::new(ManualClock::default());
    let open = || database.open_with(Some(clock.clone() as Arc<dyn Clock>));
    let (leaves, stays) = (open().await, open().await);
    for _ in 0..2 {
        add(&leaves).await;
    }
    let begun = leaves.claim(&worker("leaves"), &profiles(), LEASE).await.unwrap().unwrap();
    leaves.claim(&worker("leaves"), &profiles(), LEASE).await.unwrap().unwrap();
    let checkpoint = Checkpoint::Beginning { key: "k".to_owned() };
    leaves.checkpoint(&begun.lease, &checkpoint).await.unwrap();
    leaves.close().await;
    let first = rescued(&stays, 1).await;
    assert_eq!(first, RescueOutcome { jobs: 1, watched: 1 }, "the other is worth looking at again");
    let job = stays.job(&Scope::Operator, &begun.job.id).await.unwrap().unwrap();
    assert!(matches!(job.state, JobState::Running { .. }), "its lease has not run out");
    clock.advance(LEASE);
    rescued(&stays, 1).await;
    let job = stays.job(&Scope::Operator, &begun.job.id).await.unwrap().unwrap();
    assert!(matches!(job.state, JobState::Queued { .. }));
}

/// F3: a process with a young session judges no worker: after a restart of the database all of them look dead to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_young_session_judges_no_worker() {
    let database = Database::fresh().await;
    let leaves = database.open().await;
    add(&leaves).await;
    leaves.claim(&worker("leaves"), &profiles(), LEASE).await.unwrap().unwrap();
    let young = Judgement {
        session_for: Duration::from_secs(3_600),
        leases_for: Duration::from_secs(3_600),
        ..AT_ONCE
    };
    let judges = database.open_judging(None, young).await;
    leaves.close().await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    for dead in [RescueBy::DeadProcess, RescueBy::ExpiredLease] {
        assert_eq!(judges.rescue(&dead).await.unwrap(), RescueOutcome { jobs: 0, watched: 1 });
    }
}
