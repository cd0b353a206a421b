//! `outlast worker`: runs jobs without an interface.

mod background;

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_core::Profile;
use outlast_engine::{Dispatch, LeaveTime, Options, Shutdown, Worker, WorkerRole};
use outlast_server::{Face, Metrics, Server, serve_http};
use outlast_store::Judgement;

use super::load_config;
use super::serve;
use super::signals::drain_on_signals;
use crate::cli::{Global, WorkerArgs, WorkerCommand};
use crate::config::{Config, settings};
use crate::data_dir;
use crate::detached::log::{MAX_BYTES, RotatingLog};
use crate::detached::log_relay::LogRelay;
use crate::detached::socket::SocketFolder;
use crate::detached::{self, WorkerIdentity, Workers, telling};
use crate::error::{CommandResult, DONE};
use crate::logging::{self, Relay};
use crate::metered;
use crate::open_store::{OpenEngine, OpenPatience, OpenStore, options};
use crate::ui;
use crate::wire::{
    citation_checks, library_provider, no_provider, research_providers, workflow_providers,
};

pub(super) async fn run(global: &Global, args: WorkerArgs) -> CommandResult {
    match args.command {
        Some(WorkerCommand::List { json }) => return background::list(global, json),
        Some(WorkerCommand::Stop { id }) => return background::stop(global, id).await,
        None => {}
    }
    let concurrency = args.concurrency.map(|n| n.to_string());
    let flags = [(settings::SERVER_CONCURRENCY, "--concurrency", concurrency)];
    let config = load_config(global, &flags)?;
    let identity = args.detached.as_ref().map(|_| WorkerIdentity::of(&config, &args.library));
    let relay = match &identity {
        Some(identity) => start_detached(global, &config, &args, identity)?,
        None => {
            super::start_log(global, &config)?;
            None
        }
    };
    let http = match args.http {
        Some(address) => Some(serve::http::open_for_operators(address, &config).await?),
        None => None,
    };
    let mut providers = workflow_providers(&config, None)?;
    let research = match args.library.as_slice() {
        [] => research_providers(&config)?,
        folders => vec![library_provider(&config, folders.to_vec())?],
    };
    providers.extend(research);
    // A detached worker may be there for checks alone.
    let checks = citation_checks(&config, &args.library)?;
    if providers.is_empty() && (identity.is_none() || checks.is_none()) {
        return Err(no_provider());
    }
    providers.extend(checks);

    let profiles: Vec<Profile> = providers.keys().cloned().collect();
    let stop = Shutdown::new();
    let folder = SocketFolder::of(&config);
    let folder = folder.filter(|folder| identity.is_some() || folder.is_beside_a_file);
    let own = identity.as_ref().map_or_else(SocketFolder::front_name, WorkerIdentity::socket_name);
    let opened =
        OpenStore::open_by(&config, None, Judgement::default(), OpenPatience::AsConfigured);
    let metrics = Arc::new(Metrics::default());
    let store = opened.await?;
    let observers = store.observers(&metrics, folder.clone(), own);
    let again = global.clone();
    let reload = Box::new(move || load_config(&again, &flags));
    let workers = Workers::new(global, &config, &args.library, reload);
    // A detached worker ends when its configuration has changed, and itself leaves the waiting jobs to the next one.
    let (detached_workers, workers) = match identity {
        Some(_) => (workers, None),
        None => (None, workers),
    };
    let workers = workers.map(Arc::new);
    let dispatch = match &workers {
        None => Dispatch::Here,
        Some(workers) => Dispatch::here_while_current(workers.clone()),
    };
    let options = Options { dispatch, observers, ..options(&config) };
    let OpenEngine { engine, follower, mirror, .. } = store
        .engine(&config, options, metered::providers(providers, &metrics), stop.clone())
        .await?;
    let mirror_task = super::MirrorTask::spawn(mirror.as_ref());
    // A detached worker has a separate socket.
    let folder = folder.filter(|_| identity.is_none());
    let listener = folder.and_then(|folder| telling::listen(&folder, &engine, None));
    outlast_engine::spawn(drain_on_signals(stop.clone(), config.drain_timeout)?);
    let serving = http.map(|(listener, http)| {
        let face = Face::new(config.owner.clone(), engine.clone(), Vec::new());
        let server = Server::new(face).with_metrics(metrics);
        outlast_engine::spawn(serve_http(server, http, listener, stop.clone()))
    });
    let worked = match &identity {
        Some(identity) => {
            let workers = detached_workers.as_ref();
            detached::worker::work(&engine, &config, identity, &profiles, workers, &stop).await
        }
        None => {
            ui::print_waiting(match args.until_idle {
                true => "Working until no job is left. Ctrl-C gives the jobs back and ends it.",
                false => "Waiting for jobs in the store. Ctrl-C gives them back and ends it.",
            });
            let until =
                if args.until_idle { LeaveTime::IdleFor(Duration::ZERO) } else { LeaveTime::Asked };
            Worker::new(&engine, WorkerRole::TheQueue).run(until).await.map_err(Into::into)
        }
    };

    stop.ask();
    if let Some(serving) = serving {
        drop(serving.await);
    }
    if let Some(workers) = workers {
        workers.stop_later().await;
    }
    telling::end(listener).await;
    mirror_task.finish().await;
    drop(follower.await);
    store.close().await;
    if let Some(relay) = relay {
        relay.flush();
    }
    worked?;
    DONE
}

/// Starts the log of a detached worker, and fails if its configuration or program was changed since its starter read
/// them: it would run the starter's jobs in another way than the starter would.
fn start_detached(
    global: &Global,
    config: &Config,
    args: &WorkerArgs,
    own: &WorkerIdentity,
) -> CommandResult<Option<LogRelay>> {
    data_dir::prepare(&config.data_dir)?;
    let log = RotatingLog::open(detached::log::path(&config.data_dir), MAX_BYTES);
    let log = log.context("open the log of workers")?;
    let relay = SocketFolder::of(config).map(LogRelay::start).transpose();
    let relay = relay.context("start the thread that passes log lines on")?;
    let others = relay.clone().map_or(Relay::None, Relay::ToServers);
    logging::start(Arc::new(log), global, &config.log, config.log_format, others)
        .map_err(anyhow::Error::msg)?;
    if args.detached != Some(own.to_string()) {
        let why = "the configuration or the program has changed since the process that wants a worker was started";
        return Err(anyhow::anyhow!(why).into());
    }
    Ok(relay)
}
