//! Many servers over one store: every job once, a fair share for each, and no client sees errors about locks.

use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{POLL, START, World, question};

const SERVERS: usize = 8;
/// The number of servers through which jobs are started; few, so that the others have work only if they are notified.
const STARTERS: usize = 2;
/// The number of calls on a pipe at a time.
const ON_THE_PIPE: usize = 25;

/// Returns the number of jobs: enough to see sharing, or the number of the full run.
fn jobs() -> usize {
    #[expect(clippy::disallowed_methods, reason = "the size of the full run is given from outside")]
    let asked = std::env::var("OUTLAST_TEST_SHARED_JOBS");
    asked.ok().map_or(400, |asked| asked.parse().unwrap())
}

/// Makes calls, many at a time, and returns their answers in order.
async fn pipelined(server: &mut McpProcess, calls: Vec<Value>) -> Vec<Value> {
    let mut answers = Vec::new();
    for some in calls.chunks(ON_THE_PIPE) {
        let mut sent = Vec::new();
        for call in some {
            sent.push(server.send("tools/call", call.clone()).await);
        }
        for id in sent {
            let answer = server.answer(id).await.expect("an answer");
            assert_ne!(answer["result"]["isError"], true, "{answer}");
            answers.push(answer["result"]["structuredContent"].clone());
        }
        server.seen.clear();
    }
    answers
}

/// Promise 4, promise 5, E14: eight processes share the work of one store.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_servers_share_one_store_fairly_and_do_every_job_once() {
    let mut world = World::new().await;
    world.set("OUTLAST_MAX_JOBS_PER_OWNER", "100000");
    let jobs = jobs();
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(world.serve().await);
    }
    let began = Instant::now();
    let starting: Vec<_> = servers
        .drain(..STARTERS)
        .enumerate()
        .map(|(starter, mut server)| {
            let share = (starter..jobs).step_by(STARTERS);
            let start = json!({ "name": START, "arguments": question("ok;words=20;delay_ms=0") });
            let calls = share.map(|_| start.clone()).collect();
            tokio::spawn(async move { (pipelined(&mut server, calls).await, server) })
        })
        .collect();
    let mut ids = Vec::new();
    for started in starting {
        let (answers, server) = started.await.unwrap();
        ids.extend(answers.iter().map(|answer| answer["jobId"].as_str().unwrap().to_owned()));
        servers.push(server);
    }
    let started = began.elapsed();
    // Sent to a server that started some: its own commits wake it sooner.
    let polls = |ids: &[String]| -> Vec<Value> {
        let poll = |id| json!({ "name": POLL, "arguments": { "jobId": id } });
        ids.iter().map(poll).collect()
    };
    let mut left = ids.clone();
    while !left.is_empty() {
        let answers = pipelined(&mut servers[SERVERS - 1], polls(&left)).await;
        let ended = |answer: &&Value| answer["status"] == "COMPLETED";
        let open =
            |answer: &&Value| matches!(answer["status"].as_str(), Some("CREATED" | "IN_PROGRESS"));
        assert!(answers.iter().all(|answer| ended(&answer) || open(&answer)), "{answers:?}");
        left = answers
            .iter()
            .filter(open)
            .map(|answer| answer["jobId"].as_str().unwrap().to_owned())
            .collect();
    }
    let took = began.elapsed();

    let mut shares = Vec::new();
    for mut server in servers {
        server.close_input();
        let (status, log) = server.ended().await;
        assert!(status.success(), "{log}");
        for word in ["locked", "BUSY", "busy", "does not let go", "holds the lock", "panicked"] {
            assert!(!log.contains(word), "{word}: {log}");
        }
        shares.push(log.matches("Job dequeued").count());
    }
    shares.sort_unstable();
    println!(
        "{jobs} jobs over {SERVERS} servers: started in {started:.1?}, done in {took:.1?}, shares {shares:?}"
    );
    assert_eq!(ids.len(), jobs);
    assert_eq!(shares.iter().sum::<usize>(), jobs, "each was taken once");
    assert_eq!(world.submits(), jobs as u64, "each was paid for once");
    let busiest = shares[SERVERS - 1];
    assert!(busiest * 10 < jobs * 4, "the busiest had {busiest} of {jobs}: {shares:?}");
    assert!(took < Duration::from_secs(120), "{took:?}");
}
