//! The place where concrete types meet: creates the configured providers.

mod researcher;
mod search_tool;

use std::collections::HashMap;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use outlast_client::Endpoint;
use outlast_core::{Notifier, Profile, Provider, ProviderError};
use outlast_engine::Providers;
use outlast_library::{
    CitedFile, CitedPart, CitedPartKind, ConvertLimits, Converters, Library, LibraryError,
    LibraryOptions,
};
use outlast_provider::anthropic::Anthropic;
use outlast_provider::citations::{
    CitationOptions, Citations, LibraryAccess, LibraryFile, OpenLibrary,
};
use outlast_provider::command::{Command, CommandOptions, Guard, Rerun};
use outlast_provider::gemini::Gemini;
use outlast_provider::http::HttpOptions;
use outlast_provider::mcp_tool::{McpTool, McpToolOptions, ServerPlace, Upstream};
use outlast_provider::notify::{NotifyCommand, NotifyCommandOptions, Webhook, WebhookOptions};
use outlast_provider::openai::OpenAi;
use outlast_provider::perplexity::{Agent, Sonar};
use outlast_provider::vendor::{CheckedAnswer, VendorOptions};
use outlast_sources::{Block, BlockKind, FetchOptions, PdfReader};
use outlast_store::StoreClock;

pub(crate) use self::researcher::researcher;
use crate::commands::own_processes::LIMITED;
use crate::config::{
    self, CitationChecks, Config, Dialect, Notify, ProgramDefinition, ResearchProvider, Secret,
    StoreUrl, Tool, VendorName, VendorSettings, Workflow, WorkflowAction,
};
use crate::error::{CommandError, CommandResult, OrUsage as _, refuse};
use crate::kill_points::KillPoint;

/// A provider and the profile of its jobs.
pub(crate) type ProviderWithProfile = (Profile, Arc<dyn Provider>);

/// Returns every provider that can be set up, to learn their recovery semantics for the jobs of a restored store. Jobs
/// of other providers count as paid for, so a provider that cannot be set up is left out.
pub(crate) fn providers_for_restore(config: &Config) -> CommandResult<Providers> {
    let mut providers = workflow_providers(config, None)?;
    providers.extend(research_providers(config).unwrap_or_default());
    Ok(providers)
}

/// Returns the configured research providers in order, each with the profile of its jobs. The first answers new
/// questions, and every one continues its own conversations (P1). Empty if none is configured; a named provider that
/// cannot be set up is an error.
pub(crate) fn research_providers(config: &Config) -> CommandResult<Vec<ProviderWithProfile>> {
    let mut providers = Vec::new();
    for provider in &config.providers {
        match research_provider(config, provider) {
            Ok(provider) => providers.push(provider),
            Err(failed) if config.providers_are_named || providers.is_empty() => {
                return Err(failed);
            }
            // It gets no new questions; only its own conversations have to wait.
            Err(failed) => {
                let provider = provider.name();
                tracing::warn!(provider, error = %failed, "it cannot be used; its conversations cannot be continued");
            }
        }
    }
    Ok(providers)
}

/// Like [`research_providers`], for a server. It starts even if no provider has what it needs: stored conversations can
/// still be read, and a call that needs a provider is refused with the ways to get one. A server that lacks only some
/// of the named providers does not start, because questions would go to another vendor than the user expects.
pub(crate) fn research_providers_of_server(
    config: &Config,
) -> CommandResult<Vec<ProviderWithProfile>> {
    if config.has_provider() {
        return research_providers(config);
    }
    for (why, hint) in config.providers.iter().filter_map(|it| find_missing(config, it)) {
        tracing::warn!(hint, "{why}");
    }
    Ok(Vec::new())
}

/// Returns why a provider cannot be asked, and a hint, if it lacks a key or folders.
fn find_missing(config: &Config, provider: &ResearchProvider) -> Option<(String, String)> {
    match provider {
        ResearchProvider::Library => config.library.is_empty().then(|| {
            let hint = "set OUTLAST_LIBRARY to a folder of documents, or leave library out";
            ("OUTLAST_PROVIDERS names library, which has no folders".to_owned(), hint.to_owned())
        }),
        ResearchProvider::Researcher(settings) => {
            settings.find_missing(&config.library).map(|(what, hint)| {
                let why = format!("OUTLAST_PROVIDERS names researcher, which has {what}");
                (why, format!("{hint}; or leave researcher out"))
            })
        }
        ResearchProvider::Vendor(settings) => {
            settings.api_key.is_none().then(|| missing_key(settings.name))
        }
    }
}

fn missing_key(vendor: VendorName) -> (String, String) {
    let (name, variable) = (vendor.as_str(), vendor.vendor().key_variable);
    let hint = format!(
        "set {variable}, or api_key under [{name}] in outlast.toml; or leave {name} out of OUTLAST_PROVIDERS"
    );
    (format!("OUTLAST_PROVIDERS names {name}, which has no key"), hint)
}

fn research_provider(
    config: &Config,
    provider: &ResearchProvider,
) -> CommandResult<ProviderWithProfile> {
    if let Some((why, hint)) = find_missing(config, provider) {
        return refuse(why, hint);
    }
    let vendor = match provider {
        ResearchProvider::Library => return library_provider(config, config.library.clone()),
        ResearchProvider::Researcher(settings) => return researcher::provider(config, settings),
        ResearchProvider::Vendor(vendor) => vendor,
    };
    Ok(match adapter(config, vendor)? {
        Adapter::Agent(it) => (it.profile(), Arc::new(it)),
        Adapter::Sonar(it) => (it.profile(), Arc::new(it)),
        Adapter::OpenAi(it) => (it.profile(), Arc::new(it)),
        Adapter::Anthropic(it) => (it.profile(), Arc::new(it)),
        Adapter::Gemini(it) => (it.profile(), Arc::new(it)),
    })
}

/// Asks a vendor if it accepts its key; nothing is bought.
pub(crate) async fn check_vendor(
    config: &Config,
    vendor: &VendorSettings,
    limit: Duration,
) -> CommandResult<Result<CheckedAnswer, ProviderError>> {
    Ok(match adapter(config, vendor)? {
        Adapter::Agent(it) => it.check(limit).await,
        Adapter::Sonar(it) => it.check(limit).await,
        Adapter::OpenAi(it) => it.check(limit).await,
        Adapter::Anthropic(it) => it.check(limit).await,
        Adapter::Gemini(it) => it.check(limit).await,
    })
}

/// The client for a vendor's API.
enum Adapter {
    Agent(Agent),
    Sonar(Sonar),
    OpenAi(OpenAi),
    Anthropic(Anthropic),
    Gemini(Gemini),
}

/// Creates the adapter for a vendor, which needs a key.
fn adapter(config: &Config, settings: &VendorSettings) -> CommandResult<Adapter> {
    let VendorSettings { name, api_key, base_url, model, proxy, timeout } = settings.clone();
    let vendor = name.vendor();
    let Some(Secret(api_key)) = api_key else {
        let (why, hint) = missing_key(name);
        return refuse(why, hint);
    };
    let http = HttpOptions { timeout, proxy };
    let clock = Arc::new(config.clock.clone());
    let options = VendorOptions { base_url, api_key, model, http, clock, waits: None };
    let made = match (name, config.perplexity.api) {
        (VendorName::Perplexity, Dialect::Agent) => Agent::new(options).map(Adapter::Agent),
        (VendorName::Perplexity, Dialect::Sonar) => Sonar::new(options).map(Adapter::Sonar),
        (VendorName::OpenAi, _) => OpenAi::new(options).map(Adapter::OpenAi),
        (VendorName::Anthropic, _) => Anthropic::new(options).map(Adapter::Anthropic),
        (VendorName::Gemini, _) => Gemini::new(options).map(Adapter::Gemini),
    };
    let (base_url, proxy) = (vendor.base_url_variable, vendor.proxy_variable);
    let made = made.map_err(anyhow::Error::from_boxed).context("set up the provider");
    made.or_usage(format!("check {base_url} and {proxy}"))
}

/// Returns the notifier of job ends, if `[notify]` is configured.
pub(crate) fn notifier(config: &Config) -> CommandResult<Option<Arc<dyn Notifier>>> {
    let notifier: Arc<dyn Notifier> = match &config.notify {
        None => return Ok(None),
        Some(Notify::Command(program)) => Arc::new(NotifyCommand::new(NotifyCommandOptions {
            program: program.argv.clone(),
            cwd: program.cwd.clone(),
            environment: program.environment.0.clone(),
        })),
        Some(Notify::Url { url, secret }) => {
            let options = WebhookOptions {
                url: url.0.clone(),
                secret: secret.0.clone(),
                proxy: config.proxy.clone(),
                clock: Arc::new(config.clock.clone()),
            };
            let webhook = Webhook::new(options).map_err(anyhow::Error::from_boxed);
            let webhook = webhook.context("set up [notify]");
            Arc::new(webhook.or_usage("check notify.url in outlast.toml and the proxy")?)
        }
    };
    Ok(Some(notifier))
}

/// Returns true if jobs are shared with other machines.
fn is_shared(config: &Config) -> bool {
    matches!(config.store, StoreUrl::Postgres(_))
}

/// Returns the documents in these folders as a research provider, and the profile of its jobs.
pub(crate) fn library_provider(
    config: &Config,
    folders: Vec<PathBuf>,
) -> CommandResult<ProviderWithProfile> {
    let library = open_library(config, folders)?;
    Ok((library.profile(), Arc::new(library)))
}

/// Opens the documents in these folders, which a person has named.
fn open_library(config: &Config, folders: Vec<PathBuf>) -> CommandResult<Library> {
    let hint = "give --library (or OUTLAST_LIBRARY) folders that can be read";
    library(config, folders)?.context("open the library").or_usage(hint)
}

fn library(config: &Config, folders: Vec<PathBuf>) -> CommandResult<Result<Library, LibraryError>> {
    Ok(Library::new(LibraryOptions {
        folders,
        // Another machine may have different documents under the same path.
        machine: is_shared(config).then(outlast_provider::host_name),
        cache_dir: config.data_dir.join("library"),
        converters: converters(config)?,
        clock: Arc::new(config.clock.clone()),
    }))
}

/// Returns the programs that read a library's PDFs and office files.
pub(crate) fn converters(config: &Config) -> CommandResult<Converters> {
    Ok(Converters {
        launcher: vec![own_program()?.into(), LIMITED.into()],
        search_path: config.search_path.clone().into(),
        pdftotext: config.pdftotext.clone(),
        pandoc: config.pandoc.clone(),
        limits: ConvertLimits::default(),
    })
}

/// Returns the checker of citations, with the profile of its jobs; `None` if checks are switched off. It reads the files
/// of these folders, or of the configured ones.
pub(crate) fn citation_checks(
    config: &Config,
    library: &[PathBuf],
) -> CommandResult<Option<ProviderWithProfile>> {
    if config.citations.check == CitationChecks::Never {
        return Ok(None);
    }
    let (fetch, pdf) = (fetch_options(config), Some(pdf_reader(config)?));
    let clock = Arc::new(config.clock.clone());
    let library = match library.is_empty() {
        true => config.library.clone(),
        false => library.to_vec(),
    };
    let library = cited_files(config, library)?;
    let checker = Citations::new(CitationOptions { fetch, pdf, library, clock });
    Ok(Some((Citations::profile(), Arc::new(checker))))
}

/// Returns the rules for fetching pages (J5).
fn fetch_options(config: &Config) -> FetchOptions {
    FetchOptions {
        allow_private: config.citations.allow_private,
        through_proxy: config.citations.through_proxy,
        respect_robots: config.citations.respect_robots,
        proxy: config.proxy.clone(),
        ..FetchOptions::default()
    }
}

/// Returns the reader of PDFs among the pages.
fn pdf_reader(config: &Config) -> CommandResult<PdfReader> {
    let converters = converters(config)?;
    Ok(Arc::new(move |body| {
        let mut file = tempfile::tempfile().ok()?;
        file.write_all(body).ok()?;
        file.rewind().ok()?;
        converters.pdf_paragraphs(file)
    }))
}

/// Returns the means to compare reports of the library with its files; `None` without a library that can be read.
fn cited_files(config: &Config, folders: Vec<PathBuf>) -> CommandResult<Option<LibraryAccess>> {
    if folders.is_empty() {
        return Ok(None);
    }
    let library = match library(config, folders)? {
        Ok(library) => library,
        // Checks of other reports need no library.
        Err(error) => {
            tracing::warn!(%error, "the library cannot be read; its reports cannot be checked");
            return Ok(None);
        }
    };
    let profile = library.profile();
    let open = move || -> OpenLibrary {
        let files = library.cited_files();
        Box::new(move |place| files.read(place).map(library_file))
    };
    Ok(Some(LibraryAccess { profile, open: Arc::new(open) }))
}

fn library_file(file: CitedFile) -> LibraryFile {
    let mut header: Option<Arc<[String]>> = None;
    let mut block = |part: CitedPart| {
        let CitedPart { headings, text, kind } = part;
        let (text, kind) = match kind {
            CitedPartKind::Paragraph => (text, BlockKind::Paragraph),
            CitedPartKind::Item => (text, BlockKind::Item),
            CitedPartKind::Head(cells) => {
                let text = cells.join(" | ");
                header = Some(cells.into());
                return Block { headings, text, kind: BlockKind::Row, header: None };
            }
            CitedPartKind::Row(cells) => (cells.join(" | "), BlockKind::Row),
        };
        if kind != BlockKind::Row {
            header = None;
        }
        Block { headings, text, kind, header: header.clone() }
    };
    LibraryFile {
        digest: file.digest,
        modified: file.modified,
        title: file.title,
        blocks: file.parts.into_iter().map(&mut block).collect(),
    }
}

/// Returns the profile that a worker must have to run this workflow's jobs.
///
/// It holds the workflow's name and file, not its command line: a queued job runs the command line of the day on which
/// it is run, so that a corrected one also applies to waiting jobs. Two files with workflows of the same name on one
/// store never run each other's jobs. Jobs of versions that recorded only the name belong to no file: they wait, and
/// `jobs show` gives the reason.
pub(crate) fn workflow_profile(workflow: &Workflow) -> Profile {
    Profile::new(format!("workflow {} of {}", workflow.name, workflow.file.display()))
}

/// Returns the providers of the configured workflows, by the profile of their jobs.
pub(crate) fn workflow_providers(
    config: &Config,
    point: Option<KillPoint>,
) -> CommandResult<Providers> {
    let program = own_program()?;
    let guard = Arc::new(Guard::new(program.clone(), vec!["guard".into()]));
    // Each command has a separate working directory.
    let scratch = std::path::absolute(&config.data_dir).context("find the data directory")?;
    let clock = config.clock.clone();
    let children = Children { launcher: program, guard, scratch, point, clock };
    let upstreams = upstreams(config, &children.guard)?;
    let providers = config.workflows.iter().map(|workflow| match &workflow.work {
        WorkflowAction::Command { program, timeout, steps } => {
            Ok(children.command(workflow, program, *timeout, *steps))
        }
        WorkflowAction::Tool(called) => match upstreams.get(called.upstream.as_str()) {
            Some(upstream) => Ok(children.tool(workflow, called, upstream)),
            None => Err(anyhow::anyhow!("there is no upstream `{}`", called.upstream).into()),
        },
    });
    providers.collect()
}

/// Returns the servers whose tools are workflows, by their names in the configuration. None is connected yet.
fn upstreams<'a>(
    config: &'a Config,
    guard: &Arc<Guard>,
) -> CommandResult<HashMap<&'a str, Arc<Upstream>>> {
    let upstreams = config.upstreams.iter().map(|(name, upstream)| {
        // The tasks of a child process are known on this machine alone.
        let is_child = matches!(upstream, config::Upstream::Program(_));
        let known_as = match is_child && is_shared(config) {
            true => format!("{name}@{}", outlast_provider::host_name()),
            false => name.clone(),
        };
        let server = server(config, name, upstream)?;
        Ok((name.as_str(), Arc::new(Upstream::new(known_as, server, Arc::clone(guard)))))
    });
    upstreams.collect()
}

/// Returns the same servers for a process that only lists their tools.
pub(crate) fn upstreams_to_ask(config: &Config) -> CommandResult<HashMap<&str, Arc<Upstream>>> {
    upstreams(config, &Arc::new(Guard::new(own_program()?, vec!["guard".into()])))
}

/// The common part of the commands of all workflows.
struct Children {
    launcher: PathBuf,
    guard: Arc<Guard>,
    scratch: PathBuf,
    point: Option<KillPoint>,
    clock: StoreClock,
}

impl Children {
    fn command(
        &self,
        workflow: &Workflow,
        program: &ProgramDefinition,
        timeout: Duration,
        steps: bool,
    ) -> ProviderWithProfile {
        let command = Command::new(CommandOptions {
            program: program.argv.clone(),
            cwd: program.cwd.clone(),
            environment: program.environment.0.clone(),
            timeout,
            rerun: rerun(workflow),
            steps,
            guard: Arc::clone(&self.guard),
            launcher: self.launcher.clone(),
            scratch: self.scratch.clone(),
            started: (self.point == Some(KillPoint::AfterSpawn)).then_some(KillPoint::die),
            clock: Arc::new(self.clock.clone()),
        });
        (workflow_profile(workflow), Arc::new(command))
    }

    fn tool(
        &self,
        workflow: &Workflow,
        tool: &Tool,
        upstream: &Arc<Upstream>,
    ) -> ProviderWithProfile {
        let tool = McpTool::new(McpToolOptions {
            upstream: Arc::clone(upstream),
            tool: tool.name.clone(),
            message_argument: tool.message_argument.clone(),
            idle_timeout: tool.idle_timeout,
            reset_on_progress: tool.reset_on_progress,
            total_timeout: tool.total_timeout,
            rerun: rerun(workflow),
            clock: Arc::new(self.clock.clone()),
        });
        (workflow_profile(workflow), Arc::new(tool))
    }
}

fn rerun(workflow: &Workflow) -> Rerun {
    if workflow.rerun_after_crash { Rerun::AfterCrash } else { Rerun::Never }
}

fn server(config: &Config, name: &str, upstream: &config::Upstream) -> CommandResult<ServerPlace> {
    match upstream {
        config::Upstream::Program(program) => {
            let path = match program.argv.first().map(String::as_str).unwrap_or_default() {
                path if path.contains('/') => program.cwd.join(Path::new(path)),
                name => PathBuf::from(name),
            };
            let started = outlast_client::ProgramToStart::new(path)
                .args(program.argv.iter().skip(1))
                .env_clear()
                .current_dir(&program.cwd);
            let environment = &program.environment.0;
            let started = environment.iter().fold(started, |it, (name, value)| it.env(name, value));
            Ok(ServerPlace::Program(started))
        }
        config::Upstream::Url { url, headers } => {
            let endpoint = Endpoint::new(url).and_then(|endpoint| {
                let endpoint = match &config.proxy {
                    Some(proxy) => endpoint.proxy(proxy.clone())?,
                    None => endpoint,
                };
                headers.iter().try_fold(endpoint, |it, (name, value)| it.header(name, &value.0))
            });
            let endpoint = endpoint.with_context(|| format!("read [upstream.{name}]"));
            endpoint.map(ServerPlace::Endpoint).or_usage("fix it in outlast.toml")
        }
    }
}

/// Returns the path of this program, even after its file was replaced by a newer one.
pub(crate) fn own_program() -> CommandResult<PathBuf> {
    Ok(outlast_platform::own_program().context("find this program's own file")?)
}

/// The ways to get a missing research provider.
const WAYS: &str = "there are four ways to get one:\n  \
                    1. a key:      set PERPLEXITY_API_KEY; or OUTLAST_PROVIDERS to openai, anthropic or gemini, and its key\n  \
                    2. a library:  set OUTLAST_LIBRARY to a folder of documents, or `outlast research --library FOLDER`\n  \
                    3. your model: set OUTLAST_MODEL_URL, OUTLAST_MODEL and OUTLAST_SEARCH_URL\n  \
                    4. none:       run `outlast demo`, which brings a simulated provider";

/// Returns the error for a missing research provider, with the ways to get one.
pub(crate) fn no_provider() -> CommandError {
    CommandError::wrong("no research provider is configured", WAYS)
}
