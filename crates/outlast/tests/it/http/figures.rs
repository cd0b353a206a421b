//! `/metrics` and `/health`: metrics that name no owner, and a health that is true of the store.

use std::time::Duration;

use serde_json::json;

use super::client::{ANN, BOB, Served};
use crate::faults::small_disk::{SmallDisk, with_own_mounts};
use crate::support::{POLL, START, World, eventually, question, running};

#[tokio::test]
async fn the_figures_count_jobs_and_name_no_owner() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let id = ann.call(START, question("ok;words=60;hold=true")).await["jobId"].clone();
    running(&world, id.as_str().unwrap()).await;
    let figures = ann.send("GET /metrics", &[], "").await;
    assert_eq!(figures.status, 200);
    assert!(figures.header("content-type").unwrap().starts_with("text/plain; version=0.0.4"));
    let figures = figures.body().await;
    let running = r#"outlast_jobs{workflow="deep_research",state="running"} 1"#;
    assert!(figures.contains(running), "{figures}");

    let mut poll = ann.ask(POLL, json!({ "jobId": id }), json!({ "progressToken": 1 })).await;
    assert_eq!(poll.event().await.unwrap()["method"], "notifications/progress");
    world.simulator.release();
    assert_eq!(poll.result().await["result"]["structuredContent"]["status"], "COMPLETED");
    // The caller may see the end before the worker does.
    let ended = async {
        loop {
            let figures = ann.send("GET /metrics", &[], "").await.body().await;
            if figures.contains("outlast_jobs_ended_total{") {
                return figures;
            }
        }
    };
    let figures = tokio::time::timeout(Duration::from_secs(30), ended).await.unwrap();
    for line in [
        r#"outlast_jobs_started_total{workflow="deep_research"} 1"#,
        r#"outlast_jobs_ended_total{workflow="deep_research",state="succeeded"} 1"#,
        r#"outlast_attempts_total{outcome="succeeded"} 1"#,
        r#"outlast_provider_calls_total{provider="perplexity/agent",call="begin",outcome="ok"} 1"#,
        "outlast_poll_wake_seconds_count 1",
        "outlast_calls_under_way 0",
    ] {
        assert!(figures.contains(line), "{line}:\n{figures}");
    }
    let spent = figures.lines().find(|line| line.starts_with("outlast_spend_usd_total{")).unwrap();
    assert!(spent.rsplit(' ').next().unwrap().parse::<f64>().unwrap() > 0.0, "{spent}");
    for word in [id.as_str().unwrap(), "ann", "bob", "sky", "127.0.0.1"] {
        assert!(!figures.contains(word), "{word}:\n{figures}");
    }
    for line in figures.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("outlast_"), "{line}");
        assert!(value.parse::<f64>().is_ok(), "{line}");
    }
}

/// E7: an owner cannot see the calls and costs of others; the owner of the server's own command line can see
/// everything.
#[tokio::test]
async fn e7_an_owner_is_shown_the_figures_of_only_their_own_jobs() {
    let mut world = World::new().await;
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    let started = ann.call(START, question("ok;words=60;delay_ms=0")).await;
    let ended = ann.call(POLL, json!({ "jobId": started["jobId"] })).await;
    assert_eq!(ended["status"], "COMPLETED");
    ann.call(START, question("stuck")).await;
    let figures = async |client: &super::client::Client| {
        client.send("GET /metrics", &[], "").await.body().await
    };
    let values = |text: &str| -> Vec<String> {
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    };
    let nothing = ["outlast_questions_open 0", "outlast_queue_oldest_seconds 0"];
    assert_eq!(values(&figures(&bob).await), nothing);
    bob.call(START, question("stuck")).await;
    let bobs = figures(&bob).await;
    assert!(bobs.contains(r#"outlast_jobs_started_total{workflow="deep_research"} 1"#), "{bobs}");
    assert!(!bobs.contains("outlast_spend_usd_total{"), "{bobs}");
    let all = figures(&ann).await;
    assert!(all.contains(r#"outlast_jobs_started_total{workflow="deep_research"} 3"#), "{all}");
    assert!(all.contains("outlast_spend_usd_total{"), "{all}");
}

/// Promise 6 as a load balancer sees it.
#[test]
fn the_health_says_when_the_store_refuses_writes() {
    let name = "http::figures::the_health_says_when_the_store_refuses_writes";
    with_own_mounts(name, async || {
        let mut world = World::new().await;
        let disk = SmallDisk::mount(&world.data_dir(), 1024);
        let served = Served::start(&mut world, &[]).await;
        let ann = served.client(ANN);
        assert_eq!(ann.send("GET /health", &[], "").await.status, 200);
        disk.fill();
        let refused = ann.ask(START, question("ok"), json!({})).await.result().await;
        assert_eq!(refused["result"]["isError"], true, "{refused}");
        let health = ann.send("GET /health", &[], "").await;
        assert_eq!(health.status, 503);
        assert_eq!(health.body().await, r#"{"status":"store refuses writes"}"#);
        disk.empty();
        ann.call(START, question("ok;words=60;delay_ms=0")).await;
        assert_eq!(ann.send("GET /health", &[], "").await.status, 200);
        eventually("the job was bought", || world.submits() == 1).await;
    });
}

/// F9: for a database the metrics have the pool, the lag and whether changes are notified; for a file there are none.
#[tokio::test]
async fn f9_the_operator_sees_the_state_of_the_database() {
    let mut world = World::on_postgres().await;
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    served.client(ANN).call(START, question("ok;words=20;delay_ms=0")).await;
    let text = served.client(ANN).send("GET /metrics", &[], "").await.body().await;
    let value = |name: &str| -> f64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("{name} is not in {text}")).parse().unwrap()
    };
    let busy = value("outlast_database_connections{state=\"busy\"}");
    assert!(busy + value("outlast_database_connections{state=\"idle\"}") >= 1.0, "{text}");
    assert_eq!(value("outlast_database_waiting"), 0.0);
    assert_eq!(value("outlast_database_told"), 1.0);
    let lag = value("outlast_database_lag_seconds");
    assert!((0.0..60.0).contains(&lag), "{text}");
    let of_bob = served.client(BOB).send("GET /metrics", &[], "").await.body().await;
    assert!(!of_bob.contains("outlast_database"), "{of_bob}");
}
