//! D11: the server is notified before the caller returns.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use outlast_client::{CallOptions, Client, ClientError, ConnectOptions, Era};
use outlast_testkit::peer::{Peer, result};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::Instant;

use crate::support::{calling, greeted, greeted_stateless, ms, timed_out};

#[tokio::test(start_paused = true)]
async fn d11_either_timeout_puts_the_cancellation_on_the_wire_before_the_error() {
    for stateless in [false, true] {
        for (options, reason) in [
            (CallOptions::default().timeout(ms(300)), "the client's timeout was reached"),
            (
                CallOptions::default().max_total_timeout(ms(300)),
                "the client's total timeout was reached",
            ),
        ] {
            let both = if stateless { greeted_stateless().await } else { greeted().await };
            let (client, mut peer) = both;
            let returned = Arc::new(AtomicBool::new(false));
            let flag = returned.clone();
            let call = tokio::spawn(async move {
                let called = client.call_tool("slow", json!({}), options).await;
                flag.store(true, Ordering::SeqCst);
                (called, client)
            });
            let asked = peer.call().await;
            let cancelled = peer.hear().await;
            assert_eq!(cancelled["method"], "notifications/cancelled");
            assert_eq!(cancelled["params"]["requestId"], asked.id);
            assert_eq!(cancelled["params"]["reason"], reason);
            let (called, _client) = call.await.unwrap();
            assert!(timed_out(called).told);
            assert!(returned.load(Ordering::SeqCst));
        }
    }
}

/// An in-memory pipe that accepts the request and not one byte more.
#[tokio::test(start_paused = true)]
async fn d11_a_wedged_pipe_delays_the_error_by_at_most_a_second() {
    let (client_end, server_end) = tokio::io::duplex(1024);
    let (mut from_client, mut to_client) = tokio::io::split(server_end);
    let (read, write) = tokio::io::split(client_end);
    let options = ConnectOptions { era: Era::Initialize, ..ConnectOptions::default() };
    let greeting = async {
        // The handshake and the notification after it: two lines.
        let mut heard = Vec::new();
        let mut byte = [0];
        while heard.iter().filter(|byte| **byte == b'\n').count() < 2 {
            from_client.read_exact(&mut byte).await.unwrap();
            heard.extend(byte);
            if heard.ends_with(b"\n") && !heard[..heard.len() - 1].contains(&b'\n') {
                let greeting = outlast_testkit::peer::greeting();
                let line = format!("{}\n", outlast_testkit::peer::answer(&json!(0), greeting));
                to_client.write_all(line.as_bytes()).await.unwrap();
            }
        }
    };
    let (client, ()) = tokio::join!(Client::connect(read, write, options), greeting);
    let client = client.unwrap();

    // Longer than the pipe: the request itself gets stuck, and the cancellation behind it.
    let long = json!({ "text": "x".repeat(100_000) });
    let began = Instant::now();
    let called = client.call_tool("slow", long, CallOptions::default().timeout(ms(300))).await;
    let waited = began.elapsed();
    let timed_out = timed_out(called);
    assert!(!timed_out.told, "the server could not be notified: {timed_out}");
    assert_eq!(timed_out.elapsed.as_millis(), 300, "the wait for the pipe is not the call's");
    assert_eq!(waited.as_millis(), 1_300);

    // The client can still be closed.
    let began = Instant::now();
    client.close().await;
    assert!(began.elapsed() <= Duration::from_secs(4), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn d11_the_handshake_has_its_own_limit_and_is_never_cancelled() {
    for (era, first) in [(Era::Initialize, "initialize"), (Era::Stateless, "server/discover")] {
        let (mut peer, read, write) = Peer::new();
        let options =
            ConnectOptions { handshake_timeout: ms(700), era, ..ConnectOptions::default() };
        let began = Instant::now();
        let client = Client::connect(read, write, options).await.err();
        assert!(
            matches!(client, Some(ClientError::HandshakeTimedOut { limit }) if limit == ms(700)),
            "{client:?}"
        );
        assert_eq!(began.elapsed().as_millis(), 700);
        assert_eq!(peer.hear().await["method"], first);
        assert_eq!(
            peer.try_hear().await,
            None,
            "nothing was sent after it: the client closed the connection"
        );
    }
}

/// The client falls back to `initialize` for a server that answers unknown requests with an empty result.
#[tokio::test(start_paused = true)]
async fn a_server_that_answers_with_an_empty_result_gets_initialize() {
    let (mut peer, read, write) = Peer::new();
    let greeting = async {
        let asked = peer.hear().await;
        assert_eq!(asked["method"], "server/discover");
        peer.answer(&asked["id"], json!({})).await;
        peer.greet().await;
    };
    let connecting = Client::connect(read, write, ConnectOptions::default());
    let (client, ()) = tokio::join!(connecting, greeting);
    assert_eq!(client.unwrap().protocol().as_deref(), Some("2025-06-18"));
}

/// A caller that goes away: a lost `select!`, an aborted task.
#[tokio::test(start_paused = true)]
async fn a_dropped_call_is_cancelled_and_the_connection_keeps_working() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, CallOptions::default());
    let asked = peer.call().await;
    call.abort();
    let cancelled = peer.hear().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], asked.id);

    let call = calling(&client, CallOptions::default());
    let asked = peer.call().await;
    peer.answer(&asked.id, result("still here")).await;
    assert_eq!(call.await.unwrap().unwrap().text, "still here");
}

/// The answer settles the call, so there is nothing to cancel.
#[tokio::test(start_paused = true)]
async fn an_answered_call_is_not_cancelled() {
    let (client, mut peer) = greeted().await;
    let call = calling(&client, CallOptions::default().timeout(ms(300)));
    let asked = peer.call().await;
    peer.answer(&asked.id, result("done")).await;
    call.await.unwrap().unwrap();
    tokio::time::sleep(ms(1_000)).await;
    Arc::into_inner(client).unwrap().close().await;
    assert_eq!(peer.try_hear().await, None);
}

/// The cancellations of callers that went away are sent before the connection is closed.
#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_cancellations_of_dropped_calls() {
    let (client, mut peer) = greeted().await;
    let asking = async {
        let asked = peer.call().await;
        (asked, peer)
    };
    let mut call = Box::pin(client.call_tool("slow", json!({}), CallOptions::default()));
    let (asked, mut peer) = tokio::select! {
        called = &mut call => panic!("{called:?}"),
        asked = asking => asked,
    };
    drop(call);
    Arc::into_inner(client).unwrap().close().await;
    let cancelled = peer.hear().await;
    assert_eq!(cancelled["params"]["requestId"], asked.id);
    assert_eq!(peer.try_hear().await, None);
}
