//! The listed tools, and the answer of a start.

use std::collections::HashSet;

use serde_json::{Value, json};

use super::{Shop, ended, ran, start};
use crate::support::assert_refused;

async fn names(server: &mut outlast_testkit::mcp_process::McpProcess) -> Vec<String> {
    let listed = server.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

const JOBS: [&str; 4] = ["start_job", "get_job", "cancel_job", "list_jobs"];

/// E1: on, the four tools replace the workflows' own; off, each workflow is a tool.
#[tokio::test]
async fn e1_async_takes_the_place_of_blocking_tools() {
    let mut shop = Shop::new().await;
    let mut server = shop.serve().await;
    assert_eq!(names(&mut server).await, JOBS, "--tools jobs implies --async");
    let mut server = shop.serve_with(&["--async", "--tools", "research-jobs"]).await;
    let both = names(&mut server).await;
    assert!(both.len() == 7 && both[3..] == JOBS, "--async adds jobs to --tools: {both:?}");
    let mut server = shop.serve_with(&["--tools", "research-jobs"]).await;
    let off = names(&mut server).await;
    assert_eq!(off[3..], ["echo", "wait", "fail", "given", "shell"]);
    shop.world.set("OUTLAST_ASYNC", "1");
    let mut server = shop.serve_with(&["--tools", "research-jobs"]).await;
    assert_eq!(names(&mut server).await[3..], JOBS);
}

/// E1: the switch applies to the jobs set alone. Without a provider there is no deep research, and the rest works.
#[tokio::test]
async fn e1_without_a_provider_deep_research_is_not_listed() {
    let mut shop = Shop::new().await;
    let workflows = |listed: &Value| -> Vec<String> {
        let tools = listed["result"]["tools"].as_array().unwrap();
        let workflow = &tools[0]["inputSchema"]["properties"]["workflow"]["enum"];
        serde_json::from_value(workflow.clone()).unwrap()
    };
    let mut server = shop.serve().await;
    let listed = server.request("tools/list", json!({})).await;
    assert_eq!(workflows(&listed), ["deep_research", "echo", "wait", "fail", "given", "shell"]);
    shop.world.unset("PERPLEXITY_API_KEY");
    let mut server = shop.serve().await;
    let listed = server.request("tools/list", json!({})).await;
    assert_eq!(workflows(&listed), ["echo", "wait", "fail", "given", "shell"]);
    assert_eq!(ran(&mut server, "echo", "hi").await["status"], "completed");
    let refused =
        server.call("start_job", json!({ "workflow": "deep_research", "message": "x" })).await;
    assert_refused(&refused, "VALIDATION_ERROR", false);
    let said = shop.refused(&["--tools", "jobs", "--workflow", "deep_research"]).await;
    assert!(said.contains("needs a research provider"), "{said}");
}

/// E2: the answer comes at once, durable, with an id that the other tools accept.
#[tokio::test]
async fn e2_a_start_answers_at_once_with_an_id() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let started = server.structured("start_job", json!({ "workflow": "wait" })).await;
    let id = started["job_id"].as_str().unwrap().to_owned();
    assert!(id.len() == 32 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')), "{id}");
    assert_eq!(started["status"], "queued");
    assert_eq!(started["user_message"], "The job has started.");
    shop.go();
    assert_eq!(ended(&mut server, &id).await["result"]["content"][0]["text"], "gone\n");
}

/// E2: one workflow, its own tool, and no argument to choose another.
#[tokio::test]
async fn e2_a_fixed_workflow_has_its_own_start() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--workflow", "echo"]).await;
    assert_eq!(names(&mut server).await, ["start_echo", "get_job", "cancel_job", "list_jobs"]);
    let started = server.structured("start_echo", json!({ "message": "hi" })).await;
    let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
    assert_eq!(got["result"]["content"][0]["text"], "hi");
    let refused = server.call("start_echo", json!({ "workflow": "fail" })).await;
    assert_refused(&refused, "VALIDATION_ERROR", false);
    let unknown =
        server.request("tools/call", json!({ "name": "start_job", "arguments": {} })).await;
    assert_eq!(unknown["error"]["code"], -32602);
    let said = shop.refused(&["--tools", "jobs", "--workflow", "nope"]).await;
    assert!(said.contains("--workflow") && said.contains("deep_research, echo"), "{said}");
}

/// E2: a workflow may not have the name of a listed tool, nor of the tool that would start it.
#[tokio::test]
async fn e2_a_name_that_is_a_tools_is_refused() {
    let cases: [(&str, &[&str]); 4] = [
        ("get_job", &["--tools", "jobs"]),
        ("job", &["--tools", "jobs"]),
        ("perplexity_research_poll", &["--tools", "research-jobs"]),
        ("perplexity_search", &["--tools", "research", "--async"]),
    ];
    for (name, flags) in cases {
        let workflow = format!("[[workflow]]\nname = \"{name}\"\ncommand = [\"cat\"]\n");
        let said = Shop::with(&workflow).await.refused(flags).await;
        assert!(said.contains(&format!("`{name}` clashes with the tool")), "{said}");
    }
}

/// E2: the arguments of a start; each mistake names its field.
#[tokio::test]
async fn e2_bad_arguments_name_the_field() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let cases = [
        (json!({}), "workflow is missing"),
        (json!({ "workflow": 7 }), "workflow must be a string"),
        (
            json!({ "workflow": "/bin/sh" }),
            "workflow `/bin/sh` is not known; there is: deep_research, echo",
        ),
        (json!({ "workflow": "echo", "command": ["rm"] }), "command is not known"),
        (json!({ "workflow": "echo", "message": 7 }), "message"),
        (json!({ "workflow": "echo", "arguments": [] }), "arguments"),
        (json!({ "workflow": "echo", "session_id": "a\nb" }), "session_id"),
        (json!({ "workflow": "echo", "session_id": "" }), "session_id"),
        (json!({ "workflow": "echo", "priority": 101 }), "priority must be -100 to 100"),
        (json!({ "workflow": "echo", "idempotency_key": "" }), "idempotency_key"),
        (
            json!({ "workflow": "echo", "arguments": { "a": "x".repeat(200_000) } }),
            "arguments must have",
        ),
        (json!({ "workflow": "deep_research" }), "message is missing"),
        (json!({ "workflow": "deep_research", "message": " " }), "message must not be empty"),
        (
            json!({ "workflow": "deep_research", "message": "x", "arguments": { "depth": 1 } }),
            "arguments.depth is not known",
        ),
    ];
    for (arguments, expected) in cases {
        let result = server.call("start_job", arguments.clone()).await;
        assert_refused(&result, "VALIDATION_ERROR", false);
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("VALIDATION_ERROR: {expected}")), "{arguments}: {text}");
    }
    let listed = server.structured("list_jobs", json!({})).await;
    assert_eq!(listed["jobs"], json!([]), "nothing was started");
}

/// E9: one key, one job; other input under it is a conflict.
#[tokio::test]
async fn e9_an_idempotency_key_names_one_job_of_this_set() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let ask =
        |message: &str| json!({ "workflow": "echo", "message": message, "idempotency_key": "k" });
    let first = server.structured("start_job", ask("a")).await;
    let id = first["job_id"].as_str().unwrap().to_owned();
    ended(&mut server, &id).await;
    let again = server.structured("start_job", ask("a")).await;
    assert_eq!((&again["job_id"], &again["status"]), (&json!(id), &json!("completed")));
    assert_eq!(again["result"]["content"][0]["text"], "a", "in its present state");
    assert_refused(&server.call("start_job", ask("b")).await, "IDEMPOTENCY_CONFLICT", false);
}

/// E2: the higher priority runs first.
#[tokio::test]
async fn e2_priority_decides_the_order() {
    let shop = Shop::with(
        r#"
[[workflow]]
name = "note"
command = ["/bin/sh", "-c", "cat >> order; while [ ! -e go ]; do sleep 0.01; done"]
"#,
    )
    .await;
    let mut server = shop.serve_with(&["--tools", "jobs", "--concurrency", "1"]).await;
    let mut ids = vec![start(&mut server, "note", "first ").await];
    crate::support::eventually("the first runs", || shop.file("order").exists()).await;
    for (priority, message) in [(0, "middle "), (-5, "last "), (5, "second ")] {
        let asked = json!({ "workflow": "note", "message": message, "priority": priority });
        let started = server.structured("start_job", asked).await;
        ids.push(started["job_id"].as_str().unwrap().to_owned());
    }
    shop.go();
    for id in &ids {
        ended(&mut server, id).await;
    }
    let order = std::fs::read_to_string(shop.file("order")).unwrap();
    assert_eq!(order, "first second middle last ");
}

/// E5, tools.md: own jobs, newest first, in pages, with their session.
#[tokio::test]
async fn e5_jobs_are_listed_newest_first_with_their_session() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let asked = json!({ "workflow": "echo", "message": "a", "session_id": "tuesday" });
    let first = server.structured("start_job", asked).await["job_id"].as_str().unwrap().to_owned();
    ended(&mut server, &first).await;
    let failed = start(&mut server, "fail", "").await;
    ended(&mut server, &failed).await;
    let page = server.structured("list_jobs", json!({ "limit": 1 })).await;
    assert_eq!(page["jobs"][0]["job_id"], failed.as_str());
    assert_eq!(
        page["jobs"][0]["progress"],
        json!({ "percent": null, "step": "failed", "message": "Job failed" })
    );
    let next = server.structured("list_jobs", json!({ "cursor": page["next_cursor"] })).await;
    let job = &next["jobs"][0];
    assert_eq!((&job["job_id"], &job["session_id"]), (&json!(first), &json!("tuesday")));
    assert_eq!((&job["workflow"], &job["status"]), (&json!("echo"), &json!("completed")));
    assert_eq!(next["next_cursor"], Value::Null);
    let only = server.structured("list_jobs", json!({ "status": "failed" })).await;
    assert_eq!(only["jobs"].as_array().unwrap().len(), 1);
    let ids: HashSet<&str> = [first.as_str(), failed.as_str()].into();
    let shown = shop.world.run(&["jobs", "list", "--json"]).await;
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let seen = shown["jobs"].as_array().unwrap().iter().map(|job| job["id"].as_str().unwrap());
    assert_eq!(seen.collect::<HashSet<_>>(), ids, "the command line sees the same");
    let short = shop.world.run(&["jobs", "show", &failed[..8]]).await;
    assert!(
        short.stdout.contains("exit code 3") && short.stdout.contains("secret words"),
        "{short:?}"
    );
    let done = shop.world.run(&["jobs", "show", &first]).await.stdout;
    assert!(done.ends_with("\n\na\n"), "the result as it was written: {done}");
    assert!(done.contains("workflow  echo") && !done.contains("tokens"), "{done}");
}

/// tools.md: each has a title, annotations and both schemas, and none is long.
#[tokio::test]
async fn e4_the_tools_are_listed_with_their_schemas() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let listed = server.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    for tool in tools {
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{tool}");
        assert_eq!(tool["outputSchema"]["type"], "object", "{tool}");
        assert!(tool["title"].is_string() && tool["annotations"].is_object(), "{tool}");
        assert!(!tool.to_string().contains("\"format\""), "formats make validators warn");
        let job_id = &tool["inputSchema"]["properties"]["job_id"];
        assert!(job_id.get("pattern").is_none() && job_id.get("maxLength").is_none(), "E7");
    }
    let bytes = crate::support::bytes_for_a_model(&listed["result"]["tools"]);
    assert!(bytes < 8_600, "tools/list is sent with every conversation: {bytes} bytes");
}
