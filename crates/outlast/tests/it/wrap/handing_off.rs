//! H4, H5, H6, H9: calls that take longer than their client waits.

use serde_json::{Value, json};

use super::{Wrapped, Wrapping, call, text};
use crate::support::eventually;

/// Hands calls off soon; waits for a client that left for as long as a test may take.
fn impatient() -> Wrapping {
    Wrapping::new().flags(&["--after", "300ms", "--idle-ms", "60000"])
}

fn waiting(wrapping: &Wrapping, name: &str) -> Value {
    json!({ "until": wrapping.path(name).to_str().unwrap(), "text": "done" })
}

#[tokio::test]
async fn h4_a_slow_call_is_handed_off_and_the_same_call_brings_its_result() {
    let wrapping = impatient();
    let mut wrapped = wrapping.start().await;
    let job = wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    let show = async || -> Value {
        serde_json::from_str(&wrapping.run(&["jobs", "show", &job, "--json"]).await).unwrap()
    };
    let mut shown = show().await;
    // Claimed a moment after it was stored.
    while shown["state"] == "queued" {
        shown = show().await;
    }
    assert_eq!(shown["state"], "running", "{shown}");
    let again = wrapped
        .send(
            "tools/call",
            call("wait", json!({ "text": "done", "until": wrapping.path("go").to_str().unwrap() })),
        )
        .await;
    wrapping.release("go");
    let mut answer = wrapped.answer(again).await;
    if text(&answer).contains("still running") {
        answer = wrapped.call("wait", waiting(&wrapping, "go")).await;
    }
    assert_eq!(text(&answer), "done", "{answer}");
    assert_eq!(answer["result"]["_meta"]["z"], 9_007_199_254_740_993_u64);
    assert_eq!(wrapping.log(".done").len(), 1, "it ran once");
    // Received: the next one is a separate call.
    let next = wrapped.call("wait", waiting(&wrapping, "go")).await;
    assert_eq!(text(&next), "done");
    assert_eq!(wrapping.log(".done").len(), 2);
}

/// L1: a hand-off names the command that waits for the job, to a client with a shell.
#[tokio::test]
async fn l1_a_hand_off_names_the_command_that_waits_for_the_job() {
    let wrapping = impatient();
    let mut wrapped = wrapping.spawn();
    let client = json!({ "name": "gemini-cli-mcp-client", "version": "1" });
    let params =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    wrapped.ask("initialize", params).await;
    wrapped.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let answer = wrapped.call("wait", waiting(&wrapping, "go")).await;
    let argv = &answer["result"]["_meta"]["outlast/wait"];
    let job = &answer["result"]["_meta"]["outlast/jobId"];
    assert_eq!((&argv[1], &argv[2], &argv[3]), (&json!("jobs"), &json!("wait"), job), "{answer}");
    assert_eq!(argv[4], "--data-dir", "{answer}");
    let words: Vec<&str> = argv.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(text(&answer).contains(&format!("run `{}` in the background", words.join(" "))));
    wrapping.release("go");
    let waited = wrapping.run(&["jobs", "wait", job.as_str().unwrap()]).await;
    assert!(waited.contains("succeeded  free  "), "{waited}");
}

#[tokio::test]
async fn h4_get_result_brings_what_was_stored_as_it_came() {
    let wrapping = impatient();
    let mut wrapped = wrapping.start().await;
    wrapped.ask("tools/list", json!({})).await;
    let job = wrapped.handed_off("schema", waiting(&wrapping, "go")).await;
    let still = wrapped.call("get_result", json!({ "job_id": job })).await;
    assert!(text(&still).contains("still running"), "{still}");
    wrapping.release("go");
    let arguments = json!({ "job_id": job });
    let mut answer = wrapped.call("get_result", arguments.clone()).await;
    if text(&answer).contains("still running") {
        answer = wrapped.call("get_result", arguments.clone()).await;
    }
    assert_eq!(answer["result"]["structuredContent"], json!({ "n": 5 }), "{answer}");
    // From the store, any number of times, and also in another window.
    let again = wrapped.call("get_result", arguments.clone()).await;
    assert_eq!(again["result"], answer["result"]);
    let mut other = wrapping.start().await;
    let elsewhere = other.call("get_result", arguments).await;
    assert_eq!(elsewhere["result"], answer["result"]);
    let unknown = other.call("get_result", json!({ "job_id": "0".repeat(32) })).await;
    assert!(text(&unknown).contains("JOB_NOT_FOUND"), "{unknown}");
    assert_eq!(wrapping.log(".done").len(), 1);
}

#[tokio::test]
async fn h4_an_error_of_the_server_is_stored_as_well() {
    let wrapping = impatient();
    let mut wrapped = wrapping.start().await;
    let arguments = json!({ "until": wrapping.path("go").to_str().unwrap() });
    let job = wrapped.handed_off("fail", arguments.clone()).await;
    wrapping.release("go");
    let error = json!({ "code": -32000, "message": "no such thing", "data": { "x": 1 } });
    let mut answer = wrapped.call("fail", arguments).await;
    while text(&answer).contains("still running") {
        answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert_eq!(answer["error"], error, "{answer}");
    let mut next = wrapping.start().await;
    let stored = next.call("get_result", json!({ "job_id": job })).await;
    assert_eq!(stored["error"], error, "{stored}");
    assert_eq!(wrapping.log(".done").len(), 1, "it ran once");
}

#[tokio::test]
async fn h4_a_cancelled_job_is_reported_to_the_server() {
    let wrapping = impatient();
    let mut wrapped = wrapping.start().await;
    let job = wrapped.handed_off("wait", waiting(&wrapping, "never")).await;
    wrapping.run(&["jobs", "cancel", &job]).await;
    eventually("the server is notified", || {
        wrapping.log("").iter().any(|line| line.contains("notifications/cancelled"))
    })
    .await;
}

/// A3: a stop is stated only if the server confirmed it.
#[tokio::test]
async fn a3_a_cancel_of_a_wrapped_call_reports_the_reaction_of_the_server() {
    let cases = [
        ("wait", "goes_on", "did not confirm it"),
        ("stoppable", "ended", "The call was stopped"),
        ("late", "completed", "had already carried out the call"),
    ];
    let wrapping = impatient();
    let mut wrapped = wrapping.start().await;
    for (tool, word, expected) in cases {
        let job = wrapped.handed_off(tool, waiting(&wrapping, "never")).await;
        // Claimed a moment after it was stored.
        while !wrapping.run(&["jobs", "show", &job, "--json"]).await.contains("\"running\"") {}
        let printed = wrapping.run_with_stderr(&["jobs", "cancel", &job]).await;
        assert!(printed.contains("cancelled") && printed.contains(expected), "{tool}: {printed}");
        assert!(!printed.contains("worker"), "{tool}: {printed}");
        let shown = wrapping.run(&["jobs", "show", &job, "--json"]).await;
        assert!(shown.contains(&format!("\"cancelled_run\": \"{word}\"")), "{tool}: {shown}");
        let again = wrapping.run_with_stderr(&["jobs", "cancel", &job]).await;
        assert!(again.contains("cancelled before") && again.contains(expected), "{again}");
    }
    let job = wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    wrapping.release("go");
    while !wrapping.run(&["jobs", "show", &job, "--json"]).await.contains("\"succeeded\"") {}
    let printed = wrapping.run_with_stderr(&["jobs", "cancel", &job]).await;
    assert!(printed.contains("has ended already: succeeded"), "{printed}");
}

#[tokio::test]
async fn h4_progress_stops_at_the_hand_off_and_goes_on_for_the_next_caller() {
    let wrapping = impatient();
    let mut wrapped = wrapping.start().await;
    let arguments =
        json!({ "count": 4, "pause_at": 2, "until": wrapping.path("go").to_str().unwrap() });
    let with_token = |token: &str| json!({ "name": "progress", "arguments": arguments, "_meta": { "progressToken": token } });
    let first = wrapped.send("tools/call", with_token("one")).await;
    for n in 1..=2 {
        let note = wrapped.message().await;
        assert_eq!(
            (&note["params"]["progressToken"], &note["params"]["progress"]),
            (&json!("one"), &json!(n))
        );
    }
    let handed_off = wrapped.message().await;
    assert_eq!(handed_off["id"], first, "{handed_off}");
    let second = wrapped.send("tools/call", with_token("two")).await;
    wrapping.release("go");
    // Server messages from before the second caller attached are not repeated.
    let mut heard = Vec::new();
    let answer = loop {
        let message = wrapped.message().await;
        if message.get("method").is_none() {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], "two", "{message}");
        heard.push(message["params"]["progress"].as_u64().unwrap());
    };
    assert_eq!(answer["id"], second);
    assert!([3, 4].ends_with(&heard), "{heard:?}");
}

#[tokio::test]
async fn h4_a_result_that_is_too_long_for_one_answer_comes_in_parts() {
    let wrapping = impatient().configured("[wrap]\nmax_result = \"1000\"\n");
    let mut wrapped = wrapping.start().await;
    let until = wrapping.path("go").to_str().unwrap().to_owned();
    let job = wrapped.handed_off("big", json!({ "bytes": 3200, "until": until })).await;
    wrapping.release("go");
    eventually("it is done", || wrapping.log(".done").len() == 1).await;
    let (mut whole, mut offset) = (String::new(), 0);
    for _ in 0..5 {
        let part = wrapped.call("get_result", json!({ "job_id": job, "offset": offset })).await;
        if text(&part).contains("still running") || text(&part).contains("more than one answer") {
            continue;
        }
        let (part, note) = text(&part).split_once("\n\n[").unwrap();
        whole.push_str(part);
        offset = whole.len();
        if note.contains("the end") {
            break;
        }
    }
    assert_eq!(whole, "0123456789abcdef".repeat(200));
}

#[tokio::test]
async fn h5_two_deliberate_identical_calls_are_two() {
    let wrapping = Wrapping::new();
    let mut wrapped = wrapping.start().await;
    let first = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    let second = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    eventually("both are under way", || wrapping.log(".calls").len() == 2).await;
    wrapping.release("go");
    let mut answered =
        [wrapped.message().await["id"].clone(), wrapped.message().await["id"].clone()];
    answered.sort_by_key(Value::as_u64);
    assert_eq!(answered, [json!(first), json!(second)]);
    assert_eq!(wrapping.log(".done").len(), 2);
}

async fn cancel(wrapped: &mut Wrapped, id: u64, reason: &str) {
    let note = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": id, "reason": reason } });
    wrapped.line(&note.to_string()).await;
}

#[tokio::test]
async fn h6_a_person_reaches_the_server_and_a_timeout_does_not() {
    let wrapping = Wrapping::new();
    let mut wrapped = wrapping.start().await;
    let heard = || wrapping.log("").iter().filter(|line| line.contains("cancelled")).count();
    let id = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    eventually("the call is there", || wrapping.log(".calls").len() == 1).await;
    cancel(&mut wrapped, id, "MCP error -32001: Request timed out").await;
    wrapped.ask("ping", json!({})).await;
    assert_eq!(heard(), 0);
    // The same call is the one that continues.
    let again = wrapped.send("tools/call", call("wait", waiting(&wrapping, "go"))).await;
    wrapped.ask("ping", json!({})).await;
    wrapping.release("go");
    assert_eq!(text(&wrapped.answer(again).await), "done");
    assert_eq!(wrapping.log(".calls").len(), 1);
    let id = wrapped.send("tools/call", call("wait", waiting(&wrapping, "other"))).await;
    eventually("the call is there", || wrapping.log(".calls").len() == 2).await;
    cancel(&mut wrapped, id, "the user pressed Esc").await;
    eventually("the server is notified", || heard() == 1).await;
    let last = wrapping.log("").into_iter().find(|line| line.contains("cancelled")).unwrap();
    assert!(last.contains("\"requestId\":\"outlast:2\""), "{last}");
}

#[tokio::test]
async fn h9_each_tool_has_its_policy_and_what_rests_on_disk_is_private() {
    let wrapping = Wrapping::new().flags(&["--after", "300ms"]).configured(
        "[wrap]\nafter = \"1h\"\n[wrap.tools]\nwait = \"at once\"\nschema = \"never\"\n",
    );
    let mut wrapped = wrapping.start().await;
    let job = wrapped.handed_off("wait", waiting(&wrapping, "go")).await;
    let never = wrapped.send("tools/call", call("schema", waiting(&wrapping, "later"))).await;
    let until = wrapping.path("go").to_str().unwrap().to_owned();
    // By --after, which overrides the file; "never" has waited as long by then.
    wrapped.handed_off("big", json!({ "bytes": 16, "until": until })).await;
    wrapping.release("later");
    let answer = wrapped.answer(never).await;
    assert_eq!(answer["result"]["structuredContent"]["n"], 5, "{answer}");
    assert_eq!(job.len(), 32);
    use std::os::unix::fs::PermissionsExt as _;
    let mode =
        |path: &str| std::fs::metadata(wrapping.path(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(
        (mode("data/outlast.db"), mode("data/wrap"), mode("data/wrap.log")),
        (0o600, 0o700, 0o600)
    );
    for socket in std::fs::read_dir(wrapping.path("data/wrap")).unwrap() {
        assert_eq!(socket.unwrap().metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}

/// Sends a call of `wait` with these members next to `until`, as written, and returns the job of its hand-off.
async fn hand_off_raw(wrapped: &mut Wrapped, wrapping: &Wrapping, id: u64, more: &str) -> String {
    let until = json!(wrapping.path("never").to_str().unwrap());
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"wait","arguments":{{"until":{until},{more}}}}}}}"#
    );
    wrapped.line(&line).await;
    let answer = wrapped.answer(id).await;
    assert!(text(&answer).contains("still running"), "{answer}");
    answer["result"]["_meta"]["outlast/jobId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn h5_different_arguments_are_different_calls_whatever_json_they_are() {
    let wrapping = Wrapping::new().flags(&["--after", "50ms", "--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    let deep = |end: &str| format!("\"x\":{}{end}{}", "[".repeat(200), "]".repeat(200));
    let (one, two) = (deep("1"), deep("2"));
    let different = [
        r#""x":{}"#,
        r#""x":"\ud800""#,
        r#""x":"\udfff""#,
        &one,
        &two,
        r#""x":1e999"#,
        r#""x":-1e999"#,
        r#""x":18446744073709551616"#,
        r#""x":18446744073709551617"#,
        r#""x":0.1000000000000000055"#,
        r#""x":0.1000000000000000056"#,
    ];
    let mut jobs = Vec::new();
    for (at, more) in different.into_iter().enumerate() {
        let job = hand_off_raw(&mut wrapped, &wrapping, 1000 + at as u64, more).await;
        assert!(!jobs.contains(&job), "{more} is taken for another call");
        jobs.push(job);
    }
    eventually("each has run", || wrapping.log(".calls").len() == different.len()).await;
    // Written in another way, each is still the same call.
    let again = [
        (1, r#""x" : "\uD800""#),
        (3, &one.replace('[', "[ ")),
        (7, r#""x":18446744073709551616 "#),
    ];
    for (at, more) in again {
        let job = hand_off_raw(&mut wrapped, &wrapping, 2000 + at as u64, more).await;
        assert_eq!(job, jobs[at], "{more}");
    }
    assert_eq!(wrapping.log(".calls").len(), different.len(), "none ran twice");
}

/// Params that wrap cannot read still reach the server, and no other call is taken for them.
#[tokio::test]
async fn h5_calls_whose_params_cannot_be_read_are_never_attached_to() {
    let wrapping = Wrapping::new().flags(&["--after", "50ms", "--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    let until = json!(wrapping.path("never").to_str().unwrap());
    let mut jobs = std::collections::BTreeSet::new();
    for id in 1000..1003 {
        // Two names: a reader that takes the last one has a call of `wait`.
        let line = format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"x","name":"wait","arguments":{{"until":{until},"n":{id}}}}}}}"#
        );
        wrapped.line(&line).await;
        let answer = wrapped.answer(id).await;
        assert!(text(&answer).contains("Do not make the call again"), "{answer}");
        jobs.insert(answer["result"]["_meta"]["outlast/jobId"].to_string());
    }
    assert_eq!(jobs.len(), 3);
    eventually("each has run", || wrapping.log(".calls").len() == 3).await;
}

/// A call with answers to the server's questions differs from the same call with other answers.
#[tokio::test]
async fn h5_calls_with_different_answers_to_questions_are_different() {
    let wrapping = Wrapping::new().flags(&["--after", "50ms", "--idle-ms", "60000"]);
    let mut wrapped = wrapping.start().await;
    let mut hand_off = async |more: Value| {
        let mut params = call("wait", waiting(&wrapping, "never"));
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let answer = wrapped.ask("tools/call", params).await;
        answer["result"]["_meta"]["outlast/jobId"].as_str().unwrap().to_owned()
    };
    let yes = json!({ "inputResponses": { "q": { "action": "accept" } }, "requestState": "s" });
    let no = json!({ "inputResponses": { "q": { "action": "decline" } }, "requestState": "s" });
    let first = hand_off(yes.clone()).await;
    assert_ne!(hand_off(no).await, first);
    assert_eq!(hand_off(yes).await, first);
    // The repeated call without answers is the one that continues: it must not ask, and run, a second time.
    assert_eq!(hand_off(json!({})).await, first);
    assert_eq!(wrapping.log(".calls").len(), 2);
}
