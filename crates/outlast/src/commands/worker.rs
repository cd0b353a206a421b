//! `outlast worker`: work without a face.

mod background;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::Profile;
use outlast_engine::{Shutdown, Takes, Until, Worker};

use super::signals::stop_on_signals;
use crate::cli::{Global, WorkerArgs, WorkerCommand};
use crate::config::Config;
use crate::detached::log::RotatingLog;
use crate::detached::socket::SocketFolder;
use crate::detached::{self, Identity, telling};
use crate::error::CommandResult;
use crate::logging;
use crate::open_store::{OpenEngine, OpenStore, options};
use crate::ui;
use crate::wire::{library_provider, no_provider, research_providers, workflow_providers};

pub(super) async fn run(global: &Global, args: WorkerArgs) -> CommandResult {
    match args.command {
        Some(WorkerCommand::List { json }) => return background::list(global, json),
        Some(WorkerCommand::Stop { id }) => return background::stop(global, id).await,
        None => {}
    }
    let concurrency = args.concurrency.map(|n| n.to_string());
    let config =
        super::configured(global, &[("server.concurrency", "--concurrency", concurrency)])?;
    match &args.detached {
        Some(identity) => start_detached(global, &config, &args, identity)?,
        None => super::start_log(global, &config)?,
    }
    let mut providers = workflow_providers(&config, None)?;
    let research = match args.library.as_slice() {
        [] => research_providers(&config)?,
        folders => vec![library_provider(&config, folders.to_vec())?],
    };
    providers.extend(research);
    if providers.is_empty() {
        return Err(no_provider());
    }

    let profiles: Vec<Profile> = providers.keys().cloned().collect();
    let stop = Shutdown::new();
    let mut store = OpenStore::open(&config).await?;
    let folder = SocketFolder::of(&config);
    let mut listens_in = None;
    if args.detached.is_some() {
        let own = Identity::of(&config, &args.library).socket_name();
        store = store.telling(folder, own);
    } else {
        listens_in = folder.filter(|folder| folder.is_beside_a_file);
        store = store.telling(listens_in.clone(), SocketFolder::front_name());
    }
    let OpenEngine { engine, follower, mirror } =
        store.engine(&config, options(&config), providers, stop.clone()).await?;
    let mirror_task = super::MirrorTask::spawn(mirror.as_ref());
    let listener = listens_in.and_then(|folder| telling::listen(&folder, &engine));
    outlast_engine::spawn(stop_on_signals(stop.clone())?);
    let until = match args.until_idle {
        _ if args.detached.is_some() => Until::Asked,
        true => {
            ui::waiting("Working until no job is left. Ctrl-C gives the jobs back and ends it.");
            Until::IdleFor(Duration::ZERO)
        }
        false => {
            ui::waiting("Waiting for jobs in the store. Ctrl-C gives them back and ends it.");
            Until::Asked
        }
    };
    let worked = match args.detached {
        Some(_) => {
            let identity = Identity::of(&config, &args.library);
            detached::worker::work(&engine, &config, &identity, &profiles, &stop).await
        }
        None => Worker::new(&engine, Takes::TheQueue).run(until).await.map_err(Into::into),
    };

    stop.ask();
    telling::end(listener).await;
    mirror_task.finish().await;
    drop(follower.await);
    store.close().await;
    worked?;
    Ok(ExitCode::SUCCESS)
}

/// Starts the log of a detached worker, and refuses to be one whose configuration or program was changed since its starter
/// read them: it would carry the starter's jobs in another way than the starter would.
fn start_detached(
    global: &Global,
    config: &Config,
    args: &WorkerArgs,
    identity: &str,
) -> CommandResult<()> {
    let log = RotatingLog::open(detached::log::path(&config.data_dir));
    let log = log.context("open the log of workers")?;
    logging::start(Arc::new(log), global, &config.log).map_err(anyhow::Error::msg)?;
    let own = Identity::of(config, &args.library).to_string();
    if own != identity {
        let why = "the configuration or the program has changed since the process that wants a worker was started";
        return Err(anyhow::anyhow!(why).into());
    }
    Ok(())
}
