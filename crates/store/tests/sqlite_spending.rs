//! The ledger in a file that the processes of one machine share (G6).

#![expect(clippy::unwrap_used, reason = "helpers end the test, like the tests")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Day, EndNotices, Insert, InsertOutcome, NewJob, NoticeClaim, RecoverySemantics, ResendPolicy,
    ResumePolicy, Scope, Settlement, SpendBy, SpendQuery, SpendSum, Store, StoreError, WorkerId,
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

/// G6: of 200 concurrent starts over two handles, which share only the file, none exceeds the limit.
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
            Ok(InsertOutcome::New(_)) => made += 1,
            Err(StoreError::BudgetExceeded(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(made, 120);
    let sums = spent(&handles[1]).await;
    assert_eq!((sums[0].reserved, sums[0].runs), (a_cost(1_200), 120));
}

/// G6: jobs that a backup had not finished may have cost money since. The check finds a reservation without a job.
#[tokio::test]
async fn g6_a_restore_keeps_what_may_have_been_spent_since() {
    let dir = TempDir::new().unwrap();
    let (path, backup) = (dir.path().join("jobs.db"), dir.path().join("backup.db"));
    let store = open(&path);
    store.insert(paid(None)).await.unwrap();
    store.backup(&backup).await.unwrap();
    store.close().await;
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Always,
        can_stop: true,
    };
    let semantics = |_: &_, _: &_| Some(semantics);
    Restore {
        path: &path,
        state_dir: None,
        clock: &SystemClock,
        semantics: &semantics,
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

/// G7: the process that inserts a job wants a notice of its end; the process that ends it keeps no notices itself.
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

/// A running process of the previous version replaces rows of the ledger, and does not know the sums.
#[tokio::test]
async fn g6_sums_follow_every_write_of_the_previous_version() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let store = open(&path);
    #[expect(clippy::disallowed_methods, reason = "writes as an earlier program does")]
    let previous = rusqlite::Connection::open(&path).unwrap();
    let put = |job: &str, model: Option<&str>, amount: Option<i64>, state: &str| {
        let kind = if amount.is_some() { "reported" } else { "unknown" };
        let put = "INSERT OR REPLACE INTO ledger (job, run, owner, provider, model, at, day, reserved, amount, kind, state, remote, run_id)
                   VALUES (?1, 1, 'ann', 'openai', ?2, 0, 7, 2000000001, ?3, ?4, ?5, NULL, NULL)";
        previous.execute(put, (job, model, amount, kind, state)).unwrap();
    };
    let sums = async || {
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        let query = SpendQuery { by: SpendBy::Model, since: Day(0) };
        let sums = store.spend(&Scope::Operator, &query).await.unwrap();
        sums.iter()
            .map(|sum| (sum.key.clone(), sum.spent.0, sum.maybe.0, sum.runs))
            .collect::<Vec<_>>()
    };
    put("a", None, None, "maybe");
    put("b", Some(""), None, "maybe");
    let unknown = ("unknown".to_owned(), 0, 2_000_000_001, 1);
    assert_eq!(sums().await, [(String::new(), 0, 2_000_000_001, 1), unknown.clone()]);
    put("b", Some("m"), Some(3_999_999_999), "spent");
    assert_eq!(sums().await, [("m".to_owned(), 3_999_999_999, 0, 1), unknown]);
    put("a", None, None, "released");
    put("b", Some("m"), Some(4_000_000_000), "spent");
    assert_eq!(sums().await, [("m".to_owned(), 4_000_000_000, 0, 1)]);
    previous.execute("UPDATE ledger SET job = 'c', state = 'spent' WHERE job = 'b'", []).unwrap();
    assert_eq!(sums().await, [("m".to_owned(), 4_000_000_000, 0, 1)]);
    previous.execute("DELETE FROM ledger", []).unwrap();
    assert_eq!(sums().await, []);
    let left: i64 = previous
        .query_row(
            "SELECT count(*) FROM ledger_days WHERE runs <> 0 OR dollars <> 0 OR rest <> 0",
            [],
            |row| row.get(0),
        )
        .unwrap();
    assert_eq!(left, 0);
    store.close().await;
}
