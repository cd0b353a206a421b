//! Clients that follow one another at the same server: the owner of each answer (H3, H7), and the identity of a client.

use rustix::process::Signal;
use serde_json::{Value, json};

use super::harness::{kill, signal};
use super::{Wrapped, Wrapping, call, text};
use crate::support::eventually;

fn lasting() -> Wrapping {
    Wrapping::new().flags(&["--after", "30s", "--idle-ms", "60000"])
}

fn until(wrapping: &Wrapping, name: &str) -> String {
    wrapping.path(name).to_str().unwrap().to_owned()
}

fn waiting(wrapping: &Wrapping, name: &str) -> Value {
    json!({ "until": until(wrapping, name), "text": "done" })
}

fn read(id: &str, uri: &str, until: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"resources/read","params":{{"uri":"{uri}","until":"{until}","_meta":{{"progressToken":"t"}}}}}}"#
    )
}

async fn has_calls(wrapping: &Wrapping, calls: usize) {
    eventually("the calls are under way", || wrapping.log(".calls").len() == calls).await;
}

async fn hears(wrapping: &Wrapping, part: &str) {
    eventually("the server hears it", || wrapping.log("").iter().any(|line| line.contains(part)))
        .await;
}

/// Kills a client that has read `a` under this id, with a call that keeps its server; returns the next client.
async fn next_client(wrapping: &Wrapping, id: &str) -> Wrapped {
    let mut first = wrapping.start().await;
    first.send("tools/call", call("wait", waiting(wrapping, "never"))).await;
    first.line(&read(id, "a", &until(wrapping, "a"))).await;
    has_calls(wrapping, 1).await;
    hears(wrapping, r#""uri":"a""#).await;
    first.kill().await;
    wrapping.start().await
}

#[tokio::test]
async fn h3_an_answer_to_a_client_that_left_reaches_no_other_client() {
    let wrapping = lasting();
    let mut next = next_client(&wrapping, "2").await;
    next.line(&read("2", "b", &until(&wrapping, "b"))).await;
    hears(&wrapping, r#""uri":"b""#).await;
    wrapping.release("a");
    eventually("the first is answered", || wrapping.log(".done").len() == 1).await;
    wrapping.release("b");
    let (mut progress, mut notes) = (0, 0);
    let answer = loop {
        let message = next.message().await;
        match message["method"].as_str() {
            Some("notifications/progress") => {
                assert_eq!(message["params"]["progressToken"], "t", "{message}");
                progress += 1;
            }
            Some("notifications/x") => {
                let meta = &message["params"]["_meta"];
                assert_eq!(meta["io.modelcontextprotocol/subscriptionId"], 2, "{message}");
                notes += 1;
            }
            _ => break message,
        }
    };
    assert_eq!((&answer["id"], &answer["result"]["params"]["uri"]), (&json!(2), &json!("b")));
    assert_eq!((progress, notes), (1, 1), "what belongs to the first client is not passed");
}

#[tokio::test]
async fn h3_the_id_of_a_later_client_comes_back_byte_for_byte() {
    let wrapping = lasting();
    let mut next = next_client(&wrapping, "2").await;
    for id in ["1e2", r#""a\u00e9""#, "-0", r#""outlast:1""#, "12345678901234567890"] {
        let line = format!(
            r#"{{ "id": {id} ,"method":"resources/read","params":{{"uri":"c","n":1.0e3}},"jsonrpc":"2.0"}}"#
        );
        next.line(&line).await;
        let answer = next.next().await;
        assert!(answer.contains(&format!("\"id\":{id},")), "{id}: {answer}");
        let heard = wrapping.log("").pop().unwrap();
        let (start, rest) = heard.split_once("\"outlast:").unwrap();
        let end = rest.split_once('"').unwrap().1;
        assert_eq!(format!("{start}{id}{end}"), line, "nothing else has changed");
    }
}

#[tokio::test]
async fn h3_the_cancel_of_a_later_client_reaches_its_own_request_alone() {
    let wrapping = lasting();
    let mut next = next_client(&wrapping, "2").await;
    let cancel = |id: u64| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#
        )
    };
    // It never sent this one; the client before it did.
    next.line(&cancel(2)).await;
    next.line(&read("7", "b", &until(&wrapping, "b"))).await;
    next.line(&cancel(7)).await;
    next.ask("ping", json!({})).await;
    let heard = wrapping.log("");
    let asked = heard.iter().find(|line| line.contains(r#""uri":"b""#)).unwrap();
    let asked: Value = serde_json::from_str(asked).unwrap();
    let cancels: Vec<Value> = heard
        .iter()
        .filter(|line| line.contains("cancelled"))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(cancels.len(), 1, "{cancels:?}");
    assert_eq!(cancels[0]["params"]["requestId"], asked["id"]);
}

/// An id that looks like one of wrap's, as behind another wrap.
#[tokio::test]
async fn h3_a_client_may_use_ids_that_look_like_those_of_wrap() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    let id = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    has_calls(&wrapping, 1).await;
    let line =
        r#"{"jsonrpc":"2.0","id":"outlast:1","method":"resources/read","params":{"uri":"b"}}"#;
    wrapped.line(line).await;
    let answer = wrapped.message().await;
    assert_eq!(
        (&answer["id"], &answer["result"]["params"]["uri"]),
        (&json!("outlast:1"), &json!("b"))
    );
    wrapping.release("go");
    assert_eq!(text(&wrapped.answer(id).await), "done");
}

#[tokio::test]
async fn h7_half_a_line_of_a_killed_client_does_not_reach_the_server_of_the_next() {
    let wrapping = lasting();
    let mut first = wrapping.start().await;
    first.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    has_calls(&wrapping, 1).await;
    first.bytes(br#"{"jsonrpc":"2.0","id":9,"method":"resources/re"#).await;
    let mut front = first.lose_client();
    front.wait().await.unwrap();
    let mut next = wrapping.start().await;
    let answer = next.ask("resources/read", json!({ "uri": "b" })).await;
    assert_eq!(answer["result"]["params"]["uri"], "b");
}

/// An answer to a question of a server that has ended is not an answer to the next server's question under the same id.
#[tokio::test]
async fn h7_an_answer_to_the_question_of_a_server_that_ended_reaches_no_other_server() {
    for ends in ["server", "host process"] {
        let wrapping = lasting();
        let mut wrapped = wrapping.start().await;
        wrapped.send("tools/call", call("ask", json!({}))).await;
        assert_eq!(wrapped.message().await["id"], "q1");
        let victims = if ends == "server" { wrapping.servers() } else { wrapping.host_processes() };
        kill(victims[0]);
        let mut reported = wrapped.message().await;
        if ends == "server" {
            assert_eq!(reported["method"], "notifications/cancelled", "{reported}");
            assert_eq!(reported["params"]["requestId"], "q1");
            reported = wrapped.message().await;
        }
        assert!(text(&reported).contains("may or may not have happened"), "{reported}");
        let id = wrapped.send("tools/call", call("ask", json!({ "n": 2 }))).await;
        let question = loop {
            let message = wrapped.message().await;
            if message["method"] == "elicitation/create" {
                break message["id"].clone();
            }
        };
        assert_ne!(question, "q1", "{ends}");
        wrapped.line(r#"{"jsonrpc":"2.0","id":"q1","result":{"action":"accept"}}"#).await;
        let answer = json!({ "jsonrpc": "2.0", "id": question, "result": { "action": "decline" } });
        wrapped.line(&answer.to_string()).await;
        assert_eq!(text(&wrapped.answer(id).await), r#"{"action": "decline"}"#, "{ends}");
    }
}

/// Returns a request of the stateless era.
fn modern(id: u64, method: &str, client: &str, mut params: Value) -> String {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": client, "version": "1" },
        "progressToken": id
    });
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

#[tokio::test]
async fn h7_a_client_without_a_greeting_finds_its_call_again() {
    let wrapping = lasting();
    let slow = |id| modern(id, "tools/call", "c", call("wait", waiting(&wrapping, "go")));
    let mut first = wrapping.spawn();
    first.line(&modern(1, "tools/list", "c", json!({}))).await;
    first.answer(1).await;
    first.line(&slow(2)).await;
    has_calls(&wrapping, 1).await;
    first.kill().await;
    // Another client is not taken for it, though it comes first and sends the same.
    let mut other = wrapping.spawn();
    other.line(&modern(1, "resources/read", "other", json!({}))).await;
    other.answer(1).await;
    let mut next = wrapping.spawn();
    // It has its host process before the second window asks for one.
    next.line(&modern(8, "tools/list", "c", json!({}))).await;
    next.answer(8).await;
    next.line(&slow(9)).await;
    // One client at a time: a second window has a separate server.
    let mut second = wrapping.spawn();
    second.line(&modern(3, "tools/call", "c", call("pid", json!({})))).await;
    let pid: i32 = text(&second.answer(3).await).parse().unwrap();
    assert_eq!(wrapping.servers().len(), 3);
    assert!(wrapping.servers().contains(&pid));
    wrapping.release("go");
    assert_eq!(text(&next.answer(9).await), "done");
    assert_eq!(wrapping.log(".calls").iter().filter(|line| line.starts_with("wait")).count(), 1);
}

#[tokio::test]
async fn h5_a_call_without_a_greeting_is_not_repeated_after_its_host_process_was_killed() {
    let wrapping = lasting();
    let slow = |id| modern(id, "tools/call", "c", call("wait", waiting(&wrapping, "go")));
    let mut first = wrapping.spawn();
    first.line(&modern(1, "server/discover", "c", json!({}))).await;
    first.answer(1).await;
    first.line(&slow(2)).await;
    has_calls(&wrapping, 1).await;
    // Its front must not see the end of the host process, and report it.
    signal(first.pid(), Signal::STOP);
    kill(wrapping.host_processes()[0]);
    first.kill().await;
    let mut next = wrapping.spawn();
    next.line(&slow(3)).await;
    let reported = next.answer(3).await;
    assert!(text(&reported).contains("may or may not have happened"), "{reported}");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

/// A client that tries the newest era first, and then sends the older era's greeting, is one client.
#[tokio::test]
async fn h7_a_client_that_falls_back_to_the_older_era_finds_its_call_again() {
    let wrapping = lasting();
    let discover = modern(1, "server/discover", "c", json!({}));
    let mut first = wrapping.spawn();
    first.line(&discover).await;
    first.answer(1).await;
    first.greet().await;
    first.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    has_calls(&wrapping, 1).await;
    first.kill().await;
    let mut next = wrapping.spawn();
    next.line(&discover).await;
    next.answer(1).await;
    next.greet().await;
    let id = next.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    next.ask("ping", json!({})).await;
    wrapping.release("go");
    assert_eq!(text(&next.answer(id).await), "done");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

#[tokio::test]
async fn h4_the_first_answer_of_a_server_that_answers_twice_counts_everywhere() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    for n in 0..20 {
        let answer = wrapped.call("twice", json!({ "n": n })).await;
        assert_eq!(text(&answer), "first", "live");
        let next = wrapped.send("ping", json!({})).await;
        assert_eq!(wrapped.message().await["id"], next, "one answer comes");
    }
    let slow = |name: &str| json!({ "until": until(&wrapping, name) });
    let job = wrapped.handed_off("twice", slow("a")).await;
    wrapped.handed_off("twice", slow("b")).await;
    wrapping.release("a");
    wrapping.release("b");
    let mut stored = wrapped.call("get_result", json!({ "job_id": job })).await;
    while text(&stored).contains("still running") {
        stored = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert_eq!(text(&stored), "first", "stored");
    let mut replayed = wrapped.call("twice", slow("b")).await;
    while text(&replayed).contains("still running") {
        replayed = wrapped.call("twice", slow("b")).await;
    }
    assert_eq!(text(&replayed), "first", "replayed");
}

/// The kernel may close the connections of a killed process some time before it frees its locks.
#[tokio::test]
async fn h4_a_call_is_not_repeated_while_its_host_process_is_dying() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "60000"]);
    let mut first = wrapping.start().await;
    first.handed_off("wait", waiting(&wrapping, "go")).await;
    kill(wrapping.host_processes()[0]);
    first.kill().await;
    eventually("nothing is left", || wrapping.host_processes().is_empty()).await;
    let mut files = std::fs::read_dir(wrapping.path("data/wrap")).unwrap().flatten();
    let journal = files.find(|file| file.path().extension().is_some_and(|it| it == "calls"));
    let lock = std::fs::File::open(journal.unwrap().path()).unwrap();
    lock.lock().unwrap();
    let mut next = wrapping.spawn();
    let asked = async {
        next.greet().await;
        next.call("wait", waiting(&wrapping, "go")).await
    };
    let freed = async {
        eventually("the next host process is there", || !wrapping.host_processes().is_empty())
            .await;
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
        drop(lock);
    };
    let (reported, ()) = tokio::join!(asked, freed);
    assert!(text(&reported).contains("may or may not have happened"), "{reported}");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}
