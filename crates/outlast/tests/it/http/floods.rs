//! Clients that take more than their share: idle connections, answers that are never read, bodies that never end, and
//! ids that are used twice. The numbers are small, by hidden flags; the rules are the same for large ones.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::client::{ANN, BOB, JSON, Served, call};
use crate::faults::memory::peak_kib;
use crate::support::{POLL, START, World, eventually, question, start};

/// The time limit of every wait; a limit, never a pause.
const LIMIT: Duration = Duration::from_secs(60);

/// Waits until the server has hung up.
async fn hung_up(stream: &mut TcpStream) {
    let mut byte = [0; 1];
    let read = tokio::time::timeout(LIMIT, stream.read(&mut byte)).await;
    assert!(matches!(read.expect("the server hangs up"), Ok(0) | Err(_)));
}

/// F10: a client that only holds connections open makes room for those that send requests, from the same address too.
#[tokio::test]
async fn f10_connections_that_say_nothing_keep_no_owner_out() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &["--max-connections", "32"]).await;
    let mut idle = Vec::new();
    for _ in 0..40 {
        idle.push(TcpStream::connect(served.address).await.unwrap());
    }
    for stream in &mut idle[..36] {
        hung_up(stream).await;
    }
    for token in [ANN, BOB] {
        assert_eq!(served.client(token).send("GET /metrics", &[], "").await.status, 200);
    }
    served.process.logged("connections that show no token are closed").await;
}

/// F10: one owner's open connections leave room for another's.
#[tokio::test]
async fn f10_an_owner_with_too_many_connections_is_refused_and_others_are_served() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    let served = Served::start(&mut world, &["--max-connections", "16"]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let id = ann.call(START, question("stuck")).await["jobId"].clone();
    let mut open = Vec::new();
    let refused = loop {
        let poll = ann.ask(POLL, json!({ "jobId": id }), json!({ "progressToken": 1 })).await;
        if poll.status != 200 {
            break poll;
        }
        open.push(poll);
        assert!(open.len() < 100, "never refused");
    };
    assert_eq!((open.len(), refused.status), (6, 503), "half of the owners' three quarters");
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    assert_eq!(refused.header("connection"), Some("close"));
    assert!(refused.body().await.contains("TOO_MANY_CONNECTIONS"));
    assert_eq!(bob.send("GET /nothing", &[], "").await.status, 404);
}

/// The server disconnects a client that never reads, and logs it.
#[tokio::test]
async fn a_client_that_never_reads_its_answers_is_broken_off() {
    let mut world = World::new().await;
    world.set("OUTLAST_RATE_PER_MINUTE", "1000000");
    let served = Served::start(&mut world, &["--write-timeout-ms", "200"]).await;
    let request = served.client(ANN).bytes("GET /nothing", &[], "").repeat(100);
    let mut stream = TcpStream::connect(served.address).await.unwrap();
    let asking = async { while stream.write_all(&request).await.is_ok() {} };
    tokio::time::timeout(LIMIT, asking).await.expect("the server hangs up");
    served.process.logged("its client took none of what was sent to it").await;
}

/// Requests under way may take a limited amount; an owner leaves room for another.
#[tokio::test]
async fn f10_bodies_under_way_are_bounded_and_shared() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &["--max-body-bytes", "1000000"]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    // All but the last bytes, which never come.
    let held = ann.bytes("POST /mcp", &JSON, &"x".repeat(400_000));
    let mut stalled = TcpStream::connect(served.address).await.unwrap();
    stalled.write_all(&held[..held.len() - 10]).await.unwrap();
    let long = |letter: &str| {
        let messages = json!([{ "role": "user", "content": letter.repeat(200_000) }]);
        json!({ "messages": messages, "reasoning_effort": "none of these" })
    };
    // Until the server has read everything that was sent.
    let refused = loop {
        let reply = ann.ask(START, long("x"), json!({})).await;
        if reply.status == 503 {
            break reply;
        }
        assert_eq!(reply.status, 200);
    };
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    assert!(refused.body().await.contains("TOO_BUSY"));
    let answer = bob.ask(START, long("y"), json!({})).await.result().await;
    assert_eq!(answer["result"]["isError"], true, "read, and refused for what it says: {answer}");
    let poll = ann.call(POLL, json!({ "jobId": "x" })).await;
    assert_eq!(poll["status"], "NOT_FOUND", "small requests find room");
}

/// Many bodies of the largest size together take a bounded memory.
#[tokio::test]
async fn bodies_of_the_largest_size_take_bounded_memory() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &["--max-body-bytes", "9000000"]).await;
    let ann = served.client(ANN);
    let messages = json!([{ "role": "user", "content": "x".repeat(4_000_000) }]);
    let before = {
        ann.ask(START, json!({ "messages": messages.clone() }), json!({})).await.result().await;
        peak_kib(&served.process)
    };
    let many = (0..40).map(|_| {
        let (ann, messages) = (ann.clone(), messages.clone());
        tokio::spawn(async move {
            let reply = ann.ask(START, json!({ "messages": messages }), json!({})).await;
            assert!(matches!(reply.status, 200 | 503), "{}", reply.head);
        })
    });
    for one in many.collect::<Vec<_>>() {
        one.await.unwrap();
    }
    let grown = (peak_kib(&served.process) - before) / 1024;
    assert!(grown < 100, "{grown} MiB more for 40 bodies of 4 MB");
}

/// An id that is not answered yet cannot be used again: over HTTP, in a session.
#[tokio::test]
async fn a_second_request_under_an_id_in_flight_is_refused_over_http() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let id = ann.call(START, question("ok;words=60;delay_ms=0;hold=true")).await["jobId"].clone();
    let session = ann.initialize().await;
    let poll = call(POLL, &json!({ "jobId": id }), &json!({ "progressToken": 1 }));
    let mut first = ann.post(Some(&session), &poll).await;
    while first.event().await.expect("progress")["method"] != "notifications/progress" {}
    let second = async { ann.post(Some(&session), &poll).await.result().await };
    let second = tokio::time::timeout(LIMIT, second).await.expect("answered at once");
    assert_eq!((&second["id"], &second["error"]["code"]), (&json!(7), &json!(-32600)), "{second}");
    let other = ann.initialize().await;
    let elsewhere = call(POLL, &json!({ "jobId": "x" }), &json!({}));
    let answer = ann.post(Some(&other), &elsewhere).await.result().await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "NOT_FOUND", "{answer}");
    eventually("the run is under way", || world.submits() == 1).await;
    world.simulator.release();
    let answer = first.result().await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    let again = ann.post(Some(&session), &poll).await.result().await;
    assert_eq!(again["result"]["structuredContent"]["status"], "COMPLETED", "free again: {again}");
}

/// The same over a pipe.
#[tokio::test]
async fn a_second_request_under_an_id_in_flight_is_refused_over_a_pipe() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0;hold=true").await;
    let mut poll = call(POLL, &json!({ "jobId": id }), &json!({ "progressToken": 1 }));
    poll["id"] = json!("twice");
    server.write_raw(&format!("{poll}\n")).await;
    let progress = server.message().await.expect("progress");
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    server.write_raw(&format!("{poll}\n")).await;
    let refused = answered(&mut server).await;
    assert_eq!(refused["error"]["code"], -32600, "{refused}");
    eventually("the run is under way", || world.submits() == 1).await;
    world.simulator.release();
    let first = answered(&mut server).await;
    assert_eq!(first["result"]["structuredContent"]["status"], "COMPLETED", "{first}");
    server.write_raw(&format!("{poll}\n")).await;
    let again = answered(&mut server).await;
    assert_eq!(again["result"]["structuredContent"]["status"], "COMPLETED", "{again}");
}

async fn answered(server: &mut outlast_testkit::mcp_process::McpProcess) -> Value {
    let answer = async {
        loop {
            let message = server.message().await.expect("an answer");
            if message["id"] == "twice" {
                return message;
            }
        }
    };
    tokio::time::timeout(LIMIT, answer).await.expect("an answer in time")
}
