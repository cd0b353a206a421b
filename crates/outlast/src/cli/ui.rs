//! `outlast ui` on the command line.

use clap::Args;

/// `outlast ui`
#[derive(Debug, Args)]
pub(crate) struct UiArgs {
    /// Print the link and open no browser
    #[arg(long)]
    pub(crate) no_open: bool,
    /// Show the jobs of every owner, not only yours; only yours can be changed
    #[arg(long)]
    pub(crate) all: bool,
}
