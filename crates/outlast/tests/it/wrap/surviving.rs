//! H7: clients, fronts, host processes and servers that end in the middle of a call.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::harness::{kill, signal};
use super::{Wrapping, call, text};
use crate::support::eventually;

const UNSURE: &str = "may or may not have happened";

fn lasting() -> Wrapping {
    Wrapping::new().flags(&["--after", "30s", "--idle-ms", "60000"])
}

fn waiting(wrapping: &Wrapping, name: &str) -> Value {
    json!({ "until": wrapping.path(name).to_str().unwrap(), "text": "done" })
}

/// Returns the memory of a process, in KiB.
fn resident(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

async fn under_way(wrapping: &Wrapping, calls: usize) {
    eventually("the call is under way", || wrapping.log(".calls").len() == calls).await;
}

#[tokio::test]
async fn h7_a_call_outlives_its_client_and_the_next_one_gets_it() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    let pid = text(&wrapped.call("pid", json!({})).await).to_owned();
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 2).await;
    wrapped.kill().await;
    let mut next = wrapping.start().await;
    assert_eq!(text(&next.call("pid", json!({})).await), pid, "the same server");
    let id = next.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    next.ask("ping", json!({})).await;
    wrapping.release("go");
    assert_eq!(text(&next.answer(id).await), "done");
    assert_eq!(wrapping.log(".calls").iter().filter(|line| line.starts_with("wait")).count(), 1);
    let (_, code) = next.finish().await;
    assert_eq!(code, Some(0));
    wrapping.is_over().await;
}

#[tokio::test]
async fn h7_the_front_of_a_killed_client_makes_room_for_the_next() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    let mut front = wrapped.lose_client();
    let left = tokio::time::timeout(std::time::Duration::from_secs(20), front.wait()).await;
    assert!(left.is_ok(), "it waits for an answer that no client reads");
    let mut next = wrapping.start().await;
    let id = next.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    next.ask("ping", json!({})).await;
    wrapping.release("go");
    assert_eq!(text(&next.answer(id).await), "done");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

#[tokio::test]
async fn h7_a_result_waits_for_the_next_client() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    wrapped.kill().await;
    wrapping.release("go");
    eventually("it is done", || wrapping.log(".done").len() == 1).await;
    let mut next = wrapping.start().await;
    assert_eq!(text(&next.call("wait", waiting(&wrapping, "go")).await), "done");
    assert_eq!(wrapping.log(".done").len(), 1, "it ran once");
}

#[tokio::test]
async fn h7_a_result_is_found_after_its_server_was_killed() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms"]);
    let mut wrapped = wrapping.start().await;
    let job = wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    wrapping.release("go");
    let mut shown = Value::Null;
    while shown["state"] != "succeeded" {
        let text = wrapping.run(&["jobs", "show", &job, "--json"]).await;
        shown = serde_json::from_str(&text).unwrap();
    }
    kill(wrapping.servers()[0]);
    assert_eq!(wrapped.rest().await.1, Some(137), "no call was under way: wrap ends with it");
    let mut next = wrapping.start().await;
    assert_eq!(text(&next.call("get_result", json!({ "job_id": job })).await), "done");
}

#[tokio::test]
async fn h7_a_second_window_and_an_unequal_client_have_their_own_server() {
    let wrapping = lasting();
    let mut first = wrapping.start().await;
    let mut second = wrapping.start().await;
    let pid = text(&first.call("pid", json!({})).await).to_owned();
    assert_ne!(text(&second.call("pid", json!({})).await), pid);
    first.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 3).await;
    first.kill().await;
    let mut other = wrapping.spawn();
    other.ask("initialize", json!({ "clientInfo": { "name": "another" } })).await;
    assert_ne!(text(&other.call("pid", json!({})).await), pid);
}

#[tokio::test]
async fn h7_a_host_process_ends_with_its_client_or_when_it_was_idle() {
    let wrapping = Wrapping::new().flags(&["--after", "30s", "--idle-ms", "300"]);
    let mut wrapped = wrapping.start().await;
    wrapped.call("echo", json!({})).await;
    wrapped.kill().await;
    wrapping.is_over().await;
    let mut wrapped = wrapping.start().await;
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    wrapped.kill().await;
    wrapping.release("go");
    wrapping.is_over().await;
    assert_eq!(wrapping.log(".done").iter().filter(|line| line.starts_with("wait")).count(), 1);
}

#[tokio::test]
async fn h7_a_host_process_ends_though_its_front_was_killed_before_it_said_a_word() {
    let wrapping = Wrapping::new();
    let mut host = wrapping.spawn_host_of_killed_front();
    let ended = tokio::time::timeout(std::time::Duration::from_secs(30), host.wait()).await;
    assert_eq!(ended.expect("it waits for a front that is gone").unwrap().code(), Some(0));
    assert!(!wrapping.path("data/wrap").exists(), "it has made a socket that no front needs");
}

#[tokio::test]
async fn h7_a_server_that_dies_is_started_again_and_its_calls_may_have_happened() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    wrapped.ask("logging/setLevel", json!({ "level": "debug" })).await;
    wrapped.ask("resources/subscribe", json!({ "uri": "x:1" })).await;
    let answer = wrapped.call("die", json!({ "code": 9 })).await;
    assert_eq!(answer["result"]["isError"], true);
    assert!(text(&answer).contains("may or may not have happened"), "{answer}");
    let id = wrapped.send("tools/call", call("echo", json!({ "text": "again" }))).await;
    let mut notes = Vec::new();
    let answer = loop {
        let message = wrapped.message().await;
        if message["id"] == id {
            break message;
        }
        notes.push(message["method"].as_str().unwrap_or_default().to_owned());
    };
    assert_eq!(text(&answer), "again");
    assert_eq!(notes, ["notifications/tools/list_changed"]);
    let said = wrapping.log("");
    for method in
        ["initialize", "notifications/initialized", "logging/setLevel", "resources/subscribe"]
    {
        let times =
            said.iter().filter(|line| line.contains(&format!("\"method\":\"{method}\""))).count();
        assert_eq!(times, 2, "{method}: {said:?}");
    }
    assert_eq!(wrapping.log(".calls").len(), 1, "it was not made again");
}

#[tokio::test]
async fn h7_a_killed_host_process_is_replaced_and_nothing_is_left_of_it() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms"]).set("WRAPPED_STUBBORN", "1");
    let mut wrapped = wrapping.start().await;
    let job = wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    let id = wrapped.send("tools/call", call("schema", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 2).await;
    let (hosts, servers) = (wrapping.host_processes(), wrapping.servers());
    assert_eq!((hosts.len(), servers.len()), (1, 1));
    kill(hosts[0]);
    let answer = wrapped.answer(id).await;
    let reported = text(&answer);
    assert!(
        reported.contains("may or may not have happened") || reported.contains("still running"),
        "{answer}"
    );
    let mut found = wrapped.call("get_result", json!({ "job_id": job })).await;
    // The death of the host process is noticed a moment later.
    while text(&found).contains("still running") {
        found = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert!(text(&found).contains("may or may not have happened"), "{found}");
    assert_eq!(text(&wrapped.call("echo", json!({ "text": "on" })).await), "on");
    eventually("the old server is gone", || !wrapping.servers().contains(&servers[0])).await;
    let (_, code) = wrapped.finish().await;
    assert_eq!(code, Some(0));
    wrapping.is_over().await;
}

#[tokio::test]
async fn h5_a_call_is_not_repeated_after_its_front_and_its_host_process_were_killed() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    // A front that sees the end of its host process reports it to its client, which may repeat the call.
    signal(wrapped.pid(), Signal::STOP);
    kill(wrapping.host_processes()[0]);
    wrapped.kill().await;
    let mut next = wrapping.start().await;
    let other = next.call("echo", json!({ "text": "another" })).await;
    assert_eq!(text(&other), "another", "an other call is made");
    let reported = next.call("wait", waiting(&wrapping, "go")).await;
    assert!(text(&reported).contains("may or may not have happened"), "{reported}");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
    // The doubt was reported: a caller that repeats the call wants it to run.
    wrapping.release("go");
    assert_eq!(text(&next.call("wait", waiting(&wrapping, "go")).await), "done");
    next.finish().await;
    wrapping.is_over().await;
    assert_eq!(wrapping.left("calls"), 0);
}

#[tokio::test]
async fn h5_a_call_whose_end_the_front_has_reported_is_repeated() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    let id = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    kill(wrapping.host_processes()[0]);
    assert!(text(&wrapped.answer(id).await).contains("may or may not have happened"));
    wrapping.release("go");
    assert_eq!(text(&wrapped.call("wait", waiting(&wrapping, "go")).await), "done");
    assert_eq!(wrapping.log(".calls").len(), 2);
}

#[tokio::test]
async fn h4_a_call_that_was_handed_off_does_not_run_twice_though_its_host_process_was_killed() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms"]);
    let mut wrapped = wrapping.start().await;
    wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    kill(wrapping.host_processes()[0]);
    let mut reported = wrapped.call("wait", waiting(&wrapping, "go")).await;
    // Sent to the killed host process, or before its death was noticed.
    while !text(&reported).contains("The call has no result") {
        assert!(
            ["killed", "still running"].iter().any(|it| text(&reported).contains(it)),
            "{reported}"
        );
        reported = wrapped.call("wait", waiting(&wrapping, "go")).await;
    }
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

#[tokio::test]
async fn h4_the_same_call_brings_the_result_when_its_host_process_has_ended() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "100"]);
    let mut wrapped = wrapping.start().await;
    wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    wrapped.finish().await;
    wrapping.release("go");
    wrapping.is_over().await;
    assert_eq!(wrapping.left("calls"), 1);
    let mut next = wrapping.start().await;
    assert_eq!(text(&next.call("wait", waiting(&wrapping, "go")).await), "done");
    assert_eq!(wrapping.log(".done").len(), 1, "it ran once");
    assert_eq!(text(&next.call("wait", waiting(&wrapping, "go")).await), "done");
    assert_eq!(wrapping.log(".done").len(), 2, "received: the next one is another call");
    next.finish().await;
    wrapping.is_over().await;
    assert_eq!(wrapping.left("calls"), 0);
}

#[tokio::test]
async fn h7_half_a_line_of_a_server_that_dies_spoils_no_answer() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    let id = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    wrapped.line("exit mid-line").await;
    assert_eq!(wrapped.next().await, "{\"jsonrpc\":\"2.0\",\"method\":\"notif\n");
    let reported = wrapped.answer(id).await;
    assert!(text(&reported).contains("may or may not have happened"), "{reported}");
}

#[tokio::test]
async fn h7_a_question_during_a_handed_off_call_reaches_the_client() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    let arguments = json!({ "until": wrapping.path("go").to_str().unwrap() });
    wrapped.handed_off("ask", arguments.clone()).await;
    wrapped.kill().await;
    wrapping.release("go");
    let mut next = wrapping.start().await;
    let question = next.message().await;
    assert_eq!(
        (&question["id"], &question["method"]),
        (&json!("q1"), &json!("elicitation/create"))
    );
    next.line(r#"{"jsonrpc":"2.0","id":"q1","result":{"action":"accept","content":{}}}"#).await;
    let mut answer = next.call("ask", arguments.clone()).await;
    if text(&answer).contains("still running") {
        answer = next.call("ask", arguments).await;
    }
    assert!(text(&answer).contains("accept"), "{answer}");
}

/// The host process stops reading a client while its server does not read, and so does not see that the client is gone.
#[tokio::test]
async fn h7_a_client_that_comes_before_the_end_of_the_former_is_seen_waits_for_it() {
    let wrapping = lasting();
    let mut wrapped = wrapping.start().await;
    let pid = text(&wrapped.call("pid", json!({})).await).to_owned();
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 2).await;
    let server = pid.parse().unwrap();
    signal(server, Signal::STOP);
    let host = wrapping.host_processes()[0];
    let before = resident(host);
    let line =
        json!({ "jsonrpc": "2.0", "method": "x", "params": "x".repeat(1 << 20) }).to_string();
    for _ in 0..12 {
        wrapped.line(&line).await;
    }
    let (mut last, mut equal) = (0, 0);
    eventually("the host process reads no more", || {
        let now = resident(host);
        equal = if now == last { equal + 1 } else { 0 };
        last = now;
        now > before + (8 << 10) && equal > 20
    })
    .await;
    wrapped.kill().await;
    let mut next = wrapping.spawn();
    let greeted = async {
        next.greet().await;
        next.call("pid", json!({})).await
    };
    let resumed = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        signal(server, Signal::CONT);
    };
    let (answer, ()) = tokio::join!(greeted, resumed);
    assert_eq!(text(&answer), pid, "the same server");
    wrapping.release("go");
    assert_eq!(text(&next.call("wait", waiting(&wrapping, "go")).await), "done");
}

/// M4: a question for the user waits longer than any other request of the server: as long as the host process runs.
#[tokio::test]
async fn m4_a_question_without_a_client_waits_for_the_next_one() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "200"]);
    let mut wrapped = wrapping.start().await;
    let arguments = json!({ "until": wrapping.path("go").to_str().unwrap(), "roots": true });
    wrapped.handed_off("ask", arguments.clone()).await;
    wrapped.kill().await;
    wrapping.release("go");
    eventually("the server's other request is refused", || {
        wrapping.log("").iter().any(|line| line.contains("no client is connected"))
    })
    .await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    let mut next = wrapping.start().await;
    let question = next.message().await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    next.line(r#"{"jsonrpc":"2.0","id":"q1","result":{"action":"decline"}}"#).await;
    let mut answer = next.call("ask", arguments.clone()).await;
    if text(&answer).contains("still running") {
        answer = next.call("ask", arguments).await;
    }
    assert!(text(&answer).contains("decline"), "{answer}");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

/// M4: a question in URL mode is relayed as it is, waits like any other, and is in no file of outlast.
#[tokio::test]
async fn m4_a_question_in_url_mode_is_relayed_and_never_stored() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    let arguments = json!({ "url": true });
    let id = wrapped.send("tools/call", call("ask", arguments.clone())).await;
    let question = wrapped.message().await;
    let expected = json!({
        "mode": "url", "message": "Sign in", "elicitationId": "e1",
        "url": "https://example.com/?state=hush-hush"
    });
    assert_eq!(question["params"], expected, "{question}");
    assert!(text(&wrapped.answer(id).await).contains("still running"));
    wrapped.kill().await;
    let mut next = wrapping.start().await;
    let again = next.message().await;
    assert_eq!(again["params"], expected, "{again}");
    let mut folders = vec![wrapping.path("data")];
    let mut files = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file() {
                files += 1;
                let bytes = std::fs::read(&path).unwrap_or_default();
                let has_secret = bytes.windows(9).any(|part| part == b"hush-hush");
                assert!(!has_secret, "{} has the address", path.display());
            }
        }
    }
    assert!(files > 2, "the call is stored");
    next.line(r#"{"jsonrpc":"2.0","id":"q1","result":{"action":"accept"}}"#).await;
    let mut answer = next.call("ask", arguments.clone()).await;
    if text(&answer).contains("still running") {
        answer = next.call("ask", arguments).await;
    }
    assert_eq!(text(&answer), r#"{"action": "accept"}"#, "{answer}");
}

#[tokio::test]
async fn h7_a_data_directory_with_a_long_path_has_its_sockets() {
    let wrapping = Wrapping::below(&"long".repeat(40)).flags(&["--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    let pid = text(&wrapped.call("pid", json!({})).await).to_owned();
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 2).await;
    wrapped.kill().await;
    let mut next = wrapping.start().await;
    assert_eq!(text(&next.call("pid", json!({})).await), pid, "the same server");
}

#[tokio::test]
async fn h7_a_signal_ends_the_server_or_where_a_call_is_under_way_its_front_alone() {
    let wrapping = lasting();
    for (sent, code) in [(Signal::TERM, 143), (Signal::USR1, 138)] {
        let mut wrapped = wrapping.start().await;
        signal(wrapped.pid(), sent);
        assert_eq!(wrapped.rest().await.1, Some(code), "{sent:?}");
        wrapping.is_over().await;
    }
    let mut wrapped = wrapping.start().await;
    wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    under_way(&wrapping, 1).await;
    signal(wrapped.pid(), Signal::TERM);
    assert_eq!(wrapped.rest().await.1, Some(0));
    let mut next = wrapping.start().await;
    wrapping.release("go");
    assert_eq!(text(&next.call("wait", waiting(&wrapping, "go")).await), "done");
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

/// The time within which a call is no longer reported as running after everything that ran it was killed.
const NOTICED: Duration = Duration::from_secs(5);

fn kill_everything(wrapping: &Wrapping) {
    for (pid, _) in wrapping.processes() {
        kill(pid);
    }
}

#[tokio::test]
async fn h4_a_call_whose_processes_were_all_killed_is_soon_not_reported_as_running() {
    // A caller of the result waits up to 45 s.
    let wrapping = Wrapping::new().configured("[wrap.tools]\nwait = \"300ms\"\n");
    let mut wrapped = wrapping.start().await;
    wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    kill_everything(&wrapping);
    let killed_at = Instant::now();
    let mut next = wrapping.start().await;
    let answer = next.call("wait", waiting(&wrapping, "go")).await;
    assert!(text(&answer).contains(UNSURE), "{answer}");
    assert!(killed_at.elapsed() < NOTICED, "{:?}", killed_at.elapsed());
    assert_eq!(wrapping.log(".calls").len(), 1, "it ran once");
}

#[tokio::test]
async fn h4_the_job_of_a_call_whose_processes_were_all_killed_soon_fails_without_another_client() {
    let wrapping = Wrapping::new().configured("[wrap.tools]\nwait = \"300ms\"\n");
    let mut wrapped = wrapping.start().await;
    let job = wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    kill_everything(&wrapping);
    assert_eq!(failure_of(&wrapping, &job).await, "SUBMIT_UNKNOWN");
}

#[tokio::test]
async fn h4_a_job_that_its_host_process_did_not_live_to_run_soon_fails() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms", "--kill-at", "after-insert"]);
    let mut wrapped = wrapping.start().await;
    let answer = wrapped.call("wait", waiting(&wrapping, "go")).await;
    assert!(text(&answer).contains(UNSURE), "{answer}");
    let listed = wrapping.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed).unwrap();
    let job = listed["jobs"][0]["id"].as_str().unwrap();
    assert_eq!(failure_of(&wrapping, job).await, "SUBMIT_UNKNOWN");
}

/// Waits for the end of a job, and returns the code of its failure.
async fn failure_of(wrapping: &Wrapping, job: &str) -> String {
    let since = Instant::now();
    loop {
        let shown = wrapping.run(&["jobs", "show", job, "--json"]).await;
        let shown: Value = serde_json::from_str(&shown).unwrap();
        if shown["state"] == "failed" {
            return shown["failures"][0]["code"].as_str().unwrap().to_owned();
        }
        assert!(since.elapsed() < NOTICED, "{shown}");
    }
}

/// Armed kills of the host process at each step of a hand-off: whatever was stored, the same call does not run a second
/// time.
#[tokio::test]
async fn h7_a_host_process_that_dies_at_any_step_of_a_hand_off_runs_nothing_twice() {
    let points = [
        ("after-insert", UNSURE),
        ("after-claim", UNSURE),
        ("after-beginning", UNSURE),
        ("after-running", UNSURE),
        ("before-settle", UNSURE),
        ("after-settle", "done"),
    ];
    for (point, expected) in points {
        let wrapping = Wrapping::new().flags(&["--after", "300ms", "--kill-at", point]);
        let mut wrapped = wrapping.start().await;
        let host = wrapping.host_processes()[0];
        let first = wrapped.call("wait", waiting(&wrapping, "go")).await;
        assert_eq!(first["result"]["isError"], true, "{point}: {first}");
        wrapping.release("go");
        eventually("the host process dies", || !wrapping.host_processes().contains(&host)).await;
        let mut reported = wrapped.call("wait", waiting(&wrapping, "go")).await;
        // Its death is noticed a moment later, by the front and in the store.
        for _ in 0..100 {
            let is_early = text(&reported).contains("still running")
                || expected == "done" && text(&reported).contains("was killed");
            if !is_early {
                break;
            }
            reported = wrapped.call("wait", waiting(&wrapping, "go")).await;
        }
        assert!(text(&reported).contains(expected), "{point}: {reported}");
        assert_eq!(wrapping.log(".calls").len(), 1, "{point}: it ran once");
    }
}
