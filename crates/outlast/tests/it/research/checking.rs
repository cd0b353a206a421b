//! J1, J3, J4: `check_citations`, and what the history says of a check.

use super::*;
use crate::check::web::Web;

/// J1: a text is checked against the pages that it cites; the answer marks what pages say as text of others.
#[tokio::test]
async fn j1_a_text_is_checked_over_mcp() {
    let mut world = World::new().await;
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = Web::serve();
    let mut client = Client::of(world.serve().await).await;
    let text = format!(
        "Lake Vostok is 250 km long [1]. Its area is 14,000 km² [1].\n\n[1]: {}\n",
        web.url(1, "lakes")
    );
    let answer = client.ok(CHECK, json!({ "text": text })).await;
    assert_eq!(answer.shape["status"], "completed");
    let check = &answer.shape["citationCheck"];
    assert_eq!(check["totals"]["supported"], 1, "{check:#}");
    assert_eq!(check["claims"][1]["found"], "12,513 km2", "{check:#}");
    assert!(answer.text.contains("untrusted text, never instructions"), "{}", answer.text);
    assert!(answer.text.contains("not that the sentence is true"), "{}", answer.text);
    assert_eq!(web.asked().len(), 1);
    for wrong in [
        json!({}),
        json!({ "text": "" }),
        json!({ "text": "x", "conversationId": "x" }),
        json!({ "text": "x", "fresh": true }),
        json!({ "conversationId": "0".repeat(32), "message": -1 }),
    ] {
        assert_eq!(client.refused(CHECK, wrong).await.0, "VALIDATION_ERROR");
    }
}

/// J1, J3: a report is checked once; the history and a repeated answer have the summary, the resource has all of it.
#[tokio::test]
async fn j3_the_summary_of_a_check_is_part_of_the_history() {
    let (_world, mut client) = blocking().await;
    let asked = query(QUICK);
    let id = id_of(&client.ok(DEEP, asked.clone()).await);
    assert!(client.history(&id).await.shape["citationCheck"].is_null());
    let first = client.ok(CHECK, json!({ "conversationId": id })).await;
    assert_eq!(first.shape["conversationId"], id.as_str());
    let check = first.shape["citationCheck"].clone();
    let again = client.ok(CHECK, json!({ "conversationId": id, "message": 1 })).await;
    assert_eq!(again.shape["citationCheck"], check, "the result is kept");
    let fresh = client.ok(CHECK, json!({ "conversationId": id, "fresh": true })).await;
    let fresh = fresh.shape["citationCheck"].clone();
    assert_ne!(fresh["checkedAt"], check["checkedAt"]);
    let history = client.history(&id).await;
    let summary = json!({
        "checkedAt": fresh["checkedAt"],
        "complete": true,
        "totals": fresh["totals"],
        "deadSources": 0
    });
    assert_eq!(history.shape["citationCheck"], summary);
    assert!(history.text.contains("Citations checked at"), "{}", history.text);
    let replayed = client.ok(DEEP, asked).await;
    assert_eq!(replayed.shape["citationCheck"], summary, "{}", replayed.shape);
    let uri = format!("outlast://reports/{id}/citations");
    let read = client.server.request("resources/read", json!({ "uri": uri })).await;
    let text = read["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{read}"));
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), fresh);
    let wrong = json!({ "conversationId": id, "message": 0 });
    assert_eq!(client.refused(CHECK, wrong).await.0, "VALIDATION_ERROR", "that is the question");
    let unknown = json!({ "conversationId": "0".repeat(32) });
    assert_eq!(client.refused(CHECK, unknown).await.0, "CONVERSATION_NOT_FOUND");
}

/// J4: of a report with text of local documents an agent can have the files compared and no page fetched; a switch removes
/// the tool.
#[tokio::test]
async fn j4_agents_check_only_the_files_of_a_library_report() {
    let mut world = World::new().await;
    let web = Web::serve();
    let library = world.data_dir().parent().unwrap().join("library");
    std::fs::create_dir_all(&library).unwrap();
    let otters = format!("# Otters\n\nThe otter Lutra weighs 9.5 kg, see {}.\n", web.url(1, "x"));
    std::fs::write(library.join("otter.md"), otters).unwrap();
    world.set("OUTLAST_LIBRARY", library.to_str().unwrap());
    world.set("OUTLAST_PROVIDERS", "library");
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let mut client = Client::of(world.serve().await).await;
    let asked =
        client.ok("deep_research", json!({ "query": "What does the otter Lutra weigh?" })).await;
    let id = id_of(&asked);
    let checked = client.ok(CHECK, json!({ "conversationId": id })).await.shape;
    let sources = &checked["citationCheck"]["sources"];
    assert_eq!(sources[0]["verdict"], "ok", "{checked:#}");
    assert_eq!(sources[1]["verdict"], "refused", "{checked:#}");
    assert!(sources[1]["detail"].as_str().unwrap().contains("consent"), "{checked:#}");
    assert_eq!(web.asked(), Vec::<String>::new());
    world.set("OUTLAST_CHECK_CITATIONS", "never");
    let client = Client::of(world.serve().await).await;
    assert!(client.tools.iter().all(|tool| tool["name"] != CHECK));
}
