//! A store copied to another: all jobs with all their related rows, however often the copy was interrupted (F8).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, Checkpoint, ConversationId, EndNotices, Insert, InsertOutcome, Job, JobQuery, Key,
    KeyLife, NanoUsd, NewJob, NewStep, Output, OwnerId, Page, Progress, Resend, Reservation, Scope,
    Settlement, StepEnd, StepResult, Store, StoreError, Timestamp, Visibility,
};
use outlast_store::{
    CopyCounts, CopyError, CopyPass, CopyRefusal, Judgement, PostgresOptions, PostgresStore,
    SqliteStore, StorePlace, SystemClock, copy,
};
use outlast_testkit::store_suite::{
    LEASE, a_failure, a_job, a_key, a_report, a_reservation, a_run, an_insert, profiles, worker,
};
use tempfile::TempDir;

use crate::database::Database;

/// A text that PostgreSQL would refuse, and one that looks like its escape.
const AWKWARD: &str = "a\0b \u{f0000}0 \u{f0000}\0";

struct File {
    _dir: TempDir,
    path: PathBuf,
}

impl File {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { path: dir.path().join("jobs.db"), _dir: dir }
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(&self.path, Arc::new(SystemClock)).unwrap()
    }

    fn place(&self) -> StorePlace<'_> {
        StorePlace::Sqlite((&self.path).into())
    }

    /// Returns all rows of jobs, by the name of their table.
    fn rows(&self) -> BTreeMap<&'static str, Vec<String>> {
        let connection = raw(&self.path);
        let select = |(table, order)| {
            let select = format!("SELECT * FROM {table} ORDER BY {order}");
            let mut statement = connection.prepare(&select).unwrap();
            let columns = statement.column_count();
            let rows = statement.query_map([], |row| {
                let values =
                    (0..columns).map(|column| row.get::<_, rusqlite::types::Value>(column));
                Ok(format!("{:?}", values.collect::<Result<Vec<_>, _>>()?))
            });
            (table, rows.unwrap().collect::<Result<_, _>>().unwrap())
        };
        let tables = [
            ("jobs", "seq"),
            ("bodies", "job"),
            ("keys", "job"),
            ("ledger", "job, run"),
            ("steps", "job, key"),
            ("step_outputs", "job, key"),
            ("pages", "owner, digest"),
            ("step_pages", "job, digest"),
        ];
        tables.map(select).into()
    }
}

#[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

async fn copied(from: StorePlace<'_>, to: StorePlace<'_>) -> Result<CopyCounts, CopyError> {
    copy(from, to, &mut |_, _, _| {}).await
}

fn all() -> JobQuery {
    JobQuery { limit: 1_000, ..JobQuery::default() }
}

/// Adds a job that is paid for (G6).
async fn add(store: &dyn Store, insert: Insert) -> Job {
    let (provider, model) = (AWKWARD.to_owned(), Some(AWKWARD.to_owned()));
    let reservation = Some(Reservation { provider, model, ..a_reservation(7, None) });
    match store.insert(Insert { reservation, ..insert }).await.unwrap() {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

fn keyed(job: NewJob, key: Key) -> Insert {
    Insert { key: Some(key), ..an_insert(job) }
}

fn long_report() -> Output {
    let text = "long \0 report, with \u{f0000}0 in it. ".repeat(20_000);
    Output { body: Body::report(text, Vec::new()), ..a_report() }
}

/// Adds jobs in every state, with every kind of key, in conversations, and with awkward texts.
async fn fill(store: &dyn Store) {
    let awkward = NewJob {
        owner: OwnerId::new(AWKWARD),
        conversation: Some(ConversationId::new(AWKWARD)),
        workflow: AWKWARD.to_owned(),
        title: AWKWARD.to_owned(),
        request: serde_json::json!({ "session_id": AWKWARD, "weight": 0.1, "big": 1e300, AWKWARD: [null] }).into(),
        keep: Some(Duration::from_secs(86_400)),
        life: Some(Duration::from_secs(3_600)),
        priority: -7,
        ..a_job()
    };
    let me = worker("copied");
    let claim = || async { store.claim(&me, &profiles(), LEASE).await.unwrap().unwrap() };
    // Succeeded, failed after a retry, and cancelled with a pending stop.
    add(store, keyed(awkward.clone(), a_key(AWKWARD, 1))).await;
    let raw = Some(Arc::new(b"\0raw\xff".repeat(1_000)));
    let done = Settlement::Succeed { output: long_report().into(), raw: raw.clone() };
    store.settle(&claim().await.lease, done).await.unwrap();
    let mut second = keyed(awkward.clone(), a_key("second", 2));
    second.job.visibility = Visibility::Task;
    add(store, second).await;
    let failing = add(store, an_insert(a_job())).await;
    let retry = Settlement::Retry {
        failure: a_failure(AWKWARD),
        wait: Duration::ZERO,
        checkpoint: Checkpoint::Running(a_run(AWKWARD)),
    };
    store.settle(&claim().await.lease, retry).await.unwrap();
    let failed = Settlement::Fail { failure: a_failure("for good"), raw };
    let claimed = claim().await;
    assert_eq!(claimed.job.id, failing.id);
    store.settle(&claimed.lease, failed).await.unwrap();
    let life = KeyLife::Replays {
        unanswered: Duration::from_secs(1_800),
        answered: Duration::from_secs(600),
    };
    let owed = add(store, keyed(a_job(), Key { life, ..a_key("replays", 3) })).await;
    let lease = claim().await.lease;
    store.checkpoint(&lease, &Checkpoint::Running(a_run("run"))).await.unwrap();
    store.cancel(&Scope::Operator, &owed.id).await.unwrap();
    store.record_answer(&owed.id).await.unwrap();
    // Running, at every checkpoint.
    for checkpoint in [None, Some(Checkpoint::Beginning { key: AWKWARD.to_owned() })] {
        add(store, an_insert(a_job())).await;
        let lease = claim().await.lease;
        // A journal, and a page that both jobs have read.
        for key in [AWKWARD, "open"] {
            store.begin_step(&lease, &step(key)).await.unwrap();
        }
        let end = StepEnd::free(StepResult::Done(AWKWARD.repeat(9)));
        store.end_step(&lease, AWKWARD, &end).await.unwrap();
        store.save_page(&lease, &page(), u64::MAX).await.unwrap();
        if let Some(checkpoint) = checkpoint {
            store.checkpoint(&lease, &checkpoint).await.unwrap();
            let progress = Progress { percent: Some(7), message: AWKWARD.to_owned() };
            store.show_progress(&lease, &progress).await.unwrap();
        }
    }
    // Queued; one number of arrival is unused.
    let life = KeyLife::UntilAnswered { after_end: Duration::from_secs(60) };
    add(store, keyed(a_job(), Key { life, ..a_key("held", 4) })).await;
    let subject = Some(owed.id);
    add(store, keyed(NewJob { subject, ..a_job() }, Key::for_subject(&owed.id))).await;
}

fn step(key: &str) -> NewStep {
    NewStep {
        key: key.to_owned(),
        kind: AWKWARD.to_owned(),
        input_digest: [7; 32],
        bound: NanoUsd(3),
        resend: Resend::Refuse,
        max_bytes: u64::MAX,
    }
}

fn page() -> Page {
    Page {
        digest: [9; 32],
        url: AWKWARD.to_owned(),
        final_url: AWKWARD.to_owned(),
        status: 404,
        media_type: Some(AWKWARD.to_owned()),
        fetched_at: Timestamp::from_millis(7),
        truncated: true,
        text: AWKWARD.repeat(99),
    }
}

/// F8: an incomplete copy and a file of an earlier version get different errors and are not changed.
#[tokio::test]
async fn f8_a_half_copied_file_is_not_served_and_an_old_one_not_copied() {
    let (file, other) = (File::new(), File::new());
    file.open().close().await;
    let half = "INSERT INTO meta (name, value) VALUES ('copying', 7)";
    raw(&file.path).execute_batch(half).unwrap();
    let refused = SqliteStore::open(&file.path, Arc::new(SystemClock)).err();
    assert!(matches!(refused, Some(StoreError::Unavailable(_))), "{refused:?}");
    let old = "DELETE FROM meta WHERE name = 'copying'; PRAGMA user_version = 1";
    raw(&file.path).execute_batch(old).unwrap();
    let refused = copy(file.place(), other.place(), &mut |_, _, _| {}).await;
    assert!(format!("{refused:?}").contains("OldSchema"), "{refused:?}");
}

/// F8: a file copied to a database and back is the same, row by row. The database is sound and accepts further jobs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_a_store_copied_to_postgres_and_back_is_the_same() {
    let (from, database, back) = (File::new(), Database::fresh().await, File::new());
    let store = from.open();
    fill(&store).await;
    let first = store.list(&Scope::Operator, &all()).await.unwrap().jobs;
    store.close().await;
    let before = from.rows();
    assert_eq!(before["ledger"].len(), before["jobs"].len(), "G6: the ledger is copied too");
    let there = copied(from.place(), StorePlace::Postgres(database.url())).await.unwrap();
    assert_eq!((there.jobs, there.written), (before["jobs"].len() as u64, there.jobs));
    assert!(there.unfinished > 0);
    assert_eq!(from.rows(), before, "the source is not changed");
    let again = copied(StorePlace::Postgres(database.url()), back.place()).await.unwrap();
    assert_eq!(again, there);
    assert_eq!(back.rows(), before);

    let store = database.open().await;
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    let found = store.list(&Scope::Operator, &all()).await.unwrap().jobs;
    assert_eq!(found, first, "they are listed in the same order");
    for summary in &found {
        store.job(&Scope::Operator, &summary.id).await.unwrap().unwrap();
    }
    let rev = store.rev().await.unwrap();
    let next = add(&store, an_insert(a_job())).await;
    assert!(next.rev > rev, "numbers go on: {:?} after {rev:?}", next.rev);
    let held = Insert { key: Some(a_key(AWKWARD, 1)), ..an_insert(a_job()) };
    let held = Insert { job: NewJob { owner: OwnerId::new(AWKWARD), ..held.job }, ..held };
    assert!(matches!(store.insert(held).await.unwrap(), InsertOutcome::Existing { .. }));
    let store = back.open();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    add(&store, an_insert(a_job())).await;
}

/// F8: copies also work between two files, between two databases, and for an empty store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_stores_of_one_kind_and_empty_ones_are_copied() {
    let (from, to) = (File::new(), File::new());
    let store = from.open();
    store.close().await;
    let nothing = CopyCounts { jobs: 0, written: 0, unfinished: 0 };
    assert_eq!(copied(from.place(), to.place()).await.unwrap(), nothing);
    let store = from.open();
    fill(&store).await;
    store.close().await;
    copied(from.place(), to.place()).await.unwrap();
    assert_eq!(to.rows(), from.rows());
    let (one, other, back) = (Database::fresh().await, Database::fresh().await, File::new());
    copied(from.place(), StorePlace::Postgres(one.url())).await.unwrap();
    let moved = copied(StorePlace::Postgres(one.url()), StorePlace::Postgres(other.url())).await;
    moved.unwrap();
    copied(StorePlace::Postgres(other.url()), back.place()).await.unwrap();
    assert_eq!(back.rows(), from.rows());
}

/// F8: an interrupted copy continues at the place where it stopped, even if servers used the source in between. Until it is
/// complete, servers and a copy of another store refuse the target.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_an_interrupted_copy_is_completed_and_not_served_before() {
    let (from, database, other) = (File::new(), Database::fresh().await, File::new());
    let store = from.open();
    fill(&store).await;
    for _ in 0..450 {
        add(&store, an_insert(a_job())).await;
    }
    store.close().await;
    let to = StorePlace::Postgres(database.url());
    let cut = tokio::spawn({
        let (path, url) = (from.path.clone(), database.url().to_owned());
        async move {
            let mut progress = |pass, done, _| {
                assert!(pass == CopyPass::Copying && done < 200, "cut off here");
            };
            copy(StorePlace::Sqlite((&path).into()), StorePlace::Postgres(&url), &mut progress)
                .await
        }
    });
    assert!(cut.await.is_err(), "it was cut off");
    let asking = async {
        loop {
            let refused = refused_open(&database).await;
            if refused.contains("was interrupted") {
                return;
            }
            assert!(refused.contains("is being copied"), "{refused}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), asking).await.expect("its session ends");
    let store = other.open();
    add(&store, an_insert(a_job())).await;
    store.close().await;
    let foreign = retried(|| copied(other.place(), to)).await;
    let Err(CopyError::To(CopyRefusal::NotEmpty { jobs, .. })) = foreign else {
        panic!("{foreign:?}")
    };
    assert!(jobs > 0);

    // Copied jobs have changed meanwhile; others were added and removed.
    let store = from.open();
    let mut queued = 0;
    while let Some(claimed) = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap() {
        let done = Settlement::Succeed { output: a_report().into(), raw: None };
        store.settle(&claimed.lease, done).await.unwrap();
        queued += 1;
        if queued == 20 {
            break;
        }
    }
    store.close().await;
    let completed = copied(from.place(), to).await.unwrap();
    assert!(completed.written > 0, "{completed:?}");
    let back = File::new();
    copied(to, back.place()).await.unwrap();
    assert_eq!(back.rows(), from.rows());
    let again = copied(from.place(), to).await;
    assert!(matches!(again, Err(CopyError::To(CopyRefusal::NotEmpty { .. }))), "{again:?}");
}

/// F8: the jobs copied before an interruption are not written again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_a_completed_copy_writes_only_what_is_missing() {
    let (from, database) = (File::new(), Database::fresh().await);
    let store = from.open();
    for _ in 0..450 {
        add(&store, an_insert(a_job())).await;
    }
    store.close().await;
    let cut = tokio::spawn({
        let (path, url) = (from.path.clone(), database.url().to_owned());
        async move {
            let mut progress = |_, done, _| assert!(done < 400, "cut off here");
            copy(StorePlace::Sqlite((&path).into()), StorePlace::Postgres(&url), &mut progress)
                .await
        }
    });
    assert!(cut.await.is_err(), "it was cut off");
    let to = StorePlace::Postgres(database.url());
    let completed = retried(|| copied(from.place(), to)).await.unwrap();
    assert_eq!(completed, CopyCounts { jobs: 450, written: 50, unfinished: 450 });
}

/// F8: a store that servers use can be neither the source nor the target of a copy, and is not changed. A server that starts
/// during a copy receives the reason for the refusal.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_a_served_store_is_refused_and_a_copied_one_is_not_served() {
    let (file, database) = (File::new(), Database::fresh().await);
    let (served_file, served) = (file.open(), database.open().await);
    let (empty, fresh) = (File::new(), Database::fresh().await);
    let to = StorePlace::Postgres(database.url());
    let refused = copied(file.place(), StorePlace::Postgres(fresh.url())).await;
    assert!(matches!(refused, Err(CopyError::From(CopyRefusal::InUse))), "{refused:?}");
    let refused = copied(to, empty.place()).await;
    assert!(matches!(refused, Err(CopyError::From(CopyRefusal::InUse))), "{refused:?}");
    add(&served_file, an_insert(a_job())).await;
    served_file.close().await;
    let refused = copied(file.place(), to).await;
    assert!(matches!(refused, Err(CopyError::To(CopyRefusal::InUse))), "{refused:?}");
    assert!(served.list(&Scope::Operator, &all()).await.unwrap().jobs.is_empty());
    served.close().await;

    let told = std::sync::Mutex::new(Vec::new());
    let mut progress = |_, _, _| {
        let opening = async { refused_open(&database).await };
        let why =
            tokio::task::block_in_place(|| tokio::runtime::Handle::current().block_on(opening));
        let on_file = SqliteStore::open(&file.path, Arc::new(SystemClock)).err();
        told.lock().unwrap().push((why, on_file.map(|error| format!("{error:?}"))));
    };
    // The session of the closed server ends a moment after the close.
    let copying = async {
        while let Err(error) = copy(file.place(), to, &mut progress).await {
            assert!(matches!(error, CopyError::To(CopyRefusal::InUse)), "{error:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), copying).await.expect("its session ends");
    let told = told.into_inner().unwrap();
    assert!(!told.is_empty());
    for (database, file) in told {
        assert!(database.contains("is being copied"), "{database}");
        assert!(file.unwrap().contains("restored"), "the file is not served either");
    }
    let found = database.open().await.list(&Scope::Operator, &all()).await.unwrap();
    assert_eq!(found.jobs.len(), 1);
}

/// F8: a source that is missing or damaged is refused. A job that cannot be read is not skipped.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f8_a_source_that_cannot_be_read_whole_is_refused() {
    let (file, database) = (File::new(), Database::fresh().await);
    let to = StorePlace::Postgres(database.url());
    let missing = copied(file.place(), to).await;
    assert!(matches!(missing, Err(CopyError::From(CopyRefusal::Missing))), "{missing:?}");
    let missing = copied(to, file.place()).await;
    assert!(matches!(missing, Err(CopyError::From(CopyRefusal::Missing))), "{missing:?}");
    assert!(!file.path.exists(), "nothing was made");
    let store = file.open();
    for _ in 0..3 {
        add(&store, an_insert(a_job())).await;
    }
    store.close().await;
    raw(&file.path).execute_batch("DELETE FROM bodies WHERE job = 2").unwrap();
    let damaged = copied(file.place(), to).await;
    let Err(CopyError::From(CopyRefusal::Store(StoreError::Corrupt { at }))) = damaged else {
        panic!("{damaged:?}")
    };
    assert!(at.contains("1 to 3"), "{at}");
}

/// Retries while the session of an interrupted copy is still open; it ends a moment after the copy.
async fn retried<F, T>(attempt: impl Fn() -> F) -> Result<T, CopyError>
where
    F: Future<Output = Result<T, CopyError>>,
{
    let trying = async {
        loop {
            match attempt().await {
                Err(CopyError::From(CopyRefusal::InUse) | CopyError::To(CopyRefusal::InUse)) => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                done => return done,
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), trying).await.expect("its session ends")
}

/// Returns the reason why a server cannot use the database.
async fn refused_open(database: &Database) -> String {
    let options = PostgresOptions {
        url: database.url().to_owned(),
        clock: None,
        judgement: Judgement::default(),
        notices: EndNotices::Off,
        limits: outlast_store::ConnectionLimits::default(),
        state_dir: None,
    };
    match PostgresStore::open(options).await {
        Ok(_) => "it was opened".to_owned(),
        Err(StoreError::Unavailable(why)) => why.to_string(),
        Err(other) => panic!("{other:?}"),
    }
}
