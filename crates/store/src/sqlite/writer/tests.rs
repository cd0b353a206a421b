//! Tests that commands share a commit and that a failed one undoes no other.

use std::fs::File;

use outlast_core::{EndNotices, InsertOutcome, Job, NewJob};
use outlast_testkit::clock::ManualClock;
use outlast_testkit::store_suite::{a_job, an_insert};
use tempfile::TempDir;

use super::*;
use crate::sqlite::{insert, open, reads};

struct Fixture {
    writer: Writer,
    /// The write lock's file. While a test holds its lock, the writer waits.
    rival: File,
    reader: Connection,
    clock: Arc<ManualClock>,
    _dir: TempDir,
}

fn fixture() -> Fixture {
    let dir = TempDir::new().unwrap();
    let (path, lock_path) = (dir.path().join("jobs.db"), dir.path().join("jobs.db.wlock"));
    open::make_files(&path).unwrap();
    let lock = WriteLock::open(&lock_path, Duration::from_secs(60)).unwrap();
    let connection = open::prepare(&path, Some(&lock)).unwrap();
    let reader = open::connect(&path, open::ConnectionPurpose::Read).unwrap();
    let file = Arc::new(DatabaseFile::of(&path, open::ConnectionPurpose::Read).unwrap());
    let clock = Arc::new(ManualClock::default());
    let commits = Arc::new(OwnCommits::new());
    let mark = LockedMarkFile::open_shared((&path).into()).unwrap();
    let thread = WriterThread {
        connection,
        file,
        lock,
        clock: Arc::<ManualClock>::clone(&clock),
        commits,
        mark,
        store: 7,
    };
    let writer = Writer::start(thread).unwrap();
    let rival = File::options().write(true).open(lock_path).unwrap();
    Fixture { writer, rival, reader, clock, _dir: dir }
}

fn add(tx: &mut Tx<'_>, job: NewJob) -> Result<Job, Fault> {
    match insert::insert(tx, an_insert(job), EndNotices::Off)? {
        InsertOutcome::New(job) | InsertOutcome::Existing { job, .. } => Ok(job),
    }
}

fn count(reader: &Connection) -> usize {
    reads::changes(reader, Rev(0), outlast_testkit::clock::START).unwrap().jobs.len()
}

#[tokio::test]
async fn a_command_that_fails_or_panics_undoes_no_other() {
    let fixture = fixture();
    let writer = &fixture.writer;
    fixture.rival.lock().unwrap();
    let (refused, first, panicked, second, ()) = tokio::join!(
        writer.run(|tx| {
            add(tx, a_job())?;
            Err::<(), _>(StoreError::TooManyJobs.into())
        }),
        writer.run(|tx| add(tx, a_job())),
        writer.run(|tx| -> Result<(), Fault> {
            add(tx, a_job())?;
            panic!("on purpose")
        }),
        writer.run(|tx| add(tx, a_job())),
        async { fixture.rival.unlock().unwrap() },
    );
    assert!(matches!(refused, Err(StoreError::TooManyJobs)), "{refused:?}");
    assert!(matches!(panicked, Err(StoreError::Unavailable(_))), "{panicked:?}");
    let first = first.unwrap();
    assert_eq!(first.rev, second.unwrap().rev, "they shared a commit");
    assert_eq!(count(&fixture.reader), 2);
    let third = writer.run(|tx| add(tx, a_job())).await.unwrap();
    assert!(third.rev > first.rev, "a rev that was rolled back is not given out twice");
    assert_eq!(count(&fixture.reader), 3);
}

#[tokio::test]
async fn a_commit_that_fails_is_reported_to_every_caller_in_it() {
    let fixture = fixture();
    let writer = &fixture.writer;
    fixture.rival.lock().unwrap();
    let (innocent, culprit, refused, ()) = tokio::join!(
        writer.run(|tx| add(tx, a_job())),
        writer.run(|tx| {
            // A foreign key violation that SQLite reports only at the commit.
            let orphan =
                "PRAGMA defer_foreign_keys = ON; INSERT INTO bodies (job, ask) VALUES (999, '')";
            Ok(tx.connection.execute_batch(orphan)?)
        }),
        writer.run(|_| Err::<(), _>(StoreError::TooManyJobs.into())),
        async { fixture.rival.unlock().unwrap() },
    );
    assert!(matches!(innocent, Err(StoreError::Unavailable(_))), "{innocent:?}");
    assert!(matches!(culprit, Err(StoreError::Unavailable(_))), "{culprit:?}");
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    assert_eq!(count(&fixture.reader), 0);
    writer.run(|tx| add(tx, a_job())).await.unwrap();
    assert_eq!(count(&fixture.reader), 1);
}

#[tokio::test]
async fn a_full_store_refuses_still_reads_and_goes_on_when_there_is_room() {
    let fixture = fixture();
    let writer = &fixture.writer;
    let pages = async |most: i64| {
        let limit = move |tx: &mut Tx<'_>| {
            let set = format!("PRAGMA max_page_count = {most}");
            Ok(tx.connection.query_row(&set, [], |_| Ok(()))?)
        };
        writer.run(limit).await.unwrap();
    };
    pages(60).await;
    let mut kept = 0;
    let full = loop {
        let big = NewJob { request: serde_json::json!("x".repeat(20_000)).into(), ..a_job() };
        match writer.run(|tx| add(tx, big)).await {
            Ok(_) => kept += 1,
            Err(error) => break error,
        }
        assert!(kept < 100, "there is no limit");
    };
    assert!(matches!(full, StoreError::Full), "{full:?}");
    assert_eq!(count(&fixture.reader), kept);
    pages(10_000).await;
    writer.run(|tx| add(tx, a_job())).await.unwrap();
    assert_eq!(count(&fixture.reader), kept + 1);
}

#[tokio::test]
async fn a_closed_writer_finishes_what_is_queued_and_takes_no_more() {
    let fixture = fixture();
    fixture.rival.lock().unwrap();
    let (queued, ()) = tokio::join!(fixture.writer.run(|tx| add(tx, a_job())), async {
        let thread = fixture.writer.close().unwrap();
        fixture.rival.unlock().unwrap();
        thread.join().unwrap();
    });
    queued.unwrap();
    assert_eq!(count(&fixture.reader), 1);
    let refused = fixture.writer.run(|tx| add(tx, a_job())).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
}

#[tokio::test]
async fn words_are_put_when_the_writer_rests_and_a_damaged_job_holds_up_no_other() {
    let fixture = fixture();
    let (first, second) = (fixture.writer.run(|tx| add(tx, a_job())), a_job());
    first.await.unwrap();
    let spoil = "UPDATE bodies SET ask = '{' WHERE job = 1";
    fixture.writer.run(|tx| Ok(tx.connection.execute(spoil, [])?)).await.unwrap();
    fixture.writer.run(|tx| add(tx, second)).await.unwrap();
    let put = || -> Vec<i64> {
        let mut select = fixture.reader.prepare("SELECT rowid FROM search").unwrap();
        select.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    };
    assert!(put().is_empty(), "not with each commit");
    fixture.clock.advance(WORDS_DELAY);
    let resting = async {
        while put().is_empty() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), resting).await.expect("the words are put");
    assert_eq!(put(), [2], "those of the job that can be read");
    assert_eq!(search::read_owed(&fixture.reader).unwrap(), PendingText::Nothing);
}
