//! A refused cancel is not a stop (A3): every statement about the run was observed, and no retry buys a second run
//! without consent. The real binary against a vendor that counts its paid runs.

use outlast_simulator::{Options, SonarMode};
use serde_json::{Value, json};

use crate::support::{CANCEL, POLL, World, eventually, finished, running, start};

/// A vendor: its name, and the path under which the simulator speaks its protocol.
const VENDORS: [(&str, &str); 4] =
    [("perplexity", ""), ("openai", "/openai/v1"), ("gemini", ""), ("anthropic", "")];

async fn world((vendor, path): (&str, &str)) -> World {
    let mut world = World::with(Options { sonar: SonarMode::Live, ..Options::default() }).await;
    let base_url = format!("{}{path}", world.simulator.url());
    let variable = vendor.to_uppercase();
    world.set("OUTLAST_PROVIDERS", vendor);
    world.set("OUTLAST_TOOLS", "research,research-jobs");
    world.set(&format!("{variable}_API_KEY"), "sk-test");
    world.set(&format!("{variable}_BASE_URL"), &base_url);
    world
}

async fn spend(world: &World) -> Value {
    let ran = world.run(&["spend", "--json"]).await;
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

/// Waits until `jobs show` prints this.
async fn shown(world: &World, id: &str, said: &str) -> String {
    let looking = async {
        loop {
            let shown = world.run(&["jobs", "show", id]).await.stdout;
            if shown.contains(said) {
                return shown;
            }
        }
    };
    let limit = std::time::Duration::from_secs(60);
    tokio::time::timeout(limit, looking).await.unwrap_or_else(|_| panic!("never said: {said}"))
}

/// A3, P6: the vendor refuses the cancel of a run that continues. A retry resumes that run, and sends nothing.
#[tokio::test]
async fn a3_a_refused_cancel_is_not_a_stop_and_a_retry_buys_no_second_run() {
    for vendor in VENDORS {
        for fault in ["cancel;mode=terminal400", "http;on=cancel;status=409", "cancel;mode=ignored"]
        {
            let world = world(vendor).await;
            let mut server = world.serve().await;
            let id = start(&mut server, &format!("{fault}|ok;words=80;hold")).await;
            running(&world, &id).await;
            eventually("the question is sent", || world.submits() == 1).await;
            let cancelled = server.structured(CANCEL, json!({ "jobId": id })).await;
            assert_eq!(cancelled["status"], "CANCELLED", "{vendor:?} {fault}: {cancelled}");
            let ran = world.run(&["jobs", "retry", &id]).await;
            assert_eq!(ran.code, Some(0), "{vendor:?} {fault}: {ran:?}");
            assert!(ran.stderr.contains("goes on with run"), "{ran:?}");
            let poll = server.structured(POLL, json!({ "jobId": id })).await;
            let message = poll["message"].as_str().unwrap();
            assert!(message.contains("goes on and may still finish, and be charged"), "{message}");
            world.simulator.release();
            let retry = ran.stdout.trim().to_owned();
            let ended = finished(&mut server, &retry).await;
            assert_eq!(ended["status"], "COMPLETED", "{vendor:?} {fault}: {ended}");
            assert_eq!(world.submits(), 1, "{vendor:?} {fault}: nothing was bought again");
            let spent = spend(&world).await;
            assert_eq!(
                (&spent["maybe_spent_usd"], &spent["rows"][0]["runs"]),
                (&json!(0.0), &json!(1)),
                "{spent}"
            );
        }
    }
}

/// A3: the run had completed before its cancel. The job stays cancelled, the ledger has the cost, and a retry fetches the
/// report without sending anything.
#[tokio::test]
async fn a3_a_run_that_had_completed_is_paid_for_once_and_its_report_is_fetched() {
    for vendor in VENDORS {
        let world = world(vendor).await;
        let mut server = world.serve().await;
        let id = start(&mut server, "ok;words=80;hold").await;
        running(&world, &id).await;
        eventually("the question is sent", || world.submits() == 1).await;
        server.kill().await;
        let mut idle = world.serve_with(&["--no-worker"]).await;
        idle.structured(CANCEL, json!({ "jobId": id })).await;
        idle.kill().await;
        world.simulator.release();
        let ended =
            || matches!(world.simulator.stats().runs[0].status.as_str(), "completed" | "idle");
        eventually("the run ends by itself", ended).await;
        let mut server = world.serve().await;
        let text = shown(&world, &id, "had already completed").await;
        assert!(text.contains("cancelled"), "{vendor:?}: {text}");
        let poll = server.structured(POLL, json!({ "jobId": id })).await;
        assert_eq!(poll["status"], "CANCELLED", "{poll}");
        assert!(poll["message"].as_str().unwrap().contains("fetches its report"), "{poll}");
        let spent = spend(&world).await;
        let billed = world.simulator.stats().spent_nanos as f64 / 1e9;
        assert_eq!(
            (&spent["total_usd"], &spent["maybe_spent_usd"]),
            (&json!(billed), &json!(0.0)),
            "{vendor:?}"
        );
        let ran = world.run(&["jobs", "retry", &id]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(ran.stderr.contains("fetches the report of run"), "{ran:?}");
        let ended = finished(&mut server, ran.stdout.trim()).await;
        assert_eq!(ended["status"], "COMPLETED", "{vendor:?}: {ended}");
        assert_eq!(world.submits(), 1, "{vendor:?}: nothing was sent");
        assert_eq!(spend(&world).await["total_usd"], json!(billed), "{vendor:?}: paid for once");
        assert_eq!(world.shown(&id).await["state"], "cancelled", "it stays cancelled");
    }
}

/// A3: an accepted cancel is reported as a stop of the run after that was observed; then a retry begins a new run.
#[tokio::test]
async fn a3_a_run_that_was_seen_to_stop_is_begun_again_by_a_retry() {
    for vendor in VENDORS {
        let world = world(vendor).await;
        let mut server = world.serve().await;
        let id = start(&mut server, "stuck").await;
        running(&world, &id).await;
        eventually("the question is sent", || world.submits() == 1).await;
        server.structured(CANCEL, json!({ "jobId": id })).await;
        shown(&world, &id, "run was stopped, or ended without a report").await;
        assert_eq!(world.shown(&id).await["cancelled_run"], "ended");
        let ran = world.run(&["jobs", "retry", &id]).await;
        assert_eq!(ran.code, Some(0), "{ran:?}");
        eventually("a new run is begun", || world.submits() == 2).await;
    }
}

/// A3: Sonar has no cancel call; a retry resumes the run that continues.
#[tokio::test]
async fn a3_a_retry_after_a_cancel_at_sonar_resumes_the_run() {
    let mut world = world(VENDORS[0]).await;
    world.set("PERPLEXITY_API", "sonar");
    let mut server = world.serve().await;
    let id = start(&mut server, "ok;words=80;hold").await;
    running(&world, &id).await;
    server.structured(CANCEL, json!({ "jobId": id })).await;
    let ran = world.run(&["jobs", "retry", &id]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    world.simulator.release();
    assert_eq!(finished(&mut server, ran.stdout.trim()).await["status"], "COMPLETED");
    assert_eq!(world.submits(), 1);
}

/// B9a: a refusal of the paid step is a refusal, also if the vendor first makes a free session. The job does not claim
/// that a run may still finish, or that no answer is recorded.
#[tokio::test]
async fn g6_a_refusal_costs_nothing_and_is_shown_as_one() {
    for vendor in VENDORS {
        for status in [400, 401, 402, 413, 422] {
            let world = world(vendor).await;
            let mut server = world.serve().await;
            let id = start(&mut server, &format!("http;on=submit;status={status}")).await;
            assert_eq!(finished(&mut server, &id).await["status"], "FAILED");
            let spent = spend(&world).await;
            let counted = (&spent["maybe_spent_usd"], &spent["total_usd"], &spent["reserved_usd"]);
            let nothing = (&json!(0.0), &json!(0.0), &json!(0.0));
            assert_eq!(counted, nothing, "{vendor:?} {status}: {spent}");
            let shown = world.run(&["jobs", "show", &id]).await.stdout;
            assert!(!shown.contains("no answer recorded"), "{vendor:?} {status}: {shown}");
            assert!(!shown.contains("may still finish"), "{vendor:?} {status}: {shown}");
        }
    }
}

/// G6: the cost of a failed run is spent if the vendor states it, and a run that has ended is not reported as running.
#[tokio::test]
async fn g6_the_stated_cost_of_a_failed_run_is_spent() {
    for vendor in VENDORS {
        let mut world = world(vendor).await;
        world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
        let mut server = world.serve().await;
        let id = start(&mut server, "cost;total=0.25|fail;code=invalid_prompt;delay_ms=0").await;
        assert_eq!(finished(&mut server, &id).await["status"], "FAILED");
        let spent = spend(&world).await;
        assert_eq!(spent["maybe_spent_usd"], json!(0.0), "{vendor:?}: {spent}");
        let stated = spent["total_usd"].as_f64().unwrap();
        assert!(stated > 0.0, "{vendor:?}: {spent}");
        let shown = world.run(&["jobs", "show", &id]).await.stdout;
        assert!(!shown.contains("may still finish"), "{vendor:?}: {shown}");
    }
}

/// A job that began several runs shows the id and the cost of each.
#[tokio::test]
async fn g6_a_job_that_began_several_runs_shows_each_of_them() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_RETRY_BASE_MS", "1");
    let mut server = world.serve().await;
    let id = start(&mut server, "fail;times=1|ok;words=60;delay_ms=0").await;
    assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED");
    let runs = world.simulator.stats().runs;
    assert_eq!(runs.len(), 2);
    let text = world.run(&["jobs", "show", &id]).await.stdout;
    let json = world.shown(&id).await["runs"].clone();
    for (number, run) in runs.iter().enumerate() {
        assert!(text.contains(&run.id), "{text}");
        assert_eq!(json[number]["id"], json!(run.id), "{json}");
    }
    assert!(
        text.contains("may have cost $") && text.contains("reported by the provider"),
        "{text}"
    );
    assert!(json[0]["possible_nano_usd"].as_u64().unwrap() > 0, "{json}");
}

/// P6: a request whose answer was lost repeatedly under one key shows the number of sends.
#[tokio::test]
async fn p6_a_lost_submit_of_sonar_says_that_it_was_sent_several_times() {
    let mut world = world(VENDORS[0]).await;
    world.set("PERPLEXITY_API", "sonar");
    world.set("PERPLEXITY_RETRY_BASE_MS", "1");
    let mut server = world.serve().await;
    let id = start(&mut server, "http;on=submit;status=504").await;
    let ended = finished(&mut server, &id).await;
    let error = ended["error"].as_str().unwrap();
    assert!(error.contains("sent up to 3 times under one key"), "{error}");
    assert!(!error.contains("was not sent again"), "{error}");
}

/// A lost answer to the creation of a free session costs no attempt.
#[tokio::test]
async fn g4_a_lost_answer_to_a_free_session_costs_no_attempt() {
    let mut world = world(VENDORS[3]).await;
    world.set("PERPLEXITY_MAX_JOB_RETRIES", "0");
    let mut server = world.serve().await;
    let id = start(&mut server, "drop_create|ok;words=60;delay_ms=0").await;
    let ended = finished(&mut server, &id).await;
    assert_eq!(ended["status"], "COMPLETED", "{ended}");
    assert_eq!(world.shown(&id).await["attempts"], 0);
    assert_eq!(world.submits(), 1);
}

/// A submit that is answered with 404 names the setting that is probably wrong.
#[tokio::test]
async fn g9_a_submit_answered_with_404_names_the_base_url() {
    for vendor in VENDORS {
        let mut world = world(vendor).await;
        let variable = format!("{}_BASE_URL", vendor.0.to_uppercase());
        let wrong = format!("{}/nowhere", world.simulator.url());
        world.set(&variable, &wrong);
        let mut server = world.serve().await;
        let id = start(&mut server, "ok").await;
        let ended = finished(&mut server, &id).await;
        let error = ended["error"].as_str().unwrap();
        assert!(error.contains(&variable), "{vendor:?}: {error}");
    }
}
