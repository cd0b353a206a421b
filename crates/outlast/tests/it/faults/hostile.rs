//! After any input on the pipe, the next good line is served, standard output stays JSON-RPC (the harness checks every
//! line), and memory stays bounded.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use super::memory::peak_kib;
use crate::support::{START, World, finished, start};

/// Returns the answers to a line, up to the answer to the next good line.
async fn answers_before_the_next(server: &mut McpProcess, line: &[u8]) -> Vec<Value> {
    let seen = server.seen.len();
    server.write_bytes(line).await;
    server.write_bytes(b"\n").await;
    let pong = server.request("ping", json!({})).await;
    assert!(pong.get("result").is_some(), "{pong}");
    let (_, answers) = server.seen.split_at(seen);
    answers[..answers.len() - 1].to_vec()
}

/// JSON-RPC: a line that is not JSON is answered with -32700 and no id; an empty line is skipped.
#[tokio::test]
async fn a_line_that_is_not_json_is_answered_without_an_id() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let garbage: Vec<u8> = (0..100_000_u32).map(|n| ((n * 7919) >> 3) as u8 | 0x80).collect();
    let lines: [&[u8]; 5] = [
        b"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"ping\"",
        b"hello?",
        b"\x00\x01\x02\xff\xfe",
        b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"pi\xffng\"}",
        &garbage,
    ];
    for line in lines {
        let answers = answers_before_the_next(&mut server, line).await;
        let line = String::from_utf8_lossy(line);
        let [answer] = &answers[..] else { panic!("{line:?}: {answers:?}") };
        assert_eq!(answer["error"]["code"], -32700, "{line:?}: {answer}");
        assert!(answer["id"].is_null(), "{line:?}: {answer}");
    }
    assert!(answers_before_the_next(&mut server, b"").await.is_empty());
}

/// Returns arguments of the wrong type and messages that are not requests: each with its answer, its id, and a word of
/// the message. Both transports use this list.
pub(crate) fn malformed() -> Vec<(String, Value, i64, &'static str)> {
    let call = json!({ "name": START, "arguments": crate::support::question("ok") });
    let request = |id: i64, method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    let deep = format!("{}1{}", "[".repeat(3_000), "]".repeat(3_000));
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":"deep","method":"tools/call","params":{{"name":"{START}","arguments":{{"x":{deep}}}}}}}"#
    );
    let arguments = json!({ "name": START, "arguments": [] });
    vec![
        (json!([request(900, "tools/call", call)]).to_string(), Value::Null, -32600, ""),
        (json!([]).to_string(), Value::Null, -32600, ""),
        (json!(7).to_string(), Value::Null, -32600, ""),
        (json!({}).to_string(), Value::Null, -32600, ""),
        (json!({ "jsonrpc": "2.0", "id": 901 }).to_string(), json!(901), -32600, ""),
        (request(902, "dance/now", json!({})).to_string(), json!(902), -32601, "dance/now"),
        (request(903, "tools/call", json!(7)).to_string(), json!(903), -32602, "params"),
        (request(904, "tools/call", json!([])).to_string(), json!(904), -32602, "params"),
        (request(905, "tools/call", json!({ "name": 5 })).to_string(), json!(905), -32602, "name"),
        (request(906, "tools/call", arguments).to_string(), json!(906), -32602, "arguments"),
        (deep, json!("deep"), -32700, "nested"),
        (
            format!(
                r#"{{"jsonrpc":"2.0","id":907,"method":"tools/call","params":{{"name":"{START}","arguments":{{"q":"\ud800"}}}}}}"#
            ),
            json!(907),
            -32700,
            "half of a surrogate pair",
        ),
    ]
}

/// JSON that is not an MCP request is refused under its id, with the reason; it has no effect.
#[tokio::test]
async fn json_that_is_not_a_request_is_refused_under_its_id() {
    let world = World::new().await;
    let mut server = world.serve().await;
    for (line, id, code, words) in malformed() {
        let seen = server.seen.len();
        server.write_bytes(line.as_bytes()).await;
        server.write_bytes(b"\n").await;
        let answered = async {
            loop {
                let pong = server.request("ping", json!({})).await;
                assert!(pong.get("result").is_some(), "the connection is open: {pong}");
                let answer =
                    server.seen[seen..].iter().find(|answer| answer.get("error").is_some());
                if let Some(answer) = answer {
                    return answer.clone();
                }
            }
        };
        let limit = std::time::Duration::from_secs(20);
        let answer = tokio::time::timeout(limit, answered).await.expect("it is answered");
        assert_error(&line, &answer, &id, code, words);
    }
    assert_eq!(world.submits(), 0);
}

/// Checks that the answer to this message is an error with this id, this code and these words.
pub(crate) fn assert_error(message: &str, answer: &Value, id: &Value, code: i64, words: &str) {
    let short: String = message.chars().take(120).collect();
    let got = (&answer["id"], answer["error"]["code"].as_i64());
    assert_eq!(got, (id, Some(code)), "{short}: {answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{short}: {answer}");
}

/// JSON-RPC: a request without an id is a notification, and is never answered; such a call starts nothing.
#[tokio::test]
async fn a_call_without_an_id_starts_nothing() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let call = json!({ "name": START, "arguments": crate::support::question("ok") });
    for method in ["tools/call", "notifications/dance", "dance"] {
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": call }).to_string();
        let answers = answers_before_the_next(&mut server, line.as_bytes()).await;
        assert!(
            answers.iter().all(|answer| answer.get("error").is_some()),
            "{method}: {answers:?}"
        );
    }
    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["jobs"], json!([]));
}

/// E8: an endless line must not use up the memory.
#[tokio::test]
async fn a_line_of_many_megabytes_is_dropped_and_memory_stays_bounded() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let before = peak_kib(&server);
    for megabytes in [20, 40] {
        let (head, tail) = (&br#"{"jsonrpc":"2.0","id":900,"method":""#[..], &br#""}"#[..]);
        let line = [head, &vec![b'x'; megabytes << 20], tail].concat();
        let answers = answers_before_the_next(&mut server, &line).await;
        assert!(answers.is_empty(), "{answers:?}");
    }
    let grown = peak_kib(&server) - before;
    assert!(grown < 48 << 10, "{grown} KiB more");
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
}

/// The same before the client has sent its greeting.
#[tokio::test]
async fn garbage_before_the_greeting_is_passed_over() {
    let world = World::new().await;
    let mut server = world.spawn(&["serve"]);
    server.write_bytes(b"\xff\x00garbage\n{\"jsonrpc\":\n\n").await;
    assert_eq!(server.greet().await["serverInfo"]["name"], "outlast");
}

/// Unanswered requests take memory, so beyond a thousand of them further ones are refused at once.
#[tokio::test]
async fn more_than_a_thousand_unanswered_requests_are_refused() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_MAX_POLLS_PER_JOB", "10000");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=60;delay_ms=0;hold").await;
    let poll = |number: u32| {
        let params = json!({ "name": crate::support::POLL, "arguments": { "jobId": id } });
        let message = json!({ "jsonrpc": "2.0", "id": format!("p{number}"), "method": "tools/call", "params": params });
        format!("{message}\n")
    };
    let lines: String = (0..1_100).map(poll).collect();
    server.write_bytes(lines.as_bytes()).await;
    let limit = std::time::Duration::from_secs(60);
    let refused = async {
        for number in 1_000..1_100 {
            let refused = server.message().await.expect("an answer");
            assert_eq!(refused["id"], format!("p{number}"), "{refused}");
            assert_eq!(refused["error"]["data"]["code"], "TOO_MANY_CALLS", "{refused}");
        }
    };
    tokio::time::timeout(limit, refused).await.expect("refused at once");
    crate::support::eventually("the run is under way", || world.submits() == 1).await;
    world.simulator.release();
    let answered = async {
        let mut completed = 0;
        while completed < 1_000 {
            let answer = server.message().await.expect("an answer");
            if answer["result"]["structuredContent"]["status"] == "COMPLETED" {
                completed += 1;
            }
        }
    };
    tokio::time::timeout(limit, answered).await.expect("all that were taken are answered");
    let pong = server.request("ping", json!({})).await;
    assert!(pong.get("result").is_some(), "{pong}");
}
