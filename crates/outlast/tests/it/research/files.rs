//! The files in `conversation-logs` while tools are used, and those that older servers left there.

use std::path::PathBuf;

use super::*;

fn folder(world: &World, id: &str) -> PathBuf {
    world.data_dir().join("conversation-logs").join(id)
}

fn file(world: &World, id: &str, name: &str) -> Value {
    let text = std::fs::read_to_string(folder(world, id).join(name));
    serde_json::from_str(&text.unwrap_or_else(|error| panic!("{name}: {error}"))).unwrap()
}

/// C2, B4: before a submit is answered its three files exist, with their full content.
#[tokio::test]
async fn c2_the_files_exist_when_a_submit_is_answered() {
    let (world, mut client) = queueing().await;
    let queued = client.ok(DEEP, query("stuck")).await;
    let id = id_of(&queued);
    let path = folder(&world, &id);
    assert_eq!(queued.shape["conversationPath"].as_str(), path.to_str());
    let conversation = file(&world, &id, "conversation.json");
    let messages = conversation["messages"].as_array().unwrap();
    assert_eq!(messages.last().unwrap()["role"], "user");
    assert!(conversation["model"].is_string() && conversation["createdAt"].is_string());
    let status = file(&world, &id, "status.json");
    assert!(["pending", "in_progress"].contains(&status["status"].as_str().unwrap()));
    assert_eq!(status["toolName"], "perplexity_deep_research");
    assert_eq!(status["attempts"], 0);
    let job = file(&world, &id, "job.json");
    assert_eq!(job["params"]["reasoning_effort"], "medium");
    assert_eq!(job["priority"], 0);
    assert_eq!(job["jobId"], status["jobId"]);
}

/// C3, B14: the end appends the report, and `job.json` goes.
#[tokio::test]
async fn c3_completion_is_seen_in_the_files() {
    let (world, mut client) = queueing().await;
    let id = client.queue(QUICK).await;
    client.ended(&id).await;
    eventually("job.json goes", || !folder(&world, &id).join("job.json").exists()).await;
    let conversation = file(&world, &id, "conversation.json");
    assert_eq!(conversation["messages"].as_array().unwrap().last().unwrap()["role"], "assistant");
    assert_eq!(conversation["cost"]["kind"], "reported");
    let status = file(&world, &id, "status.json");
    assert_eq!(status["status"], "completed");
    assert!(status["completedAt"].is_string());
}

/// C5: a blocking call that fails leaves no folder; one that succeeds leaves its messages, and no pending job.
#[tokio::test]
async fn c5_a_blocking_call_leaves_files_only_when_it_succeeds() {
    let (world, mut client) = blocking().await;
    let (code, _) = client.refused(DEEP, query("http;status=400")).await;
    assert_eq!(code, "EXECUTION_ERROR");
    let answer = client.ok(DEEP, query(QUICK)).await;
    let id = id_of(&answer);
    eventually("conversation.json comes", || {
        folder(&world, &id).join("conversation.json").exists()
    })
    .await;
    let logs = world.data_dir().join("conversation-logs");
    let folders: Vec<_> = std::fs::read_dir(logs).unwrap().map(|entry| entry.unwrap()).collect();
    assert_eq!(folders.len(), 1, "{folders:?}");
    assert!(!folder(&world, &id).join("job.json").exists());
    assert!(!folder(&world, &id).join("status.json").exists());
}

/// tools.md: folders of older servers can be read and continued; their messages go upstream with the question.
#[tokio::test]
async fn an_older_servers_conversation_is_read_and_continued() {
    let (world, mut client) = blocking().await;
    let id = "20251031-1761930000000";
    std::fs::create_dir_all(folder(&world, id)).unwrap();
    let old = json!({
        "conversationId": id,
        "createdAt": "2025-10-31T17:00:00.000Z",
        "updatedAt": "2025-10-31T17:05:00.000Z",
        "messageCount": 3,
        "messages": [
            { "role": "system", "content": "Be thorough." },
            { "role": "user", "content": "What is a fjord?" },
            { "role": "assistant", "content": "A drowned valley." }
        ]
    });
    std::fs::write(folder(&world, id).join("conversation.json"), old.to_string()).unwrap();
    let history = client.history(id).await;
    assert_eq!(history.shape["messageCount"], 2);
    assert_eq!(history.shape["messages"][1]["content"], "A drowned valley.");
    assert_eq!(history.shape["status"], "completed");

    let answer = client.ok(SEARCH_FOLLOWUP, followup(id, QUICK)).await;
    assert_eq!(answer.shape["conversationId"], id);
    let asked = world.simulator.requests();
    let asked = asked.iter().rfind(|request| request.method == "POST").unwrap();
    assert!(asked.body.to_string().contains("A drowned valley."), "{}", asked.body);
    let history = client.history(id).await;
    assert_eq!(history.shape["messageCount"], 4, "nothing of it is lost");
    assert_eq!(history.shape["messages"][0]["content"], "What is a fjord?");
}

/// B17: folders of older servers are listed among the others, newest first, each once for any size of a page.
#[tokio::test]
async fn b17_folders_of_older_servers_are_listed_among_the_others() {
    let (world, mut client) = blocking().await;
    let old = |id: &str, question: &str, status: Option<&str>| {
        std::fs::create_dir_all(folder(&world, id)).unwrap();
        let messages = json!([
            { "role": "system", "content": "Be thorough." },
            { "role": "user", "content": question },
            { "role": "assistant", "content": "So." }
        ]);
        let file = json!({ "createdAt": "2025-10-31T17:00:00.000Z", "messages": messages });
        std::fs::write(folder(&world, id).join("conversation.json"), file.to_string()).unwrap();
        if let Some(status) = status {
            let file = json!({ "status": status });
            std::fs::write(folder(&world, id).join("status.json"), file.to_string()).unwrap();
        }
    };
    // Two before everything else, one after it, one that is damaged.
    old("20251031-1761930000000", "First?", None);
    old("20251031-1761930000001", "Second?", Some("failed"));
    old("20991031-4096000000000", "Last?", None);
    std::fs::create_dir_all(folder(&world, "20251031-1761930000002")).unwrap();
    std::fs::write(folder(&world, "20251031-1761930000002").join("conversation.json"), "{")
        .unwrap();
    let mut stored = Vec::new();
    for number in 0..3 {
        let question = json!({ "query": format!("Question {number}? [[sim:{QUICK}]]") });
        stored.push(id_of(&client.ok(SEARCH, question).await));
    }
    stored.reverse();
    let mut expected = vec!["20991031-4096000000000".to_owned()];
    expected.extend(stored.clone());
    expected.extend(["20251031-1761930000001", "20251031-1761930000000"].map(str::to_owned));
    for limit in 1..=7 {
        let mut found = Vec::new();
        let mut cursor = Value::Null;
        loop {
            let mut asked = json!({ "limit": limit });
            if cursor.is_string() {
                asked["cursor"] = cursor.clone();
            }
            let page = client.ok(LIST, asked).await.shape;
            let listed = page["conversations"].as_array().unwrap();
            assert!(listed.len() <= limit, "{page}");
            found.extend(listed.iter().map(|it| it["conversationId"].as_str().unwrap().to_owned()));
            cursor = page["nextCursor"].clone();
            if cursor.is_null() {
                break;
            }
        }
        assert_eq!(found, expected, "limit {limit}");
    }
    let failed = client.ok(LIST, json!({ "status": "failed" })).await.shape;
    let only = &failed["conversations"][0];
    assert_eq!(failed["conversations"].as_array().unwrap().len(), 1, "{failed}");
    assert_eq!((&only["title"], &only["messageCount"]), (&json!("Second?"), &json!(2)));
    // Once it is continued it is listed like any other.
    client.ok(SEARCH_FOLLOWUP, followup("20251031-1761930000000", QUICK)).await;
    let all = client.ok(LIST, json!({})).await.shape;
    let ids = all["conversations"].as_array().unwrap();
    let same = ids.iter().filter(|it| it["conversationId"] == "20251031-1761930000000");
    assert_eq!((same.count(), ids.len()), (1, 6), "{all}");
    let (code, _) = client.refused(LIST, json!({ "cursor": "1~x~y" })).await;
    assert_eq!(code, "VALIDATION_ERROR");
}

/// Scenario 94: a damaged folder is reported, and the server continues.
#[tokio::test]
async fn a_damaged_folder_is_named_and_harms_no_other() {
    let (world, mut client) = blocking().await;
    let id = "20251031-1761930000001";
    std::fs::create_dir_all(folder(&world, id)).unwrap();
    std::fs::write(folder(&world, id).join("conversation.json"), "{ broken").unwrap();
    let (code, _) = client.refused(HISTORY, json!({ "conversationId": id })).await;
    assert_eq!(code, "CONVERSATION_CORRUPTED");
    let answer = client.ok(SEARCH, query(QUICK)).await;
    client.history(answer.shape["conversationId"].as_str().unwrap()).await;
}
