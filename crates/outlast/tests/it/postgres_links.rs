//! Machines on one database whose link to it fails, or whose clock is wrong.

use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use outlast_testkit::postgres;
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, UnixStream};
use tokio::sync::watch;

use crate::support::{World, eventually, finished, running, start};

const LEASE: [&str; 2] = ["--lease-ms", "1500"];

/// `again` may be repeated after a crash, `once` may not. Each records its process, works until `go` exists, and
/// records its end.
const WORKFLOWS: &str = r#"
[[workflow]]
name = "again"
rerun_after_crash = true
command = ["/bin/sh", "-c", "echo $$ >> again; while [ ! -e go ]; do sleep 0.02; done; echo end >> again; echo done"]

[[workflow]]
name = "once"
command = ["/bin/sh", "-c", "echo $$ >> once; while [ ! -e go ]; do sleep 0.02; done; echo end >> once; echo done"]
"#;

/// A link between a machine and the database.
struct Link {
    port: u16,
    state: watch::Sender<LinkState>,
}

#[derive(Clone, Copy, PartialEq)]
enum LinkState {
    Up,
    /// Drops everything; neither side is notified that the other is gone.
    Silent,
    /// Refuses connections, and has closed the existing ones.
    Closed,
}

impl Link {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (state, mut seen) = watch::channel(LinkState::Up);
        tokio::spawn(async move {
            loop {
                let near = tokio::select! {
                    Ok((near, _)) = listener.accept() => near,
                    _ = seen.wait_for(|state| *state == LinkState::Closed) => return,
                };
                let seen = seen.clone();
                tokio::spawn(async move {
                    let Ok(far) = UnixStream::connect(postgres::socket()).await else { return };
                    let (from_near, to_near) = near.into_split();
                    let (from_far, to_far) = far.into_split();
                    let mut closing = seen.clone();
                    // A connection that lost a byte is of no use: it ends, both ways, when the link is up again.
                    tokio::select! {
                        () = pass(from_near, to_far, seen.clone()) => {}
                        () = pass(from_far, to_near, seen) => {}
                        _ = closing.wait_for(|state| *state == LinkState::Closed) => {}
                    }
                });
            }
        });
        Self { port, state }
    }

    fn set(&self, state: LinkState) {
        self.state.send_replace(state);
    }

    /// Returns the address of the database at `url`, over this link.
    fn over(&self, url: &str) -> String {
        over(&[self], url)
    }
}

/// Returns the address of the database at `url`, over the first of these links that can be used.
fn over(links: &[&Link], url: &str) -> String {
    let options = url.split("options=").nth(1).expect("it names its schema");
    let hosts: Vec<_> = links.iter().map(|link| format!("127.0.0.1:{}", link.port)).collect();
    let hosts = hosts.join(",");
    format!(
        "postgres://outlast@{hosts}/postgres?sslmode=disable&target_session_attrs=read-write&options={options}"
    )
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut state: watch::Receiver<LinkState>,
) {
    let mut bytes = [0; 16_384];
    loop {
        let Ok(read @ 1..) = from.read(&mut bytes).await else { return };
        if *state.borrow() == LinkState::Silent {
            let _ = state.wait_for(|state| *state != LinkState::Silent).await;
            return;
        }
        if to.write_all(&bytes[..read]).await.is_err() {
            return;
        }
    }
}

/// Returns the lines that a command wrote.
fn lines(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn runs(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

async fn start_job(server: &mut McpProcess, workflow: &str) -> String {
    let started = server.structured("start_job", json!({ "workflow": workflow })).await;
    started["job_id"].as_str().unwrap().to_owned()
}

async fn serve(world: &World, folder: &Path) -> McpProcess {
    let config: PathBuf = folder.join("outlast.toml");
    let flags = ["--config", config.to_str().unwrap(), "--tools", "research-jobs,jobs"];
    world.serve_with(&[&flags, LEASE.as_slice()].concat()).await
}

/// F3: a machine whose link to the database is cut for longer than its lease ends the command that may be repeated;
/// another machine takes its jobs over, and later writes of the first one are refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f3_a_machine_that_is_cut_off_runs_nothing_twice() {
    let mut world = World::on_postgres().await;
    world.set("PATH", "/usr/local/bin:/usr/bin:/bin");
    let direct = world.variable("OUTLAST_STORE");
    let link = Link::start().await;
    let folder = world.data_dir().parent().unwrap().join("shop");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("outlast.toml"), WORKFLOWS).unwrap();

    world.set("OUTLAST_STORE", &link.over(&direct));
    let mut cut_off = serve(&world, &folder).await;
    let research = start(&mut cut_off, "ok;words=40;delay_ms=0;hold=true").await;
    let again = start_job(&mut cut_off, "again").await;
    let once = start_job(&mut cut_off, "once").await;
    running(&world, &research).await;
    let begun = || [lines(&folder, "again"), lines(&folder, "once")].map(|lines| lines.len());
    eventually("both commands run", || begun() == [1, 1]).await;

    link.set(LinkState::Silent);
    world.set("OUTLAST_STORE", &direct);
    world.set("OUTLAST_DATA_DIR", world.data_dir().join("elsewhere").to_str().unwrap());
    let mut other = serve(&world, &folder).await;
    eventually("the other machine begins it again", || begun() == [2, 1]).await;
    let first = lines(&folder, "again")[0].clone();
    eventually("the machine that is cut off ended its command", || !runs(&first)).await;
    world.simulator.release();
    assert_eq!(finished(&mut other, &research).await["status"], "COMPLETED");
    let ended = world.shown(&once).await;
    assert_eq!(ended["failures"][0]["code"], "SUBMIT_UNKNOWN", "{ended}");

    std::fs::write(folder.join("go"), "").unwrap();
    let mut kept = Vec::new();
    for id in [&research, &again, &once] {
        let mut shown = world.shown(id).await;
        while shown["state"] != "succeeded" && shown["state"] != "failed" {
            shown = world.shown(id).await;
        }
        kept.push(shown);
    }
    link.set(LinkState::Up);
    // It is back when it answers from the store again.
    assert_eq!(finished(&mut cut_off, &research).await["status"], "COMPLETED");
    for (id, kept) in [&research, &again, &once].into_iter().zip(kept) {
        assert_eq!(world.shown(id).await, kept, "nothing is written late");
    }
    assert_eq!(world.submits(), 1, "the research is paid for once");
    assert_eq!(lines(&folder, "again").iter().filter(|line| *line == "end").count(), 1);
}

/// F6: of several hosts in the address the usable one is used, without intervention, also if it is another than before.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f6_a_server_goes_on_over_the_next_host_of_its_address() {
    let mut world = World::on_postgres().await;
    let direct = world.variable("OUTLAST_STORE");
    let (first, second) = (Link::start().await, Link::start().await);
    world.set("OUTLAST_STORE", &over(&[&first, &second], &direct));
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=40;delay_ms=0;hold=true").await;
    running(&world, &id).await;
    first.set(LinkState::Closed);
    world.simulator.release();
    let ended = async {
        loop {
            let call = json!({ "name": "perplexity_research_poll", "arguments": { "jobId": id } });
            let sent = server.send("tools/call", call).await;
            let result = server.answer(sent).await.unwrap()["result"].clone();
            match result["structuredContent"]["status"].as_str() {
                // While it reconnects it may report that the store is unavailable.
                None | Some("CREATED" | "IN_PROGRESS") => {}
                Some(status) => return status.to_owned(),
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended).await.expect("it ends");
    assert_eq!(ended, "COMPLETED");
    assert_eq!(world.submits(), 1, "it is paid for once");
}

/// Makes the clock of a process wrong by this number of seconds.
const WRONG_CLOCK: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t id, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int got = real(id, now);
    const char *wrong = getenv("WRONG_CLOCK");
    if (wrong && id == CLOCK_REALTIME) now->tv_sec += atol(wrong);
    return got;
}
"#;

/// Checks that a program really sees another time.
fn assert_is_wrong(mut date: std::process::Command) {
    let seconds = |date: &mut std::process::Command| -> i64 {
        String::from_utf8(date.output().unwrap().stdout).unwrap().trim().parse().unwrap()
    };
    let right = seconds(&mut date);
    assert!(seconds(date.env("WRONG_CLOCK", "86400")) - right >= 86_400);
}

/// F7: the clocks of two machines are wrong, one by a day ahead and one by a day behind: jobs are dated by the
/// database, no lease expires early, and no retention becomes shorter or longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn f7_a_machine_whose_clock_is_wrong_changes_nothing() {
    let mut world = World::on_postgres().await;
    let folder = world.data_dir().parent().unwrap().to_owned();
    let (source, library) = (folder.join("clock.c"), folder.join("clock.so"));
    std::fs::write(&source, WRONG_CLOCK).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&library, &source])
        .status();
    assert!(built.unwrap().success());
    world.set("LD_PRELOAD", library.to_str().unwrap());
    let mut date = std::process::Command::new("date");
    date.arg("+%s").env("LD_PRELOAD", &library);
    assert_is_wrong(date);
    let mut servers = Vec::new();
    for wrong in ["86400", "-86400"] {
        world.set("WRONG_CLOCK", wrong);
        servers.push(world.serve_with(&LEASE).await);
    }
    let ids = [
        start(&mut servers[0], "ok;words=40;delay_ms=0;hold=true").await,
        start(&mut servers[1], "ok;words=40;delay_ms=0;hold=true").await,
    ];
    let admin = postgres::connect(&world.variable("OUTLAST_STORE")).await;
    for id in &ids {
        running(&world, id).await;
    }
    // Leases are renewed, and checked by the other machine, a few times.
    let renewed = "select bool_and(lease_until > (extract(epoch from clock_timestamp()) * 1000)::bigint) from jobs";
    let looked = admin.query_one("select pg_sleep(4)", &[]);
    looked.await.unwrap();
    assert!(admin.query_one(renewed, &[]).await.unwrap().get::<_, bool>(0));
    world.simulator.release();
    for id in &ids {
        for server in &mut servers {
            let ended = finished(server, id).await;
            assert_eq!(ended["status"], "COMPLETED", "{ended}");
            assert!(ended["elapsedSec"].as_f64().unwrap() < 600.0, "{ended}");
        }
    }
    assert_eq!(world.submits(), 2, "each is paid for once");
    let claims = "select bool_and(fence = 1) from jobs";
    assert!(admin.query_one(claims, &[]).await.unwrap().get::<_, bool>(0), "none was taken over");
    let dated = "select bool_and(abs(created_at - (extract(epoch from clock_timestamp()) * 1000)::bigint) < 600000
        and removable_at > ended_at) from jobs";
    assert!(admin.query_one(dated, &[]).await.unwrap().get::<_, bool>(0));
}
