//! The command line of `outlast store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// `outlast store`
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy the store to a new file, also while it is in use
    Backup(BackupArgs),
    /// Make a backup the store again; what it had not finished is not paid for a second time
    ///
    /// A job that the backup has queued may have been run, and paid for, since the backup was made. So unfinished jobs end
    /// with SUBMIT_UNKNOWN, except for those whose remote run is recorded, which go on with that run, and for free work
    /// (the library, workflows with rerun_after_crash). Each of them is listed. The store that was there is kept beside it.
    Restore(RestoreArgs),
    /// Look for damage; exit code 1 when there is any
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
