//! `outlast call`: the real binary calls the real server, over a pipe and over HTTP.

use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_client::{CallOptions, Client, ConnectOptions, Endpoint, Era, Limit, ProgramToStart};
use outlast_testkit::mcp_process::{Signal, signal};
use outlast_testkit::peer::shell::{LAST_WORDS, Misbehaviour, stateless_script};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::http::client::{ANN, Served};
use crate::support::{POLL, Ran, START, World, binary, eventually, question};

/// Enough for the slowest machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs `outlast call --tool TOOL --args ARGS ... -- outlast serve`.
async fn call(world: &World, tool: &str, arguments: &Value, flags: &[&str]) -> Ran {
    let (server, arguments) = (binary().to_str().unwrap(), arguments.to_string());
    let mut line = vec!["call", "--tool", tool, "--args", &arguments];
    line.extend(flags);
    line.extend(["--", server, "serve"]);
    world.run(&line).await
}

fn research(scenario: &str) -> Value {
    json!({ "query": format!("Why is the sky blue? [[sim:{scenario}]]"), "reasoning_effort": "low" })
}

/// E15, D's part: the start and poll tools, each call with its own server.
#[tokio::test]
async fn d9_a_call_starts_research_and_others_poll_it() {
    let world = World::new().await;
    let started = call(&world, START, &question("ok"), &[]).await;
    assert_eq!(started.code, Some(0), "{started:?}");
    let started: Value = serde_json::from_str(&started.stdout).unwrap();
    let job = json!({ "jobId": started["jobId"] });
    let polling = async {
        loop {
            let polled = call(&world, POLL, &job, &["--json"]).await;
            assert_eq!(polled.code, Some(0), "{polled:?}");
            let polled: Value = serde_json::from_str(&polled.stdout).unwrap();
            assert_eq!(polled["isError"], false);
            assert_eq!(polled["content"][0]["type"], "text");
            if polled["structuredContent"]["status"] == "COMPLETED" {
                return polled["structuredContent"]["response"].as_str().unwrap().to_owned();
            }
        }
    };
    let response = tokio::time::timeout(LIMIT, polling).await.expect("the job ends");
    assert!(response.contains("Citations:"), "{response}");
    assert_eq!(world.submits(), 1);
}

/// D13 with our own server: it answers the newest era with a task.
#[tokio::test]
async fn d13_a_call_that_becomes_a_task_is_followed_to_its_report() {
    let world = World::new().await;
    let flags = ["--timeout", "60s", "--reset-timeout-on-progress", "--max-total-timeout", "2m"];
    let ran = call(&world, "perplexity_deep_research", &research("ok"), &flags).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("## "), "the report is on standard output: {}", ran.stdout);
    assert!(!ran.stderr.trim().is_empty(), "and its progress on standard error");
    assert_eq!(world.submits(), 1);
}

/// D9 over HTTP, with a token from a variable.
#[tokio::test]
async fn d9_a_call_over_http_with_a_token() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    world.set("ANNS_TOKEN", ANN);
    let url = format!("http://{}/mcp", served.address);
    let arguments = research("ok").to_string();
    let line = ["call", "--url", &url, "--tool", "perplexity_deep_research", "--args", &arguments];
    let ran = world.run(&[&line[..], &["--bearer-env", "ANNS_TOKEN"]].concat()).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("## "), "{ran:?}");
    let header = format!("Authorization: Bearer {ANN}");
    let again = world.run(&[&line[..], &["--header", &header]].concat()).await;
    assert_eq!(again.code, Some(0), "{again:?}");

    let ran = world.run(&line).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("hint: put the token in a variable"), "{ran:?}");
    let ran = world.run(&[&line[..], &["--bearer-env", "NOT_SET"]].concat()).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
}

/// D9 through the proxy of the configuration: the name cannot be resolved, and the server plays the proxy, which gets
/// the whole address.
#[tokio::test]
async fn d9_a_call_over_http_goes_through_the_proxy() {
    let mut world = World::new().await;
    world.set("OUTLAST_ALLOWED_HOSTS", "upstream.invalid");
    let served = Served::start(&mut world, &[]).await;
    world.set("ANNS_TOKEN", ANN);
    let arguments = research("ok").to_string();
    let url = "http://upstream.invalid/mcp";
    let line = ["call", "--url", url, "--tool", "perplexity_deep_research", "--args", &arguments];
    let line = [&line[..], &["--bearer-env", "ANNS_TOKEN"]].concat();
    let ran = world.run(&line).await;
    assert_ne!(ran.code, Some(0), "there is no such host: {ran:?}");
    world.set("HTTP_PROXY", &format!("http://{}", served.address));
    let ran = world.run(&line).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("## "), "{ran:?}");
    world.set("NO_PROXY", "upstream.invalid");
    assert_ne!(world.run(&line).await.code, Some(0));
}

/// D3 to D5 with our own server: held calls with progress, over both transports and in both eras, all concurrently.
#[tokio::test]
async fn d5_a_held_call_with_progress_outlives_its_idle_timeout() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let url = format!("http://{}/mcp", served.address);
    let connect = async |era, over_http| {
        let options = ConnectOptions { era, tasks: false, ..ConnectOptions::default() };
        if over_http {
            let endpoint = Endpoint::new(&url).unwrap().bearer(ANN).unwrap();
            Client::http(endpoint, options).await.unwrap()
        } else {
            Client::spawn(serving(&world), options).await.unwrap()
        }
    };
    let calls = [
        held(connect(Era::Initialize, false).await, 1),
        held(connect(Era::Stateless, false).await, 2),
        held(connect(Era::Initialize, true).await, 3),
        held(connect(Era::Stateless, true).await, 4),
    ];
    for call in calls.map(tokio::spawn) {
        call.await.unwrap();
    }
    assert_eq!(world.submits(), 4);
}

/// Makes a call that takes longer than its window, which progress renews.
async fn held(client: Client, sources: u32) {
    let window = Duration::from_secs(6);
    let notes = Arc::new(Mutex::new(Vec::new()));
    let noting = notes.clone();
    let options = CallOptions::default()
        .timeout(window)
        .reset_timeout_on_progress()
        .max_total_timeout(LIMIT)
        .on_progress(move |progress| noting.lock().unwrap().push(progress.value));
    // Ten seconds at the simulator's speed; the number of sources distinguishes the questions.
    let asked = research(&format!("ok;delay_ms=200000;sources={sources}"));
    let began = tokio::time::Instant::now();
    let answer = client.call_tool("perplexity_deep_research", asked, options).await.unwrap();
    assert!(began.elapsed() > window, "it took {:?}", began.elapsed());
    assert!(!answer.is_error && answer.text.contains("## "), "{answer:?}");
    let notes = notes.lock().unwrap().clone();
    assert!(notes.len() >= 2 && notes.is_sorted(), "{notes:?}");
    client.close().await;
}

/// Returns the server as a program, with only the world's environment.
fn serving(world: &World) -> ProgramToStart {
    let program = ProgramToStart::new(binary()).arg("serve").env_clear();
    let environment = world.environment.iter();
    environment.fold(program, |program, (name, value)| program.env(name, value))
}

#[tokio::test]
async fn a_call_that_times_out_exits_3_and_says_what_was_seen() {
    let world = World::new().await;
    for (flag, words) in
        [("--timeout", "the timeout of"), ("--max-total-timeout", "the total timeout of")]
    {
        let stuck = research("stuck");
        let ran = call(&world, "perplexity_deep_research", &stuck, &[flag, "2s"]).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
        assert_eq!(ran.stdout, "");
        assert!(ran.stderr.contains(&format!("error: no answer within {words} 2 s")), "{ran:?}");
        let id = jobs(&world).await[0]["id"].as_str().unwrap().to_owned();
        let hint = format!("\n\nhint: job {id} goes on in the detached worker of its server, or");
        assert!(ran.stderr.contains(&hint), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`outlast jobs watch {id}`")), "{ran:?}");
        assert!(!ran.stderr.contains("the task"), "it left with the server: {ran:?}");
    }
}

/// The total limit of a call also limits its handshake.
#[tokio::test]
async fn a_server_that_never_greets_is_given_up_at_the_calls_total_limit() {
    let world = World::new().await;
    let flags = ["call", "--max-total-timeout", "300ms", "--tool", "x"];
    let ran = world.run(&[&flags[..], &["--", "sleep", "60"]].concat()).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("the handshake within 300 ms"), "{ran:?}");
}

/// D10: `--timeout` begins with the request. A server that takes longer to start is waited for.
#[tokio::test]
async fn d10_the_timeout_of_a_call_does_not_limit_the_handshake() {
    let world = World::new().await;
    let script = format!("sleep 1\n{}", stateless_script(Misbehaviour::Silent));
    let flags = ["call", "--timeout", "300ms", "--tool", "x", "--", "sh", "-c", &script];
    let ran = world.run(&flags).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("no answer within the timeout of 300 ms"), "{ran:?}");
}

/// Returns the jobs in a world's store, newest first.
async fn jobs(world: &World) -> Vec<Value> {
    let listed = world.run(&["jobs", "list", "--all", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    listed["jobs"].as_array().unwrap().clone()
}

/// Returns the flags for a call of a server over HTTP, by its owner Ann.
fn at(served: &Served) -> [String; 4] {
    let url = format!("http://{}/mcp", served.address);
    ["--url".to_owned(), url, "--header".to_owned(), format!("Authorization: Bearer {ANN}")]
}

/// P3, the reading of D13: a caller that gives up leaves the job running and learns its id; a caller that wants it to
/// end uses a flag.
#[tokio::test]
async fn p3_a_call_that_gives_up_leaves_the_job_running_and_prints_its_id() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let server = at(&served);
    let stuck = research("stuck").to_string();
    for limit in ["--timeout", "--max-total-timeout"] {
        let mut line = vec!["call", "--tool", "perplexity_deep_research", "--args", &stuck];
        line.extend(server.iter().map(String::as_str));
        line.extend([limit, "2s"]);
        let ran = world.run(&line).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let job = &jobs(&world).await[0];
        assert_eq!(job["state"], "running", "{job}");
        let id = job["id"].as_str().unwrap();
        let words = format!("hint: job {id} goes on; the same call made again picks it up");
        assert!(ran.stderr.contains(&words), "{ran:?}");
        assert!(ran.stderr.contains(&format!("`outlast jobs watch {id}` on the server's")));
        assert!(ran.stderr.contains("; next time, "), "{ran:?}");

        line.push("--cancel-on-timeout");
        let ran = world.run(&line).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let job = &jobs(&world).await[0];
        assert_eq!(job["state"], "cancelled", "{job}");
        assert!(ran.stderr.contains("was cancelled)"), "{ran:?}");
        assert!(!ran.stderr.contains("goes on"), "{ran:?}");
    }
}

/// Promise 2: the same call after its own timeout, and after Ctrl-C, finds its job and pays once, with a new server and
/// with one that stays.
#[tokio::test]
async fn p3_the_same_call_after_a_timeout_or_ctrl_c_finds_its_job() {
    let mut world = World::new().await;
    let own = vec!["--".to_owned(), binary().to_str().unwrap().to_owned(), "serve".to_owned()];
    let served = Served::start(&mut world, &[]).await;
    for (paid, server) in [own, at(&served).to_vec()].into_iter().enumerate() {
        let paid = paid as u64 + 1;
        let (mut child, mut said, id) = waiting(&world, &server).await;
        eventually("the provider was asked", || world.submits() == paid).await;
        signal(child.id().unwrap(), Signal::INT);
        heard(&mut said, "the same call made again picks it up").await;
        left(&mut child).await;
        let arguments = research("stuck").to_string();
        let mut line = vec!["call", "--tool", "perplexity_deep_research", "--args", &arguments];
        line.extend(["--timeout", "2s"]);
        line.extend(server.iter().map(String::as_str));
        for _ in 0..2 {
            let ran = world.run(&line).await;
            assert_eq!(ran.code, Some(3), "{ran:?}");
            assert!(ran.stderr.contains(&format!("job {id} ")), "the same job: {ran:?}");
        }
        assert_eq!(world.submits(), paid, "paid once");
    }
}

/// P3: a held call that is not a task learns the job from the server's progress.
#[tokio::test]
async fn p3_progress_of_a_held_call_names_its_job() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = crate::support::start(&mut server, "stuck").await;
    let poll = json!({ "jobId": id });
    let ran = call(&world, POLL, &poll, &["--timeout", "3s"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let words = format!(
        "if it has none, once `outlast worker --until-idle` or the next server runs; `outlast jobs watch {id}`"
    );
    assert!(ran.stderr.contains(&words), "{ran:?}");
    assert_eq!(jobs(&world).await[0]["state"], "running");
}

/// H1, P3: the job of a call that reached its limit goes on in the worker of the server that the call started.
#[tokio::test]
async fn h1_a_detached_worker_goes_on_with_the_job_of_a_call_that_timed_out() {
    let mut world = World::new().await;
    world.set("OUTLAST_DETACH", "true");
    let asked = research("ok;words=80;hold=true");
    let ran = call(&world, "perplexity_deep_research", &asked, &["--timeout", "2s"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let id = jobs(&world).await[0]["id"].as_str().unwrap().to_owned();
    let hint = format!("\n\nhint: job {id} goes on in the detached worker of its server");
    assert!(ran.stderr.contains(&hint), "{ran:?}");
    world.simulator.release();
    let waited = world.run(&["jobs", "wait", &id]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(world.submits(), 1);
}

/// The hint after a limit never recommends a flag that was given.
#[tokio::test]
async fn the_hint_after_a_timeout_does_not_advise_the_flag_that_was_given() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = crate::support::start(&mut server, "stuck").await;
    let poll = json!({ "jobId": id });
    let flag = "--reset-timeout-on-progress";
    for (flags, advised) in
        [(&["--timeout", "2s"][..], flag), (&["--timeout", "2s", flag], "a longer --timeout")]
    {
        let ran = call(&world, POLL, &poll, flags).await;
        assert_eq!(ran.code, Some(3), "{ran:?}");
        let (_, hint) = ran.stderr.split_once("hint: ").unwrap();
        assert!(hint.contains(advised), "{ran:?}");
        assert!(flags.len() == 2 || !hint.contains(flag), "{ran:?}");
    }
}

/// Returns a server whose tool reports progress once and then answers.
fn telling_script(note: &Value) -> String {
    let greet = json!({ "jsonrpc": "2.0", "id": 0, "result": outlast_testkit::peer::discovery() });
    let answer =
        json!({ "jsonrpc": "2.0", "id": 1, "result": outlast_testkit::peer::result("done") });
    format!(
        r#"read a; echo '{greet}'; read b
token=$(printf '%s' "$b" | sed 's/.*"progressToken":\([0-9]*\).*/\1/')
echo '{note}' | sed "s/TOKEN/$token/"; echo '{answer}'; cat > /dev/null"#
    )
}

/// Work without a known total is not shown at 0 %.
#[tokio::test]
async fn progress_without_a_total_is_shown_without_a_percentage() {
    let world = World::new().await;
    let note = json!({
        "jsonrpc": "2.0", "method": "notifications/progress",
        "params": { "progressToken": "TOKEN", "progress": 3, "message": "Reading page 3" }
    });
    let script = telling_script(&note).replace("\"TOKEN\"", "TOKEN");
    let ran = world.run(&["call", "--tool", "x", "--", "/bin/sh", "-c", &script]).await;
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(0), "done\n"), "{ran:?}");
    assert!(ran.stderr.contains("Reading page 3") && !ran.stderr.contains('%'), "{ran:?}");
}

/// tools.md: without --tool the tools are listed.
#[tokio::test]
async fn a_call_without_a_tool_lists_the_tools_of_the_server() {
    let world = World::new().await;
    let server = binary().to_str().unwrap();
    let ran = world.run(&["call", "--", server, "serve"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.lines().any(|line| line.starts_with("list_conversations ")), "{ran:?}");
    let ran = world.run(&["call", "--json", "--", server, "serve"]).await;
    let tools: Value = serde_json::from_str(&ran.stdout).unwrap();
    let named = |name: &str| tools.as_array().unwrap().iter().find(|tool| tool["name"] == name);
    assert_eq!(named(START).unwrap()["inputSchema"]["type"], "object");
    let ran = world.run(&["call", "--args", "{}", "--", server, "serve"]).await;
    assert_eq!(ran.code, Some(2), "arguments of no tool: {ran:?}");
}

#[tokio::test]
async fn the_exit_code_distinguishes_a_tools_error_from_a_usage_error() {
    let world = World::new().await;
    let empty = json!({ "jobId": 5 });
    let ran = call(&world, POLL, &empty, &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stdout.starts_with("VALIDATION_ERROR: "), "{ran:?}");
    let ran = call(&world, "no_such_tool", &json!({}), &[]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("no_such_tool") && ran.stderr.contains("hint: "), "{ran:?}");

    let ran = world.run(&["call"]).await;
    crate::cli::assert_usage_error(&ran, "no server is named", "`outlast call --url URL`");
    assert!(ran.stderr.contains("`outlast call -- CMD`"), "{ran:?}");
    let usage: [&[&str]; 8] = [
        &["call", "--tool", "x"],
        &["call", "--tool", "x", "--url", "http://127.0.0.1:9/", "--", "cat"],
        &["call", "--tool", "x", "--timeout", "0s", "--", "cat"],
        &["call", "--tool", "x", "--max-total-timeout", "-1s", "--", "cat"],
        &["call", "--tool", "x", "--args", "[1]", "--", "cat"],
        &["call", "--tool", "x", "--args", "{", "--", "cat"],
        &["call", "--tool", "x", "--url", "ftp://host/"],
        &["call", "--tool", "x", "--", "./no-such-program"],
    ];
    for line in usage {
        let ran = world.run(line).await;
        assert_eq!(ran.code, Some(2), "{line:?}: {ran:?}");
        assert_eq!(ran.stdout, "", "{line:?}");
    }
}

#[tokio::test]
async fn a_server_that_dies_is_reported_with_its_last_words() {
    let world = World::new().await;
    let script = stateless_script(Misbehaviour::Dies);
    let ran = world.run(&["call", "--tool", "x", "--", "/bin/sh", "-c", &script]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains(LAST_WORDS) && ran.stderr.contains("exit status: 3"), "{ran:?}");
}

/// Makes a call over HTTP that waits for a stuck job: returns the process, its output, and the job.
async fn waiting(world: &World, server: &[String]) -> (tokio::process::Child, Said, String) {
    let arguments = research("stuck").to_string();
    let mut child = tokio::process::Command::new(binary())
        .args(["call", "--tool", "perplexity_deep_research", "--args", &arguments])
        .args(server)
        .env_clear()
        .envs(world.environment.iter().cloned())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap()).lines();
    // Progress is on standard error: the call is under way, and has become a task.
    heard(&mut said, "%").await;
    let id = jobs(world).await[0]["id"].as_str().unwrap().to_owned();
    (child, said, id)
}

type Said = tokio::io::Lines<BufReader<tokio::process::ChildStderr>>;

/// Returns the first line with these words.
async fn heard(said: &mut Said, words: &str) -> String {
    let hearing = async {
        loop {
            let line = said.next_line().await.unwrap().expect("it says so before it ends");
            if line.contains(words) {
                return line;
            }
        }
    };
    tokio::time::timeout(LIMIT, hearing).await.unwrap()
}

async fn left(child: &mut tokio::process::Child) {
    let status = tokio::time::timeout(LIMIT, child.wait()).await.unwrap().unwrap();
    assert_eq!(status.code(), Some(130));
}

/// P3: one Ctrl-C, SIGTERM and a closed terminal end the wait; the job continues and its id is printed.
#[tokio::test]
async fn p3_an_interrupted_call_exits_130_and_its_job_goes_on() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    for sent in [Signal::INT, Signal::TERM, Signal::HUP] {
        let (mut child, mut said, id) = waiting(&world, &at(&served)).await;
        signal(child.id().unwrap(), sent);
        heard(&mut said, &format!("job {id} goes on")).await;
        left(&mut child).await;
        assert_eq!(jobs(&world).await[0]["state"], "running", "{sent:?}");
    }
}

/// The reading of D13: Ctrl-C twice cancels.
#[tokio::test]
async fn p3_a_second_ctrl_c_cancels_the_task() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let (mut child, mut said, id) = waiting(&world, &at(&served)).await;
    signal(child.id().unwrap(), Signal::INT);
    heard(&mut said, "Ctrl-C again cancels it").await;
    signal(child.id().unwrap(), Signal::INT);
    heard(&mut said, &format!("{id} is cancelled")).await;
    left(&mut child).await;
    assert_eq!(jobs(&world).await[0]["state"], "cancelled");
}

/// P3 with a server that the call started: the server exits, and the job waits in its store with its run.
#[tokio::test]
async fn p3_an_interrupted_call_of_a_program_leaves_no_process_and_cancels_nothing() {
    let world = World::new().await;
    let program = ["--", binary().to_str().unwrap(), "serve"].map(str::to_owned);
    let (mut child, mut said, id) = waiting(&world, &program).await;
    eventually("the provider was asked", || world.submits() == 1).await;
    signal(child.id().unwrap(), Signal::INT);
    heard(&mut said, &format!("job {id} goes on in the detached worker of its server, or")).await;
    left(&mut child).await;
    let shown = world.shown(&id).await;
    assert_ne!(shown["state"], "cancelled", "{shown}");
    assert_eq!(shown["checkpoint"]["at"], "running", "{shown}");
}

/// D12 on the command line: the limit has the name that the library gives it.
#[tokio::test]
async fn d12_the_library_names_the_limit() {
    let world = World::new().await;
    let client = Client::spawn(serving(&world), ConnectOptions::default()).await.unwrap();
    let options = CallOptions::default().timeout(LIMIT).max_total_timeout(Duration::from_secs(1));
    let called = client.call_tool("perplexity_deep_research", research("stuck"), options).await;
    let Err(outlast_client::ClientError::TimedOut(timed_out)) = called else {
        panic!("not timed out: {called:?}")
    };
    assert_eq!((timed_out.limit, timed_out.told), (Limit::Total, true));
    assert!(timed_out.elapsed >= Duration::from_secs(1) && timed_out.elapsed < LIMIT);
    client.close().await;
}
