//! The command line.

mod jobs;
mod conversations;
mod examples;
#[cfg(test)]
mod tests;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::kill_points::KillPoint;

pub(crate) use conversations::{
    ConversationsCommand, DeleteArgs, ExportArgs, ExportFormat, ListConversationsArgs,
    PruneConversationsArgs, ShowConversationArgs,
};
pub(crate) use jobs::{
    CancelArgs, JobsCommand, ListArgs, PruneArgs, RetryArgs, ShowArgs, WaitArgs, WatchArgs,
};

/// Deep research that outlasts its client: durable jobs behind the Model Context Protocol.
///
/// A job starts in milliseconds, survives crashes and impatient clients, is never paid for twice without your word, and
/// can be fetched again from any client or from here. Try it without a key: `outlast demo`.
#[derive(Debug, Parser)]
#[command(name = "outlast", version, max_term_width = 100, after_help = FIRST_STEPS)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What `outlast --help` ends with.
const FIRST_STEPS: &str = "\
First steps:
  outlast demo                                     # see a job survive kill -9; no key needed
  outlast research --library FOLDER \"a question\"   # ask your own documents; no key needed
  outlast init claude-code                         # let an MCP client use it
  outlast doctor                                   # see what is missing";

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Where jobs live: `sqlite:FILE` or `memory:` [env: OUTLAST_STORE]
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The directory for the job store [env: OUTLAST_DATA_DIR]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
    /// The configuration file [default: outlast.toml in the user's configuration directory]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Do not write conversations as files to CONVERSATION_LOGS_DIR
    #[arg(long, global = true)]
    pub(crate) no_mirror: bool,
    /// Log more; twice for everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Log errors only; no progress, no remarks
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP tools over standard input and output, or over HTTP
    ///
    /// This is the command an MCP client runs. Standard output carries JSON-RPC alone; the log goes to standard
    /// error. With --http it serves many clients at http://ADDR/mcp instead, each with a token. Research needs
    /// PERPLEXITY_API_KEY, or OUTLAST_LIBRARY with folders of your documents.
    #[command(after_long_help = examples::SERVE)]
    Serve(ServeArgs),
    /// Run jobs without serving clients
    ///
    /// For work that other processes on the same store left behind or handed over. Needs the same key and base URL
    /// as the process that started the jobs.
    #[command(after_long_help = examples::WORKER)]
    Worker(WorkerArgs),
    /// Ask a question and wait for the report
    ///
    /// With --library the answer comes from your own folders of documents (Markdown, text, HTML, reStructuredText,
    /// AsciiDoc, PDF): no key, no network. Otherwise from the configured provider. The report goes to standard output,
    /// everything else to standard error. Ctrl-C leaves; the job goes on, and `outlast jobs watch` comes back to it.
    #[command(after_long_help = examples::RESEARCH)]
    Research(ResearchArgs),
    /// Start a workflow of outlast.toml as a job and wait for its result
    ///
    /// What `start_job` does for a client. The job is carried by a worker, not by this command: Ctrl-C leaves, the job
    /// goes on, and `outlast jobs watch` comes back to it. `deep_research` is the built-in workflow.
    #[command(after_long_help = examples::RUN)]
    Run(RunArgs),
    /// Call a tool of any MCP server, however long it takes
    ///
    /// The server is a program that is started for the call, or an address. Its answer goes to standard output, its
    /// progress to standard error. Without limits the call waits for ever. Exit code 1 when the tool fails, 3 when a
    /// limit is reached, 130 on Ctrl-C; the server is told in both cases.
    #[command(after_long_help = examples::CALL)]
    Call(CallArgs),
    /// List, follow, cancel and retry jobs
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Read, export and delete conversations
    #[command(subcommand)]
    Conversations(ConversationsCommand),
    /// Back up, restore and check the job store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Check that everything a server needs is there; exit code 1 when something is not
    ///
    /// Changes nothing: it reads the configuration and the job store, asks the provider once whether it takes the
    /// key, and says what to do about each thing it finds.
    #[command(after_long_help = examples::DOCTOR)]
    Doctor(DoctorArgs),
    /// Set up an MCP client to use this program, or undo that
    ///
    /// Adds one entry to the client's own configuration file and leaves every other byte alone; the file as it was is
    /// kept beside it. No key is written: the client is told to pass PERPLEXITY_API_KEY on where it can. --config,
    /// --data-dir, --store, --no-mirror and the folders of --library or OUTLAST_LIBRARY become part of the entry.
    #[command(after_long_help = examples::INIT)]
    Init(InitArgs),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a script that completes commands in your shell
    ///
    /// For this session: `source <(outlast completions bash)`, the same with zsh, or
    /// `outlast completions fish | source`. For good: put that line into your shell's start file.
    #[command(after_long_help = examples::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Print the manual page, or write a page for every command into a folder
    #[command(after_long_help = examples::MAN)]
    Man(ManArgs),
    /// Say what an error code means for your money, and what to do
    #[command(after_long_help = examples::EXPLAIN)]
    Explain(ExplainArgs),
    /// Print the version
    #[command(after_long_help = examples::VERSION)]
    Version,
    /// Watch a research job survive kill -9; no key and no network needed
    ///
    /// Takes about ten seconds: a simulated provider, the real server as a child process, a real SIGKILL in the middle
    /// of the research, and a count of what was paid for. Leaves nothing behind.
    #[command(after_long_help = examples::DEMO)]
    Demo,
    /// End what a killed server has left running; started by outlast itself
    #[command(hide = true)]
    Guard,
    /// Run a local server that speaks the provider's API, for tests and experiments
    ///
    /// Point outlast at it with PERPLEXITY_BASE_URL and any key. A question may say what goes wrong, in double
    /// brackets: `Why? [[sim:503x2]]` is refused twice before it is taken.
    #[command(after_long_help = scenarios())]
    Simulate(SimulateArgs),
}

/// `outlast serve`
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    /// Serve over HTTP at this address, such as 127.0.0.1:8080; port 0 takes any
    #[arg(long, value_name = "ADDR", value_parser = address)]
    pub(crate) http: Option<SocketAddr>,
    /// Ask HTTP clients for no token; only on this machine's own address
    #[arg(long, requires = "http")]
    pub(crate) no_auth: bool,
    /// Tool sets, separated by commas: research, research-jobs, perplexity, jobs [env: OUTLAST_TOOLS] [default:
    /// research,research-jobs]
    #[arg(long, value_name = "LIST")]
    pub(crate) tools: Option<String>,
    /// Let clients start workflows as jobs (start_job, get_job, ...) instead of waiting for them [env: OUTLAST_ASYNC]
    #[arg(long = "async")]
    pub(crate) async_mode: bool,
    /// Let clients start this workflow and no other
    #[arg(long, value_name = "NAME")]
    pub(crate) workflow: Option<String>,
    /// How long get_job waits for a job's end, from 1 to 300 [env: OUTLAST_POLL_TIMEOUT] [default: 59]
    #[arg(long, value_name = "SECS", allow_hyphen_values = true)]
    pub(crate) poll_timeout: Option<String>,
    /// Only answer calls; leave the work to other processes on the same store
    #[arg(long)]
    pub(crate) no_worker: bool,
    /// How many jobs to run at a time [env: OUTLAST_CONCURRENCY] [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u32>,
    /// Kill this process with SIGKILL when it reaches this point; for tests of crashes
    #[arg(long, value_name = "POINT", hide = true)]
    pub(crate) kill_at: Option<KillPoint>,
    /// How long a worker may be silent before others take its jobs; for tests
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(100..))]
    pub(crate) lease_ms: Option<u64>,
    /// A file that holds how many milliseconds the clock is ahead, or behind; for tests
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) clock_file: Option<PathBuf>,
    /// How long an unused HTTP session is kept; for tests
    #[arg(long, value_name = "N", hide = true, value_parser = clap::value_parser!(u64).range(10..))]
    pub(crate) session_idle_ms: Option<u64>,
    /// How many HTTP connections there may be; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_connections: Option<usize>,
    /// How many bytes of HTTP requests may be under way; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) max_body_bytes: Option<usize>,
    /// How long an HTTP client may take no byte of what is sent to it; for tests
    #[arg(long, value_name = "N", hide = true)]
    pub(crate) write_timeout_ms: Option<u64>,
}

/// An address and a port; `localhost` is the one name that means the same everywhere.
fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"))
        .unwrap_or(text.to_owned());
    text.parse()
        .map_err(|_| "not an address and a port such as 127.0.0.1:8080 or [::1]:8080".to_owned())
}

/// `outlast research`
#[derive(Debug, Args)]
pub(crate) struct ResearchArgs {
    /// What to find out; `-` reads it from standard input
    #[arg(value_name = "QUESTION", required = true)]
    pub(crate) question: Vec<String>,
    /// How hard to work; more costs more
    #[arg(long, value_name = "EFFORT", default_value = "medium")]
    pub(crate) effort: ResearchEffort,
    /// Answer from the documents in this folder, and from nothing else; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) library: Vec<PathBuf>,
    /// Ask this provider: perplexity or library [default: the conversation's own; perplexity where its key is set, else
    /// the library]
    ///
    /// A conversation stays with the provider that began it. With this, --follow-up sends what was said in it to another.
    #[arg(long, value_name = "NAME")]
    pub(crate) provider: Option<ProviderName>,
    /// Go on with this conversation; its id, or the first 8 characters or more
    #[arg(long, value_name = "CONVERSATION")]
    pub(crate) follow_up: Option<String>,
    /// Print the job's id and leave at once; the job goes on
    #[arg(long)]
    pub(crate) detach: bool,
    /// Write the report to this file, with question, model, cost and sources on top; `-` is standard output
    #[arg(short, long, value_name = "FILE", conflicts_with = "detach")]
    pub(crate) output: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ProviderName {
    /// Perplexity, with PERPLEXITY_API_KEY
    Perplexity,
    /// The documents in the folders of OUTLAST_LIBRARY or --library
    Library,
}

/// How hard to work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ResearchEffort {
    /// A short look
    Low,
    /// A thorough look
    Medium,
    /// Everything there is
    High,
}

/// `outlast run`
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Its name in outlast.toml
    #[arg(value_name = "WORKFLOW")]
    pub(crate) workflow: String,
    /// What it works on: a command's standard input, or the argument of a tool that takes it; `-` reads standard input
    #[arg(value_name = "MESSAGE")]
    pub(crate) message: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) arguments: Option<String>,
    /// Print the job's id and leave at once; the job goes on
    #[arg(long)]
    pub(crate) detach: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast call`
#[derive(Debug, Args)]
pub(crate) struct CallArgs {
    /// The address of the server, with its path, such as http://127.0.0.1:8080/mcp
    #[arg(long, value_name = "URL", conflicts_with = "program")]
    pub(crate) url: Option<String>,
    /// The tool to call; without it, the server's tools are listed
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Its arguments, as a JSON object
    #[arg(long, value_name = "JSON", requires = "tool")]
    pub(crate) args: Option<String>,
    /// Give up after so long without an answer, such as 90s, 5m or 2h
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::limit)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Let progress begin the time of --timeout anew
    #[arg(long)]
    pub(crate) reset_timeout_on_progress: bool,
    /// Give up so long after the start, whatever happens
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::limit)]
    pub(crate) max_total_timeout: Option<std::time::Duration>,
    /// On giving up, have the server cancel the task that the call became; otherwise it goes on
    #[arg(long, requires = "tool")]
    pub(crate) cancel_on_timeout: bool,
    /// Send this header, as in 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", conflicts_with = "program")]
    pub(crate) header: Vec<String>,
    /// Send the token that is in this variable
    #[arg(long, value_name = "NAME", conflicts_with = "program")]
    pub(crate) bearer_env: Option<String>,
    /// Give the program this variable, as in NAME=value; may be repeated
    #[arg(long, value_name = "NAME=VALUE", conflicts_with = "url")]
    pub(crate) env: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The program that is the server, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) program: Vec<std::ffi::OsString>,
}

/// `outlast worker`
#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// How many jobs to run at a time [env: OUTLAST_CONCURRENCY] [default: 5]
    #[arg(long, value_name = "N")]
    pub(crate) concurrency: Option<u32>,
    /// Leave when there is nothing left to do
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// Work on the documents in this folder; for the worker that research leaves behind
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) library: Vec<PathBuf>,
    /// Outlive the terminal; for the worker that research leaves behind
    #[arg(long, hide = true)]
    pub(crate) own_session: bool,
}

/// `outlast store`
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy the store to a new file, also while it is in use
    #[command(after_long_help = examples::STORE_BACKUP)]
    Backup(BackupArgs),
    /// Make a backup the store again; what it had not finished is not paid for a second time
    ///
    /// A job that the backup has queued may have been run, and paid for, since the backup was made. So unfinished jobs end
    /// with SUBMIT_UNKNOWN, except for those whose remote run is recorded, which go on with that run, and for free work
    /// (the library, workflows with rerun_after_crash). Each of them is listed. The store that was there is kept beside it.
    #[command(after_long_help = examples::STORE_RESTORE)]
    Restore(RestoreArgs),
    /// Look for damage; exit code 1 when there is any
    #[command(after_long_help = examples::STORE_CHECK)]
    Check(CheckArgs),
}

/// `outlast store backup`
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to make; it must not exist
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast store restore`
#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup; it stays as it is
    #[arg(value_name = "FILE", required_unless_present = "in_place", conflicts_with = "in_place")]
    pub(crate) file: Option<PathBuf>,
    /// The store's own file is an older copy, put there by other means: do the same to it
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Replace a store that has jobs (it is kept under another name); with --in-place, end jobs also where nothing shows
    /// that the store is an older copy
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast store check`
#[derive(Debug, Args)]
pub(crate) struct CheckArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Say whether the locks in this folder can be taken; another process holds them
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) try_locks: Option<PathBuf>,
}

/// `outlast init`
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The client
    #[arg(value_name = "CLIENT")]
    pub(crate) client: Client,
    /// Let it answer from the documents in this folder where no key is set; may be repeated [default: OUTLAST_LIBRARY]
    #[arg(long, value_name = "DIR", conflicts_with = "remove")]
    pub(crate) library: Vec<PathBuf>,
    /// Print the entry and change nothing
    #[arg(long, conflicts_with_all = ["dry_run", "remove"])]
    pub(crate) print: bool,
    /// Print what would change, as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Take the entry out again
    #[arg(long)]
    pub(crate) remove: bool,
}

/// An MCP client whose configuration file is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code, for all projects of this user
    ClaudeCode,
    /// Claude Desktop
    ClaudeDesktop,
    /// Cursor
    Cursor,
    /// Visual Studio Code
    Vscode,
    /// Codex
    Codex,
    /// Windsurf
    Windsurf,
    /// Zed
    Zed,
    /// Gemini CLI
    GeminiCli,
}

/// `outlast config`
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Show every setting, its value and where that comes from; secrets are not shown
    #[command(after_long_help = examples::CONFIG_SHOW)]
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `outlast completions`
#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: clap_complete::Shell,
}

/// `outlast explain`
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// The code, such as SUBMIT_UNKNOWN; without one, all of them are listed
    #[arg(value_name = "CODE")]
    pub(crate) code: Option<String>,
}

/// `outlast man`
#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Write a page for every command into this folder
    #[arg(value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// What `outlast simulate --help` ends with.
fn scenarios() -> String {
    format!(
        "Examples:\n  outlast simulate --port 9000 --speed 10\n\nWhat may stand between [[sim: and ]], several \
         clauses separated by |:\n\n{}",
        outlast_simulator::GUIDE
    )
}

/// `outlast simulate`
#[derive(Debug, Args)]
pub(crate) struct SimulateArgs {
    /// The port on 127.0.0.1; 0 takes any
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) port: u16,
    /// How many times faster than life it goes
    #[arg(long, value_name = "X", default_value_t = 1.0)]
    pub(crate) speed: f64,
    /// Changes the reports; the same seed gives the same ones
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Whether the Sonar endpoints still work; the vendor retired them
    #[arg(long, value_name = "STATE", value_enum, default_value_t)]
    pub(crate) sonar: SonarState,
    /// What delays are measured by; a virtual clock moves only by POST /__sim/advance
    #[arg(long, value_name = "CLOCK", value_enum, default_value_t)]
    pub(crate) clock: SimulatedClock,
}

/// `--sonar`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SonarState {
    /// Answer 403, as the vendor does
    #[default]
    Retired,
    /// Answer as before
    Live,
}

/// `--clock`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum SimulatedClock {
    /// The time that passes
    #[default]
    Real,
    /// Standing still until moved
    Virtual,
}
