//! `outlast step` on the command line.

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

/// `outlast step list`
#[derive(Debug, Subcommand)]
pub(crate) enum StepCommand {
    /// List the steps of a job and how they ended
    List(JobArgs),
}
