//! A vendor that refuses to stop a run: neither the refusal nor a retry may buy a second one.

use serde_json::json;

use crate::target::{START, Target, start};
use crate::{Setting, Verdict};

const CANCEL: &str = "perplexity_research_cancel";

/// The vendors, and the paths under which the simulator speaks their protocols.
const VENDORS: [(&str, &str); 4] =
    [("perplexity", ""), ("openai", "/openai/v1"), ("gemini", ""), ("anthropic", "")];

/// Cancels a job whose run the vendor does not stop, and retries the job without consent to a second run.
pub(crate) async fn retry(setting: Setting) -> Verdict {
    let faults: &[&str] = match setting.short {
        true => &["cancel;mode=terminal400"],
        false => &["cancel;mode=terminal400", "http;on=cancel;status=409", "cancel;mode=ignored"],
    };
    let mut tried = 0;
    for (vendor, path) in VENDORS {
        for fault in faults {
            bought_once(&setting, vendor, path, fault)
                .await
                .map_err(|how| format!("{vendor}: {how}"))?;
            tried += 1;
        }
    }
    Ok(format!("{tried} refused cancels, each with 1 submit"))
}

async fn bought_once(setting: &Setting, vendor: &str, path: &str, fault: &str) -> Verdict {
    let mut target = Target::new(setting).await;
    let variable = vendor.to_uppercase();
    let base_url = format!("{}{path}", target.simulator.url());
    target.set("OUTLAST_PROVIDERS", vendor);
    target.set("OUTLAST_TOOLS", "research-jobs");
    target.set(&format!("{variable}_API_KEY"), "sk-attack");
    target.set(&format!("{variable}_BASE_URL"), &base_url);
    let mut server = target.serve(&[]).await;
    let started = server.structured(START, start(0, &format!("{fault}|ok;words=60;hold"))).await;
    let id = started["jobId"].as_str().unwrap_or_default().to_owned();
    target.submitted(1).await;
    target.recorded(&id).await;
    server.structured(CANCEL, json!({ "jobId": id })).await;
    target.cancel_seen().await;
    let (code, retry, said) = target.run(&["jobs", "retry", &id]).await;
    target.simulator.release();
    if code == Some(0) {
        target.ended_or_paid(retry.trim(), 2).await;
    }
    let (_, shown, _) = target.run(&["jobs", "show", &id]).await;
    target.paid(1).map_err(|how| format!("a retry after a refused cancel: {how}"))?;
    if shown.contains("was told to stop its run.") {
        return Err(format!("the run goes on, and the job says that it was told to stop: {said}"));
    }
    Ok(String::new())
}
