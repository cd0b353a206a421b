//! A process that is stopped (SIGSTOP) and continued: it holds its locks all the time, so only its leases show its
//! state.

use std::sync::Arc;
use std::time::Duration;

use outlast_testkit::mcp_process::{McpProcess, Signal};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::support::{
    POLL, START, World, assert_refused, eventually, finished, question, running, start,
};

const LEASE: [&str; 2] = ["--lease-ms", "1500"];

/// Takes the write lock.
fn write_lock(world: &World) -> std::fs::File {
    let path = world.data_dir().join("outlast.db.wlock");
    let file = std::fs::File::options().write(true).open(path).unwrap();
    file.lock().unwrap();
    file
}

/// Stops a process while it writes nothing: in the middle of a transaction it would block all other writers.
async fn stop(world: &World, sleeper: &McpProcess) {
    let write_lock = write_lock(world);
    sleeper.signal(Signal::STOP);
    let status = format!("/proc/{}/status", sleeper.pid());
    let is_stopped = || std::fs::read_to_string(&status).unwrap().contains("State:\tT");
    eventually("it is stopped", is_stopped).await;
    write_lock.unlock().unwrap();
}

/// Promise 3, promise 4, promise 5: the job is taken over after the lease and resumed; whether it continues before or
/// after the end, the stopped process's writes no longer count.
#[tokio::test]
async fn a_stopped_workers_job_is_taken_over_when_its_lease_ends_and_ends_once() {
    for wakes_before_the_end in [true, false] {
        let world = World::new().await;
        let mut sleeper = world.serve_with(&LEASE).await;
        let id = start(&mut sleeper, "ok;words=60;hold=true").await;
        running(&world, &id).await;
        let mut other = world.serve_with(&LEASE).await;
        stop(&world, &sleeper).await;
        other.logged("remote run resumed").await;
        if wakes_before_the_end {
            sleeper.signal(Signal::CONT);
            sleeper.logged("this try stops").await;
        }
        // The stopped process's own stream of the run ends now as well, and is read when it continues.
        world.simulator.release();
        let ended = finished(&mut other, &id).await;
        assert_eq!(ended["status"], "COMPLETED", "{ended}");
        sleeper.signal(Signal::CONT);
        assert_eq!(finished(&mut sleeper, &id).await, ended, "both say the same");

        // It works like any other process again.
        let next = start(&mut sleeper, "ok;words=60;delay_ms=0").await;
        finished(&mut sleeper, &next).await;
        assert_eq!(finished(&mut sleeper, &id).await, ended);
        assert_eq!(world.submits(), 2, "one for each job");
        let completed = |server: &McpProcess| {
            let log = server.log();
            log.lines().filter(|line| line.contains("Job completed") && line.contains(&id)).count()
        };
        eventually("the end is logged", || completed(&other) == 1).await;
        assert_eq!(completed(&sleeper), 0, "{}", sleeper.log());
    }
}

/// B9a, promise 4: no process can know if a request on its way in a stopped process will be paid for, so the job is
/// left alone until that process reports.
#[tokio::test]
async fn a_request_on_its_way_in_a_stopped_worker_is_left_alone() {
    let mut world = World::new().await;
    let door = Door::before(world.simulator.url()).await;
    world.set("PERPLEXITY_BASE_URL", &door.url);
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "100");
    let mut sleeper = world.serve_with(&LEASE).await;
    let under_way = start(&mut sleeper, "ok;words=60;hold=true").await;
    running(&world, &under_way).await;
    door.shut();
    let on_its_way = start(&mut sleeper, "ok;words=60;delay_ms=0").await;
    eventually("the request is at the door", || door.waiting() == 1).await;
    stop(&world, &sleeper).await;
    let mut other = world.serve_with(&LEASE).await;
    door.open();
    // Both leases ran out together; the resumable one was taken, so the other was checked too.
    other.logged("remote run resumed").await;
    assert_eq!(world.shown(&on_its_way).await["checkpoint"]["at"], "beginning");
    let poll = other.structured(POLL, json!({ "jobId": on_its_way })).await;
    assert_eq!(poll["status"], "IN_PROGRESS", "{poll}");
    sleeper.signal(Signal::CONT);
    world.simulator.release();
    for id in [&on_its_way, &under_way] {
        assert_eq!(finished(&mut other, id).await["status"], "COMPLETED");
    }
    assert_eq!(world.submits(), 2, "one for each job");
    assert_eq!(other.log().matches("Job dequeued").count(), 1, "{}", other.log());
}

/// Promise 1: a process that is stopped with the write lock makes others wait, but they write in the end. Here the test
/// holds it: to the kernel all holders are alike.
#[tokio::test]
async fn a_gate_that_is_held_for_ever_is_passed_by() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let write_lock = write_lock(&world);
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    server.logged("the write lock is stuck; writing without it").await;
    write_lock.unlock().unwrap();
}

/// Promise 6: while a transaction stays open no process can write; calls report this clearly, and work afterwards.
#[tokio::test]
async fn a_transaction_that_is_held_for_ever_is_a_retryable_refusal() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let done = start(&mut server, "ok;words=60;delay_ms=0").await;
    let report = finished(&mut server, &done).await;
    #[expect(clippy::disallowed_methods, reason = "tests open the database directly")]
    let holder = rusqlite::Connection::open(world.database()).unwrap();
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let asked = Instant::now();
    let call = json!({ "name": START, "arguments": question("ok;words=60;delay_ms=0") });
    let call = server.send("tools/call", call).await;
    assert_eq!(finished(&mut server, &done).await, report, "readers do not wait");
    let refused = server.answer(call).await.unwrap();
    assert_refused(&refused["result"], "SERVICE_UNAVAILABLE", true);
    assert!(asked.elapsed() < Duration::from_secs(20), "{:?}", asked.elapsed());
    holder.execute_batch("ROLLBACK").unwrap();
    let next = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &next).await["status"], "COMPLETED");
    assert!(!server.log().contains("database is locked"), "{}", server.log());
    assert_eq!(world.submits(), 2, "what was refused was not done later");
}

/// A gate before the provider: while it is closed, new connections wait before it.
struct Door {
    url: String,
    open: watch::Sender<bool>,
    waiting: Arc<std::sync::atomic::AtomicUsize>,
}

impl Door {
    async fn before(url: &str) -> Self {
        let upstream = url.strip_prefix("http://").unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (open, is_open) = watch::channel(true);
        let waiting = Arc::new(std::sync::atomic::AtomicUsize::new(0));
        let counter = waiting.clone();
        tokio::spawn(async move {
            while let Ok((mut client, _)) = listener.accept().await {
                let (mut is_open, upstream) = (is_open.clone(), upstream.clone());
                if !*is_open.borrow() {
                    counter.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
                }
                tokio::spawn(async move {
                    is_open.wait_for(|open| *open).await.unwrap();
                    let mut server = TcpStream::connect(upstream).await.unwrap();
                    // Either side may hang up at any time.
                    drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
                });
            }
        });
        Self { url, open, waiting }
    }

    fn shut(&self) {
        self.open.send_replace(false);
    }

    fn open(&self) {
        self.open.send_replace(true);
    }

    fn waiting(&self) -> usize {
        self.waiting.load(std::sync::atomic::Ordering::SeqCst)
    }
}
