//! H3: a line of either side is at most 64 MiB long. A longer one ends the calls that wait for it, never the memory.

use serde_json::json;

use super::harness::Wrapped;
use super::{Wrapping, call, text};
use crate::support::eventually;

const LIMIT_KIB: u64 = 64 * 1024;
/// A process may hold a line a few times, as it was read and as it is sent on, but never without a bound.
const MAX_KIB: u64 = 5 * LIMIT_KIB;

/// Returns the peak memory of a process, in KiB.
fn peak(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn assert_bounded(wrapping: &Wrapping, wrapped: &Wrapped) {
    for pid in wrapping.host_processes().into_iter().chain([wrapped.pid()]) {
        assert!(peak(pid) < MAX_KIB, "{} KiB", peak(pid));
    }
}

#[tokio::test]
async fn h3_an_endless_line_of_the_server_ends_its_calls_and_the_server() {
    let wrapping = Wrapping::new().flags(&["--after", "60s"]);
    let mut wrapped = wrapping.start().await;
    let before = text(&wrapped.call("pid", json!({})).await).to_owned();
    let waits = json!({ "until": wrapping.path("never").to_str().unwrap() });
    let other = wrapped.send("tools/call", call("wait", waits)).await;
    let endless = wrapped.send("tools/call", call("endless", json!({}))).await;
    for id in [other, endless] {
        let answer = wrapped.answer(id).await;
        let why = "the server wrote a line of more than 64 MiB and was stopped before it answered";
        assert!(text(&answer).contains(why), "{answer}");
        assert!(text(&answer).contains("may or may not have happened"), "{answer}");
    }
    assert_bounded(&wrapping, &wrapped);
    let server = before.parse::<i32>().unwrap();
    eventually("the server is gone", || !wrapping.servers().contains(&server)).await;
    let after = wrapped.call("pid", json!({})).await;
    assert_ne!(text(&after), before, "a new server answers");
}

#[tokio::test]
async fn h4_a_job_whose_server_writes_an_endless_line_does_not_run_for_ever() {
    let wrapping = Wrapping::new().flags(&["--after", "200ms"]);
    let mut wrapped = wrapping.start().await;
    let arguments = json!({ "until": wrapping.path("go").to_str().unwrap() });
    let job = wrapped.handed_off("endless", arguments).await;
    wrapping.release("go");
    let mut answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    for _ in 0..50 {
        if !text(&answer).contains("still running") {
            break;
        }
        answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert!(text(&answer).contains("a line of more than 64 MiB"), "{answer}");
    // Its end is stored a moment after the answer.
    let waited = wrapping.run(&["jobs", "wait", &job, "--timeout", "30s", "--json"]).await;
    assert!(waited.contains("\"failed\""), "{waited}");
    assert_bounded(&wrapping, &wrapped);
}

#[tokio::test]
async fn h3_a_request_without_an_answer_ends_with_the_reason_too() {
    let wrapping = Wrapping::new();
    let script = "import sys\nsys.stdin.readline()\nwhile True: sys.stdout.write('x' * 1000000)";
    let mut wrapped = wrapping.spawn_program(&["python3", "-c", script]);
    let answer = wrapped.ask("initialize", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("wrote a line of more than 64 MiB"), "{answer}");
    assert_bounded(&wrapping, &wrapped);
}

#[tokio::test]
async fn h3_a_line_of_the_client_that_is_too_long_is_answered_with_its_id() {
    let wrapping = Wrapping::new();
    let mut wrapped = wrapping.start().await;
    // As some clients write it: the id comes last.
    let text_of = "x".repeat(65 << 20);
    let line = format!(
        r#"{{"method":"tools/call","params":{{"name":"echo","arguments":{{"id":5,"text":"{text_of}"}}}},"jsonrpc":"2.0","id":"a7"}}"#
    );
    wrapped.line(&line).await;
    let answer = wrapped.message().await;
    assert_eq!(answer["id"], "a7", "{answer}");
    let message = answer["error"]["message"].as_str().unwrap();
    assert_eq!(message, "the message is longer than 64 MiB and was not sent to the server");
    assert_bounded(&wrapping, &wrapped);
    let echoed = wrapped.call("echo", json!({ "text": "still here" })).await;
    assert_eq!(text(&echoed), "still here");
}

#[tokio::test]
async fn h3_a_result_just_below_the_limit_arrives_whole() {
    let wrapping = Wrapping::new();
    let mut wrapped = wrapping.start().await;
    let bytes = (63 << 20) + 512 * 1024;
    let answer = wrapped.call("big", json!({ "bytes": bytes })).await;
    assert_eq!(text(&answer).len(), bytes);
}

/// A client that does not read delays the server, as it would without wrap.
#[tokio::test]
async fn h3_lines_that_nobody_reads_do_not_pile_up() {
    for stream in ["stdout", "stderr"] {
        let wrapping = Wrapping::new();
        let count = wrapping.path("count");
        let script = format!(
            "import sys\nline = 'x' * (4 << 20) + '\\n'\nfor n in range(256):\n  sys.{stream}.write(line); sys.{stream}.flush()\n  \
             open('{}', 'a').write('.')",
            count.display()
        );
        let wrapped = wrapping.spawn_program(&["python3", "-c", &script]);
        let written = || std::fs::read_to_string(&count).unwrap_or_default().len();
        eventually("it writes", || written() > 0).await;
        // It stops, because nobody reads: the number is the same at many looks.
        let mut seen = (0, 0);
        eventually("it is held up", || {
            seen = if written() == seen.0 { (seen.0, seen.1 + 1) } else { (written(), 0) };
            seen.1 > 100
        })
        .await;
        assert!(written() < 32, "{stream}: {} lines", written());
        assert_bounded(&wrapping, &wrapped);
    }
}

#[tokio::test]
async fn h3_an_endless_event_of_a_server_at_an_address_ends_its_call() {
    let wrapping = Wrapping::new().flags(&["--after", "60s"]);
    let (mut wrapped, server) = wrapping.spawn_web(&[]).await;
    wrapped.greet().await;
    let answer = wrapped.call("endless", json!({})).await;
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("may or may not have happened"), "{answer}");
    assert_bounded(&wrapping, &wrapped);
    drop(server);
}
