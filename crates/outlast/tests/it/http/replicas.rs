//! F5: several servers on one store, behind a proxy that sends every request to the next one.

use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};

use super::client::{ANN, BOB, Client, JSON, Reply, Served, call};
use crate::faults::hostile::{assert_error, malformed};
use crate::support::{POLL, START, World, question, running};

/// Sends every connection to the next server in turn, and skips one that accepts none.
struct RoundRobin {
    address: SocketAddr,
}

impl RoundRobin {
    async fn before(servers: Vec<SocketAddr>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let mut turns = servers.iter().cycle();
            while let Ok((mut client, _)) = listener.accept().await {
                let mut server = None;
                for address in turns.by_ref().take(servers.len()) {
                    server = TcpStream::connect(address).await.ok();
                    if server.is_some() {
                        break;
                    }
                }
                let mut server = server.expect("a server that listens");
                tokio::spawn(async move {
                    // Either side may hang up at any time.
                    drop(tokio::io::copy_bidirectional(&mut client, &mut server).await);
                });
            }
        });
        Self { address }
    }

    fn client(&self, token: &str) -> Client {
        Client { address: self.address, token: token.to_owned() }
    }
}

/// Starts two servers on one store, and a proxy before them.
async fn replicas(world: &mut World) -> (Served, Served, RoundRobin) {
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_TOOLS", "perplexity,research,research-jobs,jobs");
    world.set("OUTLAST_OWNER", "ann");
    let first = Served::start(world, &[]).await;
    let second = Served::start(world, &[]).await;
    let proxy = RoundRobin::before(vec![first.address, second.address]).await;
    (first, second, proxy)
}

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })
}

/// Returns a poll of the older era with progress, under this request id.
fn poll(id: &str, request: &str) -> Value {
    let mut poll = call(POLL, &json!({ "jobId": id }), &json!({ "progressToken": request }));
    poll["id"] = json!(request);
    poll
}

async fn assert_progress(reply: &mut Reply, token: &str) {
    let progress = reply.event().await.unwrap();
    assert_eq!(progress["method"], "notifications/progress", "{progress}");
    assert_eq!(progress["params"]["progressToken"], token, "{progress}");
}

/// Opens the stream of a session, or of a broken call.
async fn stream(client: &Client, session: &str, last_event_id: Option<&str>) -> Reply {
    let mut headers = vec![("Mcp-Session-Id", session), JSON[1]];
    headers.extend(last_event_id.map(|id| ("Last-Event-ID", id)));
    client.send("GET /mcp", &headers, "").await
}

/// Checks that the stream reports that the answer to this request cannot be had, and ends.
async fn assert_lost(stream: Reply, request: &str) {
    assert_eq!(stream.status, 200, "{}", stream.head);
    let body = stream.body().await;
    let data = body.lines().find_map(|line| line.strip_prefix("data: "));
    let told: Value = serde_json::from_str(data.unwrap_or_default()).unwrap_or_default();
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!(request), &json!(-32603)), "{body}");
}

#[tokio::test]
async fn f5_any_server_answers_a_session_of_the_older_era() {
    let mut world = World::new().await;
    let (first, second, proxy) = replicas(&mut world).await;
    let ann = proxy.client(ANN);
    // The first server opens the session, the second gets the notification that it is ready.
    let session = ann.initialize().await;
    let started = call(START, &question("ok;words=60;hold=true"), &json!({}));
    let started = ann.post(Some(&session), &started).await.result().await;
    let id = started["result"]["structuredContent"]["jobId"].as_str().unwrap().to_owned();
    running(&world, &id).await;

    // The job runs at one of them, and both report on it.
    let mut at_second = ann.post(Some(&session), &poll(&id, "x")).await;
    let mut at_first = ann.post(Some(&session), &poll(&id, "y")).await;
    assert_progress(&mut at_second, "x").await;
    assert_progress(&mut at_first, "y").await;
    // The second server gets it: the call at the first continues.
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": { "requestId": "y" } });
    assert_eq!(ann.post(Some(&session), &cancelled).await.status, 202);
    world.simulator.release();
    for (reply, request) in [(at_first, "y"), (at_second, "x")] {
        let answer = reply.result().await;
        assert_eq!(answer["id"], request, "{answer}");
        assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    }

    let list = call("list_jobs", &json!({}), &json!({}));
    for _ in 0..2 {
        let listed = ann.post(Some(&session), &list).await.result().await;
        let jobs = &listed["result"]["structuredContent"]["jobs"];
        assert_eq!(jobs[0]["job_id"], id.as_str(), "{listed}");
        assert_eq!(jobs.as_array().unwrap().len(), 1, "{listed}");
    }
    assert_eq!(world.submits(), 1);
    let [first, second] = [first, second].map(|served| (served.client(ANN), served));
    assert_eq!(stream(&first.0, &session, None).await.status, 200);
    assert_eq!(stream(&second.0, &session, None).await.status, 405, "only who holds it has one");
}

#[tokio::test]
async fn f5_a_session_is_its_owner_s_on_every_server_and_ends_where_it_is_deleted() {
    let mut world = World::new().await;
    let (first, second, _proxy) = replicas(&mut world).await;
    let session = first.client(ANN).initialize().await;
    let headers = [("Mcp-Session-Id", session.as_str()), JSON[1]];
    for served in [&first, &second] {
        let bob = served.client(BOB);
        assert_eq!(bob.post(Some(&session), &ping()).await.status, 404);
        assert_eq!(bob.send("GET /mcp", &headers, "").await.status, 404);
        assert_eq!(bob.send("DELETE /mcp", &headers, "").await.status, 404);
    }
    let ann = second.client(ANN);
    assert_eq!(ann.post(Some(&session), &ping()).await.status, 200);
    for (message, id, code, words) in malformed() {
        let reply = ann.post_text(Some(&session), &message).await;
        let answer = match reply.status {
            400 => serde_json::from_str(&reply.body().await).unwrap(),
            _ => reply.result().await,
        };
        assert_error(&message, &answer, &id, code, words);
    }
    assert_eq!(ann.send("DELETE /mcp", &headers, "").await.status, 204);
    assert_eq!(ann.post(Some(&session), &ping()).await.status, 404);
    assert_eq!(stream(&ann, &session, None).await.status, 404);
    assert_eq!(ann.send("DELETE /mcp", &headers, "").await.status, 404);
    // The server that opened it does not learn of it.
    assert_eq!(first.client(ANN).post(Some(&session), &ping()).await.status, 200);
}

/// Any other server at once reports the calls that broke with a server; the session and the job continue.
#[tokio::test]
async fn f5_a_client_goes_on_when_a_server_is_killed() {
    let mut world = World::new().await;
    let (mut first, second, proxy) = replicas(&mut world).await;
    let ann = proxy.client(ANN);
    let session = ann.initialize().await;
    let started = call(START, &question("ok;words=60;hold=true"), &json!({}));
    let started = ann.post(Some(&session), &started).await.result().await;
    let id = started["result"]["structuredContent"]["jobId"].as_str().unwrap().to_owned();
    running(&world, &id).await;
    let mut at_second = ann.post(Some(&session), &poll(&id, "x")).await;
    let mut at_first = ann.post(Some(&session), &poll(&id, "y")).await;
    assert_progress(&mut at_second, "x").await;
    assert_progress(&mut at_first, "y").await;

    first.process.kill().await;
    while at_first.event().await.is_some() {}
    let broken = at_first.last_event_id.expect("events have ids");
    assert_lost(stream(&ann, &session, Some(&broken)).await, "y").await;
    let mut again = ann.post(Some(&session), &poll(&id, "z")).await;
    assert_progress(&mut again, "z").await;
    world.simulator.release();
    for reply in [at_second, again] {
        let answer = reply.result().await;
        assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    }
    assert_eq!(world.submits(), 1);

    let restarted = Served::start_as_it_is(&world, &[]).await;
    for served in [&restarted, &second] {
        let answer = served.client(ANN).post(Some(&session), &ping()).await.result().await;
        assert_eq!(answer["result"], json!({}), "{answer}");
    }
}

/// A7: ends the wait, never the job.
#[tokio::test]
async fn f5_a_cancellation_ends_the_wait_at_the_server_that_has_the_call() {
    let mut world = World::new().await;
    let (first, second, _proxy) = replicas(&mut world).await;
    let session = first.client(ANN).initialize().await;
    let ann = second.client(ANN);
    let id = ann.call(START, question("ok;words=60;hold=true")).await["jobId"].clone();
    let id = id.as_str().unwrap();
    running(&world, id).await;
    let [mut given_up, mut kept] = [
        ann.post(Some(&session), &poll(id, "x")).await,
        ann.post(Some(&session), &poll(id, "y")).await,
    ];
    assert_progress(&mut given_up, "x").await;
    assert_progress(&mut kept, "y").await;
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                            "params": { "requestId": "x" } });
    assert_eq!(ann.post(Some(&session), &cancelled).await.status, 202);
    while let Some(message) = given_up.event().await {
        assert_eq!(message["method"], "notifications/progress", "{message}");
    }
    world.simulator.release();
    let answer = kept.result().await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
}

/// A stream that broke without its server: the client that comes back is served as if it had stayed.
#[tokio::test]
async fn f5_a_broken_stream_is_resumed_by_the_server_that_holds_the_call() {
    let mut world = World::new().await;
    let (first, second, _proxy) = replicas(&mut world).await;
    let ann = first.client(ANN);
    let id = ann.call(START, question("ok;words=60;hold=true")).await["jobId"].clone();
    let id = id.as_str().unwrap();
    running(&world, id).await;
    let session = ann.initialize().await;
    let mut broken = ann.post(Some(&session), &poll(id, "x")).await;
    assert_progress(&mut broken, "x").await;
    let last = broken.last_event_id.take().expect("events have ids");
    drop(broken);
    assert_lost(stream(&second.client(ANN), &session, Some(&last)).await, "x").await;
    let resumed = stream(&ann, &session, Some(&last)).await;
    world.simulator.release();
    let answer = resumed.result().await;
    assert_eq!(answer["id"], "x", "{answer}");
    assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    // An answer that was delivered is not kept: the client that comes back for it gets an error.
    assert_lost(stream(&ann, &session, Some(&last)).await, "x").await;
}

/// Sends a request of the newest era, as a client that accepts tasks.
async fn modern(client: &Client, method: &str, name: &str, mut params: Value) -> Reply {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
        json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } });
    let headers = [
        JSON[0],
        JSON[1],
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
        ("Mcp-Name", name),
    ];
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    client.send("POST /mcp", &headers, &message.to_string()).await
}

#[tokio::test]
async fn f5_any_server_answers_the_newest_era_and_its_tasks() {
    let mut world = World::new().await;
    let (mut first, _second, proxy) = replicas(&mut world).await;
    let ann = proxy.client(ANN);
    let query = "Why is the sky blue? [[sim:ok;words=60;hold=true]]";
    let deep = "perplexity_deep_research";
    let called = json!({ "name": deep, "arguments": { "query": query } });
    let created = modern(&ann, "tools/call", deep, called).await.result().await;
    let id = created["result"]["taskId"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
    running(&world, &id).await;
    let mut polls = Vec::new();
    for _ in 0..2 {
        let task = modern(&ann, "tasks/get", &id, json!({ "taskId": id })).await.result().await;
        assert_eq!(task["result"]["status"], "working", "{task}");
    }
    for _ in 0..2 {
        let meta = json!({ "progressToken": "p" });
        let mut poll = ann.ask(POLL, json!({ "jobId": id }), meta).await;
        assert_progress(&mut poll, "p").await;
        polls.push(poll);
    }
    first.process.kill().await;
    world.simulator.release();
    let task = async {
        loop {
            let task = modern(&ann, "tasks/get", &id, json!({ "taskId": id })).await.result().await;
            if task["result"]["status"] != "working" {
                return task;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let limit = std::time::Duration::from_secs(60);
    let task = tokio::time::timeout(limit, task).await.expect("the task ends");
    assert_eq!(task["result"]["status"], "completed", "{task}");
    let answer = polls.remove(0).result().await;
    assert_eq!(answer["result"]["structuredContent"]["status"], "COMPLETED", "{answer}");
    assert_eq!(world.submits(), 1);
}
