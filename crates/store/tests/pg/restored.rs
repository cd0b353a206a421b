//! A database restored from a dump is refused, because its unfinished jobs may have been paid for since. Other operations of
//! an administrator do not lead to a refusal.

use std::path::Path;
use std::process::Command;

use outlast_core::{
    EndNotices, InsertOutcome, Job, JobQuery, RecoverySemantics, ResendPolicy, ResumePolicy, Rev,
    Scope, Settlement, Store as _, StoreError,
};
use outlast_store::{ConnectionLimits, PostgresOptions, PostgresStore, RestoreError};
use outlast_testkit::postgres::{connect, server};
use outlast_testkit::store_suite::{LEASE, a_job, a_report, an_insert, profiles, worker};
use tempfile::TempDir;
use uuid::Uuid;

use crate::database::AT_ONCE;

/// Creates a database and returns its name and URL.
async fn database(of_template: Option<&str>) -> (String, String) {
    let name = format!("db_{}", Uuid::new_v4().simple());
    let server = server().unwrap();
    let template = of_template.map_or_else(String::new, |template| format!(" template {template}"));
    connect(&server)
        .await
        .batch_execute(&format!("create database {name}{template}"))
        .await
        .unwrap();
    let url = server.replacen("/postgres?", &format!("/{name}?"), 1);
    (name, url)
}

async fn open(url: &str, state_dir: Option<&Path>) -> Result<PostgresStore, StoreError> {
    let options = PostgresOptions {
        url: url.to_owned(),
        clock: None,
        judgement: AT_ONCE,
        notices: EndNotices::Off,
        limits: ConnectionLimits::default(),
        state_dir: state_dir.map(Path::to_owned),
    };
    PostgresStore::open(options).await
}

async fn assert_is_refused(url: &str, state_dir: Option<&Path>, word: &str) {
    match open(url, state_dir).await {
        Err(StoreError::Outdated { why }) => assert!(why.contains(word), "{why}"),
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it was opened"),
    }
}

async fn add(store: &PostgresStore) -> Job {
    match store.insert(an_insert(a_job())).await.unwrap() {
        InsertOutcome::New(job) => job,
        InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
    }
}

/// Restores the store without force; returns the number of jobs that were ended or resumed.
async fn restore(url: &str, state_dir: Option<&Path>) -> usize {
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Never,
        resume: ResumePolicy::Always,
        can_stop: true,
    };
    let semantics_of = move |_: &outlast_core::Profile, _: &outlast_core::Request| Some(semantics);
    loop {
        match PostgresStore::restore_in_place(url, state_dir, &semantics_of, EndNotices::Off, false)
            .await
        {
            // The session of a closed store ends a moment after the close.
            Err(RestoreError::InUse) => tokio::task::yield_now().await,
            restored => return restored.unwrap().jobs.len(),
        }
    }
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn dump(url: &str, folder: &TempDir) -> String {
    let file = folder.path().join("dump").to_str().unwrap().to_owned();
    run("pg_dump", &["--format=custom", "--file", &file, url]);
    file
}

/// B9a: a copy of the database, and a dump in another database of the same server, are refused. The original continues to
/// work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b9a_a_dump_in_another_database_is_refused() {
    let (name, url) = database(None).await;
    let store = open(&url, None).await.unwrap();
    add(&store).await;
    store.close().await;
    drop(store);
    let folder = TempDir::new().unwrap();
    let file = dump(&url, &folder);
    let (_, filled) = database(None).await;
    run("pg_restore", &["--dbname", &filled, &file]);
    // A template database must have no connections, and those of the store end a moment after the close.
    let admin = connect(&server().unwrap()).await;
    let others = format!("select count(*) from pg_stat_activity where datname = '{name}'");
    while admin.query_one(&others, &[]).await.unwrap().get::<_, i64>(0) > 0 {
        tokio::task::yield_now().await;
    }
    let (_, copied) = database(Some(&name)).await;
    for restored in [&filled, &copied] {
        assert_is_refused(restored, None, "oid").await;
        assert_eq!(restore(restored, None).await, 1);
        let store = open(restored, None).await.unwrap();
        assert!(store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().is_none());
        store.close().await;
    }
    let store = open(&url, None).await.unwrap();
    assert!(store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().is_some());
    store.close().await;
}

/// B9a: a dump restored over the tables is detected by every process that opens them, and by one that has them open.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b9a_a_dump_restored_in_place_is_refused_also_by_a_running_server() {
    let (_, url) = database(None).await;
    let folder = TempDir::new().unwrap();
    let store = open(&url, None).await.unwrap();
    add(&store).await;
    let file = dump(&url, &folder);
    let claimed = store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().unwrap();
    let done = Settlement::Succeed { output: a_report().into(), raw: None };
    store.settle(&claimed.lease, done).await.unwrap();
    run("pg_restore", &["--clean", "--if-exists", "--dbname", &url, &file]);
    for _ in 0..3 {
        let claimed = store.claim(&worker("w"), &profiles(), LEASE).await;
        assert!(matches!(claimed, Err(StoreError::Outdated { .. })), "{claimed:?}");
        let inserted = store.insert(an_insert(a_job())).await;
        assert!(matches!(inserted, Err(StoreError::Outdated { .. })), "{inserted:?}");
    }
    assert_is_refused(&url, None, "created again").await;
    let reader = PostgresStore::read(&url, ConnectionLimits::default()).await.unwrap().unwrap();
    let listed =
        reader.list(&Scope::Operator, &JobQuery { limit: 9, ..JobQuery::default() }).await.unwrap();
    assert_eq!(listed.jobs.len(), 1, "it can be read");
    store.close().await;
    assert_eq!(restore(&url, None).await, 1);
    let store = open(&url, None).await.unwrap();
    assert!(store.claim(&worker("w"), &profiles(), LEASE).await.unwrap().is_none());
    store.close().await;
}

/// B9a: rows restored into the same tables, or an older copy of the server's files, are detected by a process that saw a
/// later state.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b9a_a_database_behind_the_mark_is_refused() {
    let (_, url) = database(None).await;
    let (state, other) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let store = open(&url, Some(state.path())).await.unwrap();
    let client = connect(&url).await;
    let Rev(before) = store.rev().await.unwrap();
    add(&store).await;
    let back = format!("select setval('rev', {before})");
    client.batch_execute(&back).await.unwrap();
    for _ in 0..2 {
        let claimed = store.claim(&worker("w"), &profiles(), LEASE).await;
        assert!(matches!(claimed, Err(StoreError::Outdated { .. })), "{claimed:?}");
    }
    store.close().await;
    for _ in 0..2 {
        assert_is_refused(&url, Some(state.path()), "it had reached").await;
    }
    assert_eq!(restore(&url, Some(state.path())).await, 1);
    open(&url, Some(state.path())).await.unwrap().close().await;
    // A machine that saw neither the restore nor any state after the dump.
    open(&url, Some(other.path())).await.unwrap().close().await;
    open(&url, None).await.unwrap().close().await;
    open(&url, Some(state.path())).await.unwrap().close().await;
}

/// F6: after a restore on one machine, the servers of all machines can continue, whatever state they saw before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn b9a_one_restore_is_enough_for_all_machines() {
    let (_, url) = database(None).await;
    let (here, there) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    open(&url, Some(here.path())).await.unwrap().close().await;
    let client = connect(&url).await;
    let before: i64 = client.query_one("select last_value from rev", &[]).await.unwrap().get(0);
    for _ in 0..4 {
        open(&url, Some(there.path())).await.unwrap().close().await;
    }
    client.batch_execute(&format!("select setval('rev', {})", before - 1)).await.unwrap();
    assert_is_refused(&url, Some(here.path()), "it had reached").await;
    assert_eq!(restore(&url, Some(here.path())).await, 0);
    let after: i64 = client.query_one("select last_value from rev", &[]).await.unwrap().get(0);
    assert!(after < before + 4_000_000, "the other machine saw more");
    open(&url, Some(there.path())).await.unwrap().close().await;
}

/// F1: a managed database that does not reveal its identity can be used, and doctor reports this.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f1_a_server_that_does_not_identify_itself_is_served() {
    let (name, url) = database(None).await;
    let role = format!("server_{}", Uuid::new_v4().simple());
    let grants = format!(
        "create role {role} login; grant all on database {name} to {role}; grant all on schema public to {role};
         revoke execute on function pg_control_system() from public;
         revoke execute on function pg_walfile_name(pg_lsn) from public"
    );
    connect(&url).await.batch_execute(&grants).await.unwrap();
    let url = url.replacen("postgres://outlast@", &format!("postgres://{role}@"), 1);
    let state = TempDir::new().unwrap();
    for _ in 0..2 {
        let store = open(&url, Some(state.path())).await.unwrap();
        add(&store).await;
        store.close().await;
    }
    let found = PostgresStore::inspect(&url, None).await.unwrap();
    assert!(!found.is_identified && found.outdated.is_none(), "{found:?}");
}

/// F6: connections opened while others commit find the database ahead of the position seen before, never behind it.
#[tokio::test(flavor = "multi_thread")]
async fn f6_a_database_that_others_write_meanwhile_is_not_refused() {
    const STORES: usize = 25;
    const INSERTS: usize = 12;
    let (_, url) = database(None).await;
    let folder = TempDir::new().unwrap();
    for _ in 0..STORES {
        let store = std::sync::Arc::new(open(&url, Some(folder.path())).await.unwrap());
        let mut inserts = tokio::task::JoinSet::new();
        for _ in 0..INSERTS {
            let store = std::sync::Arc::clone(&store);
            // Inserts of one owner share a connection; reads do not.
            inserts.spawn(async move {
                let job = add(&store).await;
                store.job(&Scope::Operator, &job.id).await.unwrap();
                add(&store).await;
            });
        }
        inserts.join_all().await;
        store.close().await;
    }
}
