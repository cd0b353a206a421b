//! `outlast step` and `outlast ask` on the command line.

use std::ffi::OsString;

use clap::{Args, Subcommand};

use super::JobArgs;

/// `outlast step`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct StepArgs {
    #[command(subcommand)]
    pub(crate) command: Option<StepCommand>,
    /// The name of the step, different from all others of the job
    #[arg(required = true)]
    pub(crate) name: Option<String>,
    /// Run it again if an earlier run of it was interrupted and its end is not known
    #[arg(long)]
    pub(crate) rerun: bool,
    /// Recognize the step by this text instead of its command, if that has paths of temporary files
    #[arg(long, value_name = "TEXT")]
    pub(crate) input: Option<String>,
    /// The program of the step and its arguments; no shell is used
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) program: Vec<OsString>,
}

/// `outlast ask`
#[derive(Debug, Args)]
pub(crate) struct AskArgs {
    /// The question
    #[arg(value_name = "TEXT")]
    pub(crate) text: String,
    /// The possible answers, separated by commas; without them, any text is one
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub(crate) choices: Vec<String>,
    /// The answer if nobody gives one in time; without it, the command fails then
    #[arg(long, value_name = "A")]
    pub(crate) default: Option<String>,
    /// The time for an answer, such as 90s, 5m or 2h; 24h unless given
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::limit)]
    pub(crate) timeout: Option<std::time::Duration>,
}

/// `outlast step list` and `outlast step resolve`
#[derive(Debug, Subcommand)]
pub(crate) enum StepCommand {
    /// List the steps of a job and how they ended
    List(JobArgs),
    /// Decide how an interrupted step of a job goes on
    Resolve(ResolveArgs),
}

/// `outlast step resolve`
#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The job's id, or its first 8 characters or more
    #[arg(value_name = "JOB")]
    pub(crate) id: String,
    /// The name of the step
    pub(crate) name: String,
    /// It was done: the next run goes on after it. Its output is empty
    #[arg(long, required_unless_present = "rerun", conflicts_with = "rerun")]
    pub(crate) done: bool,
    /// It was not done: the next run runs it again
    #[arg(long)]
    pub(crate) rerun: bool,
}
