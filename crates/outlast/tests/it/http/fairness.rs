//! F10 on the real binary: one owner cannot keep the queue, the polls or the connections from another.

use serde_json::{Value, json};

use super::client::{ANN, BOB, Client, Served};
use crate::support::{POLL, START, World, eventually, question};

/// Starts research and returns its id.
async fn started(client: &Client, scenario: &str) -> String {
    client.call(START, question(scenario)).await["jobId"].as_str().unwrap().to_owned()
}

/// Returns the ids of the jobs that workers claimed from the queue, in order.
fn dequeued(served: &Served) -> Vec<String> {
    let log = served.process.log();
    let lines = log.lines().filter(|line| line.contains("Job dequeued"));
    let id = |line: &str| {
        let (_, rest) = line.split_once("job.id=").expect("an id");
        rest.split(' ').next().unwrap().to_owned()
    };
    lines.map(id).collect()
}

/// F10, B8: with 500 jobs of Ann's in the queue, Bob's one starts when the next slot is free.
#[tokio::test]
async fn f10_a_long_queue_of_one_owner_does_not_keep_another_waiting() {
    let mut world = World::new().await;
    world.set("OUTLAST_RATE_PER_MINUTE", "100000");
    let served = Served::start(&mut world, &["--concurrency", "2"]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let first = started(&ann, "ok;words=60;delay_ms=0;hold=true").await;
    started(&ann, "ok;words=60;delay_ms=0;hold=true").await;
    eventually("both slots are taken", || world.submits() == 2).await;
    for _ in 2..500 {
        started(&ann, "stuck").await;
    }
    let bobs = started(&bob, "stuck").await;
    let poll = bob.ask(POLL, json!({ "jobId": bobs }), json!({ "progressToken": 1 })).await;
    assert_eq!(poll.status, 200);
    world.simulator.release();
    eventually("a slot was free", || dequeued(&served).len() >= 4).await;
    let order = dequeued(&served);
    assert_eq!(order[0], first);
    assert_eq!(order[2], bobs, "{order:?}");
}

/// Parks polls until one is refused; returns those that wait.
async fn parked(client: &Client, id: &str) -> Vec<super::client::Reply> {
    let mut waiting = Vec::new();
    loop {
        let mut poll =
            client.ask(POLL, json!({ "jobId": id }), json!({ "progressToken": 1 })).await;
        let said: Value = poll.event().await.expect("a word");
        if said["method"] != "notifications/progress" {
            let refused = &said["result"];
            crate::support::assert_refused(refused, "TOO_MANY_POLLS", true);
            return waiting;
        }
        waiting.push(poll);
        assert!(waiting.len() < 100, "never refused");
    }
}

/// F10, E8: Ann may park any number of polls, Bob's still parks.
#[tokio::test]
async fn f10_polls_of_one_owner_leave_room_for_another() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_MAX_POLLS", "8");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let (anns, bobs) = (started(&ann, "stuck").await, started(&bob, "stuck").await);
    let first = parked(&ann, &anns).await;
    let second = parked(&bob, &bobs).await;
    assert_eq!((first.len(), second.len()), (4, 2));
}

/// E8: a single owner may have all of them.
#[tokio::test]
async fn e8_an_only_owner_may_park_every_poll() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_MAX_POLLS", "3");
    world.set("OUTLAST_TOKENS", &format!("ann={ANN}"));
    let served = Served::start_as_it_is(&world, &[]).await;
    let ann = served.client(ANN);
    let id = started(&ann, "stuck").await;
    assert_eq!(parked(&ann, &id).await.len(), 3);
}

/// F10: an owner over the quota of bytes learns the next step, others are not affected, and the server is healthy.
#[tokio::test]
async fn f10_an_owner_who_has_stored_too_much_starts_nothing_new() {
    let mut world = World::new().await;
    world.set("OUTLAST_MAX_BYTES_PER_OWNER", "4 KiB");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let id = started(&ann, "ok;words=600;delay_ms=0").await;
    let ended = ann.call(POLL, json!({ "jobId": id })).await;
    assert_eq!(ended["status"], "COMPLETED", "a result is never refused: {ended}");
    let refused = ann.ask(START, question("stuck"), json!({})).await.result().await;
    crate::support::assert_refused(&refused["result"], "STORE_FULL", true);
    let text = refused["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("outlast jobs prune") && text.contains("OUTLAST_MAX_BYTES_PER_OWNER"));
    assert_eq!(ann.send("GET /health", &[], "").await.status, 200, "the store takes writes");
    started(&bob, "stuck").await;
    world.set("OUTLAST_OWNER", "ann");
    let pruned = world.run(&["jobs", "prune", "--older-than", "0s"]).await;
    assert_eq!(pruned.code, Some(0), "{pruned:?}");
    started(&ann, "stuck").await;
}
