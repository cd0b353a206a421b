//! `outlast serve`: MCP over standard input and output or over HTTP, with a worker in the same process.

pub(super) mod http;
pub(super) mod jobs;
pub(super) mod tool_schemas;

use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Clock, Profile};
use outlast_engine::{
    Dispatch, Engine, LeaveTime, Options, Providers, Shutdown, Worker, WorkerRole,
};
use outlast_server::{
    AuditLog, DocumentSharing, Face, Jobs, JobsOptions, MAX_UNANSWERED, Metrics, Perplexity,
    PerplexityOptions, Research, ResearchJobs, ResearchJobsOptions, ResearchMode, ResearchOptions,
    ResearchSet, Server, ToolSet, Tools, WAYS_TO_A_PROVIDER, serve_http, serve_stdio,
};
use outlast_store::Judgement;

use crate::cli::{Global, ServeArgs};
use crate::config::{CitationChecks, Config, Detach, settings};
use crate::data_dir;
use crate::detached::own_jobs::OwnJobs;
use crate::detached::socket::SocketFolder;
use crate::detached::{Workers, telling};
use crate::error::{CommandResult, DONE};
use crate::metered;
use crate::open_store::{OpenEngine, OpenPatience, OpenStore, check_owner, options};
use crate::test_clock::TestClock;
use crate::ui;
use crate::wait_command::wait_command;
use crate::wire::{citation_checks, research_providers_of_server, workflow_providers};
use http::raise_open_files;

use super::signals::drain_on_signals;
use super::{FlagValue, load_config};

/// The time that the worker may take to release its jobs.
const LEAVING: Duration = Duration::from_secs(2);
/// The time limit of a search.
const SEARCH: Duration = Duration::from_secs(30);

pub(super) async fn run(global: &Global, args: ServeArgs) -> CommandResult {
    let flags = [
        (settings::SERVER_TOOLS, "--tools", args.tools.clone()),
        (settings::SERVER_CONCURRENCY, "--concurrency", args.concurrency.map(|n| n.to_string())),
        (settings::SERVER_ASYNC_MODE, "--async", args.async_mode.then(|| "true".to_owned())),
        (settings::SERVER_FIXED_WORKFLOW, "--workflow", args.workflow.clone()),
        (settings::SERVER_LONG_POLL_TIMEOUT, "--poll-timeout", args.poll_timeout.clone()),
        (settings::SERVER_DETACH, "--no-detach", args.no_detach.then(|| "false".to_owned())),
    ];
    let mut config = load_config(global, &flags)?;
    let own_jobs = Arc::new(OwnJobs::default());
    super::start_server_log(global, &config, &own_jobs)?;
    data_dir::check(&config.data_dir)?;
    let research = research_providers_of_server(&config)?;
    if research.is_empty() && config.tools.iter().any(|set| *set != ToolSet::Jobs) {
        serve_without_provider(&mut config);
    }
    let profiles: Vec<Profile> = research.iter().map(|(profile, _)| profile.clone()).collect();
    warn_of_names(&config, profiles.first());
    let workflows = workflow_providers(&config, args.kill_at)?;
    let jobs = jobs::options(&config, first_for_agents(&config, &profiles))?;
    if !workflows.is_empty() {
        raise_open_files();
    }
    let http = match args.http {
        None => {
            check_owner(&config)?;
            None
        }
        Some(address) => {
            // The server's own worker continues the requests of the page.
            let page =
                super::ui_page::page_options(&config, &profiles, Arc::new(|_| Box::pin(async {})));
            Some(http::open(address, &args, &config, page).await?)
        }
    };

    let workers = workers(global, &config, &args, flags.to_vec()).map(Arc::new);
    let detaches = http.is_none() && detaches(&config);
    let dispatch = match &workers {
        None => Dispatch::Here,
        Some(workers) if detaches => Dispatch::with_detached_workers(workers.clone()),
        Some(workers) => Dispatch::here_while_current(workers.clone()),
    };

    let stop = Shutdown::new();
    let clock = args.clock_file.map(|file| Arc::new(TestClock { file }) as Arc<dyn Clock>);
    let mut judgement = Judgement::default();
    if let Some(lease) = args.lease_ms {
        judgement.leases_for = Duration::from_millis(lease);
        judgement.session_for = judgement.session_for.min(judgement.leases_for / 3);
    }
    let store = OpenStore::open_by(&config, clock, judgement, OpenPatience::AsConfigured).await?;
    let metrics = Arc::new(Metrics::default());
    let store = store.with_kill_point(args.kill_at);
    let folder = SocketFolder::of(&config)
        .filter(|folder| folder.is_beside_a_file || workers.is_some() && detaches);
    let observers = store.observers(&metrics, folder.clone(), SocketFolder::front_name());
    let mut options = Options { dispatch, observers, ..options(&config) };
    if let Some((_, http)) = &http {
        options.polls.sharing = http.sharing();
    }
    options.lease = args.lease_ms.map_or(options.lease, Duration::from_millis);
    let checks = citation_checks(&config, &[])?;
    let providers: Providers = research.into_iter().chain(workflows).chain(checks).collect();
    let providers = metered::providers(providers, &metrics);
    let opened = store.engine(&config, options, providers, stop.clone()).await?;
    let mut jobs = jobs;
    if let Some(jobs) = &mut jobs {
        tool_schemas::complete(&mut jobs.workflows, &config, &opened.engine).await;
    }
    let sets = sets(&opened, &profiles, jobs, &config);
    let OpenEngine { engine, follower, mirror, audit } = opened;
    if let Err(failed) = jobs::check_names(&sets, &config) {
        stop.ask();
        drop(follower.await);
        store.close().await;
        return Err(failed);
    }
    let mirror_task = super::MirrorTask::spawn(mirror.as_ref());
    let page_asks = http.is_some() && !profiles.is_empty();
    let takes = if args.no_worker { WorkerRole::HeldCallsOnly } else { takes(&config, page_asks) };
    let worker = outlast_engine::spawn(Worker::new(&engine, takes).run(LeaveTime::Asked));
    let listener = folder.and_then(|folder| telling::listen(&folder, &engine, Some(own_jobs)));
    log_providers(&profiles);
    log_mode(&config, takes);
    outlast_engine::spawn(drain_on_signals(stop.clone(), config.drain_timeout)?);

    match &http {
        None if std::io::stdin().is_terminal() => ui::print_waiting(
            "Waiting for an MCP client on standard input, which is this terminal; `outlast init --help` sets a \
             client up to start this program itself. Ctrl-C ends it.",
        ),
        None => {}
        Some((listener, _)) => {
            if let Ok(address) = listener.local_addr() {
                ui::print_waiting(&format!(
                    "Waiting for MCP clients at http://{address}/mcp. Ctrl-C ends it."
                ));
            }
        }
    }
    let page = page(&config, http.as_ref().and_then(|(listener, _)| listener.local_addr().ok()));
    // Over HTTP the caller may be on another machine.
    let wait = if http.is_none() { wait_command(&config) } else { None };
    let face = Face { page, wait, ..Face::new(config.owner.clone(), engine.clone(), sets) };
    let audit = audit.map(|audit| audit as Arc<dyn AuditLog>);
    let server = Server::new(face).with_metrics(metrics).with_audit(audit);
    let served = match http {
        None => {
            let max_unanswered = args.max_unanswered.unwrap_or(MAX_UNANSWERED);
            serve_stdio(server, stop.clone(), max_unanswered).await
        }
        Some((listener, options)) => {
            serve_http(server, options, listener, stop.clone()).await;
            Ok(())
        }
    };

    stop.ask();
    let too_late = async {
        tokio::time::sleep(LEAVING).await;
        engine.wait_for_wind_downs().await;
    };
    let is_late = tokio::select! {
        _ = worker => false,
        () = too_late => true,
    };
    if is_late {
        tracing::warn!("left while the worker was still busy; the next process takes over");
    }
    if let Some(workers) = workers {
        workers.stop_later().await;
    }
    telling::end(listener).await;
    mirror_task.finish().await;
    drop(follower.await);
    store.close().await;
    served?;
    DONE
}

/// Returns true if a stdio server leaves its jobs to a detached worker.
fn detaches(config: &Config) -> bool {
    match config.detach {
        // Any worker would end with this process, the first process of a container.
        Detach::Auto => std::process::id() != 1,
        Detach::Always => true,
        Detach::Never => false,
    }
}

/// Returns the workers to which this server may leave jobs; `None` if it runs all of them itself. Test flags that
/// change a worker's behaviour apply to the worker of this process.
fn workers(
    global: &Global,
    config: &Config,
    args: &ServeArgs,
    flags: Vec<FlagValue>,
) -> Option<Workers> {
    let is_in_test = args.kill_at.is_some() || args.lease_ms.is_some() || args.clock_file.is_some();
    if args.no_worker || is_in_test {
        return None;
    }
    let again = global.clone();
    Workers::new(global, config, &[], Box::new(move || load_config(&again, &flags)))
}

/// Returns the address of the page: as configured, otherwise at this server if it listens only to this machine.
fn page(config: &Config, listens_at: Option<SocketAddr>) -> Option<String> {
    let local = listens_at.filter(|address| address.ip().is_loopback());
    config.http.public_url.clone().or_else(|| local.map(|address| format!("http://{address}")))
}

/// Warns once that the first provider in order answers the requested tools with Perplexity's name (G2).
fn warn_of_names(config: &Config, first: Option<&Profile>) {
    let Some(provider) = first.map(Profile::provider).filter(|it| *it != Profile::PERPLEXITY)
    else {
        return;
    };
    let named = |set: &ToolSet| matches!(set, ToolSet::Research | ToolSet::Perplexity);
    if config.tools_are_named
        && let Some(set) = config.tools.iter().find(|set| named(set))
    {
        tracing::warn!(
            "the tools of the set `{}` have Perplexity's name and are answered by {provider}; the set \
             `deep-research` is made for any provider",
            set.name()
        );
    }
}

/// Logs that research will be refused. Workflows need no research provider (E16): with some, the research sets of the
/// default are left out. Named sets are not.
fn serve_without_provider(config: &mut Config) {
    if config.workflows.is_empty() || config.tools_are_named {
        tracing::warn!(
            "no research provider is configured: research is refused until one is; {WAYS_TO_A_PROVIDER}"
        );
        return;
    }
    config.tools.retain(|set| *set == ToolSet::Jobs);
    tracing::info!(
        "no research provider is configured: only workflows are served, no research tools"
    );
}

/// Logs the provider that answers, if more than one could (P2).
fn log_providers(profiles: &[Profile]) {
    let Some((first, others)) = profiles.split_first() else { return };
    let provider = first.provider();
    if others.is_empty() {
        tracing::info!(provider, "research provider");
        return;
    }
    let beside = others.iter().map(Profile::provider).collect::<Vec<_>>().join(",");
    tracing::info!(
        provider,
        beside,
        "research provider; the others go on with their own conversations and get the new questions that name them"
    );
}

/// Returns the provider of the tool sets that cannot name one. It does not send text of documents to another machine,
/// unless callers may (K9).
fn first_for_agents<'a>(config: &Config, profiles: &'a [Profile]) -> Option<&'a Profile> {
    let may_ask = |profile: &&Profile| {
        config.sharing == DocumentSharing::AgentsToo || !profile.shares_documents()
    };
    profiles.iter().find(may_ask)
}

/// Returns the enabled tool sets, in their listed order; workflows that are held come last.
fn sets(
    opened: &OpenEngine,
    profiles: &[Profile],
    jobs: Option<JobsOptions>,
    config: &Config,
) -> Vec<Tools> {
    let engine = &opened.engine;
    let jobs = jobs.map(|options| Tools::Jobs(Box::new(Jobs::new(engine.clone(), options))));
    let first = first_for_agents(config, profiles);
    let made = |set: &ToolSet| match set {
        ToolSet::Research => Some(research(opened, ResearchSet::Perplexity, profiles, config)),
        ToolSet::DeepResearch => Some(research(opened, ResearchSet::AnyProvider, profiles, config)),
        ToolSet::ResearchJobs => Some(research_jobs(engine, first, config)),
        ToolSet::Perplexity => Some(perplexity(engine, first, config)),
        ToolSet::Jobs => jobs.clone(),
    };
    let mut sets: Vec<Tools> = config.tools.iter().filter_map(made).collect();
    if !config.async_mode {
        sets.extend(jobs);
    }
    sets
}

/// Returns the jobs that this process takes: those of the queue only if one of its interfaces puts jobs there (B1), as
/// the page does with its requests.
fn takes(config: &Config, page_asks: bool) -> WorkerRole {
    let needed = config.tools.iter().any(|set| match set {
        ToolSet::Research | ToolSet::DeepResearch => config.research_mode != ResearchMode::Blocking,
        ToolSet::ResearchJobs => true,
        ToolSet::Jobs => true,
        ToolSet::Perplexity => false,
    });
    if needed || page_asks { WorkerRole::TheQueue } else { WorkerRole::HeldCallsOnly }
}

fn log_mode(config: &Config, takes: WorkerRole) {
    let researches = |set: &ToolSet| matches!(set, ToolSet::Research | ToolSet::DeepResearch);
    if config.tools.iter().any(researches) {
        match config.research_mode {
            ResearchMode::Blocking => tracing::info!("Async deep research: disabled"),
            ResearchMode::Queued => tracing::info!("Async deep research: enabled"),
            ResearchMode::Auto => tracing::info!("Async deep research: enabled (auto)"),
        }
    }
    if takes == WorkerRole::TheQueue {
        tracing::info!(concurrency = config.concurrency, "Background worker started");
    }
}

fn research(opened: &OpenEngine, set: ResearchSet, profiles: &[Profile], config: &Config) -> Tools {
    let options = ResearchOptions {
        set,
        profiles: profiles.to_vec(),
        mode: config.research_mode,
        inline_report_chars: config.inline_report_chars,
        inline_budget: config.inline_budget,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        search_timeout: SEARCH,
        keep: config.job_ttl,
        disclaimer: config.perplexity.disclaimer,
        sharing: config.sharing,
        checks_citations: config.citations.check != CitationChecks::Never,
        mirror: opened.mirror.clone(),
    };
    Tools::Research(Box::new(Research::new(opened.engine.clone(), options)))
}

fn perplexity(engine: &Engine, profile: Option<&Profile>, config: &Config) -> Tools {
    let options = PerplexityOptions {
        profile: profile.cloned(),
        quick_timeout: config.perplexity.timeout,
        research_timeout: config.perplexity.polling_timeout,
        keep: config.job_ttl,
        disclaimer: config.perplexity.disclaimer,
    };
    Tools::Perplexity(Box::new(Perplexity::new(engine.clone(), options)))
}

fn research_jobs(engine: &Engine, profile: Option<&Profile>, config: &Config) -> Tools {
    let options = ResearchJobsOptions {
        profile: profile.cloned(),
        poll_budget: config.perplexity.research_poll_budget,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: config.perplexity.async_max_wait,
        keep: config.perplexity.research_job_ttl,
        disclaimer: config.perplexity.disclaimer,
    };
    Tools::ResearchJobs(Box::new(ResearchJobs::new(engine.clone(), options)))
}
