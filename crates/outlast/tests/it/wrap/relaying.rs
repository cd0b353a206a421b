//! H3: everything is relayed byte for byte, and ends as it would without wrap.

use serde_json::json;

use super::{Wrapped, Wrapping, call};

/// A session with every kind of client message.
const SESSION: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#,
    "\n",
    r#"{ "id":"a\u00e9" ,"jsonrpc":"2.0","method":"resources/read","params":{"uri":"x:1","n":1.0e3,"big":12345678901234567890}}"#,
    "\n",
    "no json\n\n[1, 2]\n",
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"arguments":{"b":1,"a":"\u00e9","text":"hi"},"name":"echo"}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"fail","arguments":{}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"progress","arguments":{"count":3},"_meta":{"x":1,"progressToken":"t"}}}"#,
    "\n",
    "garbage please\n",
    r#"{"jsonrpc":"2.0","id":6,"method":"a/last/line/without/newline"}"#,
);

async fn recorded(mut wrapped: Wrapped) -> Vec<u8> {
    let mut heard = Vec::new();
    // One at a time if there is an answer, so that the order of both sessions is the same.
    for line in SESSION.split_inclusive('\n') {
        wrapped.bytes(line.as_bytes()).await;
        if line.contains("\"id\"") && line.ends_with('\n') {
            loop {
                let next = wrapped.next().await;
                let is_answer = next.contains("\"result\"") || next.contains("\"error\"");
                heard.extend(next.into_bytes());
                if is_answer {
                    break;
                }
            }
        }
    }
    let (rest, code) = wrapped.finish().await;
    assert_eq!(code, Some(0));
    heard.extend(rest);
    heard
}

/// E13, H3: the wrapped server is not changed.
#[tokio::test]
async fn h3_every_message_passes_byte_for_byte() {
    let wrapping = Wrapping::new();
    let bare = recorded(wrapping.bare()).await;
    let sent_bare = wrapping.log("");
    std::fs::remove_file(wrapping.path("log")).unwrap();
    let wrapped = recorded(wrapping.spawn()).await;
    assert_eq!(String::from_utf8_lossy(&wrapped), String::from_utf8_lossy(&bare));
    assert!(bare.len() > 500);
    // The server's input differs only in the ids and the tokens of calls.
    let sent: Vec<String> = wrapping
        .log("")
        .iter()
        .map(|line| {
            let ids = line
                .replace("\"id\":\"outlast:1\"", "\"id\":3")
                .replace("\"id\":\"outlast:2\"", "\"id\":\"3\"");
            ids.replace("\"id\":\"outlast:3\"", "\"id\":5")
                .replace("Token\":\"outlast:3\"", "Token\":\"t\"")
        })
        .collect();
    assert_eq!(sent, sent_bare);
    wrapping.is_over().await;
}

#[tokio::test]
async fn h3_the_result_tool_is_on_the_last_page_alone() {
    let wrapping = Wrapping::new().set("WRAPPED_PAGES", "1").set("WRAPPED_CLASH", "1");
    let mut bare = wrapping.bare();
    bare.greet().await;
    let mut wrapped = wrapping.start().await;
    for (params, is_last) in [(json!({}), false), (json!({ "cursor": "2" }), true)] {
        let own = bare.ask("tools/list", params.clone()).await;
        let mut page = wrapped.ask("tools/list", params).await;
        if is_last {
            let tools = page["result"]["tools"].as_array_mut().unwrap();
            assert_eq!(tools.pop().unwrap()["name"], "get_result_2", "the server has a get_result");
        }
        assert_eq!(page, own);
    }
    let own = wrapped.call("get_result", json!({ "job_id": "0".repeat(32) })).await;
    assert_eq!(super::text(&own), "get_result", "the server's own tool");
}

/// The exit code is the server's if it ended first, 0 if the client left.
#[tokio::test]
async fn h3_the_exit_code_is_that_of_the_server_that_ended_first() {
    let wrapping = Wrapping::new();
    for (program, code) in [
        (["sh", "-c", "exit 7"], 7),
        (["sh", "-c", "kill -9 $$"], 137),
        (["sh", "-c", "echo to the log >&2; exit 0"], 0),
        (["no-such-program-at-all", "x", "y"], 127),
    ] {
        let mut wrapped = wrapping.spawn_program(&program);
        let (_, ended) = wrapped.rest().await;
        assert_eq!(ended, Some(code), "{program:?}");
        let stderr = wrapped.stderr().await;
        if code == 0 {
            assert_eq!(stderr, "to the log\n");
        }
    }
    let (_, code) = wrapping.start().await.finish().await;
    assert_eq!(code, Some(0));
    let mut exits = wrapping.start().await;
    exits.line("exit mid-line").await;
    let (rest, code) = exits.rest().await;
    assert_eq!(
        (String::from_utf8_lossy(&rest).as_ref(), code),
        (r#"{"jsonrpc":"2.0","method":"notif"#, Some(7))
    );
    wrapping.is_over().await;
}

#[tokio::test]
async fn h3_a_client_that_sends_nothing_more_gets_its_answers() {
    let wrapping = Wrapping::new();
    let mut wrapped = wrapping.start().await;
    let mut expected = Vec::new();
    for n in 0..10 {
        let until = wrapping.path("go").to_str().unwrap().to_owned();
        expected.push(
            wrapped.send("tools/call", call("wait", json!({ "until": until, "text": n }))).await,
        );
    }
    let finished = tokio::spawn(wrapped.finish());
    // The front has seen the end when the server has seen every call.
    crate::support::eventually("every call is there", || wrapping.log(".calls").len() == 10).await;
    wrapping.release("go");
    let (rest, code) = finished.await.unwrap();
    let mut answered: Vec<u64> = String::from_utf8(rest)
        .unwrap()
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["id"].as_u64().unwrap()
        })
        .collect();
    answered.sort_unstable();
    assert_eq!((answered, code), (expected, Some(0)));
    wrapping.is_over().await;
}

#[tokio::test]
async fn h3_ten_thousand_progress_notes_and_fifty_megabytes_pass() {
    let wrapping = Wrapping::new();
    let mut wrapped = wrapping.start().await;
    let params = json!({ "name": "progress", "arguments": { "count": 10_000 }, "_meta": { "progressToken": 7 } });
    let id = wrapped.send("tools/call", params).await;
    for n in 1..=10_000 {
        let note = wrapped.message().await;
        assert_eq!(
            (&note["params"]["progressToken"], &note["params"]["progress"]),
            (&json!(7), &json!(n))
        );
    }
    wrapped.answer(id).await;
    let answer = wrapped.call("big", json!({ "bytes": 50_000_000 })).await;
    assert_eq!(super::text(&answer).len(), 50_000_000);
    let (_, code) = wrapped.finish().await;
    assert_eq!(code, Some(0));
    wrapping.is_over().await;
}

#[tokio::test]
async fn h3_a_server_that_never_answers_the_greeting_ends_with_its_client() {
    let wrapping = Wrapping::new()
        .set("WRAPPED_SILENT", "1")
        .set("WRAPPED_STUBBORN", "1")
        .flags(&["--after", "200ms"]);
    let mut wrapped = wrapping.spawn();
    wrapped.send("initialize", json!({})).await;
    let (rest, code) = wrapped.finish().await;
    assert_eq!((rest.len(), code), (0, Some(0)));
    wrapping.is_over().await;
}
