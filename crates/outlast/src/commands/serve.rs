//! `outlast serve`: MCP over standard input and output, and a worker beside it.

use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::{Engine, Providers, Stop, Takes, Until, Worker};
use outlast_server::{Face, ResearchJobs, ResearchJobsOptions, Server, ToolSet, serve_stdio};

use crate::cli::{Global, ServeArgs};
use crate::config::Config;
use crate::failed::Failed;
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

    let stop = Stop::new();
    let store = match args.clock_file {
        Some(file) => OpenStore::open_by(&config.store, Arc::new(ShiftedClock { file }))?,
        None => OpenStore::open(&config.store)?,
    };
    let store = store.armed(args.kill_at);
    let mut options = options(&config)?;
    options.lease = args.lease_ms.map_or(options.lease, Duration::from_millis);
    let providers = Providers::from([(profile.clone(), provider)]);
    let (engine, follower) = store.engine_with(options, providers, stop.clone()).await?;
    let mirror_stop = Stop::new();
    let mirror = engine.run_mirror(mirror_stop.clone());
    let takes = if args.no_worker { Takes::HeldCallsOnly } else { Takes::TheQueue };
    let worker = tokio::spawn(Worker::new(&engine, takes).run(Until::Asked));
    tokio::spawn(stop_on_signals(stop.clone())?);

    let face = Face {
        owner: config.owner.clone(),
        research_jobs: config
            .tools
            .contains(&ToolSet::ResearchJobs)
            .then(|| research_jobs(&engine, profile, &config)),
    };
    let served = serve_stdio(Server::new(face), stop.clone()).await;

    stop.ask();
    if tokio::time::timeout(LEAVING, worker).await.is_err() {
        tracing::warn!("left while the worker was still busy; the next process takes over");
    }
    super::leave_mirror(mirror, &mirror_stop).await;
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
