//! `outlast worker list` and `outlast worker stop`: the workers that servers and commands left running.

use std::time::Duration;

use outlast_core::Clock as _;
use outlast_store::SystemClock;
use tokio::time::Instant;

use crate::cli::Global;
use crate::commands::load_config;
use crate::detached::info::{WorkerInfo, list_living};
use crate::detached::socket::{Message, SocketFolder};
use crate::error::{CommandError, CommandResult, DONE, refuse};
use crate::ui;

/// The time that a worker may take to release its jobs.
const MAX_LEAVING: Duration = Duration::from_secs(15);
/// The interval of the checks in the meantime.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(super) fn list(global: &Global, as_json: bool) -> CommandResult {
    let folder = SocketFolder::of(&load_config(global, &[])?);
    let workers = folder.as_ref().map(list_living).unwrap_or_default();
    if as_json {
        ui::json(&serde_json::json!({ "workers": workers }));
        return DONE;
    }
    if workers.is_empty() {
        ui::remark("No worker runs in the background; a server starts one when a job needs it.");
        return DONE;
    }
    let now = SystemClock.now();
    let row = |worker: &WorkerInfo| {
        let config = worker.config.as_ref().map(|path| path.display().to_string());
        vec![
            ui::Cell::plain(&worker.id),
            ui::Cell::plain(&worker.pid.to_string()),
            ui::Cell::plain(&ui::ago(now.since(worker.started_at))),
            ui::Cell::plain(&worker.version),
            ui::Cell::plain(config.as_deref().unwrap_or("no configuration file")),
        ]
    };
    ui::table(&["ID", "PID", "AGE", "VERSION", "CONFIGURATION"], workers.iter().map(row).collect());
    DONE
}

pub(super) async fn stop(global: &Global, id: Option<String>) -> CommandResult {
    let folder = SocketFolder::of(&load_config(global, &[])?);
    let Some(folder) = folder else { return DONE };
    let mut workers = list_living(&folder);
    if let Some(id) = &id {
        workers.retain(|worker| worker.id.starts_with(id.as_str()));
        if workers.is_empty() {
            let why = format!("no worker `{id}` runs in the background of this store");
            return refuse(why, "`outlast worker list` shows those that do");
        }
    }
    for worker in &workers {
        // A worker that has already exited is fine.
        drop(folder.send(&worker.socket_name(), Message::Stop));
    }
    let deadline = Instant::now() + MAX_LEAVING;
    for worker in &workers {
        while folder.send(&worker.socket_name(), Message::Look).is_ok() {
            if Instant::now() > deadline {
                let why = format!("worker {} (pid {}) stays", worker.id, worker.pid);
                return Err(CommandError::failed(why, format!("kill {}", worker.pid)));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        ui::line(&worker.id);
    }
    if workers.is_empty() {
        ui::remark("No worker runs in the background.");
    }
    DONE
}
