//! Shutdown over HTTP: parked polls are answered, the health reports it, and no client waits long.

use std::time::Duration;

use outlast_testkit::mcp_process::Signal;
use serde_json::json;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::time::Instant;

use super::client::{ANN, JSON, Served, call, say};
use crate::support::{POLL, START, World, question, running};

/// A stop answers parked polls and closes open connections, within two seconds.
#[tokio::test]
async fn a_stop_answers_parked_polls_and_ends_within_two_seconds() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let id = ann.call(START, question("stuck")).await["jobId"].as_str().unwrap().to_owned();
    running(&world, &id).await;
    let session = ann.initialize().await;
    let listening = ann.send("GET /mcp", &[("Mcp-Session-Id", &session), JSON[1]], "").await;
    assert_eq!(listening.status, 200);
    let (arguments, meta) = (json!({ "jobId": id }), json!({ "progressToken": "p" }));
    let mut modern = ann.ask(POLL, arguments.clone(), meta.clone()).await;
    let mut legacy = ann.post(Some(&session), &call(POLL, &arguments, &meta)).await;
    for parked in [&mut modern, &mut legacy] {
        assert_eq!(parked.event().await.unwrap()["method"], "notifications/progress");
    }
    let asked = Instant::now();
    served.process.signal(Signal::TERM);
    for parked in [modern, legacy] {
        let answer = parked.result().await;
        let answer = &answer["result"]["structuredContent"];
        assert_eq!(answer["status"], "IN_PROGRESS", "{answer}");
        assert!(answer["message"].as_str().unwrap().starts_with("Still running"), "{answer}");
    }
    let answered = asked.elapsed();
    let (status, log) = served.process.ended().await;
    let ended = asked.elapsed();
    println!("answered after {answered:.0?}, ended after {ended:.0?}");
    assert!(status.success(), "{log}");
    assert!(ended < Duration::from_secs(2), "{ended:?}");
    assert!(!log.contains("with calls under way"), "no call had to be cut off: {log}");
}

/// While a last call holds the server, the health reports the shutdown and new calls are refused.
#[tokio::test]
async fn a_leaving_server_says_so_and_takes_no_new_calls() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    // An incomplete request keeps its connection open until the server's wait ends.
    let mut half = TcpStream::connect(served.address).await.unwrap();
    let whole = ann.bytes("POST /mcp", &JSON, &super::client::initialize().to_string());
    half.write_all(&whole[..whole.len() - 5]).await.unwrap();
    assert_eq!(ann.send("GET /health", &[], "").await.status, 200, "the half request was accepted");
    served.process.signal(Signal::TERM);
    let said = async {
        loop {
            // A connection on which nothing was read before the signal is closed without an answer.
            let Some(health) = say(served.address, &ann.bytes("GET /health", &[], "")).await else {
                continue;
            };
            if health.status != 200 {
                return (health.status, health.body().await);
            }
        }
    };
    let said = tokio::time::timeout(Duration::from_secs(30), said).await.unwrap();
    assert_eq!(said, (503, r#"{"status":"draining"}"#.to_owned()));
    let refused = ann.post(None, &super::client::initialize()).await;
    assert_eq!(refused.status, 503, "{}", refused.head);
    assert!(refused.header("retry-after").is_some(), "{}", refused.head);
    let (status, log) = served.process.ended().await;
    assert!(status.success(), "{log}");
}

#[tokio::test]
async fn a_second_signal_leaves_at_once() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let mut half = TcpStream::connect(served.address).await.unwrap();
    half.write_all(b"POST /mcp HTTP/1.1\r\n").await.unwrap();
    served.process.signal(Signal::TERM);
    let ann = served.client(ANN);
    let leaving = async {
        while let Some(health) = say(served.address, &ann.bytes("GET /health", &[], "")).await
            && health.status == 200
        {}
    };
    tokio::time::timeout(Duration::from_secs(30), leaving).await.unwrap();
    served.process.signal(Signal::TERM);
    let (status, _) = served.process.ended().await;
    assert_eq!(status.code(), Some(130));
}
