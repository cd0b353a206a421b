//! Connections, times and sizes: what is reused, what is waited for, what is never held.

use std::time::Duration;

use outlast_core::{BeginError, Clock, Provider, ProviderErrorKind, RemoteRun};
use outlast_provider::perplexity::Agent;
use tokio::net::TcpListener;

use crate::bench::{self, KEY, PATIENCE, ask, follow, patiently};
use crate::canned::{Canned, Then, raw, reply, stream};

const CREATED: &str =
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1"}}"#;
const RUNNING: &str = r#"{"id":"resp_1","status":"in_progress"}"#;
const DONE: &str = r#"{"id":"resp_1","status":"completed","output":[{"type":"message","content":[{"text":"t"}]}]}"#;

/// The answers of a hostile or broken server.
const HUNDRED_MEGABYTES: usize = 100 * 1024 * 1024;

/// The bytes that may be in flight between two sockets of one machine when we stop reading.
const UNDER_WAY: usize = 16 * 1024 * 1024;

fn remote(server: &Canned) -> RemoteRun {
    let provider = Agent::NAME.to_owned();
    RemoteRun { provider, id: "resp_1".to_owned(), cursor: None, begun_at: server.clock.now() }
}

#[tokio::test]
async fn checks_share_one_connection() {
    let server = Canned::serve(|line, nth| {
        let body = if nth < 41 { RUNNING } else { DONE };
        let (status, body) = if line.contains("stream=true") { (400, "{}") } else { (200, body) };
        let head = format!("content-type: application/json\r\ncontent-length: {}", body.len());
        raw(status, &head, body.as_bytes(), Then::Next)
    })
    .await;
    let mut run = server
        .agent(PATIENCE)
        .resume(&outlast_core::Request::from(serde_json::Value::Null), &remote(&server))
        .await
        .unwrap();
    assert_eq!(follow(&mut *run).await.text(), "t");
    assert_eq!(server.lines().len(), 42);
    // The refusal of the stream is not read to its end, which costs one.
    assert!(server.connections() <= 2, "{} connections", server.connections());
}

/// B9a: what a pooled connection that dies has passed on cannot be known.
#[tokio::test]
async fn every_submit_has_its_own_connection() {
    let server = Canned::serve(|_, _| {
        let head = format!("content-type: application/json\r\ncontent-length: {}", RUNNING.len());
        raw(200, &head, RUNNING.as_bytes(), Then::Next)
    })
    .await;
    let agent = server.agent(PATIENCE);
    for _ in 0..5 {
        patiently(agent.begin(&ask("q"), "key")).await.unwrap();
    }
    assert_eq!(server.connections(), 5);
}

/// B9a: a call that runs out of time before it is connected was never sent.
#[tokio::test]
async fn a_connection_that_never_opens_means_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Accepted by the system, but no TLS is ever spoken.
    let url = format!("https://{}", listener.local_addr().unwrap());
    let timeout = Duration::from_millis(600);
    let agent = Agent::new(bench::options(&url, KEY, timeout, &Default::default())).unwrap();
    let Err(error) = patiently(agent.begin(&ask("q"), "key")).await else { panic!("it began") };
    assert!(matches!(error, BeginError::NotSent(_)), "{error:?}");
}

#[tokio::test]
async fn an_event_of_100_megabytes_is_given_up_not_held() {
    let server = Canned::serve(|line, _| match line.starts_with("POST") {
        true => {
            let body = format!("data: {CREATED}\n\ndata: x");
            let head = "content-type: text/event-stream";
            raw(200, head, body.as_bytes(), Then::Repeat(HUNDRED_MEGABYTES))
        }
        false => reply(200, DONE),
    })
    .await;
    let mut run = patiently(server.agent(PATIENCE).begin(&ask("q"), "key")).await.unwrap();
    assert_eq!(follow(&mut *run).await.text(), "t");
    assert!(server.sent() < 8 * 1024 * 1024 + UNDER_WAY, "{} bytes were taken", server.sent());
}

#[tokio::test]
async fn a_body_of_100_megabytes_is_given_up_not_held() {
    let server = Canned::serve(|_, _| {
        raw(200, "content-type: application/json", b"[", Then::Repeat(HUNDRED_MEGABYTES))
    })
    .await;
    let mut run = server
        .agent(PATIENCE)
        .resume(&outlast_core::Request::from(serde_json::Value::Null), &remote(&server))
        .await
        .unwrap();
    assert_eq!(follow(&mut *run).await.error().kind, ProviderErrorKind::TooLarge);
    assert_eq!(server.lines().len(), 1, "it would be as large the next time");
    assert!(server.sent() < 32 * 1024 * 1024 + UNDER_WAY, "{} bytes were taken", server.sent());
}

#[tokio::test]
async fn a_body_that_announces_100_megabytes_is_not_read() {
    let server = Canned::serve(|_, _| {
        let head = format!("content-length: {HUNDRED_MEGABYTES}");
        raw(200, &head, b"[", Then::Repeat(HUNDRED_MEGABYTES))
    })
    .await;
    let mut run = server
        .agent(PATIENCE)
        .resume(&outlast_core::Request::from(serde_json::Value::Null), &remote(&server))
        .await
        .unwrap();
    assert_eq!(follow(&mut *run).await.error().kind, ProviderErrorKind::TooLarge);
    assert!(server.sent() < UNDER_WAY, "{} bytes were taken", server.sent());
}

/// A redirect would send the key to wherever it points.
#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = Canned::serve(|_, _| stream(&[CREATED], Then::Close)).await;
    let location = elsewhere.url.clone();
    let server = Canned::serve(move |_, _| {
        raw(307, &format!("location: {location}/v1/agent\r\ncontent-length: 0"), b"", Then::Close)
    })
    .await;
    let Err(error) = patiently(server.agent(PATIENCE).begin(&ask("q"), "key")).await else {
        panic!("it was followed")
    };
    assert!(matches!(error, BeginError::Unknown(_)), "{error:?}");
    assert_eq!(elsewhere.connections(), 0);
}
