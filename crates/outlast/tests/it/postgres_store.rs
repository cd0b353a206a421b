//! `outlast store` on PostgreSQL: the operators' commands, with the real binary on the server that `scripts/test`
//! starts.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{InsertOutcome, Store as _};
use outlast_store::{SqliteStore, SystemClock};
use outlast_testkit::mcp_process::McpProcess;
use outlast_testkit::store_suite::{a_job, an_insert};
use serde_json::Value;
use tokio_postgres::{Client, NoTls};

use crate::support::{Ran, World, binary, finished, running, start};

/// Part of every address; no output contains it.
const PASSWORD: &str = "hunter2";

/// A separate schema.
struct Database {
    url: String,
    client: Client,
}

impl Database {
    #[expect(
        clippy::disallowed_methods,
        reason = "which server to use is no part of the program's configuration"
    )]
    async fn fresh() -> Self {
        let server = std::env::var("OUTLAST_TEST_POSTGRES")
            .expect("OUTLAST_TEST_POSTGRES names a PostgreSQL server: scripts/test starts one");
        let schema = format!("it_{}", uuid::Uuid::new_v4().simple());
        let url = format!("{server}&options=-csearch_path%3D{schema}");
        let url = url.replacen("//outlast@", &format!("//outlast:{PASSWORD}@"), 1);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await.unwrap();
        tokio::spawn(connection);
        client.batch_execute(&format!("create schema {schema}")).await.unwrap();
        Self { url, client }
    }

    async fn number(&self, select: &str) -> i64 {
        self.client.query_one(select, &[]).await.unwrap().get(0)
    }
}

/// Returns a command's output as JSON; it does not contain the password.
fn json(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert_no_password(ran);
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

fn assert_no_password(ran: &Ran) {
    assert!(!ran.stdout.contains(PASSWORD) && !ran.stderr.contains(PASSWORD), "{ran:?}");
}

/// Checks that the command was refused as wrong usage, with these words.
fn assert_refused(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code, Some(code), "{ran:?}");
    assert_no_password(ran);
    for word in words {
        assert!(ran.stderr.contains(word), "{word}: {}", ran.stderr);
    }
}

async fn leave(mut server: McpProcess) {
    server.close_input();
    let (status, log) = server.ended().await;
    assert!(status.success(), "{log}");
}

/// F1: `migrate` creates the tables and reports their schema, `check` finds damage, and other tasks are left to
/// PostgreSQL's own programs, by name.
#[tokio::test(flavor = "multi_thread")]
async fn f1_an_operator_prepares_checks_and_backs_up_a_database() {
    let (database, mut world) = (Database::fresh().await, World::new().await);
    world.set("OUTLAST_STORE", &database.url);
    let made = json(&world.run(&["store", "migrate", "--json"]).await);
    assert_eq!((&made["before"], &made["schema"]), (&Value::Null, &Value::from(13)), "{made}");
    let again = world.run(&["store", "migrate"]).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "schema 13\n"), "{again:?}");
    assert!(again.stderr.contains("up to date"), "{again:?}");
    let sound = world.run(&["store", "check"]).await;
    assert_eq!(sound.code, Some(0), "{sound:?}");
    let damage = "insert into owners (owner, bytes) values ('ann', 7)";
    database.client.batch_execute(damage).await.unwrap();
    let damaged = world.run(&["store", "check"]).await;
    assert_eq!(damaged.code, Some(1), "{damaged:?}");
    assert!(damaged.stdout.contains("owner ann has wrong counts"), "{damaged:?}");

    let backup = world.run(&["store", "backup", "monday.dump"]).await;
    let line = "pg_dump --format=custom --file=monday.dump 'postgres://outlast@/postgres?host=";
    assert_refused(&backup, 2, &[line]);
    let restore = world.run(&["store", "restore", "monday.dump"]).await;
    assert_refused(&restore, 2, &["pg_restore ", "outlast store restore --in-place"]);
}

/// F1: `migrate` on a file reports the same.
#[tokio::test(flavor = "multi_thread")]
async fn f1_a_file_is_migrated_by_the_same_command() {
    let world = World::new().await;
    let made = json(&world.run(&["store", "migrate", "--json"]).await);
    assert_eq!((&made["before"], &made["schema"]), (&Value::Null, &Value::from(17)), "{made}");
    let again = world.run(&["store", "migrate"]).await;
    assert_eq!((again.code, again.stdout.as_str()), (Some(0), "schema 17\n"), "{again:?}");
    let memory = world.run(&["store", "migrate", "--store", "memory:"]).await;
    assert_eq!(memory.code, Some(2), "{memory:?}");
}

/// F8: a store is moved to PostgreSQL and continues there: reports are read, the run under way is resumed, nothing is
/// paid for twice. Neither store is copied while it is served.
#[tokio::test(flavor = "multi_thread")]
async fn f8_a_store_that_was_copied_goes_on_in_the_database() {
    let (database, mut world) = (Database::fresh().await, World::new().await);
    world.set("OUTLAST_OWNER", "ann");
    let file = format!("sqlite:{}", world.database().display());
    let mut server = world.serve().await;
    let done = start(&mut server, "ok;words=60;delay_ms=0").await;
    let report = finished(&mut server, &done).await;
    let under_way = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &under_way).await;
    let copy = ["store", "copy", &file, &database.url];
    assert_refused(&world.run(&copy).await, 1, &["it is in use", "stop every server"]);
    server.kill().await;
    world.simulator.release();

    let copied = world.run(&["store", "copy", &file, &database.url, "--json"]).await;
    assert!(copied.stderr.contains("pay for them"), "{copied:?}");
    let copied = json(&copied);
    assert_eq!((&copied["jobs"], &copied["unfinished"]), (&Value::from(2), &Value::from(1)));
    let again = world.run(&copy).await;
    assert_refused(&again, 2, &["it has its own jobs: 2", "name an empty store"]);

    world.set("OUTLAST_STORE", &database.url);
    let mut server = world.serve().await;
    assert_eq!(finished(&mut server, &done).await["report"], report["report"]);
    assert_eq!(finished(&mut server, &under_way).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 2, "each was paid for once");
    let back = world.data_dir().join("back.db");
    let back = format!("sqlite:{}", back.display());
    assert_refused(&world.run(&["store", "copy", "-", &back]).await, 1, &["it is in use"]);
    leave(server).await;
    let back = json(&world.run(&["store", "copy", "-", &back, "--json"]).await);
    assert_eq!((&back["jobs"], &back["unfinished"]), (&Value::from(2), &Value::from(0)));
    let wrong = world.run(&["store", "copy", &format!("postgres:x:{PASSWORD}@y"), "-"]).await;
    assert_refused(&wrong, 2, &["FROM names no store"]);
}

/// F8: a killed copy leaves a target that no server accepts, and continues from its last step.
#[tokio::test(flavor = "multi_thread")]
async fn f8_a_copy_that_was_killed_goes_on_where_it_stopped() {
    const JOBS: usize = 1_600;
    let (database, mut world) = (Database::fresh().await, World::new().await);
    let store = SqliteStore::open(&world.database(), Arc::new(SystemClock)).unwrap();
    let store = Arc::new(store);
    let mut inserts = tokio::task::JoinSet::new();
    for _ in 0..JOBS {
        let store = Arc::clone(&store);
        inserts.spawn(async move { store.insert(an_insert(a_job())).await });
    }
    while let Some(inserted) = inserts.join_next().await {
        assert!(matches!(inserted.unwrap().unwrap(), InsertOutcome::New(_)));
    }
    store.close().await;
    drop(store);

    let file = format!("sqlite:{}", world.database().display());
    let migrated = world.run(&["store", "migrate", "--store", &database.url]).await;
    assert_eq!(migrated.code, Some(0), "{migrated:?}");
    let mut copying = tokio::process::Command::new(binary())
        .args(["store", "copy", &file, &database.url])
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let begun = async {
        while database.number("select count(*) from jobs").await == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.expect("the copy begins");
    copying.kill().await.unwrap();
    let partial = database.number("select count(*) from jobs").await;
    assert!(partial < JOBS as i64, "it was killed too late: {partial}");

    world.set("OUTLAST_STORE", &database.url);
    world.set("OUTLAST_OWNER", "ann");
    let refused = world.run(&["jobs", "list"]).await;
    assert_eq!(refused.code, Some(2), "{refused:?}");
    let is_told =
        ["was interrupted", "is being copied"].iter().any(|it| refused.stderr.contains(it));
    assert!(is_told && refused.stderr.contains("outlast store"), "{refused:?}");
    let copied = loop {
        // The session of a killed process ends a moment after it.
        let ran = world.run(&["store", "copy", &file, &database.url, "--json"]).await;
        if ran.code == Some(0) {
            break json(&ran);
        }
        assert_refused(&ran, 1, &["it is in use"]);
    };
    assert_eq!(copied["jobs"], JOBS as u64);
    assert_eq!(copied["written"], JOBS as u64 - partial.unsigned_abs(), "the rest alone");
    assert_eq!(world.run(&["store", "check"]).await.code, Some(0));
}

/// B9a, F1: after a dump was restored, the operator's consent ends the jobs that may have been paid for since.
#[tokio::test(flavor = "multi_thread")]
async fn b9a_a_restored_dump_is_not_paid_for_again() {
    let (database, mut world) = (Database::fresh().await, World::new().await);
    world.set("OUTLAST_STORE", &database.url);
    world.set("OUTLAST_OWNER", "ann");
    world.set("OUTLAST_CONCURRENCY", "1");
    let mut server = world.serve().await;
    let under_way = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &under_way).await;
    let queued = start(&mut server, "ok;words=60;delay_ms=0").await;
    let in_use = world.run(&["store", "restore", "--in-place", "--force"]).await;
    assert_refused(&in_use, 1, &["in use"]);
    server.kill().await;
    let unforced = world.run(&["store", "restore", "--in-place"]).await;
    assert_refused(&unforced, 2, &["would end 1 job", "--force"]);
    let restored = json(&world.run(&["store", "restore", "--in-place", "--force", "--json"]).await);
    assert_eq!(restored["ended"][0]["id"], queued.as_str(), "{restored}");
    assert_eq!(restored["resumed"][0]["id"], under_way.as_str(), "{restored}");
    let shown = world.shown(&queued).await;
    assert_eq!(shown["failures"][0]["code"], "SUBMIT_UNKNOWN", "{shown}");
    assert_eq!(world.submits(), 1);
}
