//! OpenAI and Gemini behind the real server: killed at every point, resumed, cancelled after a crash. Both have neither
//! keys nor a list of runs, so the cost of a crash is the same. The simulator counts its paid runs.

use serde_json::json;

use crate::crash::{completes_with_one_submit, killed_at};
use crate::partial::soon;
use crate::support::{CANCEL, World, eventually, finished, running, start};

/// A vendor: its name, and the path under which the simulator speaks its protocol.
const VENDORS: [(&str, &str); 2] = [("openai", "/openai/v1"), ("gemini", "")];

/// Creates a server that asks this vendor, by the tools that start and poll.
async fn world((vendor, path): (&str, &str)) -> World {
    let mut world = World::new().await;
    let base_url = format!("{}{path}", world.simulator.url());
    let variable = vendor.to_uppercase();
    world.unset("PERPLEXITY_API_KEY");
    world.unset("PERPLEXITY_BASE_URL");
    world.set("OUTLAST_PROVIDERS", vendor);
    world.set("OUTLAST_TOOLS", "research,research-jobs");
    world.set(&format!("{variable}_API_KEY"), "sk-test");
    world.set(&format!("{variable}_BASE_URL"), &base_url);
    world
}

/// G3, G4: if nothing was sent, or the run's id is on record, there is one report and one purchase.
#[tokio::test]
async fn g3_killed_at_a_point_that_loses_nothing_the_job_is_done_once() {
    for vendor in VENDORS {
        for point in
            ["after-insert", "after-claim", "after-running", "before-settle", "after-settle"]
        {
            completes_with_one_submit(world(vendor).await, point).await;
        }
    }
}

/// G4, B9a: neither vendor can be asked about a lost create, so its outcome is unknown, and it is not repeated.
#[tokio::test]
async fn g4_killed_around_the_send_the_submit_is_unknown_and_not_repeated() {
    for vendor in VENDORS {
        for (point, submits) in [("after-beginning", 0), ("after-answer", 1)] {
            let (world, ended) = killed_at(world(vendor).await, point, "ok").await;
            assert_eq!(ended["status"], "FAILED", "{vendor:?} {point}: {ended}");
            let error = ended["error"].as_str().unwrap();
            assert!(error.starts_with("SUBMIT_UNKNOWN: "), "{vendor:?} {point}: {ended}");
            assert_eq!(world.submits(), submits, "{vendor:?} {point}");
        }
    }
}

/// G4, G5, B9a: an answer that never came is unknown too; a request with a temporary refusal is repeated.
#[tokio::test]
async fn g4_a_lost_answer_is_unknown_and_a_refused_request_is_repeated() {
    for vendor in VENDORS {
        let world = world(vendor).await;
        let mut server = world.serve().await;
        let id = start(&mut server, "drop_submit").await;
        let ended = finished(&mut server, &id).await;
        assert!(ended["error"].as_str().unwrap().starts_with("SUBMIT_UNKNOWN: "), "{ended}");
        assert_eq!(world.submits(), 1);
        let id = start(&mut server, "503x1;words=80;delay_ms=0").await;
        assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED", "{vendor:?}");
        assert_eq!(world.submits(), 2, "{vendor:?}: one for each that was taken");
    }
}

/// G3: killed from outside in the middle of a run, which is resumed; its cost is the vendor's bill.
#[tokio::test]
async fn g3_killed_in_the_middle_of_a_run_the_report_arrives() {
    for vendor in VENDORS {
        let world = world(vendor).await;
        let mut doomed = world.serve().await;
        let id = start(&mut doomed, "ok;words=80;hold=true").await;
        running(&world, &id).await;
        doomed.kill().await;
        let mut server = world.serve().await;
        world.simulator.release();
        let ended = finished(&mut server, &id).await;
        assert_eq!(ended["status"], "COMPLETED", "{ended}");
        assert!(ended["response"].as_str().unwrap().contains("Citations:\n[1] http"), "{ended}");
        assert_eq!(world.submits(), 1);
        let stats = world.simulator.stats();
        let shown = world.shown(&id).await;
        assert_eq!(stats.runs[0].api, vendor.0);
        assert_eq!(shown["output"]["cost"]["nano_usd"], stats.spent_nanos, "{shown}");
    }
}

/// G3: a crash does not lose the duty to stop the run.
#[tokio::test]
async fn g3_a_cancel_after_a_crash_stops_the_run_at_the_vendor() {
    for vendor in VENDORS {
        let world = world(vendor).await;
        let mut doomed = world.serve().await;
        let id = start(&mut doomed, "stuck").await;
        running(&world, &id).await;
        doomed.kill().await;
        let mut idle = world.serve_with(&["--no-worker"]).await;
        let cancelled = idle.structured(CANCEL, json!({ "jobId": id })).await;
        assert_eq!(cancelled["status"], "CANCELLED", "{cancelled}");
        idle.kill().await;
        assert_eq!(world.simulator.stats().cancels, 0);
        let _worker = world.serve().await;
        let stopped = || world.simulator.stats().runs[0].status == "cancelled";
        eventually("the next worker notifies the vendor", stopped).await;
        assert_eq!(world.submits(), 1);
    }
}

/// G8: the text so far is available while a report is being written, by any vendor, and removed at the end.
#[tokio::test]
async fn g8_every_vendor_shows_the_text_so_far() {
    for vendor in VENDORS.into_iter().chain([("anthropic", "")]) {
        let world = world(vendor).await;
        let mut server = world.serve().await;
        let id = start(&mut server, "ok;searches=1;words=3000;delay_ms=100000").await;
        soon("the text so far", async || {
            world.shown(&id).await["partial"].as_str().map(str::to_owned)
        })
        .await;
        assert_eq!(finished(&mut server, &id).await["status"], "COMPLETED", "{vendor:?}");
        assert_eq!(world.shown(&id).await["partial"], json!(null), "{vendor:?}");
    }
}
