//! MCP tasks on the real binary: a task is a job, so it outlives its connection, its client and its server.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{POLL, START, World};

const DEEP: &str = "perplexity_deep_research";
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A client of the newest revision over a pipe; it may declare the extension.
struct Modern {
    server: McpProcess,
    capabilities: Value,
}

impl Modern {
    fn of(world: &World, capabilities: Value) -> Self {
        Self { server: world.spawn(&["serve"]), capabilities }
    }

    fn with_flags(world: &World, flags: &[&str]) -> Self {
        let arguments: Vec<&str> = ["serve"].iter().chain(flags).copied().collect();
        let capabilities = json!({ "extensions": { TASKS: {} } });
        Self { server: world.spawn(&arguments), capabilities }
    }

    fn with_tasks(world: &World) -> Self {
        Self::of(world, json!({ "extensions": { TASKS: {} } }))
    }

    async fn request(&mut self, method: &str, mut params: Value) -> Value {
        params["_meta"] = self.meta();
        self.server.request(method, params).await
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer =
            self.request("tools/call", json!({ "name": tool, "arguments": arguments })).await;
        answer["result"].clone()
    }

    /// Sends a call without waiting for its answer.
    async fn send(&mut self, tool: &str, arguments: Value) -> u64 {
        let mut params = json!({ "name": tool, "arguments": arguments });
        params["_meta"] = self.meta();
        self.server.send("tools/call", params).await
    }

    fn meta(&self) -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        })
    }

    async fn task(&mut self, id: &str) -> Value {
        self.request("tasks/get", json!({ "taskId": id })).await["result"].clone()
    }

    /// Reads the task until it has ended.
    async fn ended(&mut self, id: &str) -> Value {
        let waited = async {
            loop {
                let task = self.task(id).await;
                if task["status"] != "working" {
                    return task;
                }
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), waited).await.expect("it ends")
    }
}

fn query(scenario: &str) -> Value {
    json!({ "query": format!("Why is the sky blue? [[sim:{scenario}]]") })
}

#[tokio::test]
async fn research_is_answered_with_a_task_at_once_and_read_to_its_end() {
    let world = World::new().await;
    let mut client = Modern::with_tasks(&world);
    let discovered = client.request("server/discover", json!({})).await;
    assert!(discovered["result"]["capabilities"]["extensions"].get(TASKS).is_some());
    let created = client.call(DEEP, query("ok;words=60;delay_ms=0;hold=true")).await;
    assert_eq!(created["resultType"], "task", "{created}");
    assert_eq!(created["status"], "working");
    assert_eq!(created["ttlMs"], Value::Null, "research is kept for ever");
    let id = created["taskId"].as_str().unwrap().to_owned();
    assert!(client.task(&id).await["statusMessage"].is_string());
    crate::support::eventually("the run is under way", || world.submits() == 1).await;
    world.simulator.release();
    let task = client.ended(&id).await;
    assert_eq!(task["status"], "completed", "{task}");
    let result = &task["result"];
    assert_eq!(result["structuredContent"]["status"], "completed");
    assert!(result["content"].to_string().contains("Sources:"));
    assert_eq!(client.task(&id).await, task, "the same again");
    assert_eq!(world.submits(), 1);
}

/// Kills a server in the middle of a task, which then ends in the next one; returns the client and the task's id.
async fn survive_kill_9(world: &World) -> (Modern, String) {
    let mut client = Modern::with_tasks(world);
    let created = client.call(DEEP, query("ok;words=60;delay_ms=0;hold=true")).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    // Its first progress is shown after the run's name was recorded.
    while !client.task(&id).await["statusMessage"].as_str().unwrap().contains('%') {}
    client.server.kill().await;
    let mut client = Modern::with_tasks(world);
    assert_eq!(client.task(&id).await["status"], "working");
    world.simulator.release();
    assert_eq!(client.ended(&id).await["status"], "completed");
    assert_eq!(world.submits(), 1, "paid for once");
    (client, id)
}

#[tokio::test]
async fn a_task_survives_kill_9_and_every_interface_finds_it() {
    let world = World::new().await;
    let (mut client, id) = survive_kill_9(&world).await;
    let polled = client.call(POLL, json!({ "jobId": id })).await;
    assert_eq!(polled["structuredContent"]["status"], "COMPLETED", "one id space");
}

/// The same without a worker that takes jobs from a queue: only held calls are served.
#[tokio::test]
async fn a_task_survives_kill_9_without_a_worker_for_the_queue() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "research");
    survive_kill_9(&world).await;
}

/// Promise 1: the next attempt of a job that was answered with a task starts by itself, also if no client looks at it.
#[tokio::test]
async fn b9_a_task_is_tried_again_without_a_client_that_looks() {
    let world = World::new().await;
    let mut client = Modern::with_tasks(&world);
    let created = client.call(DEEP, query("503x1|ok;words=60;delay_ms=0")).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    let waited = world.run(&["jobs", "wait", &id, "--timeout", "30s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(world.submits(), 1);
}

/// B7, B1: reading a job starts nothing, neither over a limit nor without a worker.
#[tokio::test]
async fn b7_looking_at_a_task_starts_no_job_of_the_queue() {
    for (flags, slots) in [(["--concurrency", "2"].as_slice(), 2), (&["--no-worker"], 0)] {
        let world = World::new().await;
        let mut client = Modern::with_flags(&world, flags);
        let mut ids = Vec::new();
        for _ in 0..8 {
            let started = client.call(START, crate::support::question("stuck")).await;
            ids.push(started["structuredContent"]["jobId"].as_str().unwrap().to_owned());
        }
        crate::support::eventually("the slots are taken", || world.submits() == slots).await;
        for id in &ids {
            assert_eq!(client.task(id).await["status"], "working");
        }
        // A held call runs after all jobs that were to run before it.
        let found = client.call("perplexity_search", query("ok;words=60;delay_ms=0")).await;
        assert_eq!(found["structuredContent"]["status"], "completed", "{found}");
        let listed = world.run(&["jobs", "list", "--state", "queued", "--json"]).await;
        let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
        let queued = listed["jobs"].as_array().unwrap().len() as u64;
        assert_eq!(queued, 8 - slots, "{flags:?}: {listed}");
    }
}

#[tokio::test]
async fn a_task_can_be_cancelled_and_ignores_what_it_never_asked() {
    let world = World::new().await;
    let mut client = Modern::with_tasks(&world);
    let created = client.call(DEEP, query("stuck")).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    let unasked = json!({ "taskId": id, "inputResponses": { "colour": { "action": "accept" } } });
    let updated = client.request("tasks/update", unasked).await;
    assert_eq!(updated["result"]["resultType"], "complete", "{updated}");
    assert_eq!(client.task(&id).await["status"], "working", "nothing came of it");
    let cancelled = client.request("tasks/cancel", json!({ "taskId": id })).await;
    assert!(cancelled.get("error").is_none(), "{cancelled}");
    assert_eq!(client.task(&id).await["status"], "cancelled");
    let again = client.request("tasks/cancel", json!({ "taskId": id })).await;
    assert!(again.get("error").is_none(), "the same acknowledgement: {again}");
}

/// design.md: failed is completed with isError.
#[tokio::test]
async fn a_task_that_fails_has_a_result_that_says_why() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    let mut client = Modern::with_tasks(&world);
    let created = client.call(DEEP, query("http;status=401")).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    let task = client.ended(&id).await;
    assert_eq!(task["status"], "completed");
    assert_eq!(task["result"]["isError"], true);
    let text = task["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("UNAUTHORIZED: "), "{text}");
}

/// Promise 2: a call that is answered with a task attaches like a held call, to a task as to a held one, and makes a
/// held job a promised one with the retention of a task.
#[tokio::test]
async fn promise_2_a_task_call_attaches_like_a_held_call() {
    let world = World::new().await;
    let mut held = Modern::of(&world, json!({}));
    let scenario = "ok;words=60;delay_ms=0;hold=true";
    let holding = held.send(DEEP, query(scenario)).await;
    crate::support::eventually("it is submitted", || world.submits() == 1).await;
    let mut client = Modern::with_tasks(&world);
    let task = client.call(DEEP, query(scenario)).await;
    assert_eq!(task["resultType"], "task", "{task}");
    assert_eq!(task["ttlMs"], Value::Null, "kept as long as a task");
    let id = task["taskId"].as_str().unwrap().to_owned();
    let again = client.call(DEEP, query(scenario)).await;
    assert_eq!(again["taskId"], id.as_str(), "one job");
    let listed = client.call("list_conversations", json!({})).await;
    let listed = listed["structuredContent"]["conversations"].as_array().unwrap().len();
    assert_eq!(listed, 1, "the caller has its id, so it is shown");
    world.simulator.release();
    let answer = held.server.answer(holding).await.unwrap()["result"].clone();
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");
    assert_eq!(client.ended(&id).await["result"]["structuredContent"], answer["structuredContent"]);
    // After its end, the call is answered with the outcome, marked as repeated.
    for client in [&mut client, &mut held] {
        let replayed = client.call(DEEP, query(scenario)).await;
        assert_eq!(replayed["_meta"]["outlast/replayed"], true, "{replayed}");
        assert_eq!(replayed["structuredContent"], answer["structuredContent"]);
    }
    assert_eq!(world.submits(), 1, "paid once");
}

/// Promise 2: a held call attaches to the task of the same question, also after the task's server was killed.
#[tokio::test]
async fn promise_2_a_held_call_attaches_to_a_task() {
    let world = World::new().await;
    let mut client = Modern::with_tasks(&world);
    let created = client.call(DEEP, query("ok;words=60;delay_ms=0;hold=true")).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    while !client.task(&id).await["statusMessage"].as_str().unwrap().contains('%') {}
    client.server.kill().await;
    let mut held = Modern::of(&world, json!({}));
    let holding = held.send(DEEP, query("ok;words=60;delay_ms=0;hold=true")).await;
    held.request("ping", json!({})).await;
    world.simulator.release();
    let answer = held.server.answer(holding).await.unwrap()["result"].clone();
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");
    assert_eq!(world.submits(), 1, "paid once");
}

/// Promise 2, H5: a workflow's task call attaches while the first one runs or was not answered; then it runs again.
#[tokio::test]
async fn h5_a_workflows_task_call_attaches_until_it_was_answered() {
    let mut world = World::new().await;
    world.unset("PERPLEXITY_API_KEY");
    world.set("PATH", "/usr/bin:/bin");
    let folder = world.data_dir().parent().unwrap().to_owned();
    let (file, go) = (folder.join("outlast.toml"), folder.join("go"));
    let command = format!("until test -e {}; do sleep 0.05; done; cat", go.display());
    let workflow =
        format!("[[workflow]]\nname = \"echo\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n");
    std::fs::write(&file, workflow).unwrap();
    let flags = ["--config", file.to_str().unwrap()];
    let mut client = Modern::with_flags(&world, &flags);
    let echo = json!({ "message": "hello" });
    let first = client.call("echo", echo.clone()).await;
    let id = first["taskId"].as_str().unwrap_or_else(|| panic!("{first}")).to_owned();
    assert_eq!(client.call("echo", echo.clone()).await["taskId"], id.as_str(), "one runs");
    std::fs::write(&go, "").unwrap();
    let waited = world.run(&["jobs", "wait", &id, "--timeout", "30s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let unread = client.call("echo", echo.clone()).await;
    assert_eq!(unread["content"][0]["text"], "hello", "no caller had received it: {unread}");
    assert!(unread["_meta"]["outlast/replayed"].is_null(), "{unread}");
    assert_eq!(client.ended(&id).await["status"], "completed");
    let again = client.call("echo", echo).await;
    assert_ne!(again["taskId"], id.as_str(), "called twice on purpose");
    assert!(again["taskId"].is_string(), "{again}");
}

/// Promise 2: a failure that tasks/get has answered is not repeated; the same call starts another task.
#[tokio::test]
async fn promise_2_a_task_that_failed_is_asked_again() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    let mut client = Modern::with_tasks(&world);
    let mut ids = Vec::new();
    for _ in 0..2 {
        let created = client.call(DEEP, query("fail;delay_ms=0")).await;
        let id = created["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        assert_eq!(client.ended(&id).await["result"]["isError"], true);
        ids.push(id);
    }
    ids.dedup();
    assert_eq!((ids.len(), world.submits()), (2, 2));
}

#[tokio::test]
async fn unknown_and_foreign_tasks_cannot_be_distinguished() {
    let mut world = World::new().await;
    let mut client = Modern::with_tasks(&world);
    let created = client.call(DEEP, query("stuck")).await;
    let id = created["taskId"].as_str().unwrap().to_owned();
    world.set("OUTLAST_OWNER", "bob");
    let mut stranger = Modern::with_tasks(&world);
    let mut answers = Vec::new();
    for id in [id.as_str(), "0123456789abcdef0123456789abcdef", "../../etc/passwd", ""] {
        for method in ["tasks/get", "tasks/cancel"] {
            let answer = stranger.request(method, json!({ "taskId": id })).await;
            assert_eq!(answer["error"]["code"], -32602, "{answer}");
            answers.push(answer["error"].clone());
        }
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert_eq!(client.task(&id).await["status"], "working", "untouched");
}

/// Never offered to a client that does not declare it, and never under older revisions, whatever they declare.
#[tokio::test]
async fn only_who_declares_tasks_in_the_newest_revision_gets_one() {
    let world = World::new().await;
    let quick = || query("ok;words=60;delay_ms=0");
    let mut plain = Modern::of(&world, json!({}));
    let answer = plain.call(DEEP, quick()).await;
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");

    let mut legacy = world.spawn(&["serve"]);
    let hello = legacy
        .request(
            "initialize",
            json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "extensions": { TASKS: {} } },
                "clientInfo": { "name": "old", "version": "1" },
            }),
        )
        .await;
    assert!(hello["result"]["capabilities"].get("extensions").is_none(), "{hello}");
    legacy.notify("notifications/initialized", json!({})).await;
    let answer = legacy.call(DEEP, quick()).await;
    assert_eq!(answer["structuredContent"]["status"], "completed", "{answer}");
    let refused = legacy.request("tasks/get", json!({ "taskId": "x" })).await;
    assert!(refused["error"]["code"].is_i64(), "{refused}");
}

/// Start, poll, search and histories answer as they always do.
#[tokio::test]
async fn quick_calls_never_become_tasks() {
    let world = World::new().await;
    let mut client = Modern::with_tasks(&world);
    let messages = json!([{ "role": "user", "content": "why? [[sim:ok;words=60;delay_ms=0]]" }]);
    let started = client.call(START, json!({ "messages": messages })).await;
    let id = started["structuredContent"]["jobId"].clone();
    assert!(id.is_string(), "{started}");
    let polled = client.call(POLL, json!({ "jobId": id })).await;
    assert_eq!(polled["structuredContent"]["status"], "COMPLETED");
    let found = client.call("perplexity_search", query("ok;words=60;delay_ms=0")).await;
    assert_eq!(found["structuredContent"]["status"], "completed", "{found}");
}

/// J1: a check of citations is answered with a task, which ends with the answer of the call.
#[tokio::test]
async fn j1_a_check_of_citations_is_a_task() {
    let mut world = World::new().await;
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = crate::check::web::Web::serve();
    let mut client = Modern::with_tasks(&world);
    let text = format!("Lake Vostok is 250 km long [1].\n\n[1]: {}\n", web.url(1, "lakes"));
    let created = client.call("check_citations", json!({ "text": text })).await;
    assert_eq!(created["resultType"], "task", "{created}");
    let id = created["taskId"].as_str().unwrap().to_owned();
    let task = client.ended(&id).await;
    let shape = &task["result"]["structuredContent"];
    assert_eq!(shape["status"], "completed", "{task:#}");
    assert_eq!(shape["citationCheck"]["totals"]["supported"], 1, "{task:#}");
}
