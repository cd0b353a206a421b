//! Real processes that misbehave over real pipes: every call ends as documented, and memory stays bounded.

use std::time::Duration;

use outlast_client::{
    CallOptions, Client, ClientError, ConnectOptions, Era, Limit, ProgramToStart,
};
use outlast_testkit::peer::shell::{LAST_WORDS, Misbehaviour, NEVER_GREETS, script};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{ms, timed_out};

/// The limit for calls that must end on their own, enough for the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

async fn start(script: &str, handshake_timeout: Duration) -> Result<Client, ClientError> {
    let options =
        ConnectOptions { era: Era::Initialize, handshake_timeout, ..ConnectOptions::default() };
    Client::spawn(ProgramToStart::new("sh").arg("-c").arg(script), options).await
}

async fn spawn(misbehaviour: Misbehaviour) -> Client {
    start(&script(misbehaviour), LIMIT).await.unwrap()
}

async fn call(client: &Client, options: CallOptions) -> Result<String, ClientError> {
    let called = client.call_tool("slow", json!({}), options);
    let called = tokio::time::timeout(LIMIT, called).await.expect("the call ends");
    called.map(|answer| answer.text)
}

#[tokio::test]
async fn a_process_that_never_completes_the_handshake_is_given_up() {
    let client = start(NEVER_GREETS, ms(500)).await.err();
    assert!(matches!(client, Some(ClientError::HandshakeTimedOut { .. })), "{client:?}");
}

#[tokio::test]
async fn an_invalid_answer_to_the_handshake_is_shown() {
    let script = r#"read line; echo '{"jsonrpc":"2.0","id":0,"result":{}}'; cat"#;
    let error = start(script, LIMIT).await.err().unwrap().to_string();
    assert!(
        error.contains("handshake with the server failed: {} is not an answer to it"),
        "{error}"
    );
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let client =
        Client::spawn(ProgramToStart::new("no-such-program"), ConnectOptions::default()).await;
    let error = client.err().unwrap();
    assert_eq!(error.to_string(), "cannot start no-such-program");
}

#[tokio::test]
async fn a_silent_process_reaches_the_limit_and_the_connection_keeps_working() {
    let client = spawn(Misbehaviour::Silent).await;
    for _ in 0..3 {
        let began = Instant::now();
        let called = client.call_tool("slow", json!({}), CallOptions::default().timeout(ms(200)));
        let timed_out = timed_out(called.await);
        assert_eq!((timed_out.limit, timed_out.told), (Limit::Idle, true));
        assert!(began.elapsed() >= ms(200) && began.elapsed() < LIMIT);
    }
    client.close().await;
}

/// D11 on a real pipe that is full, because the server does not read it.
#[tokio::test]
async fn d11_a_full_pipe_delays_the_error_by_at_most_a_second() {
    let client = spawn(Misbehaviour::NeverReads).await;
    // Several times the capacity of a pipe.
    let long = json!({ "text": "x".repeat(512 * 1024) });
    let began = Instant::now();
    let called = client.call_tool("slow", long, CallOptions::default().timeout(ms(300))).await;
    let timed_out = timed_out(called);
    let delay = began.elapsed() - timed_out.elapsed;
    assert!(!timed_out.told, "{timed_out}");
    assert!(delay >= ms(990), "it had its second: {delay:?}");
    assert!(delay < Duration::from_secs(5), "and no more: {delay:?}");
    client.close().await;
}

#[tokio::test]
async fn the_error_for_a_crashed_process_shows_the_end_of_its_stderr() {
    let client = spawn(Misbehaviour::Dies).await;
    let error = call(&client, CallOptions::default()).await.unwrap_err();
    let words = error.to_string();
    assert!(matches!(error, ClientError::Gone { .. }), "{words}");
    assert!(words.contains("exit status: 3") && words.contains(LAST_WORDS), "{words}");
    let again = call(&client, CallOptions::default()).await.unwrap_err();
    assert!(matches!(again, ClientError::Gone { .. }), "{again:?}");
    client.close().await;
}

#[tokio::test]
async fn an_answer_with_a_wrong_id_is_ignored() {
    let client = spawn(Misbehaviour::WrongId).await;
    let called = client.call_tool("slow", json!({}), CallOptions::default().timeout(ms(500))).await;
    timed_out(called);
    assert_eq!(client.dropped_messages().stray_answers, 1);
    client.close().await;
}

#[tokio::test]
async fn lines_that_are_not_json_are_skipped() {
    let client = spawn(Misbehaviour::Garbage).await;
    assert_eq!(call(&client, CallOptions::default()).await.unwrap(), "done");
    client.close().await;
}

/// The line has no end. The client gives up at the maximum message size, long before memory runs out.
#[tokio::test]
async fn an_endless_line_ends_in_an_error_and_bounded_memory() {
    let client = spawn(Misbehaviour::EndlessLine).await;
    let before = resident();
    let error = call(&client, CallOptions::default()).await.unwrap_err();
    assert!(matches!(error, ClientError::TooLong { limit } if limit == 16 << 20), "{error:?}");
    let grown = resident().saturating_sub(before);
    assert!(grown < 100 << 20, "grown by {grown} bytes");
    client.close().await;
}

/// Progress for unknown requests as fast as a pipe allows: the limit is still reached, and nothing accumulates.
#[tokio::test]
async fn a_flood_neither_delays_the_limit_nor_fills_memory() {
    let client = spawn(Misbehaviour::Floods).await;
    let before = resident();
    let options = CallOptions::default().timeout(ms(1_500)).reset_timeout_on_progress();
    let began = Instant::now();
    let called = client.call_tool("slow", Value::Null, options).await;
    let timed_out = timed_out(called);
    assert_eq!((timed_out.limit, timed_out.notes), (Limit::Idle, 0));
    assert!(began.elapsed() < ms(1_500) + Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(client.dropped_messages().stray_progress > 1_000, "{:?}", client.dropped_messages());
    let grown = resident().saturating_sub(before);
    assert!(grown < 50 << 20, "grown by {grown} bytes");
    client.close().await;
}

/// The resident memory of this process in bytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() * 1024
}
