//! Jobs in a PostgreSQL database: the basis for a team on several machines. Here a machine is a process with its own
//! data directory.

use std::process::Stdio;
use std::time::Duration;

use outlast_simulator::Options;
use outlast_testkit::postgres;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::support::{World, assert_refused, finished, question, running, start};

/// F1: a job that one process started is seen, answered and continued by every other.
#[tokio::test]
async fn f1_every_process_on_the_database_sees_the_same_jobs() {
    let mut world = World::on_postgres().await;
    let mut here = world.serve().await;
    let id = start(&mut here, "ok;words=40;delay_ms=0").await;
    world.set("OUTLAST_DATA_DIR", world.data_dir().join("elsewhere").to_str().unwrap());
    let mut there = world.serve().await;
    assert_eq!(finished(&mut there, &id).await["status"], "COMPLETED");
    let listed = world.run(&["jobs", "list"]).await;
    assert!(listed.stdout.contains(&id), "{listed:?}");
    assert_eq!(world.shown(&id).await["state"], "succeeded");
    let checked = world.run(&["doctor"]).await;
    assert!(
        checked.stdout.contains("PostgreSQL") && checked.stdout.contains("schema 13"),
        "{checked:?}"
    );
    assert!(checked.stdout.contains("changes are noticed at once"), "{checked:?}");
    assert!(!world.data_dir().join("conversation-logs").exists(), "the mirror is off");
}

/// F1: the owner of a single machine is not a valid owner in a store of many.
#[tokio::test]
async fn f1_owners_must_have_names() {
    let mut world = World::on_postgres().await;
    world.unset("OUTLAST_OWNER");
    for command in [&["jobs", "list"][..], &["serve"], &["serve", "--http", "127.0.0.1:0"]] {
        let ran = world.run(command).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains("many machines share"), "{ran:?}");
        assert!(
            ran.stderr.contains("OUTLAST_OWNER") || ran.stderr.contains("OUTLAST_TOKENS"),
            "{ran:?}"
        );
    }
    let checked = world.run(&["doctor"]).await;
    assert!(checked.stdout.contains("OUTLAST_OWNER is not set"), "{checked:?}");
    world.set("OUTLAST_OWNER", "ann");
    let checked = world.run(&["doctor"]).await;
    assert!(checked.stdout.contains("belong to `ann`"), "{checked:?}");
}

/// F1: the database's password is in no output, no log and no argument of a process.
#[tokio::test]
async fn f1_the_password_of_the_database_is_not_shown() {
    let mut world = World::on_postgres().await;
    let url = world.variable("OUTLAST_STORE").replace("outlast@", "outlast:hunter2@");
    world.set("OUTLAST_LOG", "debug");
    let refused = url.replace("outlast:hunter2@", "nobody_here:hunter2@");
    for (url, code) in [(&url, Some(0)), (&refused, Some(2))] {
        world.set("OUTLAST_STORE", url);
        for command in [&["jobs", "list"][..], &["config", "show"], &["doctor", "--json"]] {
            let ran = world.run(command).await;
            assert!(!format!("{ran:?}").contains("hunter2"), "{ran:?}");
            if command == ["jobs", "list"] {
                assert_eq!(ran.code, code, "{ran:?}");
            }
        }
    }
    world.unset("OUTLAST_STORE");
    let detached =
        ["--store", &url, "research", "--detach", "Why? [[sim:ok;words=20;delay_ms=3000]]"];
    let ran = world.run(&detached).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let pid = ran.stderr.split("(pid ").nth(1).unwrap().split(')').next().unwrap();
    let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap();
    assert!(line.contains("worker") && !line.contains("hunter2"), "{line}");
    let log = std::fs::read_to_string(world.data_dir().join("worker.log")).unwrap();
    assert!(!log.contains("hunter2"), "{log}");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(pid.parse().unwrap()).unwrap(),
        rustix::process::Signal::TERM,
    )
    .unwrap();
}

/// F3: another server, which was already running, continues the job of a server that was killed.
#[tokio::test]
async fn f3_another_machine_takes_over_the_job_of_a_killed_server() {
    let mut world = World::on_postgres().await;
    world.set("OUTLAST_CONCURRENCY", "1");
    let mut stays = world.serve_with(&["--lease-ms", "1500"]).await;
    // While it is busy it claims no other job.
    let busy = start(&mut stays, "ok;words=20;delay_ms=0;hold=true").await;
    running(&world, &busy).await;
    let mut doomed = world.serve_with(&["--lease-ms", "1500", "--kill-at", "after-running"]).await;
    let arguments = question("ok;words=40;delay_ms=500");
    let call = json!({ "name": "perplexity_research_start", "arguments": arguments });
    doomed.send("tools/call", call).await;
    let (status, log) = doomed.ended().await;
    assert!(!status.success(), "{log}");
    world.simulator.release();
    assert_eq!(finished(&mut stays, &busy).await["status"], "COMPLETED");
    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
    let left = listed["jobs"].as_array().unwrap().iter().find(|job| job["id"] != *busy).unwrap();
    let id = left["id"].as_str().unwrap();
    assert_eq!(finished(&mut stays, id).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 2, "each is paid for once");
}

/// A separate PostgreSQL server of the test, so that it can be stopped and killed.
pub(crate) struct OwnServer {
    script: tokio::process::Child,
    pub(crate) url: String,
    pub(crate) control: String,
}

impl OwnServer {
    pub(crate) async fn start() -> Self {
        let script =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/with-postgres");
        let tell = "echo \"$OUTLAST_TEST_POSTGRES\"; echo \"$OUTLAST_TEST_POSTGRES_CONTROL\"; cat";
        let mut script = tokio::process::Command::new(script)
            .args(["bash", "-c", tell])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(script.stdout.take().unwrap()).lines();
        let url = lines.next_line().await.unwrap().expect("the server starts");
        let control = lines.next_line().await.unwrap().unwrap();
        Self { script, url, control }
    }

    pub(crate) async fn control(&self, action: &str) {
        let done = tokio::process::Command::new(&self.control).arg(action).status().await.unwrap();
        assert!(done.success(), "{action}");
    }

    pub(crate) async fn end(mut self) {
        drop(self.script.stdin.take());
        assert!(self.script.wait().await.unwrap().success());
    }
}

/// F2, F3: the database is stopped, and killed, with 200 jobs under way, 50 of them with a request on its way: every
/// one completes, none is sent twice and none is given up.
#[tokio::test]
async fn f2_a_restart_of_the_database_costs_no_job() {
    let database = OwnServer::start().await;
    let mut world = World::with(Options::default()).await;
    world.set("OUTLAST_STORE", &database.url);
    world.set("OUTLAST_OWNER", "tester");
    world.set("OUTLAST_CONCURRENCY", "200");
    let mut server = world.serve().await;
    let mut ids = Vec::new();
    for number in 0..200 {
        let scenario = match number % 4 {
            0 => "slow;first_byte_ms=3000|ok;words=20;delay_ms=500",
            _ => "ok;words=20;delay_ms=6000",
        };
        ids.push(start(&mut server, scenario).await);
    }
    running(&world, &ids[1]).await;
    for action in ["stop", "start", "kill", "start"] {
        database.control(action).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    for id in &ids {
        let ended = tokio::time::timeout(Duration::from_secs(120), async {
            loop {
                let call =
                    json!({ "name": "perplexity_research_poll", "arguments": { "jobId": id } });
                let sent = server.send("tools/call", call).await;
                let result = server.answer(sent).await.unwrap()["result"].clone();
                if result["isError"] == true {
                    assert_refused(&result, "SERVICE_UNAVAILABLE", true);
                    continue;
                }
                let status = result["structuredContent"]["status"].as_str().unwrap().to_owned();
                if status != "CREATED" && status != "IN_PROGRESS" {
                    return (status, result);
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        });
        let (status, result) = ended.await.expect("it ends");
        assert_eq!(status, "COMPLETED", "{result}");
    }
    assert_eq!(world.submits(), 200, "each is paid for once");
    drop(server);
    database.end().await;
}

/// F9: doctor and every command report the fault of the database.
#[tokio::test]
async fn f9_a_database_that_cannot_be_used_is_explained() {
    let mut world = World::on_postgres().await;
    let url = world.variable("OUTLAST_STORE");
    world.set("OUTLAST_STORE", &url.replace("/postgres?", "/no_such_database?"));
    for (command, code) in [("doctor", 1), ("serve", 2)] {
        let ran = world.run(&[command]).await;
        assert_eq!(ran.code, Some(code), "{ran:?}");
        assert!(format!("{ran:?}").contains("no_such_database"), "{ran:?}");
    }
    world.set("OUTLAST_STORE", &url);
    assert_eq!(world.run(&["jobs", "list"]).await.code, Some(0));
    let admin = postgres::connect(&url).await;
    admin.batch_execute("update meta set schema = 99").await.unwrap();
    let newer = world.run(&["jobs", "list"]).await;
    assert!(newer.code == Some(2) && newer.stderr.contains("update outlast"), "{newer:?}");
    let newer = world.run(&["doctor"]).await;
    assert!(newer.code == Some(1) && newer.stdout.contains("schema 99"), "{newer:?}");
}
