//! `outlast worker`: work without a face.

use std::process::ExitCode;

use outlast_engine::{Shutdown, Takes, Until, Worker};

use super::signals::stop_on_signals;
use crate::cli::{Global, WorkerArgs};
use crate::error::CommandResult;
use crate::open_store::{OpenEngine, OpenStore};
use crate::ui;
use crate::wire::{library_provider, no_provider, research_providers, workflow_providers};

pub(super) async fn run(global: &Global, args: WorkerArgs) -> CommandResult {
    if args.own_session {
        // Refused only to a process that leads one already.
        if let Err(error) = rustix::process::setsid() {
            tracing::debug!(%error, "no session of its own");
        }
    }
    let concurrency = args.concurrency.map(|n| n.to_string());
    let config =
        super::configured(global, &[("server.concurrency", "--concurrency", concurrency)])?;
    super::start_log(global, &config)?;
    let mut providers = workflow_providers(&config, None)?;
    let research = match args.library.as_slice() {
        [] => research_providers(&config)?,
        folders => vec![library_provider(&config, folders.to_vec())?],
    };
    providers.extend(research);
    if providers.is_empty() {
        return Err(no_provider());
    }

    let stop = Shutdown::new();
    let store = OpenStore::open(&config).await?;
    let OpenEngine { engine, follower, mirror } =
        store.engine(&config, providers, stop.clone()).await?;
    let mirror_task = super::MirrorTask::spawn(mirror.as_ref());
    tokio::spawn(stop_on_signals(stop.clone())?);
    let until = match args.until_idle {
        true => {
            ui::waiting("Working until no job is left. Ctrl-C gives the jobs back and ends it.");
            Until::Idle
        }
        false => {
            ui::waiting("Waiting for jobs in the store. Ctrl-C gives them back and ends it.");
            Until::Asked
        }
    };
    let worked = Worker::new(&engine, Takes::TheQueue).run(until).await;

    stop.ask();
    mirror_task.finish().await;
    drop(follower.await);
    store.close().await;
    worked?;
    Ok(ExitCode::SUCCESS)
}
