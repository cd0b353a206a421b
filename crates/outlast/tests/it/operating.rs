//! The basis for operators: logs as JSON, and a drain before the end.

use std::time::Duration;

use outlast_testkit::mcp_process::Signal;
use serde_json::Value;

use crate::http::client::{ANN, Served};
use crate::support::{START, World, finished, question, running, start};

/// Reads every line as an object with the common members.
fn lines(log: &str) -> Vec<Value> {
    let object = |line: &str| -> Value {
        let object: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        for member in ["timestamp", "level", "target", "message"] {
            assert!(object[member].is_string(), "{member}: {line}");
        }
        assert!(object["timestamp"].as_str().unwrap().ends_with('Z'), "{line}");
        object
    };
    log.lines().map(object).collect()
}

/// F9: each line is one object, including those that a detached worker sends.
#[tokio::test]
async fn f9_the_log_is_json_where_it_is_wanted() {
    let mut world = World::new().await;
    world.set("OUTLAST_LOG_FORMAT", "json");
    world.set("OUTLAST_DETACH", "auto");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=20;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    server.logged("Job completed").await;
    server.close_input();
    let (_, log) = server.ended().await;
    let lines = lines(&log);
    for message in ["Job enqueued", "Job dequeued", "Job completed"] {
        let line = lines.iter().find(|line| line["message"] == message);
        let line = line.unwrap_or_else(|| panic!("{message} is not in {log}"));
        assert_eq!(line["fields"]["job.id"], id.as_str(), "{line}");
        assert_eq!(line["level"], "INFO", "{line}");
    }
    let path = world.data_dir().join("worker.log");
    let worker = std::fs::read_to_string(&path).unwrap();
    assert!(worker.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{worker}");
}

/// F9: an unknown form is refused like any other bad value.
#[tokio::test]
async fn f9_a_log_format_that_is_unknown_is_refused() {
    let mut world = World::new().await;
    world.set("OUTLAST_LOG_FORMAT", "xml");
    let ran = world.run(&["jobs", "list"]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr.contains("OUTLAST_LOG_FORMAT") && ran.stderr.contains("text or json"),
        "{ran:?}"
    );
}

/// F9: a server that drains lets its job end, claims none from the queue, and reports that it is not ready.
#[tokio::test]
async fn f9_a_server_that_drains_lets_its_jobs_end() {
    let mut world = World::new().await;
    world.set("OUTLAST_DRAIN_TIMEOUT", "10m");
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let id = ann.call(START, question("ok;words=20;hold=true")).await["jobId"].clone();
    running(&world, id.as_str().unwrap()).await;
    served.process.signal(Signal::TERM);
    served.process.logged("draining").await;
    let ready = async {
        while ann.send("GET /readyz", &[], "").await.status == 200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ready).await.unwrap();
    assert_eq!(ann.send("GET /livez", &[], "").await.status, 200);
    let second = ann.call(START, question("ok;words=20;delay_ms=0")).await["jobId"].clone();
    world.simulator.release();
    let (status, log) = served.process.ended().await;
    assert!(status.success(), "{log}");
    assert_eq!(world.shown(id.as_str().unwrap()).await["state"], "succeeded", "{log}");
    assert_eq!(world.shown(second.as_str().unwrap()).await["state"], "queued", "{log}");
    assert_eq!(world.submits(), 1);
}

/// F9: the drain ends with its time; another process continues the remaining job.
#[tokio::test]
async fn f9_a_drain_ends_with_its_time() {
    let mut world = World::new().await;
    world.set("OUTLAST_DRAIN_TIMEOUT", "1s");
    let worker = world.spawn(&["worker"]);
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=20;hold=true").await;
    running(&world, &id).await;
    worker.signal(Signal::TERM);
    let ended = tokio::time::timeout(Duration::from_secs(30), worker.ended()).await;
    let (status, log) = ended.expect("the drain has an end");
    assert!(status.success() && log.contains("the time to drain is over"), "{log}");
    world.simulator.release();
    let _next = world.spawn(&["worker"]);
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
}
