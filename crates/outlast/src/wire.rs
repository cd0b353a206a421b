//! The one place where concrete types meet: from the configuration to an engine over a store and its providers.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_client::{Endpoint, ProxyOptions};
use outlast_core::{BoxError, Clock, Profile, Provider, ProviderError, Store, StoreError};
use outlast_engine::{Engine, Options, Providers, Shutdown};
use outlast_library::{ConvertLimits, Converters, Library, LibraryOptions};
use outlast_mirror::{Mirror, MirrorOptions};
use outlast_provider::command::{Command, CommandOptions, Guard, Rerun};
use outlast_provider::http::HttpOptions;
use outlast_provider::mcp_tool::{McpTool, McpToolOptions, Server, Upstream};
use outlast_provider::perplexity::{Agent, Checked, PerplexityOptions, Sonar};
use outlast_server::Metrics;
use outlast_store::{MemoryStore, SqliteStore, SystemClock};
use tokio::task::JoinHandle;

use crate::commands::limited;
use crate::config::{
    self, Config, ConverterPrograms, Dialect, Perplexity, Program, Secret, StoreUrl, Tool,
    Workflow, WorkflowAction,
};
use crate::error::CommandError;
use crate::kill_points::{KillPoint, KillPointStore};
use crate::metered::MeteredStore;

/// A provider and the profile of its jobs.
pub(crate) type Profiled = (Profile, Arc<dyn Provider>);

/// An engine over an open store, and what belongs to it.
pub(crate) struct OpenEngine {
    pub(crate) engine: Engine,
    /// Follows the store's changes for the engine, until it is asked to stop.
    pub(crate) follower: JoinHandle<()>,
    /// The files of the owner's conversations, where there are any.
    pub(crate) mirror: Option<Arc<Mirror>>,
}

/// An open store, to be closed by the command that opened it.
pub(crate) struct OpenStore {
    store: Arc<dyn Store>,
    sqlite: Option<Arc<SqliteStore>>,
}

impl OpenStore {
    /// Opens the configured store.
    pub(crate) fn open(url: &StoreUrl) -> Result<Self, CommandError> {
        Self::open_by(url, Arc::new(SystemClock))
    }

    /// Opens it by this clock.
    pub(crate) fn open_by(url: &StoreUrl, clock: Arc<dyn Clock>) -> Result<Self, CommandError> {
        match url {
            StoreUrl::Memory => Ok(Self { store: Arc::new(MemoryStore::new(clock)), sqlite: None }),
            StoreUrl::Sqlite(path) => {
                let opened = SqliteStore::open(path, clock);
                let sqlite = Arc::new(opened.map_err(|error| cannot_open(error, path))?);
                Ok(Self { store: sqlite.clone(), sqlite: Some(sqlite) })
            }
        }
    }

    /// Opens it for a command that only reads: nothing is made or changed, and where there is no store there are no jobs.
    pub(crate) fn to_read(url: &StoreUrl) -> Result<Self, CommandError> {
        let StoreUrl::Sqlite(path) = url else { return Self::open(url) };
        if !is_there(path)? {
            return Self::open(&StoreUrl::Memory);
        }
        let read = SqliteStore::read(path, Arc::new(SystemClock));
        match read.map_err(|error| cannot_open(error, path))? {
            Some(sqlite) => {
                let sqlite = Arc::new(sqlite);
                Ok(Self { store: sqlite.clone(), sqlite: Some(sqlite) })
            }
            // Of an older schema: it is brought up to date first.
            None => Self::open(url),
        }
    }

    /// Opens it for a command that changes what is there: where there is no store, none is made.
    pub(crate) fn existing(url: &StoreUrl) -> Result<Self, CommandError> {
        match url {
            StoreUrl::Sqlite(path) if !is_there(path)? => Self::open(&StoreUrl::Memory),
            StoreUrl::Sqlite(_) | StoreUrl::Memory => Self::open(url),
        }
    }

    /// The same store, which kills this process at a point.
    pub(crate) fn with_kill_point(self, point: Option<KillPoint>) -> Self {
        let Some(point) = point else { return self };
        Self { store: Arc::new(KillPointStore { store: self.store, point }), ..self }
    }

    /// The same store, its writes counted.
    pub(crate) fn metered(self, metrics: &Arc<Metrics>) -> Self {
        let metrics = Arc::clone(metrics);
        Self { store: Arc::new(MeteredStore { store: self.store, metrics }), ..self }
    }

    /// Makes an engine over it.
    pub(crate) async fn engine(
        &self,
        config: &Config,
        providers: Providers,
        stop: Shutdown,
    ) -> Result<OpenEngine, CommandError> {
        self.engine_with(config, options(config), providers, stop).await
    }

    /// Makes an engine over it with these options.
    pub(crate) async fn engine_with(
        &self,
        config: &Config,
        options: Options,
        providers: Providers,
        stop: Shutdown,
    ) -> Result<OpenEngine, CommandError> {
        let mirror = self.mirror(config, &providers)?;
        let store = match &mirror {
            Some(mirror) => Arc::clone(mirror) as Arc<dyn Store>,
            None => Arc::clone(&self.store),
        };
        let (engine, follower) =
            Engine::new(store, providers, options, stop).await.map_err(|error| {
                let hint = store_hint(&error);
                CommandError::usage(anyhow::Error::new(error).context("read the job store"), hint)
            })?;
        Ok(OpenEngine { engine, follower, mirror })
    }

    /// The files of the owner's conversations. A store that keeps nothing on disk has none; one that does has the
    /// mirror's locks beside it, so that all processes on it share them.
    fn mirror(
        &self,
        config: &Config,
        providers: &Providers,
    ) -> Result<Option<Arc<Mirror>>, CommandError> {
        let (Some(logs_dir), StoreUrl::Sqlite(database)) =
            (&config.conversation_logs, &config.store)
        else {
            return Ok(None);
        };
        let mut state_dir = database.clone().into_os_string();
        state_dir.push(".mirror");
        let options = MirrorOptions {
            logs_dir: logs_dir.clone(),
            state_dir: state_dir.into(),
            owner: config.owner.clone(),
        };
        match Mirror::open(Arc::clone(&self.store), providers.clone(), options) {
            Ok(mirror) => Ok(Some(Arc::new(mirror))),
            Err(error) => {
                let error = anyhow::Error::new(error)
                    .context(format!("find the conversations' directory {}", logs_dir.display()));
                Err(CommandError::usage(error, "set CONVERSATION_LOGS_DIR, or give --no-mirror"))
            }
        }
    }

    /// The file store behind it, for what only a file can do.
    pub(crate) fn sqlite(&self) -> Option<&SqliteStore> {
        self.sqlite.as_deref()
    }

    /// Closes it; everything acknowledged was durable before.
    pub(crate) async fn close(self) {
        if let Some(sqlite) = self.sqlite {
            sqlite.close().await;
        }
    }
}

/// What the configuration tells an engine.
pub(crate) fn options(config: &Config) -> Options {
    Options {
        concurrency: config.concurrency,
        retry_base: config.perplexity.retry_base,
        max_unfinished: config.max_jobs_per_owner,
        max_bytes: config.max_bytes_per_owner,
        polls: config.polls,
        sweep_interval: config.perplexity.research_sweep_interval,
        ..Options::default()
    }
}

/// Whether there is a store at this path. Its log without it is one that was lost, and an error.
fn is_there(path: &Path) -> Result<bool, CommandError> {
    let found = outlast_store::is_there(path);
    found.map_err(|error| cannot_open(error, path))
}

/// Every provider that can be set up, to be asked what may be done with the jobs of a store that is restored. Jobs of the
/// others count as paid for, so a provider that cannot be set up is left out.
pub(crate) fn natures(config: &Config) -> Result<Providers, CommandError> {
    let mut providers = workflow_providers(config, None)?;
    providers.extend(research_providers(config).unwrap_or_default());
    Ok(providers)
}

fn cannot_open(error: StoreError, path: &std::path::Path) -> CommandError {
    let hint = store_hint(&error);
    let error =
        anyhow::Error::new(error).context(format!("open the job store at {}", path.display()));
    CommandError::usage(error, hint)
}

const OUTDATED: &str = "stop every process that uses the store, then run `outlast store restore --in-place`: it ends \
                        what may have been run and paid for since, and the store can be used again";

pub(crate) fn store_hint(error: &StoreError) -> &'static str {
    match error {
        StoreError::Newer { .. } => "update outlast, or point OUTLAST_STORE at another file",
        StoreError::Corrupt { .. } => "restore a backup, or point OUTLAST_STORE at a new file",
        StoreError::Outdated { .. } => OUTDATED,
        StoreError::Full => "make room on the disk",
        _ => "check that the directory exists and can be written, or give --data-dir",
    }
}

/// The configured research providers in line, each with the profile of its jobs: the first answers new questions, every one
/// goes on with its own conversations (P1). Empty where none is configured.
pub(crate) fn research_providers(config: &Config) -> Result<Vec<Profiled>, CommandError> {
    let mut providers = Vec::new();
    if let Some(api_key) = &config.perplexity.api_key {
        providers.push(perplexity_provider(config, api_key)?);
    }
    if !config.library.is_empty() {
        match library_provider(config, config.library.clone()) {
            Ok(library) => providers.push(library),
            Err(failed) if providers.is_empty() => return Err(failed),
            // Nothing new is asked of it; only its own conversations have to wait.
            Err(failed) => {
                tracing::warn!(error = %failed, "the library cannot be used; its conversations cannot be continued");
            }
        }
    }
    Ok(providers)
}

fn perplexity_provider(config: &Config, api_key: &Secret) -> Result<Profiled, CommandError> {
    let options = perplexity_options(config, api_key);
    Ok(match config.perplexity.api {
        Dialect::Agent => {
            let agent = Agent::new(options).map_err(cannot_set_up)?;
            (agent.profile(), Arc::new(agent))
        }
        Dialect::Sonar => {
            let sonar = Sonar::new(options).map_err(cannot_set_up)?;
            (sonar.profile(), Arc::new(sonar))
        }
    })
}

/// Asks the configured provider whether it takes this key; nothing is bought.
pub(crate) async fn check_perplexity(
    config: &Config,
    api_key: &Secret,
    limit: Duration,
) -> Result<Result<Checked, ProviderError>, CommandError> {
    let options = perplexity_options(config, api_key);
    Ok(match config.perplexity.api {
        Dialect::Agent => Agent::new(options).map_err(cannot_set_up)?.check(limit).await,
        Dialect::Sonar => Sonar::new(options).map_err(cannot_set_up)?.check(limit).await,
    })
}

fn perplexity_options(config: &Config, api_key: &Secret) -> PerplexityOptions {
    let Perplexity { base_url, timeout, proxy, .. } = &config.perplexity;
    PerplexityOptions {
        base_url: base_url.clone(),
        api_key: api_key.0.clone(),
        http: HttpOptions { timeout: *timeout, proxy: proxy.clone() },
        clock: Arc::new(SystemClock),
    }
}

/// The documents in these folders as a research provider, and the profile of its jobs.
pub(crate) fn library_provider(
    config: &Config,
    folders: Vec<PathBuf>,
) -> Result<Profiled, CommandError> {
    let cache_dir = config.data_dir.join("library");
    let converters = converters(config)?;
    let clock = Arc::new(SystemClock);
    let library = Library::new(LibraryOptions { folders, cache_dir, converters, clock });
    let library = library.map_err(|error| {
        let error = anyhow::Error::new(error).context("open the library");
        CommandError::usage(error, "give --library (or OUTLAST_LIBRARY) folders that can be read")
    })?;
    Ok((library.profile(), Arc::new(library)))
}

/// The programs that read a library's PDFs and office files.
pub(crate) fn converters(config: &Config) -> Result<Converters, CommandError> {
    let ConverterPrograms { pdftotext, pandoc, search_path } = config.converters.clone();
    Ok(Converters {
        launcher: vec![own_program()?.into(), limited::NAME.into()],
        search_path: search_path.into(),
        pdftotext,
        pandoc,
        limits: ConvertLimits::default(),
    })
}

/// What a worker must have to run this workflow's jobs.
///
/// Its name and the file that has it, not what it stands for: a queued job runs the command line of the day it is run,
/// so that a corrected one corrects what waits for it; and two files with a workflow of the same name on one store never run
/// each other's. Jobs of versions that recorded the name alone belong to no file: they wait, and `jobs show` says why.
pub(crate) fn workflow_profile(workflow: &Workflow) -> Profile {
    Profile::new(format!("workflow {} of {}", workflow.name, workflow.file.display()))
}

/// Who does the configured workflows, by the profile of their jobs.
pub(crate) fn workflow_providers(
    config: &Config,
    point: Option<KillPoint>,
) -> Result<Providers, CommandError> {
    let program = own_program()?;
    let guard = Arc::new(Guard::new(program.clone(), vec!["guard".into()]));
    // A command has a working directory of its own.
    let scratch = std::path::absolute(&config.data_dir).context("find the data directory")?;
    let children = Children { launcher: program, guard, scratch, point };
    let mut upstreams = HashMap::new();
    for (name, upstream) in &config.upstreams {
        let upstream = Upstream::new(
            name.clone(),
            server(name, upstream, config.proxy.as_ref())?,
            Arc::clone(&children.guard),
        );
        upstreams.insert(name.as_str(), Arc::new(upstream));
    }
    let providers = config.workflows.iter().map(|workflow| match &workflow.work {
        WorkflowAction::Command { program, timeout } => {
            Ok(command(workflow, program, *timeout, &children))
        }
        WorkflowAction::Tool(called) => match upstreams.get(called.upstream.as_str()) {
            Some(upstream) => Ok(tool(workflow, called, upstream)),
            None => Err(anyhow::anyhow!("there is no upstream `{}`", called.upstream).into()),
        },
    });
    providers.collect()
}

/// What the commands of all workflows share.
struct Children {
    launcher: PathBuf,
    guard: Arc<Guard>,
    scratch: PathBuf,
    point: Option<KillPoint>,
}

fn command(
    workflow: &Workflow,
    program: &Program,
    timeout: Duration,
    children: &Children,
) -> Profiled {
    let command = Command::new(CommandOptions {
        program: program.argv.clone(),
        cwd: program.cwd.clone(),
        environment: program.environment.0.clone(),
        timeout,
        rerun: rerun(workflow),
        guard: Arc::clone(&children.guard),
        launcher: children.launcher.clone(),
        scratch: children.scratch.clone(),
        started: (children.point == Some(KillPoint::AfterSpawn)).then_some(KillPoint::die),
        clock: Arc::new(SystemClock),
    });
    (workflow_profile(workflow), Arc::new(command))
}

fn tool(workflow: &Workflow, tool: &Tool, upstream: &Arc<Upstream>) -> Profiled {
    let tool = McpTool::new(McpToolOptions {
        upstream: Arc::clone(upstream),
        tool: tool.name.clone(),
        message_argument: tool.message_argument.clone(),
        idle_timeout: tool.idle_timeout,
        reset_on_progress: tool.reset_on_progress,
        total_timeout: tool.total_timeout,
        rerun: rerun(workflow),
        clock: Arc::new(SystemClock),
    });
    (workflow_profile(workflow), Arc::new(tool))
}

fn rerun(workflow: &Workflow) -> Rerun {
    if workflow.rerun_after_crash { Rerun::AfterCrash } else { Rerun::Never }
}

fn server(
    name: &str,
    upstream: &config::Upstream,
    proxy: Option<&ProxyOptions>,
) -> Result<Server, CommandError> {
    match upstream {
        config::Upstream::Program(program) => {
            let path = match program.argv.first().map(String::as_str).unwrap_or_default() {
                path if path.contains('/') => program.cwd.join(Path::new(path)),
                name => PathBuf::from(name),
            };
            let started = outlast_client::Program::new(path)
                .args(program.argv.iter().skip(1))
                .env_clear()
                .current_dir(&program.cwd);
            let environment = &program.environment.0;
            let started = environment.iter().fold(started, |it, (name, value)| it.env(name, value));
            Ok(Server::Program(started))
        }
        config::Upstream::Url { url, headers } => {
            let endpoint = Endpoint::new(url).and_then(|endpoint| {
                let endpoint = match proxy {
                    Some(proxy) => endpoint.proxy(proxy.clone())?,
                    None => endpoint,
                };
                headers.iter().try_fold(endpoint, |it, (name, value)| it.header(name, &value.0))
            });
            endpoint.map(Server::Endpoint).map_err(|error| {
                let error = anyhow::Error::new(error).context(format!("read [upstream.{name}]"));
                CommandError::usage(error, "fix it in outlast.toml")
            })
        }
    }
}

/// This program, also after its file was replaced by a newer one.
fn own_program() -> Result<PathBuf, CommandError> {
    if cfg!(target_os = "linux") {
        return Ok(PathBuf::from("/proc/self/exe"));
    }
    let program = std::env::current_exe();
    program
        .map_err(|error| anyhow::Error::new(error).context("find this program's own file").into())
}

fn cannot_set_up(error: BoxError) -> CommandError {
    let error = anyhow::anyhow!(error).context("set up the provider");
    CommandError::usage(error, "check PERPLEXITY_BASE_URL and PERPLEXITY_PROXY")
}

/// What can be done about a missing research provider.
pub(crate) const WAYS: &str = "there are three ways to get one:\n  \
                    1. a key:      set PERPLEXITY_API_KEY\n  \
                    2. a library:  set OUTLAST_LIBRARY to a folder of documents, or `outlast research --library FOLDER`\n  \
                    3. neither:    run `outlast demo`, which brings a simulated provider";

/// No research provider is configured; with the ways to get one.
pub(crate) fn no_provider() -> CommandError {
    CommandError::usage(anyhow::anyhow!("no research provider is configured"), WAYS)
}
