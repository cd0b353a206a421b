//! Text from local documents leaves this machine only by a person's decision (P1): no MCP caller can move a
//! conversation with such text to another provider, in any way.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::http::client::{ANN, Served};
use crate::page::browser::Browser;
use crate::support::World;

const ASK: &str = "deep_research";
const FOLLOWUP: &str = "deep_research_followup";
/// A word that only the documents contain; the simulated vendor must not receive it.
const SECRET: &str = "heliotrope-93";
const NOTES: &str = "boiler room vault code?";
/// A question that the simulated vendor answers at once.
const ELSEWHERE: &str = "And elsewhere? [[sim:ok;words=60;delay_ms=0]]";

/// Creates a world with a library and Perplexity, and the tools that can name either.
async fn library_and_vendor() -> World {
    let mut world = World::new().await;
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    let notes = format!("# Boiler room\n\nThe vault code is {SECRET}.\n");
    std::fs::write(folder.join("notes.md"), notes).unwrap();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "library,perplexity");
    world.set("OUTLAST_TOOLS", "deep-research,jobs");
    world
}

/// Returns true if the vendor was sent text of the documents.
fn has_leaked(world: &World) -> bool {
    let requests = world.simulator.requests();
    requests.iter().any(|request| request.body.to_string().contains(SECRET))
}

/// Returns a conversation that the library began, by the command line.
async fn library_conversation(world: &World) -> String {
    let ran = world.run(&["research", NOTES, "--provider", "library", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    job["conversation"].as_str().unwrap().to_owned()
}

fn moving(id: &str) -> Value {
    json!({ "conversationId": id, "query": ELSEWHERE, "provider": "perplexity" })
}

fn assert_stays(result: &Value, id: &str) {
    assert_eq!(result["isError"], true, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("VALIDATION_ERROR: provider "), "{text}");
    let command = format!("`outlast research --follow-up {id} --provider perplexity \"...\"`");
    assert!(text.contains(&command), "{text}");
}

/// P1: no tool moves it in any mode, nor a task, nor the built-in workflow under its name.
#[tokio::test]
async fn p1_an_mcp_caller_cannot_move_a_conversation_that_holds_documents() {
    let mut world = library_and_vendor().await;
    let id = library_conversation(&world).await;
    for mode in ["false", "true", "auto"] {
        world.set("OUTLAST_ASYNC_RESEARCH", mode);
        let mut server = world.serve().await;
        assert_stays(&server.call(FOLLOWUP, moving(&id)).await, &id);
        let mut keyed = moving(&id);
        keyed["idempotency_key"] = json!(format!("move-{mode}"));
        assert_stays(&server.call(FOLLOWUP, keyed).await, &id);
        // A session's name is a label; it does not continue a conversation.
        let start = json!({ "workflow": "deep_research", "message": NOTES, "session_id": id });
        let started = server.call("start_job", start).await;
        assert_ne!(started["isError"], true, "{started}");
        // Without a provider the library answers.
        let stays = json!({ "conversationId": id, "query": format!("{NOTES} {mode}") });
        let stays = server.call(FOLLOWUP, stays).await;
        assert_eq!(stays["structuredContent"]["provider"], "library", "{stays}");
        let waits = json!({ "conversationIds": [id] });
        if mode != "false" {
            server.call("await_conversation_histories", waits).await;
        }
    }
    world.set("OUTLAST_ASYNC_RESEARCH", "false");
    let mut server = world.spawn(&["serve"]);
    let tasks = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let params = json!({ "name": FOLLOWUP, "arguments": moving(&id), "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": tasks,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
    }});
    assert_stays(&server.request("tools/call", params).await["result"], &id);
    drop(server);

    // No longer configured: still only the user can move it.
    world.set("OUTLAST_PROVIDERS", "perplexity");
    let mut server = world.serve().await;
    let refused = server.call(FOLLOWUP, json!({ "conversationId": id, "query": NOTES })).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("CONFIGURATION_ERROR: "), "{text}");
    assert!(text.contains("outlast research --follow-up") && !text.contains("provider: \""));
    assert_stays(&server.call(FOLLOWUP, moving(&id)).await, &id);
    assert_eq!((world.submits(), has_leaked(&world)), (0, false));
}

/// P1: an owner over HTTP is an MCP caller too.
#[tokio::test]
async fn p1_an_owner_over_http_cannot_move_documents_either() {
    let mut world = library_and_vendor().await;
    let served = Served::start(&mut world, &[]).await;
    let client = served.client(ANN);
    let first = client.call(ASK, json!({ "query": NOTES })).await;
    let id = first["conversationId"].as_str().unwrap().to_owned();
    let refused = client.ask(FOLLOWUP, moving(&id), json!({})).await.result().await;
    assert_stays(&refused["result"], &id);
    assert_eq!((world.submits(), has_leaked(&world)), (0, false));
}

/// P1: `library.agents_may_share` leaves the decision to the callers.
#[tokio::test]
async fn p1_agents_may_share_documents_if_the_configuration_says_so() {
    let mut world = library_and_vendor().await;
    let id = library_conversation(&world).await;
    world.set("OUTLAST_AGENTS_MAY_SHARE", "true");
    let mut server = world.serve().await;
    let moved = server.call(FOLLOWUP, moving(&id)).await;
    assert_eq!(moved["structuredContent"]["provider"], "perplexity", "{moved}");
    let text = moved["content"].to_string();
    assert!(text.contains("sent to perplexity"), "{text}");
    assert_eq!((world.submits(), has_leaked(&world)), (1, true));
}

/// Writes a conversation as an older server left it.
fn write_folder(world: &World, id: &str, model: &str, report: &str) {
    let folder: PathBuf = world.data_dir().join("conversation-logs").join(id);
    std::fs::create_dir_all(&folder).unwrap();
    let messages = json!([
        { "role": "user", "content": NOTES },
        { "role": "assistant", "content": report }
    ]);
    let file = json!({ "conversationId": id, "model": model, "messages": messages });
    std::fs::write(folder.join("conversation.json"), file.to_string()).unwrap();
}

/// P1: a conversation that was moved once, and a folder of an older server, are judged by their content.
#[tokio::test]
async fn p1_a_conversation_is_judged_by_what_it_holds_not_by_who_answered_last() {
    let mut world = library_and_vendor().await;
    // Moved by the user.
    let moved = library_conversation(&world).await;
    let command = ["research", ELSEWHERE, "--follow-up", &moved, "--provider", "perplexity"];
    let ran = world.run(&command).await;
    assert_eq!((ran.code, world.submits()), (Some(0), 1), "{ran:?}");
    // Its file, which may outlive the store, states the source of its text.
    let file = world.data_dir().join("conversation-logs").join(&moved).join("conversation.json");
    let file: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(file["provider"], "library", "{file}");
    // A folder whose last answer was Perplexity's.
    let note = "*The text above is extracted word for word from the library's own files; no model wrote it.";
    let report = format!("The vault code is {SECRET}.\n\n---\n\n{note} Searched: 1 passage.*");
    let mixed = "20251031-1761930000000";
    write_folder(&world, mixed, "sonar-deep-research", &report);
    // A folder of the library that the user moved: its first stored turn is Perplexity's.
    let folder = "20251031-1761930000001";
    write_folder(&world, folder, "library (extractive)", &report);
    let command = ["research", ELSEWHERE, "--follow-up", folder, "--provider", "perplexity"];
    let ran = world.run(&command).await;
    assert_eq!((ran.code, world.submits()), (Some(0), 2), "{ran:?}");
    let mut server = world.serve().await;
    for id in [moved.as_str(), mixed, folder] {
        assert_stays(&server.call(FOLLOWUP, moving(id)).await, id);
    }
    assert_eq!(world.submits(), 2);
    drop(server);

    // Tools that cannot name a provider ask the library, too.
    world.set("OUTLAST_TOOLS", "research");
    let mut server = world.serve().await;
    for (id, tool) in [
        (folder, "perplexity_deep_research_followup"),
        (mixed, "perplexity_search_followup"),
        (moved.as_str(), "perplexity_search_followup"),
    ] {
        let stays = server.call(tool, json!({ "conversationId": id, "query": NOTES })).await;
        let model = &stays["structuredContent"]["modelUsed"];
        assert_eq!(model, "library (extractive)", "{tool}: {stays}");
    }
    assert_eq!(world.submits(), 2);
}

/// P1: the page sends documents to another provider only after it has asked, even if the question is free of charge.
#[tokio::test]
async fn p1_the_page_asks_before_documents_are_sent() {
    let mut world = library_and_vendor().await;
    let served = Served::start(&mut world, &[]).await;
    let client = served.client(ANN);
    let first = client.call(ASK, json!({ "query": NOTES })).await;
    let id = first["conversationId"].as_str().unwrap().to_owned();
    let browser = Browser::signed_in(served.address, ANN).await;
    let shown = browser.get(&format!("/ui/conversations/{id}")).await.body;
    let form = shown.split("<select name=\"provider\">").nth(1).unwrap();
    assert!(form.starts_with("<option>library</option><option>perplexity</option>"), "{form}");
    let question = "Elsewhere? [[sim:fail]]";
    let mut fields = vec![
        ("conversation", id.as_str()),
        ("question", question),
        ("provider", "perplexity"),
        ("confirmed", "yes"),
    ];
    // A confirmation of the price, or of another provider, is not a confirmation of this.
    for share in ["", "library", "openai"] {
        let mut fields = fields.clone();
        fields.push(("share", share));
        let asked = browser.post("/ui/ask", &fields).await;
        assert_eq!(asked.status, 200, "{}", asked.body);
        let said = "Text from your local documents, which this conversation holds, will be sent to perplexity.";
        assert!(asked.body.contains(said), "{}", asked.body);
        assert!(asked.body.contains("name=\"share\" value=\"perplexity\""), "{}", asked.body);
    }
    assert_eq!(world.submits(), 0);
    fields.push(("share", "perplexity"));
    let job = browser.post("/ui/ask", &fields).await.location.unwrap();
    browser.until(&job, "state failed").await;
    assert!(has_leaked(&world), "the user has agreed");

    // A retry sends them again, and asks again.
    let submits = world.submits();
    let retry = format!("{job}/retry");
    for fields in [vec![], vec![("confirmed", "yes"), ("word", "again")]] {
        let asked = browser.post(&retry, &fields).await;
        assert_eq!(asked.status, 200, "{}", asked.body);
        assert!(asked.body.contains("will be sent to perplexity"), "{}", asked.body);
    }
    assert_eq!(world.submits(), submits);
    let agreed = [("confirmed", "yes"), ("word", "again"), ("share", "perplexity")];
    assert_eq!(browser.post(&retry, &agreed).await.status, 303);
}

/// P1: a command on the command line is the user's consent, and its output names the documents that it sends.
#[tokio::test]
async fn p1_a_retry_on_the_command_line_says_that_documents_are_sent() {
    let world = library_and_vendor().await;
    let id = library_conversation(&world).await;
    let question = "Elsewhere? [[sim:fail]]";
    let moved = ["research", question, "--follow-up", &id, "--provider", "perplexity", "--json"];
    let ran = world.run(&moved).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let listed = world.run(&["jobs", "list", "--state", "failed", "--json"]).await;
    let listed: Value =
        serde_json::from_str(&listed.stdout).unwrap_or_else(|_| panic!("{listed:?}"));
    let job = listed["jobs"][0]["id"].as_str().or(listed[0]["id"].as_str()).unwrap().to_owned();
    let ran = world.run(&["jobs", "retry", &job, "--again"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stderr.contains("text from local documents is sent to perplexity"), "{ran:?}");
}
