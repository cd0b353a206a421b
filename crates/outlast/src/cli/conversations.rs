//! `outlast conversations` on the command line.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// `outlast conversations`
#[derive(Debug, Subcommand)]
pub(crate) enum ConversationsCommand {
    /// List conversations, newest first
    List(ListConversationsArgs),
    /// Show one conversation: its questions and reports
    Show(ShowConversationArgs),
    /// Write one conversation as Markdown, JSON or one self-contained HTML page
    Export(ExportArgs),
    /// Delete one conversation with its jobs and files, for good
    Delete(DeleteArgs),
    /// Delete old conversations with their jobs and files, for good
    Prune(PruneConversationsArgs),
}

/// `outlast conversations list`
#[derive(Debug, Args)]
pub(crate) struct ListConversationsArgs {
    /// Only conversations whose last question is in this state; may be repeated
    #[arg(long, value_name = "STATE", value_parser = outlast_core::StateKind::ALL.map(outlast_core::StateKind::as_str))]
    pub(crate) state: Vec<String>,
    /// Maximum number to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast conversations show`
#[derive(Debug, Args)]
pub(crate) struct ShowConversationArgs {
    /// The conversation's id, or its first 8 characters or more
    pub(crate) id: String,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast conversations export`
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// The conversation's id, or its first 8 characters or more
    pub(crate) id: String,
    /// Format of the file
    #[arg(long, value_name = "FORMAT", default_value = "md")]
    pub(crate) format: ExportFormat,
    /// Write to this file instead of standard output, which is `-`
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The format of an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// Markdown with front matter
    Md,
    /// The output of `show --json`
    Json,
    /// One page with everything in it, to read and to print
    Html,
}

/// `outlast conversations prune`
#[derive(Debug, Args)]
pub(crate) struct PruneConversationsArgs {
    /// Only conversations whose last change is longer ago than this, such as 12h or 90d; unfinished ones stay
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::parse)]
    pub(crate) older_than: std::time::Duration,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast conversations delete`
#[derive(Debug, Args)]
pub(crate) struct DeleteArgs {
    /// The conversation's id, or its first 8 characters or more
    pub(crate) id: String,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
