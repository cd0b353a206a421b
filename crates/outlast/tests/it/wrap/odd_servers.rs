//! H7: whatever a server does, nothing is left of it and of its host process when the last client is gone.

use rustix::process::Signal;
use serde_json::json;

use super::harness::signal;
use super::{Wrapped, Wrapping, call, text};

/// The end of a call; most calls end by themselves.
#[derive(Clone, Copy, PartialEq)]
enum CallEnds {
    ByItself,
    /// Its server never answers, and its host process gives it up after the limit for calls without a client.
    AtTheLimit,
}

const PRELUDE: &str = r#"
import json, os, signal, subprocess, sys, time
def raw(text):
    sys.stdout.buffer.write(text)
    sys.stdout.buffer.flush()
def answer(line, text=b"x"):
    id = json.dumps(json.loads(line)["id"]).encode()
    raw(b'{"jsonrpc":"2.0","id":' + id + b',"result":{"content":[{"type":"text","text":"' + text + b'"}]}}\n')
def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return line
def serve():
    while True:
        answer(read())
stay = lambda: time.sleep(1000)
"#;

/// Each reads a greeting and a call, or not.
const SERVERS: &[(&str, CallEnds, &str)] = &[
    ("answers", CallEnds::ByItself, "serve()"),
    ("never answers", CallEnds::AtTheLimit, "while True: read()"),
    ("never answers and stays", CallEnds::AtTheLimit, "sys.stdin.read(); stay()"),
    ("answers the greeting only", CallEnds::AtTheLimit, "answer(read()); sys.stdin.read(); stay()"),
    ("closes its output", CallEnds::ByItself, "read(); os.close(1); stay()"),
    (
        "closes its output in the middle",
        CallEnds::ByItself,
        "answer(read()); read(); os.close(1); stay()",
    ),
    ("closes its input", CallEnds::ByItself, "answer(read()); os.close(0); stay()"),
    ("closes its input and output", CallEnds::ByItself, "os.close(0); os.close(1); stay()"),
    (
        "ignores SIGTERM",
        CallEnds::ByItself,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); answer(read()); answer(read()); stay()",
    ),
    ("stops itself", CallEnds::AtTheLimit, "answer(read()); os.kill(os.getpid(), signal.SIGSTOP)"),
    (
        "leaves a child with its pipes",
        CallEnds::ByItself,
        "answer(read()); subprocess.Popen(['sleep', '1000']); sys.exit(0)",
    ),
    (
        "leaves a stubborn child with its pipes",
        CallEnds::ByItself,
        "signal.signal(signal.SIGTERM, signal.SIG_IGN); answer(read()); subprocess.Popen(['sleep', '1000'], preexec_fn=lambda: signal.signal(signal.SIGTERM, signal.SIG_IGN)); sys.exit(0)",
    ),
    ("serves from a child", CallEnds::ByItself, "os.fork() and sys.exit(0); serve()"),
    (
        "prints garbage",
        CallEnds::AtTheLimit,
        "read(); read()\nwhile True: raw(b'\\xff\\x00{]garbage\\n'); time.sleep(0.001)",
    ),
    ("prints no line", CallEnds::AtTheLimit, "answer(read()); read(); raw(b'half a line'); stay()"),
    (
        "answers in invalid UTF-8",
        CallEnds::ByItself,
        "answer(read(), b'a\\xffb'); answer(read(), b'\\xc3'); serve()",
    ),
    (
        "answers twice",
        CallEnds::ByItself,
        "line = read(); answer(line); answer(line); line = read(); answer(line); answer(line); serve()",
    ),
    ("exits at once", CallEnds::ByItself, "sys.exit(3)"),
    ("exits in the middle", CallEnds::ByItself, "answer(read()); read(); sys.exit(3)"),
    (
        "exits in the middle of a line",
        CallEnds::ByItself,
        "answer(read()); read(); raw(b'{\"jsonrpc\":'); os._exit(3)",
    ),
    (
        "floods standard error",
        CallEnds::AtTheLimit,
        "answer(read())\nwhile True: os.write(2, b'x' * 65536)",
    ),
    (
        "floods its output",
        CallEnds::AtTheLimit,
        "answer(read())\nwhile True: raw(b'{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\\n' * 1000)",
    ),
    ("stops reading", CallEnds::AtTheLimit, "answer(read()); stay()"),
];

/// The way in which a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    ClosesItsInput,
    ClosesItsPipes,
    IsKilled,
    ClosesItsPipesAfterAFlood,
    IsKilledAfterAFlood,
}

async fn greet_call_and_leave(mut wrapped: Wrapped, leaving: Leaving, calls: bool) {
    // Some servers are gone before they are written to.
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {} });
    wrapped.try_line(&greeting.to_string()).await;
    if calls {
        let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call("x", json!({})) });
        wrapped.try_line(&call.to_string()).await;
    }
    let answered = wrapped.try_next();
    // Some never answer.
    drop(tokio::time::timeout(std::time::Duration::from_millis(500), answered).await);
    if matches!(leaving, Leaving::IsKilledAfterAFlood | Leaving::ClosesItsPipesAfterAFlood) {
        let line = json!({ "jsonrpc": "2.0", "method": "x", "params": "x".repeat(1 << 20) });
        for _ in 0..20 {
            if !wrapped.try_line(&line.to_string()).await {
                break;
            }
        }
    }
    // A client that does not read standard error delays its server, with wrap as without.
    wrapped.drain_stderr();
    match leaving {
        Leaving::ClosesItsInput => drop(wrapped.finish().await),
        Leaving::ClosesItsPipes | Leaving::ClosesItsPipesAfterAFlood => {
            drop(wrapped.lose_client().wait().await);
        }
        Leaving::IsKilled | Leaving::IsKilledAfterAFlood => wrapped.kill().await,
    }
}

async fn nothing_is_left(
    flags: &[&str],
    servers: &[(&'static str, CallEnds, &'static str)],
    calls: bool,
) {
    let all = [
        Leaving::ClosesItsInput,
        Leaving::ClosesItsPipes,
        Leaving::IsKilled,
        Leaving::ClosesItsPipesAfterAFlood,
        Leaving::IsKilledAfterAFlood,
    ];
    for leaving in all {
        let mut left = Vec::new();
        for (name, _, script) in servers {
            let wrapping = Wrapping::new().flags(flags);
            let script = format!("{PRELUDE}{script}");
            let wrapped = wrapping.spawn_program(&["python3", "-c", &script]);
            let client = tokio::spawn(greet_call_and_leave(wrapped, leaving, calls));
            left.push((*name, wrapping, client));
        }
        let limit = tokio::time::Instant::now() + std::time::Duration::from_secs(90);
        for (name, wrapping, client) in left {
            tokio::time::timeout_at(limit, client)
                .await
                .unwrap_or_else(|_| panic!("{name}: {leaving:?} never ends"))
                .unwrap();
            while !wrapping.processes().is_empty() {
                assert!(
                    tokio::time::Instant::now() < limit,
                    "{name}, {leaving:?}: {:?}",
                    wrapping.processes()
                );
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            for ending in ["sock", "new"] {
                assert_eq!(wrapping.left(ending), 0, "{name}, {leaving:?}: files are left");
            }
        }
    }
}

#[tokio::test]
async fn h7_nothing_is_left_of_odd_servers() {
    let flags = ["--after", "300ms", "--idle-ms", "300", "--give-up-ms", "1500"];
    nothing_is_left(&flags, SERVERS, true).await;
}

/// The same with the default times. A call that may still be answered continues for a day, so there is none of those.
#[tokio::test]
#[ignore = "takes five minutes"]
async fn h7_nothing_is_left_of_odd_servers_after_ninety_seconds() {
    let (ends, holds): (Vec<_>, Vec<_>) =
        SERVERS.iter().copied().partition(|(_, ends, _)| *ends == CallEnds::ByItself);
    tokio::join!(nothing_is_left(&[], &ends, true), nothing_is_left(&[], &holds, false));
}

#[tokio::test]
async fn h3_invalid_utf8_in_an_answer_reaches_the_client() {
    let wrapping = Wrapping::new().flags(&["--after", "60s"]);
    let mut wrapped = wrapping.start().await;
    let answer = wrapped.call("invalid", json!({})).await;
    assert_eq!(text(&answer), "a\u{fffd}b");
    let answer = wrapped.ask("invalid/request", json!({})).await;
    assert_eq!(answer["result"]["text"], "a\u{fffd}b");
    let wrapping = Wrapping::new().flags(&["--after", "60s"]);
    let (mut wrapped, _server) = wrapping.spawn_web(&[]).await;
    wrapped.greet().await;
    for name in ["invalid", "invalid JSON"] {
        assert_eq!(text(&wrapped.call(name, json!({})).await), "a\u{fffd}b", "{name}");
    }
}

#[tokio::test]
async fn h4_invalid_utf8_in_the_result_of_a_handed_off_call_is_stored() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms"]);
    let mut wrapped = wrapping.start().await;
    let until = json!({ "until": wrapping.path("go").to_str().unwrap() });
    let job = wrapped.handed_off("invalid", until).await;
    wrapping.release("go");
    let mut answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    while text(&answer).contains("still running") {
        answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert_eq!(text(&answer), "a\u{fffd}b", "{answer}");
}

#[tokio::test]
async fn h3_an_answer_that_comes_twice_is_passed_once() {
    let wrapping = Wrapping::new();
    let script =
        format!("{PRELUDE}\nline = read(); answer(line, b'1'); answer(line, b'2'); serve()");
    let mut wrapped = wrapping.spawn_program(&["python3", "-c", &script]);
    let id = wrapped.send("tools/call", call("x", json!({}))).await;
    assert_eq!(text(&wrapped.answer(id).await), "1");
    let id = wrapped.send("tools/call", call("x", json!({ "n": 2 }))).await;
    let next = wrapped.message().await;
    assert_eq!(next["id"], id, "the second answer is dropped: {next}");
}

/// A server that has closed one of its pipes can no longer answer: its calls end, and the next message starts it again.
#[tokio::test]
async fn h7_a_server_that_closes_a_pipe_is_started_again() {
    for pipe in [0, 1] {
        let wrapping = Wrapping::new().flags(&["--after", "60s"]);
        let once = wrapping.path("once");
        let script = format!(
            "{PRELUDE}\nif os.path.exists('{0}'): serve()\nanswer(read())\nopen('{0}', 'w')\n{1}os.close({pipe})\nstay()",
            once.display(),
            if pipe == 1 { "read()\n" } else { "" }
        );
        let mut wrapped = wrapping.spawn_program(&["python3", "-c", &script]);
        wrapped.ask("initialize", json!({})).await;
        crate::support::eventually("it has closed its input", || once.exists()).await;
        let lost = wrapped.call("x", json!({})).await;
        assert!(text(&lost).contains("may or may not have happened"), "{lost}");
        assert!(text(&lost).contains("closed its"), "{lost}");
        assert_eq!(text(&wrapped.call("x", json!({ "n": 2 })).await), "x");
    }
}

/// A server that closes its input after it has read a call gets ten seconds for the answer. Then the call ends, although
/// calls without a client may otherwise take a day.
#[tokio::test]
async fn h7_a_call_ends_soon_after_its_server_closed_its_input() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "300"]);
    let closed = wrapping.path("closed");
    let script = format!(
        "{PRELUDE}\nanswer(read())\nread()\nos.close(0)\nopen('{}', 'w')\nstay()",
        closed.display()
    );
    let mut wrapped = wrapping.spawn_program(&["python3", "-c", &script]);
    wrapped.ask("initialize", json!({})).await;
    wrapped.send("tools/call", call("x", json!({}))).await;
    crate::support::eventually("it has closed its input", || closed.exists()).await;
    wrapped.kill().await;
    wrapping.is_over().await;
}

/// Its host process stops reading the client while the server does not read, and still sees that the client is gone.
#[tokio::test]
async fn h7_a_server_that_is_stopped_does_not_keep_its_host_process() {
    let wrapping = Wrapping::new().flags(&["--idle-ms", "300"]);
    let mut wrapped = wrapping.start().await;
    signal(wrapping.servers()[0], Signal::STOP);
    let line = json!({ "jsonrpc": "2.0", "method": "x", "params": "x".repeat(1 << 20) });
    for _ in 0..12 {
        wrapped.line(&line.to_string()).await;
    }
    wrapped.kill().await;
    wrapping.is_over().await;
}
