//! Maintenance of the file: backups, checks, and freed space.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers end the test, like the tests")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_core::{
    Body, Checkpoint, ConversationId, EndNotices, Insert, InsertOutcome, Job, JobQuery, JobState,
    NewJob, Output, Prune, RecoverySemantics, Request, RescueBy, ResendPolicy, ResumePolicy, Scope,
    Settlement, Store, StoreError,
};
use outlast_store::{Restore, RestoreError, SqliteStore};
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{
    LEASE, a_job, a_key, a_report, a_run, an_insert, profiles, worker,
};
use serde_json::json;
use tempfile::TempDir;

#[tokio::test(flavor = "multi_thread")]
async fn the_log_is_emptied_into_the_file_while_the_store_is_open() {
    let (store, dir) = a_store();
    let file = dir.path().join("jobs.db");
    insert(&store, a_job()).await;
    let log = || std::fs::metadata(dir.path().join("jobs.db-wal")).unwrap().len();
    let short = log();
    for _ in 0..9 {
        insert(&store, a_job()).await;
    }
    assert!(log() >= short + 9 * 4096, "no commit empties a short one");
    // More than a thousand pages, but far fewer than the number from which the writer helps.
    let ask = Request::from(json!("word ".repeat(13_000)));
    for _ in 0..80 {
        insert(&store, NewJob { request: ask.clone(), ..a_job() }).await;
    }
    let emptied = async {
        while std::fs::metadata(&file).unwrap().len() < 3_000_000 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), emptied).await.unwrap();
    store.close().await;
    assert!(!dir.path().join("jobs.db-wal").exists(), "and nothing is left of it at the end");
    assert_eq!(list(&open(&file)).await, 90);
}

/// J3: a check of citations keeps its result as data, which `store check` looks for.
#[tokio::test]
async fn j3_a_citation_check_without_a_result_is_found() {
    let (store, _dir) = a_store();
    let new = NewJob::check_of_text(a_job().owner, "a document", "Text [1].".to_owned());
    let job = insert(&store, new.clone()).await;
    let claimed = store.claim_by_id(&worker("w1"), &[new.profile], &job.id, LEASE).await;
    let lease = claimed.unwrap().unwrap().lease;
    let settlement = Settlement::Succeed { output: Arc::new(a_report()), raw: None };
    store.settle(&lease, settlement).await.unwrap();
    let problem = format!("job {} is a citation check without a result", job.id);
    assert_eq!(store.check().await.unwrap(), [problem]);
}

/// A long result is written in place, in pages that go to the log before the commit.
#[tokio::test]
async fn a_long_result_is_kept_whole_or_not_at_all() {
    let (store, dir) = a_store();
    let path = dir.path().join("jobs.db");
    let text = "r\u{e9}sum\u{e9} \"quoted\"\n".repeat(60_000);
    let output = Arc::new(Output { body: Body::report(text, Vec::new()), ..a_report() });
    let word: Vec<u8> = (0..1_000_000_u32).map(|number| number.to_le_bytes()[0]).collect();
    let settlement = Settlement::Succeed { output: output.clone(), raw: Some(word.clone().into()) };
    let job = insert(&store, a_job()).await;
    let lease = store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().unwrap().lease;
    // The trigger fires when space is reserved for the value, far more than is kept in memory.
    let obstacle =
        "CREATE TRIGGER obstacle AFTER UPDATE ON bodies BEGIN SELECT raise(ABORT, 'no'); END";
    raw(&path).execute_batch(obstacle).unwrap();
    store.settle(&lease, settlement.clone()).await.unwrap_err();
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    raw(&path).execute_batch("DROP TRIGGER obstacle").unwrap();

    store.settle(&lease, settlement).await.unwrap();
    let read = open(&path).job(&Scope::Operator, &job.id).await.unwrap().unwrap();
    let JobState::Succeeded { output: read, .. } = read.state else { panic!("{job:?}") };
    assert_eq!(read, output);
    let kept: Vec<u8> =
        raw(&path).query_row("SELECT raw FROM bodies", [], |row| row.get(0)).unwrap();
    assert_eq!(kept, word);
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    raw(&path).execute_batch("UPDATE bodies SET text = x'ff'").unwrap();
    assert_eq!(store.check().await.unwrap(), [format!("text of job {}", job.id)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_made_while_others_write_is_its_own_store() {
    let (store, dir) = a_store();
    let rival = Arc::new(open(&dir.path().join("jobs.db")));
    let running = insert(&store, a_job()).await;
    let lease = store.claim(&worker("w1"), &profiles(), LEASE).await.unwrap().unwrap().lease;
    store.checkpoint(&lease, &Checkpoint::Running(a_run("run-1"))).await.unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writing = tokio::spawn({
        let stop = stop.clone();
        async move {
            let mut written = 0;
            while !stop.load(Ordering::SeqCst) {
                insert(&rival, a_job()).await;
                written += 1;
            }
            written
        }
    });
    for number in 0..5 {
        let to = dir.path().join(format!("copy-{number}.db"));
        store.backup(&to).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    assert!(writing.await.unwrap() > 0, "the writer was not held up");
    let mut before = 0;
    for number in 0..5 {
        // A separate folder, as after a restore: no locks, no workers.
        let home = dir.path().join(format!("home-{number}"));
        std::fs::create_dir(&home).unwrap();
        std::fs::rename(dir.path().join(format!("copy-{number}.db")), home.join("jobs.db"))
            .unwrap();
        let file = home.join("jobs.db");
        let refused = SqliteStore::open(&file, Arc::new(ManualClock::default())).err();
        assert!(matches!(refused, Some(StoreError::Outdated { .. })), "{refused:?}");
        let restore = Restore {
            path: &file,
            state_dir: None,
            clock: &ManualClock::default(),
            semantics: &|_, _| {
                Some(RecoverySemantics {
                    resend: ResendPolicy::Idempotent,
                    resume: ResumePolicy::Always,
                    can_stop: true,
                })
            },
            notices: EndNotices::Kept,
            force: false,
        };
        restore.in_place().unwrap();
        let copy = open(&file);
        assert_eq!(copy.check().await.unwrap(), Vec::<String>::new());
        let count = list(&copy).await;
        assert!(count >= before, "{count} after {before}");
        before = count;
        assert_eq!(
            copy.rescue(&RescueBy::DeadProcess).await.unwrap().jobs,
            0,
            "it is in the queue already"
        );
        let job = copy.job(&Scope::Operator, &running.id).await.unwrap().unwrap();
        assert_eq!(job.checkpoint, Checkpoint::Running(a_run("run-1")));
        copy.close().await;
    }
}

#[tokio::test]
async fn a_backup_overwrites_nothing_and_leaves_one_file_that_is_its_owners_alone() {
    let (store, dir) = a_store();
    insert(&store, a_job()).await;
    let target = TempDir::new().unwrap();
    let to = target.path().join("copy.db");
    std::fs::write(&to, "precious").unwrap();
    for taken in [to.clone(), dir.path().join("jobs.db"), target.path().to_owned()] {
        let refused = store.backup(&taken).await;
        assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{taken:?}: {refused:?}");
    }
    assert_eq!(std::fs::read_to_string(&to).unwrap(), "precious");
    assert_eq!(files(target.path()), ["copy.db"]);
    std::fs::remove_file(&to).unwrap();
    store.backup(&to).await.unwrap();
    assert_eq!(files(target.path()), ["copy.db"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(std::fs::metadata(&to).unwrap().permissions().mode() & 0o777, 0o600);
    }
    let nowhere = target.path().join("missing/copy.db");
    assert!(store.backup(&nowhere).await.is_err());
    store.close().await;
    assert!(store.backup(&target.path().join("late.db")).await.is_err(), "a closed store");
    assert_eq!(files(target.path()), ["copy.db"]);
}

#[tokio::test]
async fn a_damaged_store_is_not_backed_up_as_if_it_were_sound() {
    let (store, dir) = a_store();
    insert(&store, a_job()).await;
    let raw = raw(&dir.path().join("jobs.db"));
    raw.execute_batch(
        "PRAGMA foreign_keys = OFF; INSERT INTO bodies (job, ask) VALUES (999, '{}')",
    )
    .unwrap();
    let to = dir.path().join("copy.db");
    let refused = store.backup(&to).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
    assert!(!to.exists());
}

#[tokio::test]
async fn a_sound_store_has_nothing_to_say() {
    let (store, dir) = a_store();
    lead_a_life(&store).await;
    let rival = open(&dir.path().join("jobs.db"));
    assert_eq!(rival.check().await.unwrap(), Vec::<String>::new());
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    // Each statement damages a sound store in one way, and the check reports that and nothing else.
    let table = [
        ("PRAGMA foreign_keys = OFF; DELETE FROM bodies WHERE job = 1", "has no body"),
        ("PRAGMA foreign_keys = OFF; DELETE FROM jobs WHERE seq = 1", "has no jobs"),
        ("UPDATE bodies SET output = NULL WHERE job = 1", "output of job"),
        (
            "UPDATE bodies SET output = (SELECT output FROM bodies WHERE job = 1) WHERE job = 2",
            "is running and has an output",
        ),
        ("UPDATE jobs SET checkpoint = 'x' WHERE seq = 2", "checkpoint of job"),
        ("UPDATE jobs SET fence = 0 WHERE seq = 2", "never claimed"),
        ("UPDATE jobs SET expires_at = 1 WHERE seq = 1", "wrong expires_at"),
        ("UPDATE jobs SET removable_at = 1 WHERE seq = 1", "wrong removable_at"),
        ("UPDATE meta SET value = 1", "never given out"),
        (
            "UPDATE jobs SET state = 'cancelled', remote = 'owed', ended_at = 1, run_at = NULL WHERE seq = 3",
            "no remote run",
        ),
        (
            "PRAGMA ignore_check_constraints = ON; UPDATE jobs SET worker = NULL WHERE seq = 2",
            "CHECK constraint failed",
        ),
        (
            "DROP INDEX jobs_busy; UPDATE jobs SET conversation = 'talk' WHERE seq IN (2, 3)",
            "has 2 unfinished jobs",
        ),
    ];
    for (harm, expected) in table {
        let (store, dir) = a_store();
        lead_a_life(&store).await;
        raw(&dir.path().join("jobs.db")).execute_batch(harm).unwrap();
        let problems = store.check().await.unwrap();
        assert!(!problems.is_empty(), "{harm}");
        for problem in problems {
            assert!(problem.contains(expected), "{harm}: {problem}");
        }
    }
}

/// B9a: without force, a restore replaces only a store that certainly has no jobs, and refuses a store that nothing shows to
/// be an older copy.
#[tokio::test]
async fn b9a_a_restore_replaces_nothing_that_may_have_jobs() {
    let (store, dir) = a_store();
    let (path, backup) = (dir.path().join("jobs.db"), dir.path().join("backup.db"));
    insert(&store, a_job()).await;
    store.backup(&backup).await.unwrap();
    store.close().await;
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Always,
        can_stop: true,
    };
    let restore = Restore {
        path: &path,
        state_dir: None,
        clock: &ManualClock::default(),
        semantics: &|_, _| Some(semantics),
        force: false,
        notices: EndNotices::Off,
    };
    let refused = restore.in_place();
    assert!(matches!(refused, Err(RestoreError::Current { jobs: 1 })), "{refused:?}");
    let refused = restore.from_backup(&backup);
    assert!(matches!(refused, Err(RestoreError::Exists { jobs: Some(1) })), "{refused:?}");
    std::fs::write(&path, "no database").unwrap();
    let refused = restore.from_backup(&backup);
    assert!(matches!(refused, Err(RestoreError::Exists { jobs: None })), "{refused:?}");
    let forced = Restore { force: true, ..restore }.from_backup(&backup).unwrap();
    assert_eq!(std::fs::read(forced.kept.unwrap()).unwrap(), b"no database");
    std::fs::write(&path, "").unwrap();
    assert_eq!(restore.from_backup(&backup).unwrap().jobs.len(), 1);
}

#[tokio::test]
async fn a_damaged_page_is_found() {
    let (store, dir) = a_store();
    for _ in 0..50 {
        insert(&store, NewJob { request: json!("x".repeat(2000)).into(), ..a_job() }).await;
    }
    store.close().await;
    let path = dir.path().join("jobs.db");
    let mut bytes = std::fs::read(&path).unwrap();
    // After the pages that opening reads, among those of the jobs.
    let damaged = bytes.len() * 3 / 4 / 4096 * 4096;
    bytes[damaged..damaged + 512].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let store = open(&path);
    assert!(!store.check().await.unwrap().is_empty());
    let refused = store.backup(&dir.path().join("copy.db")).await;
    assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_prune_gives_its_room_back_and_delays_no_writer() {
    const FEW: usize = 90;
    const JOBS: usize = 450;
    let clock = Arc::new(ManualClock::default());
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("jobs.db");
    let store = Arc::new(SqliteStore::open(&path, clock.clone()).unwrap());
    let long = Request::from(json!("x".repeat(60_000)));
    for number in 0..JOBS {
        let keep = Some(Duration::from_secs(if number < FEW { 30 } else { 60 }));
        let job = insert(&store, NewJob { keep, request: long.clone(), ..a_job() }).await;
        store.cancel(&Scope::Operator, &job.id).await.unwrap();
    }
    let kept = insert(&store, NewJob { request: long.clone(), ..a_job() }).await;
    let pages = |path: &Path| -> i64 {
        raw(path).query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap()
    };
    let before = pages(&path);
    // A fifth stays free for new jobs.
    clock.advance(Duration::from_secs(30));
    let pruned = store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    assert_eq!((pruned.jobs as usize, pages(&path)), (FEW, before));
    clock.advance(Duration::from_secs(30));
    let pruning = tokio::spawn({
        let store = store.clone();
        async move { store.prune(&Scope::Operator, &Prune::Expired).await.unwrap() }
    });
    let mut between = 0;
    while !pruning.is_finished() {
        insert(&store, a_job()).await;
        between += 1;
    }
    let pruned = pruning.await.unwrap();
    assert_eq!((pruned.jobs as usize, pruned.next_expiry), (JOBS - FEW, None));
    assert!(between >= 5, "only {between} others wrote meanwhile");
    let after = pages(&path);
    assert!(after < before / 3, "{after} of {before} pages are left");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    assert_eq!(store.job(&Scope::Operator, &kept.id).await.unwrap(), Some(kept));
    let orphans: i64 =
        raw(&path).query_row("SELECT count(*) FROM bodies", [], |row| row.get(0)).unwrap();
    assert_eq!(orphans, 1 + between, "bodies go with their jobs");
}

/// Job 1 succeeded and has a key, job 2 is running, job 3 is queued.
async fn lead_a_life(store: &SqliteStore) {
    let w1 = worker("w1");
    let job = NewJob {
        conversation: Some(ConversationId::new("talk")),
        keep: Some(Duration::from_secs(5)),
        ..a_job()
    };
    let keyed = Insert { key: Some(a_key("k", 1)), ..an_insert(job) };
    store.insert(keyed).await.unwrap();
    let lease = store.claim(&w1, &profiles(), LEASE).await.unwrap().unwrap().lease;
    let succeed = Settlement::Succeed { output: a_report().into(), raw: Some(vec![1].into()) };
    store.settle(&lease, succeed).await.unwrap();
    insert(store, a_job()).await;
    store.claim(&w1, &profiles(), LEASE).await.unwrap().unwrap();
    insert(store, a_job()).await;
}

fn a_store() -> (SqliteStore, TempDir) {
    let dir = TempDir::new().unwrap();
    (open(&dir.path().join("jobs.db")), dir)
}

fn open(path: &Path) -> SqliteStore {
    SqliteStore::open(path, Arc::new(ManualClock::default())).unwrap()
}

async fn insert(store: &SqliteStore, job: NewJob) -> Job {
    match store.insert(an_insert(job)).await {
        Ok(InsertOutcome::New(job)) => job,
        other => panic!("{other:?}"),
    }
}

async fn list(store: &SqliteStore) -> usize {
    let query = JobQuery { limit: 1_000_000, ..JobQuery::default() };
    store.list(&Scope::Operator, &query).await.unwrap().jobs.len()
}

fn files(dir: &Path) -> Vec<String> {
    let names = std::fs::read_dir(dir).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}
