//! Shutdown: in time, at once on a second signal, and without loss of acknowledged data.

use std::time::Duration;

use outlast_testkit::mcp_process::Signal;
use serde_json::json;
use tokio::time::Instant;

use crate::support::{POLL, START, World, finished, question, running, start};

/// Creates a world whose provider accepts connections and never answers, and the listener that does so.
async fn silent_world() -> (World, tokio::net::TcpListener) {
    let mut world = World::new().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.set("PERPLEXITY_BASE_URL", &format!("http://{}", silent.local_addr().unwrap()));
    (world, silent)
}

/// B9a: the request cannot be withdrawn, so the server waits for it for a short time; the next process knows that it
/// may have been paid for.
#[tokio::test]
async fn a_begin_on_its_way_to_a_silent_provider_delays_leaving_by_less_than_two_seconds() {
    for signal in [Signal::TERM, Signal::INT] {
        let (world, silent) = silent_world().await;
        let mut server = world.serve().await;
        let id = start(&mut server, "ok").await;
        let (_connection, _) = silent.accept().await.unwrap();
        server.signal(signal);
        let asked = Instant::now();
        let (status, log) = server.ended().await;
        assert!(asked.elapsed() < Duration::from_secs(2), "{:?}: {log}", asked.elapsed());
        assert_eq!(status.code(), Some(0), "{log}");
        let mut next = world.serve().await;
        let ended = finished(&mut next, &id).await;
        assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
    }
}

/// A second signal means: exit without waiting.
#[tokio::test]
async fn a_second_signal_leaves_at_once() {
    for signal in [Signal::TERM, Signal::INT] {
        let (world, silent) = silent_world().await;
        let mut server = world.serve().await;
        let id = start(&mut server, "ok").await;
        let (_connection, _) = silent.accept().await.unwrap();
        let poll = json!({ "name": POLL, "arguments": { "jobId": id } });
        let poll = server.send("tools/call", poll).await;
        server.request("ping", json!({})).await;
        server.signal(signal);
        server.answer(poll).await.expect("the first signal was heard");
        server.signal(signal);
        let asked = Instant::now();
        let (status, log) = server.ended().await;
        assert_eq!(status.code(), Some(130), "{log}");
        assert!(asked.elapsed() < Duration::from_millis(1_000), "{:?}", asked.elapsed());
    }
}

/// Promise 1, promise 7: the end of input answers parked polls, and everything else that was answered is kept.
#[tokio::test]
async fn the_end_of_input_with_calls_under_way_loses_nothing_that_was_answered() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let held = start(&mut server, "ok;words=60;hold=true").await;
    running(&world, &held).await;
    let poll = json!({ "name": POLL, "arguments": { "jobId": held } });
    let poll = server.send("tools/call", poll).await;
    server.request("ping", json!({})).await;
    let mut starts = Vec::new();
    for _ in 0..20 {
        let call = json!({ "name": START, "arguments": question("ok;words=20;delay_ms=0") });
        starts.push(server.send("tools/call", call).await);
    }
    server.close_input();
    let asked = Instant::now();
    let answer = server.answer(poll).await.expect("a parked poll is answered");
    assert_eq!(answer["result"]["structuredContent"]["status"], "IN_PROGRESS", "{answer}");
    let mut ids = vec![held];
    for start in starts {
        let answer = server.answer(start).await;
        let id = answer.and_then(|answer| {
            answer["result"]["structuredContent"]["jobId"].as_str().map(str::to_owned)
        });
        ids.extend(id);
    }
    let (status, log) = server.ended().await;
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}: {log}", asked.elapsed());

    let mut next = world.serve().await;
    world.simulator.release();
    for id in &ids {
        assert_eq!(finished(&mut next, id).await["status"], "COMPLETED");
    }
    assert!(ids.len() as u64 <= world.submits() && world.submits() <= 21, "{}", world.submits());
    assert_eq!(
        world.simulator.stats().duplicate_submits,
        world.submits() - 2,
        "one question, asked often"
    );
}
