//! A provider behind bad gateways: a request that may have been accepted is never sent again.

use std::time::Duration;

use serde_json::json;

use crate::target::{POLL, START, Target, start};
use crate::{Setting, Verdict};

/// Longer than the time within which a provider must find a new run, so that a 404 cannot mean that the run is too new.
const AWAY: Duration = Duration::from_secs(31);

/// Restarts the server after half a minute, while for some time the provider finds none of its runs, all of which
/// exist.
pub(crate) async fn not_found(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let jobs: u64 = if setting.short { 5 } else { 20 };
    let mut server = target.serve(&["--concurrency", "20"]).await;
    for number in 0..jobs {
        let scenario = "flap404;times=4|ok;words=60;hold";
        server.structured(START, start(usize::try_from(number).unwrap(), scenario)).await;
    }
    target.submitted(jobs).await;
    tokio::time::sleep(AWAY).await;
    server.kill().await;
    let _next = target.serve(&["--concurrency", "20"]).await;
    target.simulator.release();
    target.all_become("succeeded").await?;
    target.paid(jobs)
}

/// Answers a submit with JSON from a gateway: the provider's action is unknown.
pub(crate) async fn gateway(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let mut server = target.serve(&[]).await;
    let statuses = [408, 502, 504, 520, 521, 522, 523, 524];
    for (number, status) in statuses.into_iter().enumerate() {
        let scenario = format!("http;status={status};times=1|ok;words=60;delay_ms=0");
        let started = server.structured(START, start(number, &scenario)).await;
        let id = json!({ "jobId": started["jobId"] });
        let ended = loop {
            let poll = server.structured(POLL, id.clone()).await;
            if poll["status"] != "CREATED" && poll["status"] != "IN_PROGRESS" {
                break poll;
            }
        };
        let error = ended["error"].as_str().unwrap_or_default();
        if !error.starts_with("SUBMIT_UNKNOWN") {
            return Err(format!("after a {status}: {} {error}", ended["status"]));
        }
    }
    target.paid(0)
}
