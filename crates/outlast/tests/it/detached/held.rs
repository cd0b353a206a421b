//! Calls whose caller waits, and that another process runs.

use serde_json::json;

use super::{Project, WAITS, detaching, nothing_is_left};
use crate::support::{START, World, eventually, question};

const DEEP: &str = "perplexity_deep_research";

/// H2: a blocking call is answered, with progress on the way, though another process runs it.
#[tokio::test]
async fn h2_a_held_call_gets_its_progress_and_its_answer() {
    let world = detaching().await;
    let mut server = world.serve().await;
    let arguments = json!({ "query": "Why is the sky blue? [[sim:ok;words=80]]" });
    let call = server
        .send(
            "tools/call",
            json!({ "name": DEEP, "arguments": arguments, "_meta": { "progressToken": 7 } }),
        )
        .await;
    let answer = server.answer(call).await.unwrap();
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    let progress = server.seen.iter().filter(|seen| seen["method"] == "notifications/progress");
    assert!(progress.count() > 0, "{:?}", server.seen);
    assert_eq!(world.detached_workers().len(), 1);
    assert_eq!(world.submits(), 1);
    drop(server);
    nothing_is_left(&world).await;
}

/// H1: a held call whose client leaves continues; its result answers the repeated call.
#[tokio::test]
async fn h1_a_held_call_goes_on_without_its_client() {
    let world = detaching().await;
    let arguments = json!({ "query": "Why is the sky blue? [[sim:ok;words=80;hold=true]]" });
    let mut server = world.serve().await;
    server.send("tools/call", json!({ "name": DEEP, "arguments": arguments })).await;
    eventually("it is asked", || world.submits() == 1).await;
    server.kill().await;
    world.simulator.release();
    let mut next = world.serve().await;
    let answer = next.call(DEEP, arguments).await;
    assert_ne!(answer["isError"], true, "{answer}");
    assert_eq!(world.submits(), 1);
}

/// H1: a workflow's held tool, and its client's death.
#[tokio::test]
async fn h1_a_held_command_goes_on_without_its_client() {
    let world = detaching().await;
    let project = Project::new(&world, "project", WAITS);
    let config = project.config();
    let mut server = world.serve_with(&["--config", &config]).await;
    server.send("tools/call", json!({ "name": "wait", "arguments": {} })).await;
    eventually("the command runs", || !project.lines("begun").is_empty()).await;
    server.kill().await;
    project.go();
    eventually("the command ends", || project.lines("ended").len() == 1).await;
    let mut next = world.serve_with(&["--config", &config]).await;
    let answer = next.call("wait", json!({})).await;
    assert!(answer.to_string().contains("gone"), "{answer}");
    assert_eq!(project.lines("begun").len(), 1);
}

/// Quick answers stay in the server: no worker is started for one.
#[tokio::test]
async fn h1_a_quick_answer_needs_no_worker() {
    let world = detaching().await;
    let mut server = world.serve_with(&["--tools", "perplexity"]).await;
    let messages = json!([{ "role": "user", "content": "Why? [[sim:ok;words=60;delay_ms=0]]" }]);
    let answer = server.call("perplexity_ask", json!({ "messages": messages })).await;
    assert_ne!(answer["isError"], true, "{answer}");
    assert!(world.detached_workers().is_empty());
}

/// H2: servers that run their jobs themselves, and plain workers, notify the others on the store's file of each change,
/// and leave no socket behind.
#[tokio::test]
async fn h2_processes_on_one_file_tell_each_other_of_changes() {
    let world = World::new().await;
    let mut server = world.serve().await;
    eventually("it listens", || world.beside_sockets().len() == 1).await;
    let folder = world.data_dir().join("outlast.db.sockets");
    let heard = tokio::net::UnixDatagram::bind(folder.join("front-0.sock")).unwrap();
    let arguments = question("ok;words=20;delay_ms=0");
    let started = server.call(START, arguments).await;
    assert_ne!(started["isError"], true, "{started}");
    let told =
        tokio::time::timeout(std::time::Duration::from_secs(30), heard.recv(&mut [0; 64])).await;
    assert!(told.is_ok(), "no change was reported");
    let mut worker = world.spawn(&["worker"]);
    eventually("the worker listens", || world.beside_sockets().len() == 3).await;
    server.kill().await;
    worker.kill().await;
    drop(heard);
    std::fs::remove_file(folder.join("front-0.sock")).unwrap();
    // They were killed: the next process that listens removes their files, though it changes nothing.
    let mut next = world.serve().await;
    eventually("one socket is left", || world.beside_sockets().len() == 1).await;
    next.close_input();
    let (status, log) = next.ended().await;
    assert!(status.success() && world.beside_sockets().is_empty(), "{log}");
}

/// H2: the delay between a job's end and the answer to its held call, by the clock of this machine. Measured with
/// `--ignored`.
#[tokio::test]
#[ignore = "a measurement"]
async fn h2_measured_how_soon_an_end_arrives() {
    let [here, detached] = [lateness("false").await, lateness("auto").await];
    for (what, late) in [("in the server", &here), ("in a worker", &detached)] {
        println!("{what}: p50 {} ms, p99 {} ms, most {} ms", late[50], late[98], late[99]);
    }
    assert!(detached[50] <= here[50] + 10, "{detached:?}");
}

/// Returns the milliseconds from the end of a job to the answer, for a hundred calls, in order.
async fn lateness(detach: &str) -> Vec<i64> {
    let mut world = detaching().await;
    world.set("OUTLAST_DETACH", detach);
    let mut server = world.serve().await;
    let mut late = Vec::new();
    for number in 0..100 {
        let query = format!("Question {number}? [[sim:ok;words=60;delay_ms=500]]");
        let answer = server.call(DEEP, json!({ "query": query })).await;
        #[expect(clippy::disallowed_methods, reason = "measured by the clock that dates the end")]
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        assert_ne!(answer["isError"], true, "{answer}");
        let listed = world.run(&["jobs", "list", "--limit", "1", "--json"]).await;
        let listed: serde_json::Value = serde_json::from_str(&listed.stdout).unwrap();
        let id = listed["jobs"][0]["id"].as_str().unwrap();
        let ended_at = world.shown(id).await["ended_at"].as_str().unwrap().to_owned();
        let day = 24 * 60 * 60 * 1000;
        late.push((now.as_millis() as i64 - millis_of_day(&ended_at)).rem_euclid(day));
    }
    late.sort_unstable();
    late
}

/// Returns the time of day of a moment such as `2026-11-15T02:21:00.000Z`.
fn millis_of_day(moment: &str) -> i64 {
    let numbers = moment[11..23].split([':', '.']).map(|number| number.parse::<i64>().unwrap());
    numbers.zip([3_600_000, 60_000, 1_000, 1]).map(|(number, unit)| number * unit).sum()
}
