//! The final checks: attacked jobs still run, and no data left behind mixes owners.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};

use super::inspect::foreign_words;
use super::owners::{MIRRORED, NAMES, token};
use super::request::Request;
use super::servers::KEY;
use super::worker::Worker;
use super::{Servers, Shared};

/// With more samples than this, the medians must be of the same magnitude.
const ENOUGH: usize = 100;
/// Far more than the noise of one machine between two alternating requests.
const CLASS: f64 = 3.0;

pub(super) async fn check(shared: &Arc<Shared>, servers: Servers, upstream: &[Value]) {
    attacked_jobs_still_run(shared).await;
    lists_contain_only_own_jobs(shared).await;
    for sent in upstream {
        let sent = sent.to_string().to_ascii_lowercase();
        let named = NAMES.iter().filter(|name| sent.contains(**name)).count();
        assert!(named <= 1, "the provider was sent words of {named} owners together: {sent}");
    }
    for file in files_below(&servers.folder().join("conversation-logs")) {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let foreign = foreign_words(MIRRORED, &text);
        assert!(foreign.is_none(), "{} has words of {foreign:?}'s", file.display());
    }
    for process in &servers.processes {
        let log = process.log();
        let shown = (0..NAMES.len()).find(|owner| log.contains(&token(*owner)));
        assert!(
            shown.is_none() && !log.contains(KEY),
            "a token, or the key, is in the log:\n{log}"
        );
        assert!(!log.contains(" ERROR "), "a server complained:\n{log}");
    }
    for (what, timing) in shared.timings.medians() {
        let same = (1.0 / CLASS..=CLASS).contains(&timing.ratio());
        assert!(timing.samples < ENOUGH || same, "{what} takes a different time: {timing:?}");
    }
}

async fn attacked_jobs_still_run(shared: &Arc<Shared>) {
    let mut owners: Vec<Worker> =
        (0..NAMES.len()).map(|owner| Worker::new(Arc::clone(shared), owner, 0)).collect();
    for (owner, id) in shared.ledger.attacked() {
        let worker = &mut owners[owner];
        let request = Request::task(1, "tasks/get", &id);
        let heard = worker.send(&request).await;
        let status = heard.answer()["result"]["status"].clone();
        let cancelled = status == "cancelled" && !shared.ledger.may_be_cancelled(owner, &id);
        if cancelled || !status.is_string() {
            worker.fail(worker.number(), "another owner has ended it", &request, &heard);
        }
    }
}

/// Checks the lists to the last page.
async fn lists_contain_only_own_jobs(shared: &Arc<Shared>) {
    for owner in 0..NAMES.len() {
        let mut worker = Worker::new(Arc::clone(shared), owner, 0);
        let mut arguments = json!({ "limit": 100 });
        loop {
            let request = Request::tool(1, "list_conversations", arguments.clone());
            let list = worker.result(&request).await["structuredContent"].clone();
            let Some(next) = list["nextCursor"].as_str() else { break };
            arguments["cursor"] = json!(next);
        }
    }
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
}
