//! `outlast jobs` on the command line.

use clap::{Args, Subcommand};

/// `outlast jobs`
#[derive(Debug, Subcommand)]
pub(crate) enum JobsCommand {
    /// List jobs, newest first
    List(ListArgs),
    /// Show one job: its state, history and result
    Show(JobArgs),
    /// Follow jobs live until they have ended
    ///
    /// Exit code 0 when all succeeded, 1 when one failed or was cancelled. Ctrl-C leaves; the jobs go on.
    Watch(WatchArgs),
    /// Wait until jobs have ended, and show how
    ///
    /// Prints a line for each job when it ends: id, state, cost and question. An agent that runs it in the background is
    /// notified of the end. Exit code 0 when all succeeded, 1 when one failed or was cancelled, 3 when the time ended first.
    Wait(WaitArgs),
    /// Answer the question that a job waits for
    ///
    /// The first answer counts. `outlast jobs list --state waiting` lists the jobs that wait, and `outlast jobs show` has the
    /// question.
    Answer(AnswerArgs),
    /// Cancel a job, and ask its provider to stop
    Cancel(JobArgs),
    /// Ask again what failed or was cancelled, as a new job
    Retry(RetryArgs),
    /// Remove finished jobs for good; never an unfinished one, never a conversation
    Prune(PruneArgs),
}

/// `outlast jobs list`
#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Jobs of every owner, not only your own
    #[arg(long)]
    pub(crate) all: bool,
    /// Only jobs in this state; may be repeated
    #[arg(long, value_name = "STATE", value_parser = outlast_core::StateKind::ALL.map(outlast_core::StateKind::as_str))]
    pub(crate) state: Vec<String>,
    /// Only jobs whose question contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) search: Option<String>,
    /// Maximum number to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast jobs show`, `outlast jobs cancel`
#[derive(Debug, Args)]
pub(crate) struct JobArgs {
    /// The job's id, or its first 8 characters or more
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast jobs answer`
#[derive(Debug, Args)]
pub(crate) struct AnswerArgs {
    /// The job's id, or its first 8 characters or more
    pub(crate) id: String,
    /// The answer; one of the choices if the question has some
    #[arg(value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) text: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast jobs watch`
#[derive(Debug, Args)]
pub(crate) struct WatchArgs {
    /// The jobs' ids, or their first 8 characters or more; without one, all that are unfinished
    #[arg(value_name = "ID")]
    pub(crate) ids: Vec<String>,
    /// Print JSON when they have ended
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast jobs wait`
#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    /// The jobs' ids, or their first 8 characters or more
    #[arg(value_name = "ID", required = true)]
    pub(crate) ids: Vec<String>,
    /// Wait no longer than this, such as 500ms, 90s, 5m or 2h
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub(crate) timeout: Option<std::time::Duration>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast jobs retry`
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// The job's id, or its first 8 characters or more
    pub(crate) id: String,
    /// Begin a new run even if the first may have been paid for (SUBMIT_UNKNOWN, RUN_LOST, a cancel that did not
    /// reach the provider), and run interrupted steps of a command again
    #[arg(long)]
    pub(crate) again: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast jobs prune`
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Only jobs that ended longer ago than this, such as 90s, 5m, 2h or 7d; without it, those whose retention is over
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub(crate) older_than: Option<std::time::Duration>,
    /// Jobs of every owner, not only your own
    #[arg(long)]
    pub(crate) all: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
