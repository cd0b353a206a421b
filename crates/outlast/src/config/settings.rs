//! Every setting once: its key in the file, its variables, its default, and what it is for.

/// One thing that can be configured.
pub(super) struct Setting {
    /// `section.key` in outlast.toml.
    pub(super) key: &'static str,
    /// Environment variables, the first that is set wins.
    pub(super) variables: &'static [&'static str],
    /// Used when nothing is set; empty means there is none.
    pub(super) default: &'static str,
    /// One line for people.
    pub(super) help: &'static str,
}

const fn setting(
    key: &'static str,
    variables: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Setting {
    Setting { key, variables, default, help }
}

/// All of them, in the order of the documentation.
pub(super) const SETTINGS: &[Setting] = &[
    setting("perplexity.api_key", &["PERPLEXITY_API_KEY"], "", "the key of the provider's account"),
    setting(
        "perplexity.base_url",
        &["PERPLEXITY_BASE_URL", "PERPLEXITY_API_BASE_URL"],
        "https://api.perplexity.ai",
        "where the provider's API is",
    ),
    setting(
        "perplexity.api",
        &["PERPLEXITY_API"],
        "agent",
        "the dialect spoken there: `agent`, or `sonar` for gateways that still have it",
    ),
    setting(
        "perplexity.proxy",
        &["PERPLEXITY_PROXY"],
        "",
        "a proxy for every call to the provider, also to one on this machine: `http://user:password@host:port`",
    ),
    setting(
        "perplexity.enable_async_deep_research",
        &["PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH"],
        "false",
        "how deep research in conversations is answered: `false` with the report, `true` at once, `auto` with the \
         report if it is there within the inline budget",
    ),
    setting(
        "perplexity.enable_security_disclaimer",
        &["PERPLEXITY_ENABLE_SECURITY_DISCLAIMER"],
        "false",
        "whether tool descriptions warn against sending sensitive information",
    ),
    setting(
        "perplexity.max_job_retries",
        &["PERPLEXITY_MAX_JOB_RETRIES"],
        "2",
        "failures forgiven before a job fails for good",
    ),
    setting(
        "perplexity.polling_timeout_ms",
        &["PERPLEXITY_POLLING_TIMEOUT_MS"],
        "600000",
        "how long one try may take",
    ),
    setting(
        "perplexity.timeout_ms",
        &["PERPLEXITY_TIMEOUT_MS"],
        "300000",
        "the limit of one call to the provider; on streams, of the silence between bytes",
    ),
    setting(
        "perplexity.async_max_wait_ms",
        &["PERPLEXITY_ASYNC_MAX_WAIT_MS"],
        "900000",
        "how long a research-jobs job may stay unfinished",
    ),
    setting(
        "perplexity.research_job_ttl_ms",
        &["PERPLEXITY_RESEARCH_JOB_TTL_MS"],
        "1800000",
        "how long a finished research-jobs job can be polled",
    ),
    setting(
        "perplexity.research_poll_budget_ms",
        &["PERPLEXITY_RESEARCH_POLL_BUDGET_MS"],
        "45000",
        "how long one poll waits",
    ),
    setting(
        "perplexity.research_sweep_interval_ms",
        &["PERPLEXITY_RESEARCH_SWEEP_INTERVAL_MS"],
        "300000",
        "how late expired jobs may be removed; they cannot be polled from the moment they expire",
    ),
    setting(
        "perplexity.retry_base_ms",
        &["PERPLEXITY_RETRY_BASE_MS"],
        "2000",
        "the wait after a first failure; it doubles",
    ),
    setting(
        "perplexity.log_level",
        &["PERPLEXITY_LOG_LEVEL"],
        "info",
        "the log level, when `server.log` is not set",
    ),
    setting(
        "server.tools",
        &["OUTLAST_TOOLS"],
        "research,research-jobs",
        "the tool sets to serve, in this order; a name that two sets share belongs to the first",
    ),
    setting(
        "server.async_mode",
        &["OUTLAST_ASYNC"],
        "false",
        "whether workflows are started as jobs and asked after (tool set `jobs`); otherwise each is a tool that returns \
         its result",
    ),
    setting(
        "server.fixed_workflow",
        &[],
        "",
        "the one workflow that clients can start: its tool is `start_<name>` instead of `start_job`; `--workflow`",
    ),
    setting(
        "server.long_poll_timeout",
        &["OUTLAST_POLL_TIMEOUT"],
        "59",
        "how long `get_job` waits for a job's end, in seconds from 1 to 300",
    ),
    setting("server.concurrency", &["OUTLAST_CONCURRENCY"], "5", "how many jobs to run at a time"),
    setting(
        "server.inline_budget_ms",
        &["OUTLAST_INLINE_BUDGET_MS"],
        "45000",
        "how long a call waits for what it could also be told to come back for",
    ),
    setting(
        "server.job_ttl_ms",
        &["OUTLAST_JOB_TTL_MS"],
        "3600000",
        "how long a finished job of a workflow, and a held call that failed, is kept",
    ),
    setting(
        "server.owner",
        &["OUTLAST_OWNER"],
        "local",
        "whose jobs stdio and the command line see",
    ),
    setting(
        "server.library",
        &["OUTLAST_LIBRARY"],
        "",
        "folders of documents that answer research when no key is set; in a variable separated like PATH",
    ),
    setting(
        "server.tokens",
        &["OUTLAST_TOKENS"],
        "",
        "tokens of HTTP clients: `name=token`, separated by commas; the name is the owner of their jobs",
    ),
    setting(
        "server.tokens_file",
        &["OUTLAST_TOKENS_FILE"],
        "",
        "a file with more of them, a line each: `name token`; only its owner may read it (mode 0600)",
    ),
    setting(
        "server.allowed_hosts",
        &["OUTLAST_ALLOWED_HOSTS"],
        "",
        "names HTTP clients may use for this server, with or without a port; this machine's own when not set",
    ),
    setting(
        "server.allowed_origins",
        &["OUTLAST_ALLOWED_ORIGINS"],
        "",
        "origins of web pages that may ask, such as `https://app.example`; none when not set",
    ),
    setting("server.log", &["OUTLAST_LOG"], "", "a log level, or a tracing filter"),
    setting(
        "library.converters.pdftotext",
        &[],
        "pdftotext",
        "the program that reads the PDFs of a library (package poppler-utils): a name, or an absolute path",
    ),
    setting(
        "library.converters.pandoc",
        &[],
        "pandoc",
        "the program that reads its docx, odt, epub and rtf files: a name, or an absolute path",
    ),
    setting(
        "network.proxy",
        &["HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"],
        "",
        "the proxy to other servers, and to the provider when `perplexity.proxy` is not set, for `http` and `https` alike; never used for this machine (localhost, 127.0.0.0/8, ::1)",
    ),
    setting(
        "network.no_proxy",
        &["NO_PROXY", "no_proxy"],
        "",
        "what goes through no proxy, separated by commas: hosts, domains with what is below them, addresses, networks such as `10.0.0.0/8`, each with a port if only that is meant, or `*` for everything",
    ),
    setting(
        "store.url",
        &["OUTLAST_STORE"],
        "",
        "where jobs live: `sqlite:FILE`, `postgres://USER@HOST/DATABASE` or `memory:`; `sqlite:outlast.db` in the data directory when not set",
    ),
    setting(
        "store.data_dir",
        &["OUTLAST_DATA_DIR"],
        "",
        "the directory for the job store; `outlast` in the user's data directory when not set",
    ),
    setting(
        "store.conversation_logs_dir",
        &["CONVERSATION_LOGS_DIR"],
        "",
        "where your conversations are shown as files; `conversation-logs` in the data directory when not set",
    ),
    setting(
        "store.mirror",
        &[],
        "true",
        "whether they are; `--no-mirror` says no. A `memory:` store has none",
    ),
    setting(
        "limits.max_jobs_per_owner",
        &["OUTLAST_MAX_JOBS_PER_OWNER"],
        "1000",
        "unfinished jobs one owner may have",
    ),
    setting(
        "limits.max_bytes_per_owner",
        &["OUTLAST_MAX_BYTES_PER_OWNER"],
        "1 GiB",
        "how much of the job store one owner's questions and results may take: bytes, or a number with `KiB`, `MiB` or \
         `GiB`; over it no new job is taken",
    ),
    setting("limits.max_polls", &["OUTLAST_MAX_POLLS"], "10000", "polls that may wait at a time"),
    setting(
        "limits.max_polls_per_job",
        &["OUTLAST_MAX_POLLS_PER_JOB"],
        "100",
        "polls that may wait for the same job at a time",
    ),
    setting(
        "limits.rate_per_minute",
        &["OUTLAST_RATE_PER_MINUTE"],
        "600",
        "HTTP requests one owner may make in a minute",
    ),
];
