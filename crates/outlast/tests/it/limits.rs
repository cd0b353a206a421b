//! Limits bound the spending that providers are authorised to make, independent of the clock and of the provider's
//! bills (G6).

use serde_json::{Value, json};

use crate::crash::killed_in;
use crate::support::{
    START, ShiftedClock, World, assert_refused, eventually, finished, question, running, start,
};

const DAY_MS: i64 = 86_400_000;

async fn anthropic() -> World {
    let mut world = World::new().await;
    let url = world.simulator.url().to_owned();
    world.set("OUTLAST_PROVIDERS", "anthropic");
    world.set("ANTHROPIC_API_KEY", "sk-ant-test");
    world.set("ANTHROPIC_BASE_URL", &url);
    world.set("OUTLAST_TOOLS", "research-jobs");
    world
}

/// Returns the caps of the sessions that were created, in cents and in order.
fn caps(world: &World) -> Vec<u64> {
    let requests = world.simulator.requests();
    let created = requests.iter().filter(|seen| {
        seen.method == "POST" && seen.path.split('?').next() == Some("/v1/sessions")
    });
    let amount = |body: &Value| body["budget"]["max_list_cost"]["amount"].as_str()?.parse().ok();
    created.map(|seen| amount(&seen.body).unwrap()).collect()
}

async fn spend(world: &World) -> Value {
    let ran = world.run(&["spend", "--by", "provider", "--json"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    serde_json::from_str(&ran.stdout).unwrap()
}

/// G6: the sessions of a day may cost no more than the day's limit, and each no more than the limit of a job.
#[tokio::test]
async fn g6_the_caps_of_sessions_stay_within_the_limits() {
    let mut world = anthropic().await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "1.209");
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    assert_eq!(caps(&world), [120], "the limit of a job, in whole cents");
    assert_eq!(spend(&world).await["reserved_usd"], 1.2, "all of the cap is reserved");
    drop(server);

    let mut world = anthropic().await;
    world.set("OUTLAST_MAX_USD_PER_DAY", "5");
    let mut server = world.serve().await;
    for _ in 0..3 {
        start(&mut server, "stuck").await;
    }
    eventually("three sessions", || caps(&world).len() == 3).await;
    let mut sorted = caps(&world);
    sorted.sort_unstable();
    assert_eq!(sorted, [100, 200, 200]);
    assert_eq!(spend(&world).await["reserved_usd"], 5.0);
    let refused = server.call(START, question("ok")).await;
    assert_refused(&refused, "BUDGET_EXCEEDED", true);
    let text = refused["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("usually costs $1.00") && text.contains("$5.00 of the $5.00"), "{text}");
}

/// G6: a worker that takes the job over sends the stored cap, regardless of its settings.
#[tokio::test]
async fn g6_a_worker_that_takes_over_sends_the_stored_cap() {
    let mut world = anthropic().await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "1.2");
    let id = killed_in(&world, "after-insert", "ok;words=60;delay_ms=0").await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "100");
    let mut server = world.serve().await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(caps(&world), [120]);
}

/// G6: a job that the previous version inserted has no stored cap; it gets no more than the limits of the worker.
#[tokio::test]
async fn g6_a_job_of_the_previous_version_is_capped_by_the_limits() {
    if outlast_testkit::postgres::everywhere() {
        return;
    }
    let mut world = anthropic().await;
    let mut server = world.serve_with(&["--no-worker"]).await;
    let id = start(&mut server, "ok;words=60;delay_ms=0").await;
    server.close_input();
    server.ended().await;
    let database = crate::support::raw_database(&world.database());
    database.execute("UPDATE jobs SET allowance = NULL", []).unwrap();
    drop(database);
    world.set("OUTLAST_MAX_USD_PER_JOB", "1.2");
    let mut server = world.serve().await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(caps(&world), [120]);
}

/// G6: all runs of one job together stay within its limit; a retry is bounded like every start.
#[tokio::test]
async fn g6_another_run_and_a_retry_stay_within_the_limits() {
    let mut world = anthropic().await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "3.50");
    world.set("OUTLAST_MAX_USD_PER_DAY", "5");
    let mut server = world.serve().await;
    let id = start(&mut server, "fail;delay_ms=0").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "FAILED", "{ended}");
    assert_eq!(caps(&world), [200, 150], "two runs, and no third");
    let error = ended["error"].as_str().unwrap();
    assert!(error.contains("no other run was started: $3.50 of the $3.50"), "{error}");
    let retried = world.run(&["jobs", "retry", &id, "--again"]).await;
    assert!(retried.code.is_some(), "{retried:?}");
    eventually("the retry's session", || caps(&world).len() == 3).await;
    assert_eq!(caps(&world)[2], 150, "the rest of the day");
    let refused = server.call(START, question("ok")).await;
    assert_refused(&refused, "BUDGET_EXCEEDED", true);
}

/// G6: the refusal states the typical cost, never the caller's own budget; a tiny limit is shown exactly.
#[tokio::test]
async fn g6_a_refusal_names_the_typical_cost_and_the_exact_limit() {
    let mut world = anthropic().await;
    world.set("OUTLAST_MAX_USD_PER_JOB", "0.000001");
    let ran = world.run(&["research", "Why?", "--budget", "15"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("usually costs $1.00"), "{ran:?}");
    assert!(ran.stderr.contains("one job may cost $0.000001"), "{ran:?}");
    assert!(!ran.stderr.contains("$15.00"), "{ran:?}");
}

/// G6, C9: a model that is not in the price table has no typical cost: refused under a limit, allowed without.
#[tokio::test]
async fn g6_an_unknown_model_has_an_unknown_price() {
    for vendor in ["anthropic", "openai"] {
        let mut world = World::new().await;
        let (url, name) = (world.simulator.url().to_owned(), vendor.to_uppercase());
        world.set("OUTLAST_PROVIDERS", vendor);
        world.set(&format!("{name}_API_KEY"), "sk-test");
        world.set(&format!("{name}_BASE_URL"), &url);
        world.set(&format!("{name}_MODEL"), "model-of-tomorrow");
        world.set("OUTLAST_MAX_USD_PER_DAY", "1000");
        let file = format!("[{vendor}]\nmodel = \"model-of-tomorrow\"\n");
        let config = world.data_dir().join("outlast.toml");
        std::fs::create_dir_all(world.data_dir()).unwrap();
        std::fs::write(&config, file).unwrap();
        let flags = ["research", "Why? [[sim:ok;words=60;delay_ms=0]]", "--config"];
        let ran = world.run(&[&flags[..], &[config.to_str().unwrap()]].concat()).await;
        assert_eq!(ran.code, Some(1), "{vendor}: {ran:?}");
        assert!(ran.stderr.contains("is not known beforehand"), "{vendor}: {ran:?}");
        let requests = world.simulator.requests();
        assert!(requests.iter().all(|seen| seen.method != "POST"), "{vendor}: nothing was sent");
    }
}

/// G6: a cost that is not an amount is not an error: the run counts as may have been spent, with a warning.
#[tokio::test]
async fn g6_a_cost_that_is_not_an_amount_may_have_been_spent() {
    let world = World::new().await;
    let mut server = world.serve().await;
    for total in ["1e300", "-1"] {
        let scenario = format!("cost;total={total}|ok;words=60;delay_ms=0");
        let id = start(&mut server, &scenario).await;
        let ended = finished(&mut server, &id).await;
        assert_eq!(ended["status"], "COMPLETED", "{total}: {ended}");
    }
    let found = spend(&world).await;
    assert_eq!(found["total_usd"], 0.0, "{found}");
    assert!(found["maybe_spent_usd"].as_f64().unwrap() > 0.0, "{found}");
    server.close_input();
    let (_, log) = server.ended().await;
    assert!(log.contains("no usable cost"), "{log}");
}

/// G6: one start with the clock far ahead, and several on that day, leave the ledger unchanged.
#[tokio::test]
async fn g6_a_start_with_the_clock_far_ahead_keeps_the_ledger() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "cost;total=0.5|ok;words=60;delay_ms=0").await;
    finished(&mut server, &id).await;
    server.close_input();
    server.ended().await;
    let clock = ShiftedClock::new(&world);
    clock.set(401 * DAY_MS);
    for _ in 0..3 {
        let mut ahead = clock.serve(&world, &[]).await;
        // Once a job has ended, the sweep at the start is over.
        let id = start(&mut ahead, "ok;words=60;delay_ms=0").await;
        finished(&mut ahead, &id).await;
        ahead.close_input();
        ahead.ended().await;
    }
    let found = spend(&world).await;
    let total = found["total_usd"].as_f64().unwrap();
    assert!(total >= 0.5, "{found}");
}

/// G6: the cost of a lost submit is unknown; its result and its notice state this.
#[tokio::test]
async fn g6_the_cost_of_a_lost_submit_is_unknown_and_may_have_been_spent() {
    let mut world = World::new().await;
    world.set("OUTLAST_TOOLS", "research");
    world.set("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "true");
    let mut server = world.serve().await;
    let query = json!({ "query": "Why is the sky blue? [[sim:drop_submit|ok;words=60]]" });
    let queued = server.call("perplexity_deep_research", query).await;
    let id = json!({ "conversationId": queued["structuredContent"]["conversationId"] });
    let ended = async {
        loop {
            let history = server.call("get_conversation_history", id.clone()).await;
            if history["structuredContent"]["status"] == "failed" {
                return history["structuredContent"].clone();
            }
        }
    };
    let history =
        tokio::time::timeout(std::time::Duration::from_secs(30), ended).await.expect("it ends");
    let cost = &history["cost"];
    assert_eq!((&cost["usd"], &cost["kind"]), (&Value::Null, &json!("unknown")), "{history}");
    let maybe = spend(&world).await["maybe_spent_usd"].clone();
    assert_eq!(cost["maybe_spent_usd"], maybe, "{history}");
    assert!(maybe.as_f64().unwrap() > 0.0);
}
