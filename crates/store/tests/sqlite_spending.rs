//! The ledger in a file that the processes of one machine share (G6).

#![expect(clippy::unwrap_used, reason = "helpers end the test, like the tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Again, Day, EndNotices, Insert, Inserted, Nature, NewJob, NoticeClaim, Resumes, Scope,
    Settlement, SpendBy, SpendQuery, SpendSum, Store, StoreError, WorkerId,
};
use outlast_store::{Restore, SqliteStore, SystemClock};
use outlast_testkit::store_suite::{a_cost, a_failure, a_job, a_reservation, an_insert};
use tempfile::TempDir;

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Arc::new(SystemClock)).unwrap()
}

fn paid(per_day: Option<u64>) -> Insert {
    Insert { reservation: Some(a_reservation(10, per_day)), ..an_insert(a_job()) }
}

async fn spent(store: &SqliteStore) -> Vec<SpendSum> {
    let query = SpendQuery { by: SpendBy::Provider, since: Day(0) };
    store.spend(&Scope::Operator, &query).await.unwrap()
}

/// G6: of 200 starts at once over two handles, which share nothing but the file, none is too many.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn g6_200_starts_at_once_stay_within_the_days_limit() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let handles = [Arc::new(open(&path)), Arc::new(open(&path))];
    let starts: Vec<_> = (0..200)
        .map(|number| {
            let store = Arc::clone(&handles[number % 2]);
            tokio::spawn(async move { store.insert(paid(Some(1_205))).await })
        })
        .collect();
    let mut made = 0;
    for start in starts {
        match start.await.unwrap() {
            Ok(Inserted::New(_)) => made += 1,
            Err(StoreError::BudgetExceeded(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, 120);
    let sums = spent(&handles[1]).await;
    assert_eq!((sums[0].reserved, sums[0].runs), (a_cost(1_200), 120));
}

/// G6: what a backup had not finished may have been spent since; the check finds what is reserved for no job.
#[tokio::test]
async fn g6_a_restore_keeps_what_may_have_been_spent_since() {
    let dir = TempDir::new().unwrap();
    let (path, backup) = (dir.path().join("jobs.db"), dir.path().join("backup.db"));
    let store = open(&path);
    store.insert(paid(None)).await.unwrap();
    store.backup(&backup).await.unwrap();
    store.close().await;
    let nature = Nature { again: Again::Never, resumes: Resumes::Always, stops: true };
    let nature = |_: &_, _: &_| Some(nature);
    Restore {
        path: &path,
        state_dir: None,
        clock: &SystemClock,
        nature: &nature,
        force: true,
        notices: EndNotices::Off,
    }
    .from_backup(&backup)
    .unwrap();
    let store = open(&path);
    assert_eq!(spent(&store).await[0].maybe, a_cost(10));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    store.close().await;
    raw(&path).execute_batch("UPDATE ledger SET state = 'reserved'").unwrap();
    let found = open(&path).check().await.unwrap();
    assert!(found[0].contains("is reserved, and the job is not unfinished"), "{found:?}");
}

#[expect(clippy::disallowed_methods, reason = "tests damage what the store would not")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// G7: the process that inserts a job wants a notice of its end, and the one that ends it keeps none of its own.
#[tokio::test]
async fn g7_a_worker_without_notify_keeps_the_notice_that_the_insert_asked_for() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let (telling, silent) = (open(&path).with_notices(EndNotices::Kept), open(&path));
    let ends = [("wanted", &telling, true), ("unwanted", &silent, false)];
    for (title, inserting, is_told) in ends {
        let job = NewJob { title: title.to_owned(), ..a_job() };
        inserting.insert(an_insert(job)).await.unwrap();
        let (worker, lease) = (WorkerId::new("w"), Duration::from_secs(30));
        let claimed = silent.claim(&worker, &[a_job().profile], lease).await.unwrap().unwrap();
        let failure = a_failure("no");
        silent.settle(&claimed.lease, Settlement::Fail { failure, raw: None }).await.unwrap();
        let notice = telling.claim_notice(lease).await.unwrap();
        assert_eq!(matches!(notice, NoticeClaim::Claimed(_)), is_told, "{title}: {notice:?}");
    }
}
