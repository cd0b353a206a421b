//! The command line.

mod serve;
mod research;
mod call;
mod wrap;
mod jobs;
mod conversations;
mod store;
mod spend;
mod check;
mod step;
mod examples;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValue;
use clap::{Args, CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueEnum};

pub(crate) use call::CallArgs;
pub(crate) use check::CheckArgs;
pub(crate) use conversations::{
    ConversationsCommand, DeleteArgs, ExportArgs, ExportFormat, ListConversationsArgs,
    PruneConversationsArgs, ShowConversationArgs,
};
pub(crate) use jobs::{
    AnswerArgs, JobArgs, JobsCommand, ListArgs, PruneArgs, RetryArgs, WaitArgs, WatchArgs,
};
pub(crate) use research::{ResearchArgs, RunArgs};
pub(crate) use serve::{ServeArgs, WorkerArgs, WorkerCommand};
pub(crate) use spend::SpendArgs;
pub(crate) use step::{AskArgs, ResolveArgs, StepArgs, StepCommand};
pub(crate) use store::{BackupArgs, CopyArgs, RestoreArgs, StoreCommand};
pub(crate) use wrap::{WrapArgs, WrapChange, WrapInstallArgs};

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

impl Cli {
    /// Parses the command line.
    pub(crate) fn read() -> Result<Self, clap::Error> {
        Self::from_arg_matches(&Self::definition().try_get_matches()?)
    }

    /// Returns the definition from which the help, the manual pages and the completions are generated.
    pub(crate) fn definition() -> clap::Command {
        examples::add_to(Self::command())
    }
}

/// The end of the output of `outlast --help`.
const FIRST_STEPS: &str = "\
First steps:
  outlast demo                                     # see a job survive kill -9; no key needed
  outlast research --library FOLDER \"a question\"   # ask your own documents; no key needed
  outlast init claude-code                         # let an MCP client use it
  outlast doctor                                   # see what is missing";

/// Defines a word that an option accepts, and its meaning.
fn word(name: &'static str, meaning: &'static str) -> PossibleValue {
    PossibleValue::new(name).help(meaning)
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// The job store: `sqlite:FILE`, `postgres://...` or `memory:` [env: OUTLAST_STORE]
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
    /// Use of colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: Color,
}

impl Global {
    /// Returns the options that a process started by this one needs too.
    pub(crate) fn passed_on(&self) -> impl Iterator<Item = (&'static str, OsString)> {
        let Self { store, data_dir, config, .. } = self;
        let given = [
            ("--config", config.as_ref().map(OsString::from)),
            ("--data-dir", data_dir.as_ref().map(OsString::from)),
            ("--store", store.as_ref().map(OsString::from)),
        ];
        given.into_iter().filter_map(|(flag, value)| Some((flag, value?)))
    }
}

/// The use of colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    /// On a terminal, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// A command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve MCP tools over standard input and output, or over HTTP
    ///
    /// This is the command an MCP client runs. Standard output has JSON-RPC alone; the log goes to standard
    /// error. With --http it serves many clients at http://ADDR/mcp instead, each with a token. Research needs
    /// PERPLEXITY_API_KEY, or OUTLAST_LIBRARY with folders of your documents.
    Serve(ServeArgs),
    /// Run jobs without serving clients
    ///
    /// For work that other processes on the same store left behind or handed over. Needs the same key and base URL
    /// as the process that started the jobs.
    Worker(WorkerArgs),
    /// Ask a question and wait for the report
    ///
    /// With --library the answer comes from your own folders of documents (Markdown, text, HTML, reStructuredText,
    /// AsciiDoc, PDF): no key, no network. Otherwise from the configured provider. The report goes to standard output,
    /// everything else to standard error. Ctrl-C leaves; the job goes on, and `outlast jobs watch` comes back to it.
    Research(ResearchArgs),
    /// Start a workflow of outlast.toml as a job and wait for its result
    ///
    /// This does what `start_job` does for a client. A worker runs the job, not this command: Ctrl-C leaves, the job
    /// goes on, and `outlast jobs watch` comes back to it. `deep_research` is the built-in workflow.
    Run(RunArgs),
    /// Call a tool of any MCP server, however long it takes
    ///
    /// The server is a program that is started for the call, or an address. Its answer goes to standard output, its
    /// progress to standard error. Without limits the call waits for ever. Exit code 1 when the tool fails, 3 when a
    /// limit is reached, 130 on Ctrl-C; the server is notified in both cases.
    Call(CallArgs),
    /// Keep the slow calls of an MCP server
    ///
    /// Put it before the server's command in the client's configuration. Everything passes byte for byte. A tool call that
    /// takes longer than --after is answered with how to get its result, and goes on: also when the client is closed. The
    /// same call repeated, or the added tool `get_result`, returns the result. Settings for each tool: `[wrap]` of
    /// outlast.toml.
    Wrap(WrapArgs),
    /// Run a command once in a workflow, however often its script is started
    ///
    /// Inside a workflow command with `steps = true`: the output is recorded with the job and printed once it is. When the
    /// script runs again, after a crash or by `outlast jobs retry`, a step that is done prints its recorded output instead of
    /// running. Only exit code 0 is final; a step that was interrupted runs again only with --rerun. Exit code 75 when the
    /// worker is gone.
    Step(StepArgs),
    /// Ask the owner of a job, and wait for the answer
    ///
    /// Inside a workflow command with `steps = true`: prints the answer, which `outlast jobs answer`, the page or the client
    /// gives. The answer is recorded like a step, so the same question is not asked twice. Exit code 1 when nobody answers in
    /// time and there is no --default, 75 when the worker is gone.
    Ask(AskArgs),
    /// List, follow, cancel and retry jobs
    #[command(subcommand)]
    Jobs(JobsCommand),
    /// Read, export and delete conversations
    #[command(subcommand)]
    Conversations(ConversationsCommand),
    /// Open the page: jobs, conversations and money in a browser
    ///
    /// Listens on this machine alone, at a port that is free, and prints a link that is good once and for a minute. Ctrl-C
    /// ends it; jobs go on. `outlast serve --http` has the same page at /ui.
    Ui {
        /// Print the link and open no browser
        #[arg(long)]
        no_open: bool,
        /// Show the jobs of every owner, not only yours; only yours can be changed
        #[arg(long)]
        all: bool,
    },
    /// Show the log of the workers that run in the background
    Logs(LogsArgs),
    /// Show what was spent, what is reserved and what may have been spent
    ///
    /// A line for each day, provider, model or owner, and the sum of all. Runs count on the UTC day on which they were asked
    /// for, failed and lost ones too, also when their job was removed; for 400 days.
    Spend(SpendArgs),
    /// Check which sentences of a report or a Markdown file the cited sources support
    ///
    /// Fetches every cited page and looks for the facts of the sentence in it: quotations, numbers, dates, names and
    /// versions. It compares texts; no model is asked. The sites see the addresses that the file cites, and nothing else.
    Check(CheckArgs),
    /// Back up, restore and check the job store
    #[command(subcommand)]
    Store(StoreCommand),
    /// Check that everything a server needs is there; exit code 1 if not
    ///
    /// Changes nothing: it reads the configuration and the job store, asks the provider once whether it takes the
    /// key, and says what to do about each thing it finds.
    Doctor(DoctorArgs),
    /// Set up an MCP client to use this program, or undo that
    ///
    /// Adds one entry to the client's own configuration file and leaves every other byte alone; the original file is
    /// kept next to it. No key is written: the client passes PERPLEXITY_API_KEY on if it can. --config,
    /// --data-dir, --store, --no-mirror and the folders of --library or OUTLAST_LIBRARY become part of the entry.
    Init(InitArgs),
    /// Look at the configuration
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Print a script that completes commands in your shell
    ///
    /// For this session: `source <(outlast completions bash)`, the same with zsh, or
    /// `outlast completions fish | source`. For good: put that line into your shell's start file.
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write a page for every command into a folder
    Man {
        /// Write a page for every command into this folder
        dir: Option<PathBuf>,
    },
    /// Explain an error code: your money, and what to do
    Explain {
        /// The code, such as SUBMIT_UNKNOWN; without one, all of them are listed
        code: Option<String>,
    },
    /// Print the version
    Version,
    /// Say how to upgrade this program
    ///
    /// The answer fits the way in which the program was installed. No network request is made.
    Upgrade {
        /// Only say how; the tool that installed the program upgrades it
        #[arg(long, required = true)]
        check: bool,
    },
    /// Watch a research job survive kill -9; no key and no network needed
    ///
    /// Takes about ten seconds: a simulated provider, the real server as a child process, a real SIGKILL in the middle
    /// of the research, and a count of what was paid for. Leaves nothing behind.
    Demo,
    /// End the processes that a killed server has left running; started by outlast itself
    #[command(hide = true)]
    Guard,
    /// Say that the simulated provider is the program outlast-simulator now
    #[command(hide = true, disable_help_flag = true)]
    Simulate {
        /// The options of that program
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

/// `outlast logs`
#[derive(Debug, Args)]
pub(crate) struct LogsArgs {
    /// Print what is added too, until Ctrl-C
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Maximum number of lines to show
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) lines: usize,
}

/// `outlast doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Report if the locks in this folder can be taken; another process holds them
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) try_locks: Option<PathBuf>,
}

/// `outlast init`
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The client
    pub(crate) client: Client,
    /// Answer from the documents in this folder if no key is set; may be repeated [default: OUTLAST_LIBRARY]
    #[arg(long, value_name = "DIR", conflicts_with = "remove")]
    pub(crate) library: Vec<PathBuf>,
    /// Serve these tool sets, separated by commas, such as perplexity,research-jobs [default: as `outlast serve`]
    #[arg(long, value_name = "LIST", conflicts_with = "remove")]
    pub(crate) tools: Option<String>,
    /// Print the entry and change nothing
    #[arg(long, conflicts_with_all = ["dry_run", "remove"])]
    pub(crate) print: bool,
    /// Print the change as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Remove the entry
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
    /// Write a configuration file with every setting, commented out
    Init,
    /// Print the path of the configuration file
    Path,
    /// Show every setting, its value and where that comes from; secrets are not shown
    Show {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}
