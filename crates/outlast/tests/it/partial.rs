//! G8: the text of a report that is being written can be read, and is removed at its end. G9: the vendor's statement
//! about a failed run is quoted.

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::{World, finished, running, start};

/// A run that writes for twelve seconds, and one that writes for longer than any test lasts.
const SLOW: &str = "ok;searches=1;words=3000;delay_ms=240000";
const ENDLESS: &str = "ok;searches=1;words=6000;delay_ms=6000000";

/// Reads until `read` returns something.
pub(crate) async fn soon<T>(what: &str, mut read: impl AsyncFnMut() -> Option<T>) -> T {
    let reading = async {
        loop {
            if let Some(found) = read().await {
                return found;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), reading)
        .await
        .unwrap_or_else(|_| panic!("never: {what}"))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

/// Asks in a conversation and returns its id.
async fn asked(server: &mut McpProcess, scenario: &str) -> String {
    let query = format!("Why is the sky blue? [[sim:{scenario}]]");
    let queued = server.call("perplexity_deep_research", json!({ "query": query })).await;
    queued["structuredContent"]["conversationId"].as_str().unwrap().to_owned()
}

async fn history(server: &mut McpProcess, id: &str) -> Value {
    let arguments = json!({ "conversationId": id });
    server.call("get_conversation_history", arguments).await["structuredContent"].clone()
}

/// G8: history has the growing text; it is not a message, not in the files, and removed at the end.
async fn history_has_the_text_so_far(mut world: World) {
    world.set("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "true");
    world.set("CONVERSATION_LOGS_DIR", world.data_dir().join("logs").to_str().unwrap());
    let mut server = world.serve().await;
    let ending = asked(&mut server, SLOW).await;
    let first =
        soon("the text so far", async || text(&history(&mut server, &ending).await["partial"]))
            .await;

    let id = asked(&mut server, ENDLESS).await;
    let begun = soon("its text", async || text(&history(&mut server, &id).await["partial"])).await;
    let partial = soon("more of it", async || {
        let grown = text(&history(&mut server, &id).await["partial"]);
        grown.filter(|text| text.len() > begun.len())
    })
    .await;
    assert!(partial.starts_with(&begun), "{begun:?} {partial:?}");
    let shown = server.call("get_conversation_history", json!({ "conversationId": id })).await;
    assert_eq!(shown["structuredContent"]["messageCount"], 1, "it is no message: {shown}");
    let reported = shown["content"][0]["text"].as_str().unwrap();
    assert!(
        reported.contains("**Partial text so far (being written; not the report):**"),
        "{reported}"
    );
    let many = json!({ "conversationIds": [id] });
    let batch = server.call("get_conversation_histories", many).await;
    let batched = &batch["structuredContent"][&id]["conversation"]["partial"];
    assert!(batched.as_str().unwrap().starts_with(&begun), "{batch}");
    let words: String = begun.chars().skip(10).take(60).collect();
    let files: Vec<_> =
        std::fs::read_dir(world.data_dir().join("logs").join(&id)).unwrap().flatten().collect();
    assert!(files.len() > 1, "{files:?}");
    for file in files {
        assert!(!std::fs::read_to_string(file.path()).unwrap().contains(&words), "{file:?}");
    }

    let ended = soon("the end", async || {
        let shown = history(&mut server, &ending).await;
        (shown["status"] == "completed").then_some(shown)
    })
    .await;
    assert_eq!(ended.get("partial"), None, "{ended}");
    let report = ended["messages"][1]["content"].as_str().unwrap();
    assert!(report.starts_with(&first), "it was the beginning of the report");
}

#[tokio::test]
async fn g8_history_has_the_text_so_far_until_the_end() {
    history_has_the_text_so_far(World::new().await).await;
}

#[tokio::test]
async fn g8_history_has_the_text_so_far_on_a_database() {
    history_has_the_text_so_far(World::on_postgres().await).await;
}

/// G8: get_job and `jobs show` have it; a cancel removes it; it contains no thinking.
#[tokio::test]
async fn g8_get_job_and_jobs_show_have_the_text_so_far_without_thinking() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "jobs");
    let mut server = world.serve_with(&["--poll-timeout", "1"]).await;
    let message = format!("Why? [[sim:{ENDLESS};thinks]]");
    let arguments = json!({ "workflow": "deep_research", "message": message });
    let started = server.structured("start_job", arguments).await;
    let id = started["job_id"].as_str().unwrap().to_owned();
    assert_eq!(started.get("partial"), None);
    let get = json!({ "job_id": id, "wait_seconds": 0 });
    let seen = soon("the text so far", async || {
        let got = server.structured("get_job", get.clone()).await;
        text(&got["partial"]).map(|text| (text, got))
    })
    .await;
    let (partial, got) = seen;
    assert_eq!(
        (&got["status"], &got["result"], &got["done"]),
        (&json!("running"), &json!(null), &json!(false))
    );
    assert!(!partial.contains("think>"), "{partial}");
    let shown = world.shown(&id).await;
    assert!(shown["partial"].as_str().unwrap().starts_with(&partial), "{shown}");
    let printed = world.run(&["jobs", "show", &id]).await.stdout;
    assert!(printed.contains("Partial text so far (being written; not the report)"), "{printed}");
    let cancelled = server.structured("cancel_job", json!({ "job_id": id })).await;
    assert_eq!(cancelled["status"], "cancelled", "{cancelled}");
    assert_eq!(cancelled.get("partial"), None, "{cancelled}");
    assert_eq!(world.shown(&id).await["partial"], json!(null));
}

/// G8: after kill -9 in the middle of the writing, the next attempt shows its own text, and the report is whole.
#[tokio::test]
async fn g8_a_killed_worker_leaves_no_text_behind_that_outlives_the_end() {
    let world = World::new().await;
    let mut doomed = world.serve().await;
    let id = start(&mut doomed, SLOW).await;
    running(&world, &id).await;
    soon("the text so far", async || text(&world.shown(&id).await["partial"])).await;
    doomed.kill().await;
    let mut server = world.serve().await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.shown(&id).await["partial"], json!(null));
    assert_eq!(world.submits(), 1);
}

/// G9: the reason of a failed run and of a refusal is quoted to clients and in `jobs show`, without keys.
#[tokio::test]
async fn g9_the_vendors_own_reason_is_quoted() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    let mut server = world.serve().await;
    let key = "pplx-0123456789abcdef0123456789abcdef";
    let cases = [
        (
            "fail;delay_ms=0".to_owned(),
            "EXECUTION_ERROR: the provider's run failed; the provider says: \"the run failed: server_error\"",
        ),
        (
            format!("http;status=400;secret={key}"),
            "EXECUTION_ERROR: the provider rejected the request (HTTP 400)",
        ),
    ];
    for (scenario, expected) in cases {
        let id = start(&mut server, &scenario).await;
        let error = finished(&mut server, &id).await["error"].as_str().unwrap().to_owned();
        assert!(error.starts_with(expected), "{error}");
        assert!(error.contains("; the provider says: \"") && error.ends_with('"'), "{error}");
        assert!(!error.contains(key), "{error}");
        let shown = world.shown(&id).await;
        assert!(error.ends_with(shown["failures"][0]["message"].as_str().unwrap()), "{shown}");
    }
}
