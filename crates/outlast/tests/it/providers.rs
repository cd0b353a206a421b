//! Which provider answers (P1, P2): a conversation stays with the one that began it, and every text names the one that is
//! really asked.

use std::path::PathBuf;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use crate::support::World;

/// A sentence that only the documents hold; the simulated vendor must never see it.
const SECRET: &str = "The vault code of the boiler room is heliotrope-93";

/// The model that answers from a library.
const LIBRARY: &str = "library (extractive)";

/// A folder of documents, in the world's own folder.
fn library(world: &World) -> PathBuf {
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("notes.md"), format!("# Boiler room\n\n{SECRET}.\n")).unwrap();
    folder
}

/// A world whose only provider is a library.
async fn with_library() -> World {
    let mut world = World::new().await;
    let folder = library(&world);
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.unset("PERPLEXITY_API_KEY");
    world
}

async fn search(server: &mut McpProcess) -> String {
    let query = json!({ "query": "boiler room vault code?" });
    let answer = answered(server, "perplexity_search", query).await;
    assert!(answer["rawResultText"].as_str().unwrap().contains("heliotrope-93"), "{answer}");
    answer["conversationId"].as_str().unwrap().to_owned()
}

/// What a call that is no refusal answers.
async fn answered(server: &mut McpProcess, tool: &str, arguments: Value) -> Value {
    let result = server.call(tool, arguments).await;
    assert_ne!(result["isError"], true, "{tool}: {result}");
    result["structuredContent"].clone()
}

fn refused(result: &Value) -> String {
    assert_eq!(result["isError"], true, "{result}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// P1: what was answered from local documents stays on this machine, whatever key is set later.
#[tokio::test]
async fn p1_a_library_conversation_is_continued_by_the_library_after_a_key_was_set() {
    let mut world = with_library().await;
    let mut server = world.serve().await;
    let id = search(&mut server).await;
    drop(server);

    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let mut server = world.serve().await;
    for tool in ["perplexity_search_followup", "perplexity_deep_research_followup"] {
        let followup = json!({ "conversationId": id, "query": "and who knows the vault code?" });
        let answer = answered(&mut server, tool, followup).await;
        assert_eq!(answer["modelUsed"], LIBRARY, "{tool}: {answer}");
    }
    let ran = world.run(&["research", "and the boiler room?", "--follow-up", &id, "--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(job["output"]["model"], LIBRARY, "{job}");
    assert_eq!(world.submits(), 0, "the vendor has seen nothing");

    // A new question goes to the first in line, as before.
    let new = json!({ "query": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]" });
    answered(&mut server, "perplexity_search", new).await;
    assert_eq!(world.submits(), 1);
    assert!(!world.simulator.stats().runs[0].submitted_input.contains("heliotrope"));
}

/// P1: where its provider is no longer configured, the refusal names it and how to configure it.
#[tokio::test]
async fn p1_a_conversation_whose_provider_is_gone_is_refused_by_name() {
    let mut world = with_library().await;
    let mut server = world.serve().await;
    let local = search(&mut server).await;
    drop(server);
    world.unset("OUTLAST_LIBRARY");
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let mut server = world.serve().await;
    for tool in ["perplexity_search_followup", "perplexity_deep_research_followup"] {
        let followup = json!({ "conversationId": local, "query": "and who knows?" });
        let text = refused(&server.call(tool, followup).await);
        assert!(text.starts_with("CONFIGURATION_ERROR: "), "{text}");
        assert!(text.contains("library") && text.contains("OUTLAST_LIBRARY"), "{text}");
    }
    let ran = world.run(&["research", "and who knows?", "--follow-up", &local]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("library") && ran.stderr.contains("OUTLAST_LIBRARY"), "{ran:?}");
    assert_eq!(world.submits(), 0, "the vendor has seen nothing");

    let new = json!({ "query": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]" });
    let remote = answered(&mut server, "perplexity_search", new).await;
    let remote = remote["conversationId"].as_str().unwrap().to_owned();
    drop(server);
    world.unset("PERPLEXITY_API_KEY");
    world.set("OUTLAST_LIBRARY", library(&world).to_str().unwrap());
    let mut server = world.serve().await;
    let followup = json!({ "conversationId": remote, "query": "and at night?" });
    let text = refused(&server.call("perplexity_search_followup", followup).await);
    assert!(
        text.starts_with("CONFIGURATION_ERROR: ") && text.contains("PERPLEXITY_API_KEY"),
        "{text}"
    );
}

/// P1: moving a conversation takes the user's explicit word, and the answer says what was sent.
#[tokio::test]
async fn p1_moving_a_conversation_takes_a_word_and_says_what_was_sent() {
    let mut world = with_library().await;
    let ran = world.run(&["research", "boiler room vault code?", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = job["conversation"].as_str().unwrap().to_owned();
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let question = "and elsewhere? [[sim:ok;words=60;delay_ms=0]]";
    let moved = ["research", question, "--follow-up", &id, "--provider", "perplexity"];
    let ran = world.run(&moved).await;
    assert_eq!((ran.code, world.submits()), (Some(0), 1), "{ran:?}");
    assert!(ran.stderr.contains("earlier") && ran.stderr.contains("sent to perplexity"), "{ran:?}");

    // The next follow-up without that word stays here again.
    let ran = world.run(&["research", "and the boiler room?", "--follow-up", &id, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&job["output"]["model"], world.submits()), (&json!(LIBRARY), 1), "{ran:?}");
}

/// P1: a conversation that was moved to the library holds what the library said, and stays with it.
#[tokio::test]
async fn p1_a_conversation_that_the_library_has_answered_in_stays_here() {
    let mut world = World::new().await;
    let question = "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]";
    let ran = world.run(&["research", question, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = job["conversation"].as_str().unwrap().to_owned();
    assert_eq!(world.submits(), 1);
    let folder = library(&world);
    let folder = folder.to_str().unwrap();
    let moved = ["research", "boiler room vault code?", "--follow-up", &id, "--library", folder];
    let ran = world.run(&moved).await;
    assert!(ran.code == Some(0) && ran.stdout.contains("heliotrope-93"), "{ran:?}");
    world.set("OUTLAST_LIBRARY", folder);
    let mut server = world.serve().await;
    let followup = json!({ "conversationId": id, "query": "and who knows the vault code?" });
    let answer = answered(&mut server, "perplexity_search_followup", followup).await;
    assert_eq!((&answer["modelUsed"], world.submits()), (&json!(LIBRARY), 1), "{answer}");
}

/// P1: `--provider` chooses for a new question too, and is refused where that provider is not configured.
#[tokio::test]
async fn p1_a_provider_can_be_chosen_and_must_be_configured() {
    let mut world = with_library().await;
    let ran = world.run(&["research", "boiler room?", "--provider", "perplexity"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("PERPLEXITY_API_KEY"), "{ran:?}");
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    let ran = world.run(&["research", "boiler room?", "--provider", "library", "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&job["output"]["model"], world.submits()), (&json!(LIBRARY), 0), "{ran:?}");
    let folder = library(&world);
    let both =
        ["research", "x?", "--provider", "perplexity", "--library", folder.to_str().unwrap()];
    let ran = world.run(&both).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
}
