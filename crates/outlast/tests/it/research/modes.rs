//! B1: the switch, its log lines, and the process that does the work.

use outlast_testkit::mcp_process::Signal;

use super::*;

/// B1: true and 1 queue, and the log reports it.
#[tokio::test]
async fn b1_async_mode_is_logged_and_queues() {
    let mut world = World::new().await;
    for value in ["true", "1"] {
        world.set(SWITCH, value);
        let mut client = Client::of(world.serve().await).await;
        client.server.logged("Async deep research: enabled").await;
        client.server.logged("Background worker started").await;
        let id = client.queue(QUICK).await;
        assert_eq!(client.ended(&id).await.shape["status"], "completed");
    }
}

/// B1: without the switch nothing is queued, and no worker is needed.
#[tokio::test]
async fn b1_blocking_mode_needs_no_background_worker() {
    let mut world = World::new().await;
    for value in ["", "false", "0"] {
        world.set(SWITCH, value);
        let mut client = Client::of(world.serve_with(&["--tools", "research"]).await).await;
        client.server.logged("Async deep research: disabled").await;
        let answer = client.ok(DEEP, query(QUICK)).await;
        assert_eq!(answer.shape["status"], "completed");
        client.server.close_input();
        let (_, log) = client.server.ended().await;
        assert!(!log.contains("Background worker started"), "{log}");
    }
}

/// B1: any other value is blocking, with one warning.
#[tokio::test]
async fn b1_an_unknown_switch_is_blocking_with_one_warning() {
    let mut world = World::new().await;
    world.set(SWITCH, "yes");
    let mut client = Client::of(world.serve().await).await;
    assert_eq!(client.ok(DEEP, query(QUICK)).await.shape["status"], "completed");
    client.server.close_input();
    let (_, log) = client.server.ended().await;
    assert!(log.contains("Async deep research: disabled"), "{log}");
    assert_eq!(
        log.matches(SWITCH).count(),
        1 + usize::from(log.contains(&format!("variable {SWITCH}"))),
        "{log}"
    );
    assert_eq!(log.lines().filter(|line| line.contains("WARN")).count(), 1, "{log}");
}

/// B1: auto answers with the report if it is ready in time, otherwise like async mode.
#[tokio::test]
async fn b1_auto_answers_with_what_there_is_by_then() {
    let mut world = World::new().await;
    world.set(SWITCH, "auto");
    let mut client = Client::of(world.serve().await).await;
    client.server.logged("Async deep research: enabled (auto)").await;
    client.server.logged("Background worker started").await;
    let answer = client.ok(DEEP, query(QUICK)).await;
    assert_eq!(answer.shape["status"], "completed");
    assert!(answer.text.starts_with("🆕 **New Conversation Started**\n"), "{}", answer.text);
    let (code, sentence) = client.refused(DEEP, query("http;status=401")).await;
    assert_eq!(code, "UNAUTHORIZED", "{sentence}");

    world.set("OUTLAST_INLINE_BUDGET_MS", "50");
    let mut client = Client::of(world.serve().await).await;
    let id = client.queue("ok;words=60;hold=true").await;
    release(&world, 2).await;
    assert_eq!(client.ended(&id).await.shape["status"], "completed");
}

/// B1: a held call without a process is resumed by the next process of its profile.
#[tokio::test]
async fn b1_an_orphaned_held_call_is_resumed() {
    let (world, mut client) = blocking().await;
    client.send(DEEP, query("ok;words=60;hold=true"), None).await;
    eventually("it is submitted", || world.submits() == 1).await;
    let id = only_job(&world).await;
    crate::support::running(&world, &id).await;
    client.server.kill().await;
    let mut client = Client::of(world.serve_with(&["--tools", "research"]).await).await;
    release(&world, 1).await;
    let answer = client.ok(DEEP, query("ok;words=60;hold=true")).await;
    assert_eq!(answer.shape["status"], "completed");
    assert_eq!(world.submits(), 1, "paid once");
}

/// F11: a server of another profile that notices the death first leaves the call to one that fits.
#[tokio::test]
async fn f11_a_held_call_continues_whichever_process_noticed_the_death() {
    let mut world = World::new().await;
    let mut carrier = Client::of(world.serve().await).await;
    let fitting = Client::of(world.serve().await).await;
    world.set("PERPLEXITY_API_KEY", "pplx-another");
    let unfitting = Client::of(world.serve().await).await;
    carrier.send(DEEP, query("ok;words=60;hold=true"), None).await;
    let id = only_job(&world).await;
    crate::support::running(&world, &id).await;
    // It cannot notice the death until the other one has returned the call to the store.
    fitting.server.signal(Signal::STOP);
    carrier.server.kill().await;
    unfitting.server.logged("took over the jobs of a worker that died").await;
    fitting.server.signal(Signal::CONT);
    fitting.server.logged("Job dequeued").await;
    release(&world, 1).await;
    fitting.server.logged("Job completed").await;
    assert_eq!(world.submits(), 1, "paid once");
    assert!(!unfitting.server.log().contains("Job dequeued"), "{}", unfitting.server.log());
}

/// F11: the same for a call whose process died before it ran it.
#[tokio::test]
async fn f11_a_held_call_without_a_worker_is_claimed_by_a_process_that_runs() {
    let world = World::new().await;
    let fitting = Client::of(world.serve().await).await;
    let doomed = world.serve_with(&["--kill-at", "after-insert"]).await;
    let mut doomed = Client::of(doomed).await;
    let call = doomed.send(DEEP, query(QUICK), None).await;
    assert!(doomed.server.answer(call).await.is_none(), "it died");
    fitting.server.logged("Job completed").await;
    assert_eq!(world.submits(), 1, "paid once");
}

/// Returns the job in the store, once there is one.
async fn only_job(world: &World) -> String {
    let shown = async {
        loop {
            let listed = world.run(&["jobs", "list", "--json"]).await;
            let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
            if let Some(id) = listed["jobs"][0]["id"].as_str() {
                return id.to_owned();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), shown).await.unwrap()
}
