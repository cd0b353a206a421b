//! `outlast serve`: MCP over standard input and output or over HTTP, and a worker beside it.

mod http;

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Engine, Providers, Stop, Until, Worker};
use outlast_server::{
    Face, Metrics, ResearchJobs, ResearchJobsOptions, Server, ToolSet, serve_http, serve_stdio,
};

use crate::cli::{Global, ServeArgs};
use crate::config::Config;
use crate::failed::Failed;
use crate::observed;
use crate::shifted::ShiftedClock;
use crate::wire::{OpenStore, options, research_provider};

use super::signals::stop_on_signals;

/// How long the worker may take to give its jobs back.
const LEAVING: Duration = Duration::from_secs(2);

pub(super) async fn run(global: &Global, args: ServeArgs) -> Result<ExitCode, Failed> {
    let mut flags = Vec::new();
    flags.extend(args.tools.map(|tools| ("server.tools", "--tools", tools)));
    flags.extend(args.concurrency.map(|n| ("server.concurrency", "--concurrency", n.to_string())));
    let config = super::configured(global, flags)?;
    super::start_log(global, &config)?;
    let (profile, provider) = research_provider(&config, args.kill_at)?;
    let http = match args.http {
        None => None,
        Some(address) => {
            Some(http::open(address, args.no_auth, args.session_idle_ms, &config).await?)
        }
    };

    let stop = Stop::new();
    let store = match args.clock_file {
        Some(file) => OpenStore::open_by(&config.store, Arc::new(ShiftedClock { file }))?,
        None => OpenStore::open(&config.store)?,
    };
    let metrics = Arc::new(Metrics::default());
    let store = store.armed(args.kill_at).observed(&metrics);
    let mut options = options(&config);
    options.lease = args.lease_ms.map_or(options.lease, Duration::from_millis);
    let providers = Providers::from([(profile.clone(), provider)]);
    let providers = observed::providers(providers, &metrics);
    let (engine, follower) = store.engine_with(options, providers, stop.clone()).await?;
    let worker = (!args.no_worker).then(|| tokio::spawn(Worker::new(&engine).run(Until::Asked)));
    tokio::spawn(stop_on_signals(stop.clone())?);

    let face = Face {
        owner: config.owner.clone(),
        research_jobs: config
            .tools
            .contains(&ToolSet::ResearchJobs)
            .then(|| research_jobs(&engine, profile, &config)),
    };
    let server = Server::new(face).counted(metrics);
    let served = match http {
        None => serve_stdio(server, stop.clone()).await,
        Some((listener, options)) => {
            serve_http(server, engine, options, listener, stop.clone()).await;
            Ok(())
        }
    };

    stop.ask();
    if let Some(worker) = worker
        && tokio::time::timeout(LEAVING, worker).await.is_err()
    {
        tracing::warn!("left while the worker was still busy; the next process takes over");
    }
    drop(follower.await);
    store.close().await;
    served?;
    Ok(ExitCode::SUCCESS)
}

fn research_jobs(engine: &Engine, profile: outlast_core::Profile, config: &Config) -> ResearchJobs {
    let options = ResearchJobsOptions {
        profile,
        poll_budget: config.perplexity.research_poll_budget,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: config.perplexity.async_max_wait,
        keep: config.perplexity.research_job_ttl,
    };
    ResearchJobs::new(engine.clone(), options)
}
