//! The researcher as a configured provider: what it needs, what it costs, and what leaves this machine.

use serde_json::{Value, json};

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

/// Creates a world whose model, search engine and web are the simulator's.
async fn simulated(model_switches: &str) -> World {
    let mut world = World::new().await;
    let url = world.simulator.url().to_owned();
    world.set("OUTLAST_MODEL_URL", &format!("{url}/llm/{model_switches}/v1"));
    world.set("OUTLAST_MODEL", "scripted");
    world.set("OUTLAST_SEARCH_URL", &format!("{url}/searxng/-"));
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    world
}

/// K1, K7, K10: with a model and a search service, `--provider researcher` is enough. The steps are shown as they are
/// taken, and a check of the report finds every cited fact.
#[tokio::test]
async fn k1_the_researcher_answers_by_its_name_alone() {
    let world = simulated("-").await;
    let asked = ["research", "How efficient are heat pumps?", "--provider", "researcher", "--json"];
    let ran = world.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let job: Value = serde_json::from_str(&ran.stdout).unwrap();
    let body = &job["output"]["body"];
    let text = body["text"].as_str().unwrap();
    assert!(text.contains("## Summary") && text.contains("[1]"), "{text}");
    assert!(!body["sources"].as_array().unwrap().is_empty(), "{body}");
    let checked = world.run(&["check", job["id"].as_str().unwrap(), "--json"]).await;
    let check: Value = serde_json::from_str(&checked.stdout).unwrap();
    let totals = &check["totals"];
    assert_eq!((&totals["differs"], &totals["not_found"]), (&json!(0), &json!(0)), "{check}");
    assert!(totals["supported"].as_u64().unwrap() > 3, "{check}");
}

/// K10: the progress names the steps of the run.
#[tokio::test]
async fn k10_the_progress_names_the_steps_of_the_run() {
    let world = simulated("-").await;
    let asked = ["research", "How efficient are heat pumps?", "--provider", "researcher"];
    let ran = world.run(&asked).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for step in
        ["Planning the research", "Reading ", " pages", "Taking notes", "Writing section 1 of "]
    {
        assert!(ran.stderr.contains(step), "{step}: {}", ran.stderr);
    }
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
