//! L2, L3: notifications about resources and tasks for clients that subscribed.

use super::*;

/// Reads messages until one has this method; returns its params.
async fn next(server: &mut McpProcess, method: &str) -> Value {
    loop {
        let message = server.message().await.expect("a message");
        if message["method"] == method {
            return message["params"].clone();
        }
    }
}

/// L2: a client of the older era is notified when the subscribed report and job change, until it unsubscribes.
#[tokio::test]
async fn l2_an_older_client_is_notified_of_a_report() {
    let mut world = World::new().await;
    world.set("OUTLAST_ASYNC_RESEARCH", "true");
    let mut server = world.serve().await;
    let query = json!({ "query": "Why? [[sim:ok;words=60;hold;delay_ms=0]]" });
    let queued = server.call(DEEP, query).await["structuredContent"].clone();
    let uri = uri_of(&queued["conversationId"]);
    let subscribed = server.request("resources/subscribe", json!({ "uri": uri })).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    crate::support::eventually("it runs", || world.submits() == 1).await;
    world.simulator.release();
    loop {
        let updated = next(&mut server, "notifications/resources/updated").await;
        assert_eq!(updated["uri"], uri, "{updated}");
        let read = server.request("resources/read", json!({ "uri": uri })).await;
        if read["result"]["contents"][0]["text"].as_str().unwrap().contains("## Sources") {
            break;
        }
    }
    let ended = server.request("resources/unsubscribe", json!({ "uri": uri })).await;
    assert_eq!(ended["result"], json!({}), "{ended}");
}

/// L2: the newest revision has `subscriptions/listen` in place of these two methods.
#[tokio::test]
async fn l2_the_newest_revision_does_not_know_the_older_subscriptions() {
    let mut server = World::new().await.spawn(&["serve"]);
    for method in ["resources/subscribe", "resources/unsubscribe"] {
        for mut params in [json!({ "uri": "outlast://jobs/x" }), json!({})] {
            params["_meta"] = modern(&json!({}));
            let refused = server.request(method, params).await;
            assert_eq!(refused["error"]["code"], -32601, "{refused}");
        }
    }
}

/// L2: `subscriptions/listen` with `taskIds` and resources: acknowledged with what exists, then the task until its result,
/// and the report. Over a pipe.
#[tokio::test]
async fn l2_a_client_that_listens_gets_the_task_and_the_report() {
    let mut world = World::new().await;
    world.set("OUTLAST_ASYNC_RESEARCH", "auto");
    let mut server = world.spawn(&["serve"]);
    let meta = modern(&json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } }));
    let query = json!({ "query": "Why? [[sim:ok;words=60;hold;delay_ms=0]]" });
    let call = json!({ "name": DEEP, "arguments": query, "_meta": meta });
    let task = server.request("tools/call", call).await["result"].clone();
    let id = task["taskId"].as_str().unwrap().to_owned();
    assert_eq!(
        task["_meta"]["outlast/wait"][3],
        json!(id),
        "L1: a task has the command too: {task}"
    );
    let job = format!("outlast://jobs/{id}");
    let invented = "0".repeat(32);
    let listen = server
        .send(
            "subscriptions/listen",
            json!({ "_meta": meta, "notifications": {
                "taskIds": [id, invented],
                "resourceSubscriptions": [job, "outlast://jobs/x"]
            } }),
        )
        .await;
    let acknowledged = next(&mut server, "notifications/subscriptions/acknowledged").await;
    let expected = json!({ "taskIds": [id], "resourceSubscriptions": [job] });
    assert_eq!(acknowledged["notifications"], expected, "{acknowledged}");
    let subscription = "io.modelcontextprotocol/subscriptionId";
    assert_eq!(acknowledged["_meta"][subscription], listen, "{acknowledged}");
    let first = next(&mut server, "notifications/tasks").await;
    assert_eq!((&first["taskId"], &first["status"]), (&json!(id), &json!("working")), "{first}");
    crate::support::eventually("it runs", || world.submits() == 1).await;
    world.simulator.release();
    let mut is_updated = false;
    loop {
        let message = server.message().await.expect("a message");
        let params = &message["params"];
        match message["method"].as_str() {
            Some("notifications/resources/updated") => {
                assert_eq!(params["uri"], job, "{message}");
                is_updated = true;
            }
            Some("notifications/tasks") if params["status"] == "completed" => {
                let text = params["result"]["structuredContent"]["rawResultText"].as_str();
                assert!(text.is_some_and(|text| text.len() > 100), "{message}");
                assert_eq!(params["_meta"][subscription], listen, "{message}");
                break;
            }
            _ => {}
        }
    }
    if !is_updated {
        next(&mut server, "notifications/resources/updated").await;
    }
    // A client that has not declared tasks gets none; the request ends when the server stops.
    let meta = modern(&json!({}));
    let params = json!({ "_meta": meta, "notifications": { "taskIds": [id] } });
    let other = server.send("subscriptions/listen", params).await;
    let acknowledged = next(&mut server, "notifications/subscriptions/acknowledged").await;
    assert_eq!(acknowledged["notifications"], json!({}), "{acknowledged}");
    server.close_input();
    let ended = server.answer(other).await.unwrap();
    assert_eq!(ended["result"]["resultType"], "complete", "{ended}");
    assert_eq!(ended["result"]["_meta"][subscription], other, "{ended}");
}

/// L2: over HTTP the notifications are on the stream of the request, and other owners' tasks are left out.
#[tokio::test]
async fn l2_over_http_only_ones_own_tasks_are_followed() {
    let mut world = World::new().await;
    world.set("OUTLAST_ASYNC_RESEARCH", "auto");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let capabilities = json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let query = json!({ "query": "Why? [[sim:ok;words=60;hold;delay_ms=0]]" });
    let call = json!({ "name": DEEP, "arguments": query });
    let task = ann.modern("tools/call", DEEP, call, &capabilities).await.result().await;
    let id = task["result"]["taskId"].clone();
    let filter = json!({ "notifications": { "taskIds": [id] } });
    let mut foreign = bob.modern("subscriptions/listen", "", filter.clone(), &capabilities).await;
    assert_eq!(foreign.event().await.unwrap()["params"]["notifications"], json!({}));
    let mut own = ann.modern("subscriptions/listen", "", filter, &capabilities).await;
    assert_eq!(own.event().await.unwrap()["params"]["notifications"], json!({ "taskIds": [id] }));
    crate::support::eventually("it runs", || world.submits() == 1).await;
    world.simulator.release();
    loop {
        let message = own.event().await.expect("a notification");
        assert_eq!(message["method"], "notifications/tasks", "{message}");
        if message["params"]["status"] == "completed" {
            break;
        }
    }
}

/// L2, J3: a client that subscribed to the check of a report is notified of a newer one.
#[tokio::test]
async fn l2_a_client_is_notified_of_a_newer_check() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let query = json!({ "query": "Why? [[sim:ok;words=60;delay_ms=0]]" });
    let asked = server.call(DEEP, query).await["structuredContent"].clone();
    let id = asked["conversationId"].clone();
    let check = json!({ "conversationId": id, "fresh": true });
    let first = server.call("check_citations", check.clone()).await;
    assert_eq!(first["structuredContent"]["status"], "completed", "{first}");
    let uri = format!("outlast://reports/{}/citations", id.as_str().unwrap());
    let subscribed = server.request("resources/subscribe", json!({ "uri": uri })).await;
    assert_eq!(subscribed["result"], json!({}), "{subscribed}");
    server.send("tools/call", json!({ "name": "check_citations", "arguments": check })).await;
    let updated = next(&mut server, "notifications/resources/updated").await;
    assert_eq!(updated["uri"], uri, "{updated}");
}
