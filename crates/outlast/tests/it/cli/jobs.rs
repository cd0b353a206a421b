//! `outlast jobs watch`, `wait`, `cancel` and `retry`.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::{Value, json};

use super::left_behind::LeftBehind;
use super::pty::Terminal;
use super::snapshots::{asked, failed};
use crate::support::{World, finished, running, start};

const QUICK: &str = "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]";

#[tokio::test]
async fn watch_follows_jobs_to_their_end_and_its_exit_code_is_theirs() {
    let world = World::new().await;
    let (good, _) = asked(&world, QUICK).await;
    let bad = failed(&world).await;
    let ran = world.run(&["jobs", "watch", &good]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.starts_with(&format!("{good}  succeeded")), "{ran:?}");
    let ran = world.run(&["jobs", "watch", &good, &bad, "--json"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let reported: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(reported["jobs"][1]["failures"][0]["code"], "EXECUTION_ERROR", "{reported}");

    let mut server = world.serve().await;
    let held = start(&mut server, "ok;words=60;hold").await;
    running(&world, &held).await;
    let terminal = Terminal::run(&world, 100, &["jobs", "watch"]);
    terminal.shows(&held[..8]).await;
    terminal.shows("%").await;
    let cancelled = world.run(&["jobs", "cancel", &held]).await;
    assert_eq!(cancelled.code, Some(0), "{cancelled:?}");
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(1), "{screen}");
    assert!(screen.contains(&format!("{held}  ")) && screen.contains("cancelled"), "{screen}");
}

/// Starts a server with a job that never ends, and a watch that shows it.
async fn watched(world: &World) -> (McpProcess, String, Terminal) {
    let mut server = world.serve().await;
    let held = start(&mut server, "stuck").await;
    running(world, &held).await;
    let terminal = Terminal::run(world, 100, &["jobs", "watch", &held]);
    terminal.shows("%").await;
    (server, held, terminal)
}

#[tokio::test]
async fn leaving_a_watch_leaves_the_job_alone() {
    let world = World::new().await;
    let (_server, held, terminal) = watched(&world).await;
    terminal.interrupt();
    let (code, screen) = terminal.ended().await;
    assert_eq!(code, Some(130), "{screen}");
    assert!(screen.contains("1 job is unfinished; it goes on"), "{screen}");
    running(&world, &held).await;
}

/// P4: a watch notices the death of the worker of its jobs.
#[tokio::test]
async fn p4_a_watch_says_that_the_worker_has_died() {
    let world = World::new().await;
    let (mut server, _, terminal) = watched(&world).await;
    server.kill().await;
    terminal.shows("no live worker").await;
    terminal.interrupt();
    let (_, screen) = terminal.ended().await;
    assert!(!screen.contains("it goes on"), "{screen}");
}

#[tokio::test]
async fn l1_wait_prints_a_line_for_each_job_when_it_ends() {
    let world = World::new().await;
    let (good, _) = asked(&world, QUICK).await;
    let bad = failed(&world).await;
    let ran = world.run(&["jobs", "wait", &good, &good[..10]]).await;
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(0), 1), "each once: {ran:?}");
    let line: Vec<&str> = ran.stdout.trim_end().splitn(4, "  ").collect();
    assert_eq!((line[0], line[1]), (good.as_str(), "succeeded"), "{line:?}");
    assert!(line[2].starts_with('$') && line[3].starts_with("Why is the sky"), "{line:?}");
    assert!(ran.stderr.contains(&format!("outlast jobs show {}", &good[..8])), "{ran:?}");
    let ran = world.run(&["jobs", "wait", &good, &bad]).await;
    assert_eq!((ran.code, ran.stdout.lines().count()), (Some(1), 2), "{ran:?}");
    let mut server = world.serve().await;
    let stuck = start(&mut server, "stuck").await;
    let ran = world.run(&["jobs", "wait", &good, &stuck, "--timeout", "50ms"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    assert!(ran.stderr.contains("1 job is unfinished"), "{ran:?}");
    let ran = world.run(&["jobs", "wait", &stuck, "--timeout", "0s", "--json"]).await;
    assert_eq!(ran.code, Some(3), "{ran:?}");
    let reported: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(reported["jobs"][0]["id"], stuck, "{reported}");
}

#[tokio::test]
async fn cancel_ends_a_job_once_and_never_one_that_has_ended() {
    let world = World::new().await;
    let (good, _) = asked(&world, QUICK).await;
    let ran = world.run(&["jobs", "cancel", &good]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(ran.stderr.contains("has ended already: succeeded"), "{ran:?}");
    let mut server = world.serve().await;
    let stuck = start(&mut server, "stuck").await;
    running(&world, &stuck).await;
    for _ in 0..2 {
        let ran = world.run(&["jobs", "cancel", &stuck[..8]]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert_eq!(ran.stdout, format!("{stuck}  cancelled\n"));
    }
}

/// B9a: a job that ran out of time left a run behind that is being paid for. Its report is fetched, not bought again.
#[tokio::test]
async fn b9a_a_retry_resumes_the_run_that_outlived_its_job() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_ASYNC_MAX_WAIT_MS", "1000");
    let mut server = world.serve().await;
    let old = start(&mut server, "ok;words=60;hold=true;delay_ms=0").await;
    let failed = finished(&mut server, &old).await;
    let error = failed["error"].as_str().unwrap();
    assert!(error.starts_with("TIMEOUT: no result within the 1 s"), "{error}");
    let advice = failed["message"].as_str().unwrap();
    assert!(advice.contains(&format!("`outlast jobs retry {old}`")), "{advice}");
    assert!(advice.contains("perplexity_research_start would begin it anew and be paid for again"));
    server.kill().await;
    world.unset("PERPLEXITY_ASYNC_MAX_WAIT_MS");
    world.simulator.release();
    let retried = world.run(&["jobs", "retry", &old]).await;
    assert_eq!(retried.code, Some(0), "{retried:?}");
    assert!(retried.stderr.contains("it goes on with run resp_"), "{retried:?}");
    let new = retried.stdout.trim().to_owned();
    let worker = LeftBehind::of(&retried.stderr);
    let waited = world.run(&["jobs", "wait", &new, "--timeout", "60s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    assert_eq!(world.submits(), 1);
    worker.leaves().await;
}

/// The jobs tool set gives the same advice.
#[tokio::test]
async fn a_workflow_that_left_a_run_behind_is_not_to_be_started_again() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_POLLING_TIMEOUT_MS", "400");
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    let mut server = world.serve_with(&["--tools", "jobs"]).await;
    let message = "Why? [[sim:stuck]]";
    let asked = json!({ "workflow": "deep_research", "message": message });
    let id = server.structured("start_job", asked).await["job_id"].clone();
    let job = server.structured("get_job", json!({ "job_id": id, "wait_seconds": 60 })).await;
    assert_eq!(job["error"]["code"], "TIMEOUT", "{job}");
    assert_eq!(job["error"]["retryable"], false, "{job}");
    let next = job["next_instruction_for_model"].as_str().unwrap();
    assert!(next.contains("may still finish"), "{next}");
    assert!(next.ends_with("Starting it again would be paid for again."), "{next}");
}

#[tokio::test]
async fn a_retry_is_a_new_job_linked_to_the_old_and_made_once() {
    let world = World::new().await;
    let (good, _) = asked(&world, QUICK).await;
    let refused = world.run(&["jobs", "retry", &good]).await;
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("only what failed or was cancelled is retried"), "{refused:?}");

    let question = "Why? [[sim:http;status=400;times=1|ok;words=60;delay_ms=0]]";
    let ran = world.run(&["research", question]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let list = world.run(&["jobs", "list", "--json", "--state", "failed"]).await;
    let list: Value = serde_json::from_str(&list.stdout).unwrap();
    let old = list["jobs"][0]["id"].as_str().unwrap().to_owned();
    let retried = world.run(&["jobs", "retry", &old[..8]]).await;
    assert_eq!(retried.code, Some(0), "{retried:?}");
    let new = retried.stdout.trim().to_owned();
    let worker = LeftBehind::of(&retried.stderr);
    let waited = world.run(&["jobs", "wait", &new, "--timeout", "60s"]).await;
    assert_eq!(waited.code, Some(0), "{waited:?}");
    let again = world.run(&["jobs", "retry", &old]).await;
    assert_eq!((again.code, again.stdout.trim()), (Some(0), new.as_str()), "{again:?}");
    assert!(again.stderr.contains("was retried as this one before"), "{again:?}");
    let show = world.run(&["jobs", "show", &new]).await;
    assert!(show.stdout.contains(&format!("retry of  {old}")), "{}", show.stdout);
    let show = world.run(&["jobs", "show", &old]).await;
    assert!(show.stdout.contains(&format!("retried as  {new}")), "{}", show.stdout);
    assert!(
        show.stdout.contains("timeline") && show.stdout.contains("attempt 1 failed"),
        "{}",
        show.stdout
    );
    assert_eq!(world.submits(), 2, "one for each answer: a refusal buys nothing");
    worker.leaves().await;
}

/// A corrected key or base URL is a reason for a retry: a job that left no run behind is sent with today's values.
#[tokio::test]
async fn a_retry_is_asked_with_the_key_and_base_url_of_today() {
    let mut world = World::new().await;
    let right = [
        ("PERPLEXITY_API_KEY", "pplx-test".to_owned()),
        ("PERPLEXITY_BASE_URL", world.simulator.url().to_owned()),
    ];
    for (name, wrong) in [
        ("PERPLEXITY_API_KEY", "pplx-wrong".to_owned()),
        ("PERPLEXITY_BASE_URL", format!("{}/no", world.simulator.url())),
    ] {
        world.set(name, &wrong);
        let ran = world.run(&["research", QUICK]).await;
        assert_eq!(ran.code, Some(1), "{ran:?}");
        for (name, value) in &right {
            world.set(name, value);
        }
        let list = world.run(&["jobs", "list", "--json", "--state", "failed"]).await;
        let list: Value = serde_json::from_str(&list.stdout).unwrap();
        let old = list["jobs"][0]["id"].as_str().unwrap().to_owned();
        let retried = world.run(&["jobs", "retry", &old]).await;
        assert_eq!(retried.code, Some(0), "{retried:?}");
        let worker = LeftBehind::of(&retried.stderr);
        let waited = world.run(&["jobs", "wait", retried.stdout.trim(), "--timeout", "60s"]).await;
        assert_eq!(waited.code, Some(0), "{waited:?}");
        worker.leaves().await;
    }
    assert_eq!(world.submits(), 2);
}

/// If the configuration has no such provider, the retry names the requirements of a worker.
#[tokio::test]
async fn a_retry_that_nothing_here_can_run_says_what_is_missing() {
    let mut world = World::new().await;
    let bad = failed(&world).await;
    world.unset("PERPLEXITY_API_KEY");
    let retried = world.run(&["jobs", "retry", &bad]).await;
    assert_eq!(retried.code, Some(0), "{retried:?}");
    let words = "with the key and base URL that it was first asked with";
    assert!(retried.stderr.contains(words), "{retried:?}");
}
