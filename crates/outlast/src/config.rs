//! The configuration: flag, then environment, then file, then default. Only this module reads the environment.

pub(crate) mod settings;
mod layers;
mod same_jobs;
mod file;
mod values;
mod providers;
mod researcher;
mod definitions;
mod workflows;
mod notify;
mod wrap;
mod http;
mod oauth;
mod error;
mod redact;
mod shown;
mod example;
mod places;
mod worker_digest;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use outlast_core::rules::Sharing;
use outlast_core::{EndNotices, OwnerId, SpendLimits, Traceparent};
use outlast_engine::PollLimits;
use outlast_provider::http::ProxyOptions;
use outlast_server::{Disclaimer, DocumentSharing, ResearchMode, ToolSet};
use outlast_store::{ConnectionDefaults, ConnectionLimits, StoreClock};
use outlast_wrap::WrapSettings;

pub(crate) use definitions::line_and_column;
pub(crate) use error::{ConfigError, ConfigResult};
pub(crate) use example::example_file;
pub(crate) use http::{Http, LOCAL};
use layers::Layers;
pub(crate) use layers::{Flags, ValueSource};
pub(crate) use notify::Notify;
pub(crate) use places::Places;
pub(crate) use providers::{ResearchProvider, VendorName, VendorSettings};
pub(crate) use redact::{REDACTED, without_credentials};
pub(crate) use researcher::{ResearcherSettings, SearchService, is_loopback};
pub(crate) use shown::{ShownConfig, ShownSetting};
pub(crate) use worker_digest::{FileRead, PartsDigest};
pub(crate) use workflows::{ProgramDefinition, Tool, Upstream, Workflow, WorkflowAction};
pub(crate) use wrap::wrap_environment;

/// The settings of citation checks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Citations {
    /// The occasions on which citations are checked.
    pub(crate) check: CitationChecks,
    /// Allows private networks and any port.
    pub(crate) allow_private: bool,
    /// Allows the proxy.
    pub(crate) through_proxy: bool,
    /// Fetches nothing that a robots.txt disallows.
    pub(crate) respect_robots: bool,
}

/// The occasions on which citations are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CitationChecks {
    /// Somebody asks for it.
    OnRequest,
    /// Research succeeds, or somebody asks for it.
    Always,
    /// None.
    Never,
}

impl CitationChecks {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "on-request" => Some(Self::OnRequest),
            "always" => Some(Self::Always),
            "never" => Some(Self::Never),
            _ => None,
        }
    }
}

/// The parsed configuration of a command.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) perplexity: Perplexity,
    /// The research providers that may be asked, in order.
    pub(crate) providers: Vec<ResearchProvider>,
    /// True if the providers were named; the default is every provider that can be asked.
    pub(crate) providers_are_named: bool,
    /// The way in which research in conversations is answered.
    pub(crate) research_mode: ResearchMode,
    pub(crate) tools: Vec<ToolSet>,
    /// True if the tools were named; the default leaves out those that no provider can answer.
    pub(crate) tools_are_named: bool,
    /// True if workflows are started as jobs rather than held.
    pub(crate) async_mode: bool,
    /// The workflow that can be started, if there is only one.
    pub(crate) fixed_workflow: Option<String>,
    /// The time that `get_job` waits.
    pub(crate) long_poll: Duration,
    pub(crate) workflows: Vec<Workflow>,
    /// Servers whose tools are workflows, by name.
    pub(crate) upstreams: BTreeMap<String, Upstream>,
    /// The proxy for calls to other servers.
    pub(crate) proxy: Option<ProxyOptions>,
    pub(crate) concurrency: usize,
    /// Decides if a stdio server leaves its jobs to a worker that outlives it.
    pub(crate) detach: Detach,
    /// The time that such a worker stays without work.
    pub(crate) worker_idle: Duration,
    settings_digest: String,
    /// The file that was read, if there is one.
    pub(crate) file: Option<FileRead>,
    pub(crate) inline_budget: Duration,
    /// The maximum number of characters of an answer with a report.
    pub(crate) inline_report_chars: usize,
    pub(crate) job_ttl: Duration,
    pub(crate) owner: OwnerId,
    pub(crate) log: String,
    /// True if any layer sets the log filter.
    pub(crate) log_is_set: bool,
    pub(crate) log_format: LogFormat,
    /// The time for which running jobs may continue after SIGTERM.
    pub(crate) drain_timeout: Duration,
    pub(crate) store: StoreUrl,
    /// The options by which another command finds the same jobs; `None` if no option names them.
    pub(crate) same_jobs: Option<Vec<String>>,
    /// The settings of database connections that an address may leave out.
    pub(crate) connection_defaults: ConnectionDefaults,
    /// The limits of database connections.
    pub(crate) connection_limits: ConnectionLimits,
    /// The store's clock, by which providers date their runs.
    pub(crate) clock: StoreClock,
    pub(crate) data_dir: PathBuf,
    /// The user's directory for state that does not belong to the data; `None` without a home directory.
    pub(crate) state_dir: Option<PathBuf>,
    /// Folders of documents.
    pub(crate) library: Vec<PathBuf>,
    /// The permissions to send text of these documents to another provider.
    pub(crate) sharing: DocumentSharing,
    /// The settings of citation checks.
    pub(crate) citations: Citations,
    /// The retention of the pages and notes of the researcher.
    pub(crate) keep_pages: Duration,
    /// The programs that read its PDFs and office files, and the path on which they are searched.
    pub(crate) pdftotext: PathBuf,
    pub(crate) pandoc: PathBuf,
    pub(crate) search_path: String,
    /// The folder in which conversations are written as files; `None` if they are not.
    pub(crate) conversation_logs: Option<PathBuf>,
    pub(crate) max_jobs_per_owner: u32,
    pub(crate) max_bytes_per_owner: u64,
    pub(crate) spend_limits: SpendLimits,
    pub(crate) polls: PollLimits,
    pub(crate) http: Http,
    /// The audit file (M5).
    pub(crate) audit_file: Option<PathBuf>,
    /// The trace that this process belongs to, from TRACEPARENT (M5).
    pub(crate) trace: Option<Traceparent>,
    /// The recipient of notices about ended jobs (G7).
    pub(crate) notify: Option<Notify>,
    /// The settings of wrapped servers, such as the time of a hand-off (H4, H9).
    pub(crate) wrap: WrapSettings,
    /// Values that were replaced by their default, each with its reason.
    pub(crate) warnings: Vec<String>,
}

/// The limits of research by any provider, and the API that is used at Perplexity.
#[derive(Debug)]
pub(crate) struct Perplexity {
    pub(crate) api: Dialect,
    pub(crate) disclaimer: Disclaimer,
    pub(crate) max_job_retries: u32,
    pub(crate) polling_timeout: Duration,
    pub(crate) timeout: Duration,
    pub(crate) async_max_wait: Duration,
    pub(crate) research_job_ttl: Duration,
    pub(crate) research_poll_budget: Duration,
    pub(crate) research_sweep_interval: Duration,
    pub(crate) retry_base: Duration,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

impl LogFormat {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "text" => Some(Self::Text),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// The choice to leave the jobs of a stdio server to a worker that outlives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detach {
    /// Detaches, unless this process is the first of a container, which ends with it.
    Auto,
    Always,
    Never,
}

/// The API that is used at Perplexity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// The Agent API.
    Agent,
    /// The Sonar API, retired at the vendor.
    Sonar,
}

/// A value that must not be printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(pub(crate) String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[redacted]")
    }
}

/// The location of the job store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// In this process only; its jobs are lost when the process exits.
    Memory,
    /// In this file.
    Sqlite(PathBuf),
    /// In a PostgreSQL database, whose address may have a password.
    Postgres(Secret),
}

impl StoreUrl {
    /// Reads `sqlite:FILE`, `postgres://...` or `memory:`; an error names the allowed forms and never repeats the text.
    pub(crate) fn parse(text: &str, defaults: &ConnectionDefaults) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) if !path.is_empty() => Ok(Self::Sqlite(PathBuf::from(path))),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                let address = outlast_store::with_defaults(text, defaults);
                let address = address.map_err(|error| error.to_string())?;
                Ok(Self::Postgres(Secret(address)))
            }
            Some(_) | None => Err("sqlite:FILE, postgres://USER@HOST/DATABASE, memory:".to_owned()),
        }
    }
}

impl Detach {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            "true" | "1" => Some(Self::Always),
            "false" | "0" => Some(Self::Never),
            _ => None,
        }
    }
}

impl Secret {
    /// Returns the address of a database without its password, for PostgreSQL's own programs.
    pub(crate) fn without_password(&self) -> String {
        outlast_store::without_password(&self.0).unwrap_or_else(|| redact::REDACTED.to_owned())
    }
}

/// Shows the address without a password, fit for texts and logs.
impl std::fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Memory => f.write_str("memory:"),
            Self::Sqlite(path) => path.display().fmt(f),
            Self::Postgres(address) => f.write_str(&address.without_password()),
        }
    }
}

impl Config {
    /// Reads all layers.
    pub(crate) fn load(flags: Flags) -> ConfigResult<Self> {
        Self::from_layers(&mut Layers::read(flags)?)
    }

    /// Returns the path of the file that a command with these flags reads, if it exists; `None` without a home directory.
    pub(crate) fn file_path(named: Option<PathBuf>) -> Option<PathBuf> {
        named.or_else(|| file::default_path(&layers::environment()))
    }

    /// Returns true if a provider has what it needs to be asked.
    pub(crate) fn has_provider(&self) -> bool {
        self.providers.iter().any(|provider| match provider {
            ResearchProvider::Library => !self.library.is_empty(),
            ResearchProvider::Vendor(vendor) => vendor.api_key.is_some(),
            ResearchProvider::Researcher(settings) => {
                settings.find_missing(&self.library).is_none()
            }
        })
    }

    /// Returns the setting for notices of ends: they are stored only if this process, or others with the same file,
    /// deliver them.
    pub(crate) fn end_notices(&self) -> EndNotices {
        match self.notify {
            Some(_) => EndNotices::Kept,
            None => EndNotices::Off,
        }
    }

    fn from_layers(layers: &mut Layers) -> ConfigResult<Self> {
        layers.warn_of_old_names();
        let perplexity = Perplexity {
            api: layers.dialect()?,
            disclaimer: match layers.flag(settings::PERPLEXITY_ENABLE_SECURITY_DISCLAIMER)? {
                true => Disclaimer::Shown,
                false => Disclaimer::Off,
            },
            max_job_retries: layers.number(settings::PERPLEXITY_MAX_JOB_RETRIES, 0..=100)?,
            polling_timeout: layers.millis(settings::PERPLEXITY_POLLING_TIMEOUT_MS),
            timeout: layers.millis(settings::PERPLEXITY_TIMEOUT_MS),
            async_max_wait: layers.millis(settings::PERPLEXITY_ASYNC_MAX_WAIT_MS),
            research_job_ttl: layers.millis(settings::PERPLEXITY_RESEARCH_JOB_TTL_MS),
            research_poll_budget: layers.millis(settings::PERPLEXITY_RESEARCH_POLL_BUDGET_MS),
            research_sweep_interval: layers.millis(settings::PERPLEXITY_RESEARCH_SWEEP_INTERVAL_MS),
            retry_base: layers.millis(settings::PERPLEXITY_RETRY_BASE_MS),
        };
        let store = layers.store()?;
        let (workflows, upstreams) = layers.workflows()?;
        let library = layers.paths(settings::LIBRARY_FOLDERS);
        let providers = layers.providers(&library, perplexity.timeout)?;
        let mut tools = layers.tools(providers.first())?;
        // Either setting implies the other.
        let async_mode =
            layers.flag(settings::SERVER_ASYNC_MODE)? || tools.contains(&ToolSet::Jobs);
        if async_mode && !tools.contains(&ToolSet::Jobs) {
            tools.push(ToolSet::Jobs);
        }
        Ok(Self {
            perplexity,
            providers,
            providers_are_named: layers.is_set(settings::SERVER_PROVIDERS),
            research_mode: layers.research_mode(),
            data_dir: layers.data_dir_beside(&store)?,
            state_dir: layers.state_dir(),
            library,
            sharing: match layers.flag(settings::LIBRARY_AGENTS_MAY_SHARE)? {
                true => DocumentSharing::AgentsToo,
                false => DocumentSharing::PersonsOnly,
            },
            keep_pages: layers.keep_pages()?,
            citations: Citations {
                check: layers.parsed(
                    settings::CITATIONS_CHECK,
                    "on-request, always or never",
                    CitationChecks::parse,
                )?,
                allow_private: layers.flag(settings::CITATIONS_ALLOW_PRIVATE)?,
                through_proxy: layers.flag(settings::CITATIONS_THROUGH_PROXY)?,
                respect_robots: layers.flag(settings::CITATIONS_RESPECT_ROBOTS)?,
            },
            pdftotext: layers.program(settings::LIBRARY_CONVERTERS_PDFTOTEXT)?,
            pandoc: layers.program(settings::LIBRARY_CONVERTERS_PANDOC)?,
            search_path: layers.search_path(),
            tools,
            tools_are_named: layers.is_set(settings::SERVER_TOOLS),
            async_mode,
            fixed_workflow: layers.fixed_workflow(&workflows)?,
            long_poll: layers.seconds_within(settings::SERVER_LONG_POLL_TIMEOUT, 1..=300)?,
            workflows,
            upstreams,
            proxy: layers.common_proxy(),
            concurrency: layers.number(settings::SERVER_CONCURRENCY, 1..=10_000)? as usize,
            detach: layers.parsed(settings::SERVER_DETACH, "auto, true or false", Detach::parse)?,
            worker_idle: layers.worker_idle(),
            settings_digest: worker_digest::of_settings(layers),
            file: layers.file.as_ref().map(FileRead::of),
            inline_budget: layers.duration(settings::SERVER_INLINE_BUDGET_MS)?,
            inline_report_chars: layers
                .number(settings::SERVER_INLINE_REPORT_CHARS, 1_000..=1_000_000_000)?
                as usize,
            job_ttl: layers.duration(settings::SERVER_JOB_TTL_MS)?,
            owner: OwnerId::new(layers.owner()?),
            log: layers.log(),
            log_is_set: layers.is_set(settings::SERVER_LOG)
                || layers.is_set(settings::PERPLEXITY_LOG_LEVEL),
            log_format: layers.parsed(
                settings::SERVER_LOG_FORMAT,
                "text or json",
                LogFormat::parse,
            )?,
            drain_timeout: layers.drain_timeout()?,
            conversation_logs: layers.conversation_logs(&store)?,
            audit_file: layers.text(settings::AUDIT_FILE).map(PathBuf::from),
            trace: layers.environment.get("TRACEPARENT").and_then(|text| Traceparent::parse(text)),
            connection_defaults: layers.connection_defaults(),
            connection_limits: layers.connection_limits()?,
            same_jobs: layers.same_jobs(&store),
            store,
            clock: StoreClock::default(),
            max_jobs_per_owner: layers
                .number(settings::LIMITS_MAX_JOBS_PER_OWNER, 1..=1_000_000)?,
            max_bytes_per_owner: layers.bytes(settings::LIMITS_MAX_BYTES_PER_OWNER)?,
            spend_limits: SpendLimits {
                per_job: layers.dollars(settings::LIMITS_MAX_USD_PER_JOB)?,
                per_day: layers.dollars(settings::LIMITS_MAX_USD_PER_DAY)?,
            },
            polls: PollLimits {
                in_all: layers.number(settings::LIMITS_MAX_POLLS, 1..=1_000_000)? as usize,
                per_job: layers.number(settings::LIMITS_MAX_POLLS_PER_JOB, 1..=1_000_000)? as usize,
                // A server with tokens of several owners sets another value.
                sharing: Sharing::OneOwner,
            },
            http: layers.http()?,
            notify: layers.notify()?,
            wrap: layers.wrap()?,
            warnings: std::mem::take(&mut layers.warnings),
        })
    }
}

#[cfg(test)]
mod tests;
