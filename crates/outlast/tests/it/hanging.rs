//! A database that hangs: its connections stay open and nothing answers. Callers get true answers, orchestrators see
//! the fault, and processes end when they are asked to.

use std::time::Duration;

use outlast_testkit::mcp_process::{McpProcess, Signal, signal};
use outlast_testkit::postgres::{self, Passing, Relay};
use serde_json::json;
use tokio::time::Instant;

use crate::http::client::{ANN, Client, Served, say};
use crate::support::{START, World, eventually, finished, question, running, start, status};

/// The longest time from SIGTERM to the end of a process.
const MAX_LEAVING: Duration = Duration::from_secs(5);

/// Creates a world whose database is behind a relay, and returns the database's direct address.
async fn relayed() -> (World, Relay, String) {
    let mut world = World::on_postgres().await;
    let relay = Relay::start().await;
    let direct = world.variable("OUTLAST_STORE");
    world.set("OUTLAST_STORE", &relay.url(&direct));
    (world, relay, direct)
}

async fn get(address: std::net::SocketAddr, path: &str) -> (u16, String) {
    // Any Host header is fine: orchestrators use the address of a container.
    let request = format!("GET {path} HTTP/1.1\r\nHost: 10.1.2.3:1234\r\n\r\n");
    let reply = say(address, request.as_bytes()).await.expect("an answer");
    (reply.status, reply.body().await)
}

/// Waits until the route answers with this status, and returns how long that took and the body.
async fn until(address: std::net::SocketAddr, path: &str, status: u16) -> (Duration, String) {
    let begun = Instant::now();
    let answered = async {
        loop {
            let (now, body) = get(address, path).await;
            if now == status {
                return body;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    let body = tokio::time::timeout(Duration::from_secs(60), answered).await;
    let body = body.unwrap_or_else(|_| panic!("{path} does not answer with {status}"));
    (begun.elapsed(), body)
}

fn count(log: &str, words: &str) -> usize {
    log.lines().filter(|line| line.contains(words)).count()
}

/// F2, F9: without any traffic the health changes within the limit of a statement and recovers by itself; the log
/// reports it once.
#[tokio::test]
async fn f2_a_server_without_traffic_notices_that_its_database_hangs() {
    let (mut world, relay, _) = relayed().await;
    world.set("OUTLAST_STORE_STATEMENT_TIMEOUT", "3s");
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let address = served.address;
    for path in ["/livez", "/readyz", "/health"] {
        assert_eq!(get(address, path).await, (200, r#"{"status":"ok"}"#.to_owned()), "{path}");
    }
    relay.pass(Passing::Nothing);
    let (noticed, body) = until(address, "/readyz", 503).await;
    println!("noticed after {noticed:.1?}");
    assert!(noticed < Duration::from_secs(4), "{noticed:?}");
    assert_eq!(body, r#"{"status":"store does not answer"}"#);
    assert_eq!(get(address, "/health").await.0, 503);
    assert_eq!(get(address, "/livez").await, (200, r#"{"status":"ok"}"#.to_owned()));
    let figures = served.client(ANN).send("GET /metrics", &[], "").await;
    assert_eq!(figures.status, 200, "figures are most wanted now");
    assert!(figures.body().await.contains("\noutlast_store_up 0\n"));
    // Longer than the limit of a statement: connections are given up and opened again meanwhile.
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(get(address, "/readyz").await.0, 503);
    relay.pass(Passing::Everything);
    let (recovered, _) = until(address, "/readyz", 200).await;
    println!("recovered after {recovered:.1?}");
    assert_eq!(get(address, "/health").await.0, 200);
    let figures = served.client(ANN).send("GET /metrics", &[], "").await.body().await;
    assert!(figures.contains("\noutlast_store_up 1\n"), "{figures}");
    let log = served.process.log();
    assert_eq!(count(&log, "the database does not answer"), 1, "{log}");
    assert_eq!(count(&log, "the database answers again"), 1, "{log}");
}

/// F2: a start that certainly stored nothing reports this, and may be repeated.
#[tokio::test]
async fn f2_a_start_that_the_database_never_received_may_be_repeated() {
    let (mut world, relay, _) = relayed().await;
    world.set("OUTLAST_STORE_STATEMENT_TIMEOUT", "2s");
    let mut server = world.serve_with(&["--no-detach"]).await;
    let first = start(&mut server, "ok;words=20;delay_ms=0").await;
    assert_eq!(finished(&mut server, &first).await["status"], "COMPLETED");
    relay.pass(Passing::Nothing);
    let refused = server.call(START, question("ok;words=20;delay_ms=0")).await;
    let error = &refused["_meta"]["outlast/error"];
    assert_eq!(
        (&error["code"], &error["retryable"]),
        (&json!("SERVICE_UNAVAILABLE"), &json!(true))
    );
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("no job was started"), "{message}");
    relay.pass(Passing::Everything);
    let again = async {
        loop {
            let answer = server.call(START, question("ok;words=20;delay_ms=0")).await;
            if let Some(id) = answer["structuredContent"]["jobId"].as_str() {
                return id.to_owned();
            }
        }
    };
    let again = tokio::time::timeout(Duration::from_secs(60), again).await.unwrap();
    assert_eq!(finished(&mut server, &again).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 2);
}

/// F2: a start whose commit was sent and not answered names the job that may have been stored; the name finds the job.
#[tokio::test(flavor = "multi_thread")]
async fn f2_a_start_that_was_not_confirmed_names_its_job() {
    let (mut world, relay, direct) = relayed().await;
    world.set("OUTLAST_STORE_STATEMENT_TIMEOUT", "2s");
    world.set("OUTLAST_STORE_POOL_SIZE", "2");
    let mut server = world.serve_with(&["--no-detach"]).await;
    // Each connection has prepared its statements: preparing would wait for the lock below before anything is written.
    for _ in 0..8 {
        let id = start(&mut server, "ok;words=20;delay_ms=0").await;
        assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    }
    // The insert can read but not write, so that the relay changes between its two halves.
    let (mut other, watcher) = (postgres::connect(&direct).await, postgres::connect(&direct).await);
    let tx = other.transaction().await.unwrap();
    tx.batch_execute("lock table bodies in exclusive mode").await.unwrap();
    let starting = async { server.call(START, question("ok;words=20;delay_ms=0")).await };
    let stopping = async {
        let waits =
            "select count(*) from pg_locks where not granted and relation = 'bodies'::regclass";
        while watcher.query_one(waits, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
        relay.pass(Passing::Requests);
        tx.rollback().await.unwrap();
    };
    let (answered, ()) = tokio::join!(starting, stopping);
    let error = answered["_meta"]["outlast/error"].clone();
    let said = (&error["code"], &error["retryable"]);
    assert_eq!(said, (&json!("SERVICE_UNAVAILABLE"), &json!(false)), "{answered}");
    let message = error["message"].as_str().unwrap();
    let id = error["job_id"].as_str().unwrap_or_else(|| panic!("{answered}")).to_owned();
    assert!(message.contains(&id) && message.contains("may have been started"), "{message}");
    relay.pass(Passing::Everything);
    let found = async {
        while status(&mut server, &id).await != "COMPLETED" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), found).await.expect("the job is found by its id");
    assert_eq!(world.submits(), 9, "bought once");
}

/// F2: every kind of process ends within 5 s of SIGTERM while its database hangs, with a job in hand.
#[tokio::test]
async fn f2_processes_end_when_asked_while_their_database_hangs() {
    let (mut world, relay, _) = relayed().await;
    world.set("OUTLAST_OWNER", "ann");
    world.set("OUTLAST_DETACH", "auto");
    let mut stdio = world.serve_with(&["--no-detach"]).await;
    let id = start(&mut stdio, "stuck").await;
    running(&world, &id).await;
    let mut front = world.serve().await;
    front.call(START, question("stuck")).await;
    eventually("a worker is detached", || !world.detached_workers().is_empty()).await;
    let http = Served::start(&mut world, &[]).await;
    http.client(ANN).call(START, question("stuck")).await;
    world.set("OUTLAST_TOKENS", &format!("ann={ANN}"));
    let worker = world.spawn(&["worker", "--http", "127.0.0.1:0"]);
    worker.logged("health and metrics on").await;
    let id = start(&mut stdio, "stuck").await;
    running(&world, &id).await;
    let detached = world.detached_workers();
    relay.pass(Passing::Nothing);
    // So that each has requests on their way.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    for pid in &detached {
        signal(*pid, Signal::TERM);
    }
    let ends = async |kind: &str, process: McpProcess| {
        process.signal(Signal::TERM);
        let ended = tokio::time::timeout(Duration::from_secs(30), process.ended()).await;
        let (status, log) = ended.unwrap_or_else(|_| panic!("{kind} does not end"));
        let after = begun.elapsed();
        println!("{kind} ended after {after:.1?}: {status}");
        (kind.to_owned(), after, log)
    };
    let gone = async {
        for pid in &detached {
            while std::path::Path::new(&format!("/proc/{pid}")).exists() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        println!("detached ended after {:.1?}", begun.elapsed());
        ("detached".to_owned(), begun.elapsed(), String::new())
    };
    let gone = async { tokio::time::timeout(Duration::from_secs(30), gone).await.expect("ends") };
    let (one, two, three, four, five) = tokio::join!(
        ends("stdio", stdio),
        ends("front", front),
        ends("http", http.process),
        ends("worker", worker),
        gone
    );
    for (kind, after, log) in [one, two, three, four, five] {
        assert!(after < MAX_LEAVING, "{kind} took {after:?}: {log}");
    }
}

/// F9: a worker has the routes of an orchestrator; metrics need the operator's token.
#[tokio::test]
async fn f9_a_worker_reports_its_health_and_figures() {
    let (mut world, relay, _) = relayed().await;
    world.set("OUTLAST_STORE_STATEMENT_TIMEOUT", "3s");
    world.set("OUTLAST_OWNER", "ann");
    world.set("OUTLAST_TOKENS", &format!("ann={ANN}"));
    let worker = world.spawn(&["worker", "--http", "127.0.0.1:0"]);
    worker.logged("health and metrics on http://").await;
    let log = worker.log();
    let (_, rest) = log.split_once("health and metrics on http://").unwrap();
    let address = rest.split_whitespace().next().unwrap().parse().unwrap();
    for path in ["/livez", "/readyz", "/health"] {
        assert_eq!(get(address, path).await, (200, r#"{"status":"ok"}"#.to_owned()), "{path}");
    }
    assert_eq!(get(address, "/metrics").await.0, 401);
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=20;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    let client = Client { address, token: ANN.to_owned() };
    for path in ["/mcp", "/ui", "/"] {
        assert_eq!(client.send(&format!("GET {path}"), &[], "").await.status, 404, "{path}");
    }
    let figures = client.send("GET /metrics", &[], "").await.body().await;
    for line in [
        r#"outlast_attempts_total{outcome="succeeded"} 1"#,
        r#"outlast_run_seconds_count{workflow="deep_research"} 1"#,
        r#"outlast_queue_wait_seconds_count{workflow="deep_research"} 1"#,
        "outlast_store_up 1",
    ] {
        assert!(figures.contains(line), "{line}:\n{figures}");
    }
    relay.pass(Passing::Nothing);
    until(address, "/readyz", 503).await;
    relay.pass(Passing::Everything);
    until(address, "/readyz", 200).await;
    worker.signal(Signal::TERM);
    assert!(worker.ended().await.0.success());
}
