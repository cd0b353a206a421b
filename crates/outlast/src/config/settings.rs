//! Every setting, declared once. docs/configuration.md and examples/outlast.toml are generated from this table.

use SettingType::{
    Address, Boolean, Bytes, Choice, Dollars, Duration, List, Milliseconds, Number, Path, Paths,
    Program, Seconds, Secret, StoreAddress, Text, Webhook,
};

/// A setting: its names, its type and its default.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Setting {
    /// The key in outlast.toml, with its section: `section.key`.
    pub(crate) key: &'static str,
    /// Environment variables; the first one that is set counts.
    pub(crate) variables: &'static [&'static str],
    pub(crate) kind: SettingType,
    /// The value when nothing is set; empty if there is none.
    pub(crate) default: &'static str,
    /// One line for people, in Markdown.
    pub(crate) description: &'static str,
}

/// The type of a setting's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SettingType {
    Text,
    /// Text that is never shown.
    Secret,
    /// An `http://` or `https://` address.
    Address,
    /// An address whose path may be a secret.
    Webhook,
    /// The address of a job store, which may hold a password.
    StoreAddress,
    Boolean,
    Number,
    Milliseconds,
    Seconds,
    /// A number with a unit, such as `500ms`, `90s`, `5m` or `2h`; a bare number is seconds.
    Duration,
    /// A number of bytes, or one with `KiB`, `MiB` or `GiB`.
    Bytes,
    Dollars,
    Path,
    /// Several paths; in a variable they are separated as in PATH.
    Paths,
    /// The name of a program, or an absolute path.
    Program,
    /// Words separated by commas; a list in the file.
    List,
    Choice(&'static [&'static str]),
}

/// Declares each setting as a constant, and the table of all of them.
macro_rules! settings {
    ($($name:ident = $key:literal, [$($variable:literal),*], $kind:expr, $default:literal, $description:literal;)*) => {
        $(pub(crate) const $name: &Setting = &Setting {
            key: $key,
            variables: &[$($variable),*],
            kind: $kind,
            default: $default,
            description: $description,
        };)*

        /// All settings, in the order of the documentation.
        pub(crate) const SETTINGS: &[&Setting] = &[$($name),*];
    };
}

settings! {
    PERPLEXITY_API_KEY = "perplexity.api_key", ["PERPLEXITY_API_KEY"], Secret, "",
        "API key of your Perplexity account";
    PERPLEXITY_BASE_URL = "perplexity.base_url", ["PERPLEXITY_BASE_URL", "PERPLEXITY_API_BASE_URL"], Address, "https://api.perplexity.ai",
        "address of Perplexity's API";
    PERPLEXITY_API = "perplexity.api", ["PERPLEXITY_API"], Choice(&["agent", "sonar"]), "agent",
        "API to use: `agent`, or `sonar` for gateways that still offer it";
    PERPLEXITY_PROXY = "perplexity.proxy", ["PERPLEXITY_PROXY"], Address, "",
        "proxy for every call to Perplexity, including calls to this machine: `http://user:password@host:port`";
    PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH = "perplexity.enable_async_deep_research", ["PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH"], Choice(&["false", "true", "auto"]), "false",
        "old name of `server.async_research`, used if that is not set";
    PERPLEXITY_ENABLE_SECURITY_DISCLAIMER = "perplexity.enable_security_disclaimer", ["PERPLEXITY_ENABLE_SECURITY_DISCLAIMER"], Boolean, "false",
        "warn against sensitive information in the descriptions of tools";
    PERPLEXITY_MAX_JOB_RETRIES = "perplexity.max_job_retries", ["PERPLEXITY_MAX_JOB_RETRIES"], Number, "2",
        "number of retries before a job fails for good";
    PERPLEXITY_POLLING_TIMEOUT_MS = "perplexity.polling_timeout_ms", ["PERPLEXITY_POLLING_TIMEOUT_MS"], Milliseconds, "600000",
        "time limit of one attempt";
    PERPLEXITY_TIMEOUT_MS = "perplexity.timeout_ms", ["PERPLEXITY_TIMEOUT_MS"], Milliseconds, "300000",
        "time limit of one call to a provider; for a stream, the longest silence";
    PERPLEXITY_ASYNC_MAX_WAIT_MS = "perplexity.async_max_wait_ms", ["PERPLEXITY_ASYNC_MAX_WAIT_MS"], Milliseconds, "900000",
        "time limit of a whole research-jobs job";
    PERPLEXITY_RESEARCH_JOB_TTL_MS = "perplexity.research_job_ttl_ms", ["PERPLEXITY_RESEARCH_JOB_TTL_MS"], Milliseconds, "1800000",
        "time during which a finished research-jobs job can be polled";
    PERPLEXITY_RESEARCH_POLL_BUDGET_MS = "perplexity.research_poll_budget_ms", ["PERPLEXITY_RESEARCH_POLL_BUDGET_MS"], Milliseconds, "45000",
        "longest wait of one poll";
    PERPLEXITY_RESEARCH_SWEEP_INTERVAL_MS = "perplexity.research_sweep_interval_ms", ["PERPLEXITY_RESEARCH_SWEEP_INTERVAL_MS"], Milliseconds, "300000",
        "interval at which expired jobs are removed";
    PERPLEXITY_RETRY_BASE_MS = "perplexity.retry_base_ms", ["PERPLEXITY_RETRY_BASE_MS"], Milliseconds, "2000",
        "wait after the first failure; it doubles with each further failure";
    PERPLEXITY_LOG_LEVEL = "perplexity.log_level", ["PERPLEXITY_LOG_LEVEL"], Text, "info",
        "log level, if `server.log` is not set";

    OPENAI_API_KEY = "openai.api_key", ["OPENAI_API_KEY"], Secret, "",
        "API key of your OpenAI account; read only if `server.providers` names `openai`";
    OPENAI_BASE_URL = "openai.base_url", ["OPENAI_BASE_URL"], Address, "https://api.openai.com",
        "address of OpenAI's API";
    OPENAI_MODEL = "openai.model", ["OUTLAST_OPENAI_MODEL"], Text, "",
        "model instead of outlast's default";
    OPENAI_PROXY = "openai.proxy", ["OPENAI_PROXY"], Address, "",
        "proxy for every call to OpenAI; default: `network.proxy`";
    OPENAI_TIMEOUT_MS = "openai.timeout_ms", ["OPENAI_TIMEOUT_MS"], Milliseconds, "",
        "time limit of one call to OpenAI; default: `perplexity.timeout_ms`";

    ANTHROPIC_API_KEY = "anthropic.api_key", ["ANTHROPIC_API_KEY"], Secret, "",
        "API key of your Anthropic account; read only if `server.providers` names `anthropic`";
    ANTHROPIC_BASE_URL = "anthropic.base_url", ["ANTHROPIC_BASE_URL"], Address, "https://api.anthropic.com",
        "address of Anthropic's API";
    ANTHROPIC_MODEL = "anthropic.model", ["OUTLAST_ANTHROPIC_MODEL"], Text, "",
        "model instead of outlast's default";
    ANTHROPIC_PROXY = "anthropic.proxy", ["ANTHROPIC_PROXY"], Address, "",
        "proxy for every call to Anthropic; default: `network.proxy`";
    ANTHROPIC_TIMEOUT_MS = "anthropic.timeout_ms", ["ANTHROPIC_TIMEOUT_MS"], Milliseconds, "",
        "time limit of one call to Anthropic; default: `perplexity.timeout_ms`";

    GEMINI_API_KEY = "gemini.api_key", ["GEMINI_API_KEY"], Secret, "",
        "API key of your Gemini account; read only if `server.providers` names `gemini`";
    GEMINI_BASE_URL = "gemini.base_url", ["GEMINI_BASE_URL"], Address, "https://generativelanguage.googleapis.com",
        "address of Gemini's API";
    GEMINI_MODEL = "gemini.model", ["OUTLAST_GEMINI_MODEL"], Text, "",
        "agent instead of outlast's default";
    GEMINI_PROXY = "gemini.proxy", ["GEMINI_PROXY"], Address, "",
        "proxy for every call to Gemini; default: `network.proxy`";
    GEMINI_TIMEOUT_MS = "gemini.timeout_ms", ["GEMINI_TIMEOUT_MS"], Milliseconds, "",
        "time limit of one call to Gemini; default: `perplexity.timeout_ms`";

    RESEARCHER_MODEL_URL = "researcher.model_url", ["OUTLAST_MODEL_URL"], Address, "",
        "address of the researcher's model: any server with OpenAI's `/chat/completions`, such as `http://127.0.0.1:11434/v1`";
    RESEARCHER_MODEL = "researcher.model", ["OUTLAST_MODEL"], Text, "",
        "name of the model at that server";
    RESEARCHER_API_KEY = "researcher.api_key", ["OUTLAST_MODEL_API_KEY"], Secret, "",
        "API key of the model server, if it needs one";
    RESEARCHER_LOCAL = "researcher.local", [], Boolean, "false",
        "the model server is yours, though it is not on this machine: text of the library may be sent to it";
    RESEARCHER_CONTEXT_TOKENS = "researcher.context_tokens", [], Number, "0",
        "context window of the model in tokens; `0` asks the server";
    RESEARCHER_PARALLEL = "researcher.parallel", [], Number, "0",
        "number of requests to the model at a time; `0` means 1 for a server on this machine and 4 for others";
    RESEARCHER_PRICE_IN = "researcher.price_in", [], Dollars, "",
        "price of a million tokens that the model reads; default: 0 on this machine, otherwise unknown, and then a spending limit refuses research";
    RESEARCHER_PRICE_OUT = "researcher.price_out", [], Dollars, "",
        "price of a million tokens that the model writes; default: as for `researcher.price_in`";
    RESEARCHER_PRICE_SEARCH = "researcher.price_search", [], Dollars, "",
        "price of 1,000 searches; default: 0 for the library and for addresses of this machine, otherwise unknown";
    RESEARCHER_SEARCH = "researcher.search", ["OUTLAST_SEARCH"], Text, "searxng",
        "search service of the researcher: `searxng`, `library` (the folders of `library.folders`), or `tool:UPSTREAM.TOOL`";
    RESEARCHER_SEARCH_URL = "researcher.search_url", ["OUTLAST_SEARCH_URL"], Address, "",
        "address of the SearXNG server, such as `http://127.0.0.1:8888`";
    RESEARCHER_SEARCH_API_KEY = "researcher.search_api_key", ["OUTLAST_SEARCH_API_KEY"], Secret, "",
        "key of the SearXNG server, if a proxy in front of it asks for a bearer token";
    RESEARCHER_MAX_RESEND_USD = "researcher.max_resend_usd", [], Dollars, "0.02",
        "maximum cost of the steps of one run that are sent again because their answer was lost; beyond it the job fails with SUBMIT_UNKNOWN";
    RESEARCHER_MAX_PAGES = "researcher.max_pages", [], Number, "0",
        "maximum number of pages that a run reads; `0`: 12, 30 or 80 by effort";
    RESEARCHER_MAX_TOKENS = "researcher.max_tokens", [], Number, "0",
        "maximum number of tokens of a run, read and written; `0`: by effort";
    RESEARCHER_MAX_MINUTES = "researcher.max_minutes", [], Number, "30",
        "maximum time of a run in minutes; writing begins when 85 % of it has passed";
    RESEARCHER_KEEP_PAGES = "researcher.keep_pages", [], Duration, "30d",
        "retention of the pages and notes of ended runs, from which follow-ups start";

    SERVER_PROVIDERS = "server.providers", ["OUTLAST_PROVIDERS"], List, "",
        "research providers, in order of preference: `perplexity`, `openai`, `anthropic`, `gemini`, `researcher`, `library`; default: `perplexity` if it has a key, then `library` if it has folders, then `researcher` if it has a model and a search service";
    SERVER_TOOLS = "server.tools", ["OUTLAST_TOOLS"], List, "",
        "tool sets to serve, in this order; a name that two sets share belongs to the first; default: `research,research-jobs`, or `deep-research,research-jobs` if the first provider is not Perplexity";
    SERVER_ASYNC_RESEARCH = "server.async_research", ["OUTLAST_ASYNC_RESEARCH"], Choice(&["false", "true", "auto"]), "false",
        "how deep research in conversations is answered: `false` waits for the report, `true` answers at once, `auto` waits for the inline budget";
    SERVER_ASYNC_MODE = "server.async_mode", ["OUTLAST_ASYNC"], Boolean, "false",
        "start workflows as jobs (tool set `jobs`); otherwise each workflow is a tool that returns its result";
    SERVER_FIXED_WORKFLOW = "server.fixed_workflow", [], Text, "",
        "the only workflow that clients can start: its tool is `start_<name>` instead of `start_job`; flag `--workflow`";
    SERVER_LONG_POLL_TIMEOUT = "server.long_poll_timeout", ["OUTLAST_POLL_TIMEOUT"], Seconds, "59",
        "longest wait of `get_job`, from 1 to 300 seconds";
    SERVER_CONCURRENCY = "server.concurrency", ["OUTLAST_CONCURRENCY"], Number, "5",
        "how many jobs run at a time in one worker process";
    SERVER_DETACH = "server.detach", ["OUTLAST_DETACH"], Choice(&["auto", "true", "false"]), "auto",
        "run a stdio server's jobs in a worker that outlives it; `auto`: except in the first process of a container";
    SERVER_INLINE_BUDGET_MS = "server.inline_budget_ms", ["OUTLAST_INLINE_BUDGET_MS"], Milliseconds, "45000",
        "longest wait of a call that can also be answered before its result";
    SERVER_INLINE_REPORT_CHARS = "server.inline_report_chars", ["OUTLAST_INLINE_REPORT_CHARS"], Number, "80000",
        "longest answer with a report, in characters; of a longer report the answer has the beginning and the list of headings";
    SERVER_JOB_TTL_MS = "server.job_ttl_ms", ["OUTLAST_JOB_TTL_MS"], Milliseconds, "3600000",
        "time for which finished jobs of workflows, and held calls that failed, are kept";
    SERVER_OWNER = "server.owner", ["OUTLAST_OWNER"], Text, "local",
        "owner of the jobs of stdio servers and of the command line";
    SERVER_TOKENS = "server.tokens", ["OUTLAST_TOKENS"], Secret, "",
        "tokens of HTTP clients: `name=token`, separated by commas; the name is the owner of their jobs";
    SERVER_TOKENS_FILE = "server.tokens_file", ["OUTLAST_TOKENS_FILE"], Path, "",
        "file with further tokens, one `name token` per line; must have mode 0600";
    SERVER_ALLOWED_HOSTS = "server.allowed_hosts", ["OUTLAST_ALLOWED_HOSTS"], List, "",
        "host names that HTTP clients may use for this server, with or without a port; default: the names of this machine";
    SERVER_ALLOWED_ORIGINS = "server.allowed_origins", ["OUTLAST_ALLOWED_ORIGINS"], List, "",
        "origins of web pages that may call this server, such as `https://app.example`";
    SERVER_TRUSTED_PROXIES = "server.trusted_proxies", ["OUTLAST_TRUSTED_PROXIES"], List, "",
        "reverse proxies (addresses or networks, such as `10.0.0.0/8`) whose `X-Forwarded-For` is accepted";
    SERVER_PUBLIC_URL = "server.public_url", ["OUTLAST_PUBLIC_URL"], Address, "",
        "address of this server for people, such as `https://research.example`, in links to a job's page; default: its own, if that is a loopback address";
    SERVER_LOG = "server.log", ["OUTLAST_LOG"], Text, "",
        "log level, or a tracing filter";
    SERVER_LOG_FORMAT = "server.log_format", ["OUTLAST_LOG_FORMAT"], Choice(&["text", "json"]), "text",
        "format of log lines";
    SERVER_DRAIN_TIMEOUT = "server.drain_timeout", ["OUTLAST_DRAIN_TIMEOUT"], Duration, "0s",
        "time for which running jobs may continue after SIGTERM";

    OAUTH_ISSUER = "oauth.issuer", ["OUTLAST_OAUTH_ISSUER"], Address, "",
        "OAuth issuer whose JWT access tokens HTTP clients may use, exactly as in `iss`; needs `server.public_url`";
    OAUTH_AUDIENCE = "oauth.audience", ["OUTLAST_OAUTH_AUDIENCE"], List, "",
        "accepted audiences of access tokens; default: `/mcp` at `server.public_url` and that address itself, each with or without a slash at its end";
    OAUTH_JWKS_URL = "oauth.jwks_url", ["OUTLAST_OAUTH_JWKS_URL"], Address, "",
        "address of the issuer's keys; default: the one in its metadata";
    OAUTH_OWNER_CLAIM = "oauth.owner_claim", ["OUTLAST_OAUTH_OWNER_CLAIM"], Text, "sub",
        "claim of the access token that identifies the owner";
    OAUTH_SCOPES = "oauth.scopes", ["OUTLAST_OAUTH_SCOPES"], List, "outlast:read,outlast:run,outlast:admin",
        "names of the scopes: for reading, for starting and cancelling, and for the metrics of all owners";

    LIBRARY_FOLDERS = "library.folders", ["OUTLAST_LIBRARY"], Paths, "",
        "folders of documents that the library searches; `server.library` in earlier versions";
    LIBRARY_AGENTS_MAY_SHARE = "library.agents_may_share", ["OUTLAST_AGENTS_MAY_SHARE"], Boolean, "false",
        "let MCP callers move a conversation with text of the library to another provider";
    LIBRARY_CONVERTERS_PDFTOTEXT = "library.converters.pdftotext", [], Program, "pdftotext",
        "program that reads the library's PDFs (package poppler-utils); its input file is `/dev/stdin`";
    LIBRARY_CONVERTERS_PANDOC = "library.converters.pandoc", [], Program, "pandoc",
        "program that reads the library's docx, odt, epub and rtf files from standard input";

    CITATIONS_CHECK = "citations.check", ["OUTLAST_CHECK_CITATIONS"], Choice(&["on-request", "always", "never"]), "on-request",
        "check the citations of reports: when somebody asks for it, always when research succeeds, or never";
    CITATIONS_ALLOW_PRIVATE = "citations.allow_private", ["OUTLAST_CITATIONS_ALLOW_PRIVATE"], Boolean, "false",
        "let citation checks fetch from private networks and from any port";
    CITATIONS_THROUGH_PROXY = "citations.through_proxy", ["OUTLAST_CITATIONS_THROUGH_PROXY"], Boolean, "false",
        "let citation checks fetch through `network.proxy`, where the addresses of names cannot be checked";
    CITATIONS_RESPECT_ROBOTS = "citations.respect_robots", ["OUTLAST_CITATIONS_RESPECT_ROBOTS"], Boolean, "false",
        "let citation checks fetch no page that the robots.txt of its site disallows";

    NETWORK_PROXY = "network.proxy", ["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"], Address, "",
        "proxy for other servers and for providers without a proxy setting, for `http` and `https`; never used for this machine (localhost, 127.0.0.0/8, ::1)";
    NETWORK_NO_PROXY = "network.no_proxy", ["NO_PROXY", "no_proxy"], List, "",
        "hosts, domains (with subdomains), addresses or networks that are reached without a proxy, optionally with a port; `*` for all";

    STORE_URL = "store.url", ["OUTLAST_STORE"], StoreAddress, "",
        "job store: `sqlite:FILE`, `postgres://USER@HOST/DATABASE` or `memory:`; default: `outlast.db` in the data directory";
    STORE_PASSWORD = "store.password", ["PGPASSWORD"], Secret, "",
        "password of the PostgreSQL store, if its address has none";
    STORE_PASSWORD_FILE = "store.password_file", ["PGPASSFILE"], Path, "",
        "password file in the format of `.pgpass`, mode 0600; default: `~/.pgpass`";
    STORE_SSLMODE = "store.sslmode", ["PGSSLMODE"], Text, "",
        "`sslmode` of the PostgreSQL store, if its address has none";
    STORE_CONNECT_TIMEOUT = "store.connect_timeout", ["OUTLAST_STORE_CONNECT_TIMEOUT"], Duration, "30s",
        "longest wait of a start for an unreachable PostgreSQL store";
    STORE_STATEMENT_TIMEOUT = "store.statement_timeout", ["OUTLAST_STORE_STATEMENT_TIMEOUT"], Duration, "10s",
        "time limit of one statement of the PostgreSQL store";
    STORE_POOL_SIZE = "store.pool_size", ["OUTLAST_STORE_POOL_SIZE"], Number, "8",
        "number of connections of a process to a PostgreSQL store, besides its session connection";
    STORE_DATA_DIR = "store.data_dir", ["OUTLAST_DATA_DIR"], Path, "",
        "data directory; default: `outlast` in the user's data directory";
    STORE_CONVERSATION_LOGS_DIR = "store.conversation_logs_dir", ["CONVERSATION_LOGS_DIR"], Path, "",
        "directory in which conversations are written as files; default: `conversation-logs` in the data directory";
    STORE_MIRROR = "store.mirror", [], Boolean, "true",
        "write conversations as files; never done for a `memory:` store; flag `--no-mirror`";

    LIMITS_MAX_JOBS_PER_OWNER = "limits.max_jobs_per_owner", ["OUTLAST_MAX_JOBS_PER_OWNER"], Number, "1000",
        "maximum number of unfinished jobs of one owner";
    LIMITS_MAX_BYTES_PER_OWNER = "limits.max_bytes_per_owner", ["OUTLAST_MAX_BYTES_PER_OWNER"], Bytes, "1 GiB",
        "maximum size of one owner's questions and results in the job store";
    LIMITS_MAX_USD_PER_JOB = "limits.max_usd_per_job", ["OUTLAST_MAX_USD_PER_JOB"], Dollars, "",
        "maximum cost of one paid job in US dollars; default: no limit";
    LIMITS_MAX_USD_PER_DAY = "limits.max_usd_per_day", ["OUTLAST_MAX_USD_PER_DAY"], Dollars, "",
        "maximum spend of one owner per UTC day in US dollars; default: no limit";
    LIMITS_MAX_POLLS = "limits.max_polls", ["OUTLAST_MAX_POLLS"], Number, "10000",
        "maximum number of waiting polls";
    LIMITS_MAX_POLLS_PER_JOB = "limits.max_polls_per_job", ["OUTLAST_MAX_POLLS_PER_JOB"], Number, "100",
        "maximum number of waiting polls for one job";
    LIMITS_RATE_PER_MINUTE = "limits.rate_per_minute", ["OUTLAST_RATE_PER_MINUTE"], Number, "600",
        "maximum number of HTTP requests of one owner per minute";

    AUDIT_FILE = "audit.file", [], Path, "",
        "file that gets a JSON line for each start, end and cancel of a job, each answer, sign-in and refusal";

    NOTIFY_COMMAND = "notify.command", [], List, "",
        "program to run when a job has ended, with its arguments";
    NOTIFY_PASS_ENV = "notify.pass_env", [], List, "",
        "further environment variables that the command gets";
    NOTIFY_URL = "notify.url", [], Webhook, "",
        "address to post the JSON to instead, signed with `notify.secret`";
    NOTIFY_SECRET = "notify.secret", [], Secret, "",
        "secret that signs the posts; required with `notify.url`";

    WRAP_AFTER = "wrap.after", [], Duration, "45s",
        "time after which a call of a wrapped server is handed off; flag `--after`";
    WRAP_ON_CANCEL = "wrap.on_cancel", [], Choice(&["auto", "keep", "forward"]), "auto",
        "forwarding of a client's cancel: `auto` a person's but not a timeout's, `keep` never, `forward` always";
    WRAP_MAX_RESULT = "wrap.max_result", [], Bytes, "256KiB",
        "maximum size of one answer with a result that was handed off";
}

impl SettingType {
    /// Returns the name of the type in the documentation.
    #[cfg(test)]
    pub(crate) fn name(self) -> String {
        match self {
            Text => "text".to_owned(),
            Secret => "secret".to_owned(),
            Address | Webhook | StoreAddress => "address".to_owned(),
            Boolean => "`true`, `false`".to_owned(),
            Number => "number".to_owned(),
            Milliseconds => "milliseconds".to_owned(),
            Seconds => "seconds".to_owned(),
            Duration => "duration".to_owned(),
            Bytes => "bytes".to_owned(),
            Dollars => "dollars".to_owned(),
            Path => "path".to_owned(),
            Paths => "paths".to_owned(),
            Program => "program".to_owned(),
            List => "list".to_owned(),
            Choice(words) => {
                words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
            }
        }
    }
}

/// Returns the setting with a key, if there is one.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().copied().find(|setting| setting.key == key)
}
