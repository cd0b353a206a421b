//! The researcher as a configured provider: what it needs, what it costs, and what leaves this machine.

use serde_json::json;

use crate::support::World;

const ASK: &str = "deep_research";

/// Creates a world with a folder of documents and a researcher that has these variables too.
async fn world(variables: &[(&str, &str)]) -> World {
    let mut world = World::new().await;
    let folder = world.data_dir().parent().unwrap().join("documents");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("notes.md"), "# Boiler\n\nThe vault code is 93.\n").unwrap();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "researcher,library");
    world.set("OUTLAST_MODEL", "m");
    for (name, value) in variables {
        world.set(name, value);
    }
    world
}

/// G1: a setting that is missing is named, with the way to set it.
#[tokio::test]
async fn g1_a_researcher_without_a_model_is_refused_by_name() {
    let mut world = world(&[]).await;
    let ran = world.run(&["research", "why?"]).await;
    assert!(ran.code != Some(0), "{ran:?}");
    assert!(ran.stderr.contains("researcher, which has no model server"), "{ran:?}");
    assert!(ran.stderr.contains("OUTLAST_MODEL_URL"), "{ran:?}");
    world.set("OUTLAST_MODEL_URL", "http://127.0.0.1:9/v1");
    let ran = world.run(&["research", "why?"]).await;
    assert!(ran.stderr.contains("OUTLAST_SEARCH_URL"), "{ran:?}");
}

/// K3: without prices a spending limit refuses the run.
#[tokio::test]
async fn k3_an_unknown_price_under_a_limit_is_refused() {
    let mut world = world(&[
        ("OUTLAST_MODEL_URL", "https://models.example/v1"),
        ("OUTLAST_SEARCH_URL", "http://127.0.0.1:9"),
    ])
    .await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "5");
    let ran = world.run(&["research", "why?", "--provider", "researcher"]).await;
    assert!(ran.code != Some(0) && ran.stderr.contains("is not known beforehand"), "{ran:?}");
}

/// K9: an MCP caller cannot make the researcher send text of documents to a model on another machine.
#[tokio::test]
async fn k9_an_mcp_caller_cannot_send_documents_to_a_remote_model() {
    let mut world = world(&[
        ("OUTLAST_MODEL_URL", "https://models.example/v1"),
        ("OUTLAST_SEARCH", "library"),
        ("OUTLAST_TOOLS", "deep-research"),
    ])
    .await;
    let asked = json!({ "query": "What is the vault code?" });
    let mut server = world.serve().await;
    let refused = server.call(ASK, asked.clone()).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("VALIDATION_ERROR: provider must not be `researcher`"), "{text}");
    assert!(text.contains("`outlast research --provider researcher \"...\"`"), "{text}");
    drop(server);

    // A conversation of the library is not sent to a model that also asks the web.
    world.set("OUTLAST_SEARCH", "searxng");
    world.set("OUTLAST_SEARCH_URL", "http://127.0.0.1:9");
    let mut server = world.serve().await;
    let library = json!({ "query": "What is the vault code?", "provider": "library" });
    let first = server.call(ASK, library).await;
    let id = first["structuredContent"]["conversationId"].as_str().unwrap().to_owned();
    let moved = json!({ "conversationId": id, "query": "And now?", "provider": "researcher" });
    let refused = server.call("deep_research_followup", moved).await;
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("VALIDATION_ERROR: provider must not be `researcher`"), "{text}");
    assert!(text.contains(&format!("--follow-up {id} --provider researcher")), "{text}");
}

/// The keys are never shown.
#[tokio::test]
async fn p2_the_keys_of_the_researcher_are_redacted() {
    let world = world(&[
        ("OUTLAST_MODEL_URL", "https://models.example/v1"),
        ("OUTLAST_MODEL_API_KEY", "sk-heliotrope"),
        ("OUTLAST_SEARCH_API_KEY", "sk-cerulean"),
        ("OUTLAST_SEARCH_URL", "http://127.0.0.1:9"),
    ])
    .await;
    for command in [&["config", "show"][..], &["config", "show", "--json"], &["doctor"]] {
        let ran = world.run(command).await;
        let all = format!("{}{}", ran.stdout, ran.stderr);
        assert!(!all.contains("heliotrope") && !all.contains("cerulean"), "{all}");
    }
}
