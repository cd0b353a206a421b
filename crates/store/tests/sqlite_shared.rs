//! Several handles on one file, as in several processes: sharing, wake-ups, rescues.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers end the test, like the tests")]

use std::collections::HashSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use outlast_core::{
    Change, ChangeWait, Checkpoint, HeldCallState, InsertOutcome, Job, JobState, Prune, RescueBy,
    RescueOutcome, Rev, Scope, Settlement, StateKind, Store, StoreError, Timestamp,
};
use outlast_store::SqliteStore;
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{LEASE, a_job, a_report, an_insert, profiles, worker};
use tempfile::TempDir;
use tokio::time::Instant;

const LIMIT: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_change_through_one_handle_wakes_another() {
    let (here, there, _dir) = two_handles();
    let wait = ChangeWait { at_most: LIMIT, look_every: Duration::from_millis(25) };
    let waiter = tokio::spawn(async move { there.changes(Rev(0), wait).await });
    tokio::task::yield_now().await;
    let job = insert(&here).await;
    let changes = waiter.await.unwrap().unwrap();
    assert_eq!(
        changes.jobs,
        [Change {
            id: job.id,
            state: StateKind::Queued,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false
        }]
    );
    assert_eq!(changes.rev, job.rev);
}

/// Paused time advances only while all tasks are idle, so a waiter that polls without a pause never finishes.
const AN_HOUR: ChangeWait =
    ChangeWait { at_most: Duration::from_secs(3600), look_every: Duration::from_secs(60) };

#[tokio::test(start_paused = true)]
async fn a_waiter_rests_between_its_looks() {
    let (here, there, _dir) = two_handles();
    let begun = Instant::now();
    let changes = there.changes(Rev(0), AN_HOUR).await.unwrap();
    assert_eq!((changes.rev, changes.jobs.len()), (Rev(0), 0));
    assert!(begun.elapsed() >= AN_HOUR.at_most);
    // The wait also takes the full time if the changed job was removed and only the number of the change is left.
    let job = insert(&here).await;
    here.cancel(&Scope::Operator, &job.id).await.unwrap();
    let ended = Prune::EndedBefore(Timestamp::from_millis(i64::MAX));
    assert_eq!(here.prune(&Scope::Operator, &ended).await.unwrap().jobs, 1);
    let changes = there.changes(Rev(0), AN_HOUR).await.unwrap();
    assert!(changes.rev > job.rev && changes.jobs.is_empty(), "{changes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiter_sees_what_another_handle_wrote_at_its_next_look() {
    let (here, there, _dir) = two_handles();
    assert_eq!(there.changes(Rev(0), AN_HOUR).await.unwrap().rev, Rev(0));
    let begun = Instant::now();
    let job = insert(&here).await;
    let changes = there.changes(Rev(0), AN_HOUR).await.unwrap();
    assert_eq!(changes.jobs.iter().map(|change| change.id).collect::<Vec<_>>(), [job.id]);
    assert!(begun.elapsed() <= AN_HOUR.look_every, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_waiter_that_is_behind_is_not_held_up_by_one_that_is_not() {
    let (here, there, _dir) = two_handles();
    let job = insert(&here).await;
    let (other, rev) = (there.clone(), job.rev);
    let waiter = tokio::spawn(async move { other.changes(rev, AN_HOUR).await });
    // The waiter has read once and is now waiting.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    assert_eq!(there.changes(Rev(0), AN_HOUR).await.unwrap().jobs[0].id, job.id);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    waiter.abort();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_waiter_follows_another_handle_without_missing_a_job() {
    const JOBS: usize = 100;
    let (here, there, _dir) = two_handles();
    let follower = tokio::spawn(async move {
        let wait = ChangeWait { at_most: LIMIT, look_every: Duration::from_millis(5) };
        let (mut rev, mut ids) = (Rev(0), Vec::new());
        while ids.len() < JOBS {
            let changes = there.changes(rev, wait).await.unwrap();
            assert!(!changes.jobs.is_empty(), "a wake-up was lost after {}", ids.len());
            rev = changes.rev;
            ids.extend(changes.jobs.iter().map(|change| change.id));
        }
        ids
    });
    let mut made = HashSet::new();
    for _ in 0..JOBS {
        made.insert(insert(&here).await.id);
    }
    let seen = follower.await.unwrap();
    assert_eq!(seen.len(), JOBS, "nothing was reported twice");
    assert_eq!(seen.into_iter().collect::<HashSet<_>>(), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_handle_that_is_closed_leaves_no_log_beside_others() {
    let (here, _there, dir) = two_handles();
    insert(&here).await;
    let log = dir.path().join("jobs.db-wal");
    assert!(std::fs::metadata(&log).unwrap().len() > 0);
    here.close().await;
    assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
}

#[tokio::test]
async fn what_may_wait_for_company_comes_in_any_number() {
    let (here, _there, _dir) = two_handles();
    let job = insert(&here).await;
    let recorded = join_all((0..600).map(|_| here.record_answer(&job.id))).await;
    assert!(recorded.iter().all(Result::is_ok), "{recorded:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn handles_share_the_work_and_none_is_refused_as_busy() {
    const JOBS: usize = 60;
    let (here, there, _dir) = two_handles();
    for number in 0..JOBS {
        insert(if number % 2 == 0 { &here } else { &there }).await;
    }
    let tasks: Vec<_> = [here.clone(), there.clone(), here, there]
        .into_iter()
        .enumerate()
        .map(|(number, store)| {
            tokio::spawn(async move {
                let (me, mut done) = (worker(&format!("w{number}")), Vec::new());
                while let Some(claimed) = store.claim(&me, &profiles(), LEASE).await.unwrap() {
                    let output = a_report().into();
                    let settlement = Settlement::Succeed { output, raw: None };
                    done.push(store.settle(&claimed.lease, settlement).await.unwrap().id);
                }
                done
            })
        })
        .collect();
    let mut done = Vec::new();
    for task in tasks {
        done.extend(task.await.unwrap());
    }
    assert_eq!(done.len(), JOBS);
    assert_eq!(done.into_iter().collect::<HashSet<_>>().len(), JOBS, "each was done once");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_handles_may_make_the_same_database_at_once() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("new/jobs.db");
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let path = path.clone();
            tokio::task::spawn_blocking(move || open(&path))
        })
        .collect();
    let mut stores = Vec::new();
    for task in tasks {
        stores.push(task.await.unwrap());
    }
    for store in &stores {
        insert(store).await;
    }
    let wait = ChangeWait { at_most: Duration::ZERO, look_every: LIMIT };
    assert_eq!(stores[0].changes(Rev(0), wait).await.unwrap().jobs.len(), stores.len());
}

#[tokio::test]
async fn what_is_queued_together_is_committed_together() {
    let (store, _, dir) = two_handles();
    let write_lock = File::options().write(true).open(dir.path().join("jobs.db.wlock")).unwrap();
    write_lock.lock().unwrap();
    let inserts: Vec<_> = (0..200).map(|_| insert(&store)).collect();
    let (jobs, ()) = tokio::join!(join_all(inserts), async { write_lock.unlock().unwrap() });
    let wait = ChangeWait { at_most: Duration::ZERO, look_every: LIMIT };
    let changes = store.changes(Rev(0), wait).await.unwrap();
    assert_eq!((jobs.len(), changes.jobs.len()), (200, 200));
    // Every commit takes one rev, so this is the number of commits.
    assert!(changes.rev <= Rev(4), "{} commits", changes.rev.0);
}

#[tokio::test]
async fn a_rival_that_never_opens_the_gate_does_not_stop_the_writer() {
    let (store, _, dir) = two_handles();
    let write_lock = File::options().write(true).open(dir.path().join("jobs.db.wlock")).unwrap();
    write_lock.lock().unwrap();
    for _ in 0..3 {
        tokio::time::timeout(LIMIT, insert(&store)).await.unwrap();
    }
}

#[tokio::test]
async fn a_dropped_handles_jobs_are_rescued_at_once() {
    let (here, there, dir) = two_handles();
    let job = insert(&here).await;
    let claimed = there.claim(&worker("theirs"), &profiles(), LEASE).await.unwrap().unwrap();
    let running = Checkpoint::Running(outlast_testkit::store_suite::a_run("run-1"));
    there.checkpoint(&claimed.lease, &running).await.unwrap();
    assert_eq!(
        here.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 0, watched: 1 }
    );
    assert!(dir.path().join("workers/theirs.lock").exists());
    drop(there);
    assert_eq!(
        here.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 1, watched: 0 }
    );
    assert!(!dir.path().join("workers/theirs.lock").exists(), "its file goes with it");
    let job = here.job(&Scope::Operator, &job.id).await.unwrap().unwrap();
    assert!(matches!(job.state, JobState::Queued { .. }));
    assert_eq!(job.checkpoint, running);
    assert_eq!(here.rescue(&RescueBy::DeadProcess).await.unwrap(), RescueOutcome::default());
}

#[tokio::test]
async fn a_worker_without_a_file_is_dead() {
    let (here, there, dir) = two_handles();
    insert(&here).await;
    there.claim(&worker("theirs"), &profiles(), LEASE).await.unwrap().unwrap();
    std::fs::remove_file(dir.path().join("workers/theirs.lock")).unwrap();
    assert_eq!(
        here.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 1, watched: 0 }
    );
}

#[tokio::test]
async fn a_worker_of_another_handle_is_known_as_long_as_its_lock_is_held() {
    let (here, there, dir) = two_handles();
    let research = &profiles()[0];
    there.claim(&worker("theirs"), &profiles(), LEASE).await.unwrap();
    assert!(here.has_worker(research).await.unwrap());
    here.claim(&worker("ours"), &profiles()[1..], LEASE).await.unwrap();
    drop(there);
    let listed = || -> i64 {
        let count = "SELECT count(*) FROM workers";
        raw(&dir.path().join("jobs.db")).query_row(count, [], |row| row.get(0)).unwrap()
    };
    assert_eq!(listed(), 3, "the dead cannot leave by themselves");
    assert!(!here.has_worker(research).await.unwrap(), "a row is not believed without its lock");
    assert_eq!(listed(), 1, "and is removed when a process looks");
    assert!(here.has_worker(&profiles()[1]).await.unwrap());
}

#[tokio::test]
async fn a_rescue_clears_away_dead_workers_that_held_nothing() {
    let (here, there, dir) = two_handles();
    there.claim(&worker("theirs"), &profiles(), LEASE).await.unwrap();
    assert_eq!(
        here.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 0, watched: 0 }
    );
    assert!(here.has_worker(&profiles()[0]).await.unwrap());
    drop(there);
    assert_eq!(here.rescue(&RescueBy::DeadProcess).await.unwrap(), RescueOutcome::default());
    assert!(!dir.path().join("workers/theirs.lock").exists());
    let count = "SELECT count(*) FROM workers";
    let listed: i64 =
        raw(&dir.path().join("jobs.db")).query_row(count, [], |row| row.get(0)).unwrap();
    assert_eq!(listed, 0);
}

#[tokio::test]
async fn a_dismissed_workers_jobs_are_rescued_by_another_handle() {
    let (here, there, dir) = two_handles();
    insert(&here).await;
    there.claim(&worker("theirs"), &profiles(), LEASE).await.unwrap().unwrap();
    here.deregister_worker(&worker("theirs")).await.unwrap();
    assert_eq!(
        here.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 0, watched: 1 }
    );
    there.deregister_worker(&worker("theirs")).await.unwrap();
    assert!(!dir.path().join("workers/theirs.lock").exists());
    assert_eq!(
        here.rescue(&RescueBy::DeadProcess).await.unwrap(),
        RescueOutcome { jobs: 1, watched: 0 }
    );
}

#[tokio::test]
async fn a_request_on_its_way_stays_with_a_live_worker_past_its_lease() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let clock = Arc::new(ManualClock::default());
    let here = SqliteStore::open(&path, clock.clone()).unwrap();
    let there = SqliteStore::open(&path, clock.clone()).unwrap();
    let me = worker("theirs");
    let beginning = Checkpoint::Beginning { key: "k".to_owned() };
    insert(&here).await;
    let begun = there.claim(&me, &profiles(), LEASE).await.unwrap().unwrap();
    there.checkpoint(&begun.lease, &beginning).await.unwrap();
    insert(&here).await;
    let other = there.claim(&me, &profiles(), LEASE).await.unwrap().unwrap();
    clock.advance(LEASE);
    assert_eq!(here.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
    assert_eq!(there.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 0, "nor by itself");
    assert!(there.renew(std::slice::from_ref(&begun.lease), LEASE).await.unwrap().is_empty());
    assert_eq!(there.renew(&[other.lease], LEASE).await.unwrap().len(), 1);
    clock.advance(LEASE);
    drop(there);
    assert_eq!(here.rescue(&RescueBy::ExpiredLease).await.unwrap().jobs, 1);
    let job = here.job(&Scope::Operator, &begun.job.id).await.unwrap().unwrap();
    assert_eq!(job.checkpoint, beginning);
}

#[tokio::test]
async fn a_worker_with_a_name_unfit_for_a_file_claims_nothing() {
    let (store, _, dir) = two_handles();
    insert(&store).await;
    for name in ["../../escape", "", "a b"] {
        let claimed = store.claim(&worker(name), &profiles(), LEASE).await;
        assert!(matches!(claimed, Err(StoreError::Unavailable(_))), "{name:?}: {claimed:?}");
    }
    assert!(!dir.path().join("workers").exists());
    assert!(store.claim(&worker("fit-1"), &profiles(), LEASE).await.unwrap().is_some());
}

fn two_handles() -> (Arc<SqliteStore>, Arc<SqliteStore>, TempDir) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    (Arc::new(open(&path)), Arc::new(open(&path)), dir)
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Arc::new(ManualClock::default())).unwrap()
}

async fn insert(store: &SqliteStore) -> Job {
    match store.insert(an_insert(a_job())).await {
        Ok(InsertOutcome::New(job)) => job,
        other => panic!("{other:?}"),
    }
}

#[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}
