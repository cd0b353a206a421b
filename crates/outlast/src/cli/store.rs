//! The command line of `outlast store`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::config::Secret;

/// `outlast store`
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Copy the store to a new file, also while it is in use; PostgreSQL has pg_dump for that
    Backup(BackupArgs),
    /// Replace the store by a backup; its unfinished jobs are not paid for a second time
    ///
    /// A job that the backup has queued may have been run, and paid for, since the backup was made. So unfinished jobs end
    /// with SUBMIT_UNKNOWN, except for those whose remote run is recorded, which go on with that run, and for free work
    /// (the library, workflows with rerun_after_crash). Each of them is listed. The old store is kept next to it.
    Restore(RestoreArgs),
    /// Copy every job into another store, SQLite or PostgreSQL, while neither is served
    ///
    /// TO must be empty, or hold a part of the same copy: one that was interrupted goes on when it is run again, and TO cannot be
    /// served before it is complete. At the end every job is read from both stores and compared. FROM is not changed.
    Copy(CopyArgs),
    /// Create or update the store's tables, and print their schema
    ///
    /// Servers do the same when they open the store. For PostgreSQL servers whose user may not make tables, run this as one who may.
    Migrate {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Look for damage; exit code 1 when there is any
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `outlast store backup`
#[derive(Debug, Args)]
pub(crate) struct BackupArgs {
    /// The file to make; it must not exist
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
    /// Do the same to the store itself, if it is an older copy (a copied file, or a dump of PostgreSQL)
    #[arg(long)]
    pub(crate) in_place: bool,
    /// Replace a store that has jobs (it is kept under another name); with --in-place, end jobs even if nothing shows
    /// that the store is an older copy
    #[arg(long)]
    pub(crate) force: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `outlast store copy`
#[derive(Debug, Args)]
pub(crate) struct CopyArgs {
    /// The store to copy: sqlite:FILE or postgres://USER@HOST/DATABASE; `-` is the configured one, whose password
    /// is then not on the command line
    #[arg(value_name = "FROM", value_parser = secret)]
    pub(crate) from: Secret,
    /// The store to copy to, written the same way
    #[arg(value_name = "TO", value_parser = secret)]
    pub(crate) to: Secret,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Takes any text: the parser would print one that it refuses, with the password in it.
fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret(text.to_owned()))
}
