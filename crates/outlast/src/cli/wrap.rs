//! The command line of `outlast wrap`.

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;

use crate::kill_points::KillPoint;

/// `outlast wrap`
#[derive(Debug, Args)]
pub(crate) struct WrapArgs {
    /// Hand a call off that takes longer than this, such as 45s or 4m [default: `after` of `[wrap]`, else 45s]
    #[arg(long, value_name = "DURATION", value_parser = crate::duration::limit)]
    pub(crate) after: Option<Duration>,
    /// The server's name in the list of jobs [default: the name of its program]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    #[command(flatten)]
    pub(crate) install: WrapInstallArgs,
    /// The address of the server, with its path, instead of a program
    #[arg(long, value_name = "URL", conflicts_with = "program", group = "address")]
    pub(crate) url: Option<String>,
    /// The same, from this variable
    #[arg(long, value_name = "NAME", conflicts_with = "program", group = "address")]
    pub(crate) url_env: Option<String>,
    /// Send this header, as in 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER", requires = "address")]
    pub(crate) header: Vec<String>,
    /// Send a header whose value is in a variable, as in Name=VARIABLE; may be repeated
    #[arg(long, value_name = "HEADER", requires = "address")]
    pub(crate) header_env: Vec<String>,
    /// Send the token in this variable
    #[arg(long, value_name = "NAME", requires = "address")]
    pub(crate) bearer_env: Option<String>,
    /// Own the server for a front; started by outlast itself
    #[arg(long, hide = true)]
    pub(crate) keeper: bool,
    /// The time that a host process without a client waits, in milliseconds
    #[arg(long, hide = true, value_name = "MS")]
    pub(crate) idle_ms: Option<u64>,
    /// The time for which calls without a client may continue, in milliseconds
    #[arg(long, hide = true, value_name = "MS")]
    pub(crate) give_up_ms: Option<u64>,
    /// Kill the host process with SIGKILL when it reaches this point; for tests of crashes
    #[arg(long, hide = true, value_name = "POINT")]
    pub(crate) kill_at: Option<KillPoint>,
    /// The program of the server, and its arguments
    #[arg(last = true, value_name = "CMD")]
    pub(crate) program: Vec<OsString>,
}

/// Options of `outlast wrap` that change a client's file and run nothing.
#[derive(Debug, Args)]
pub(crate) struct WrapInstallArgs {
    /// Make a client run this server through wrap: rewrites its entry in the client's file
    #[arg(long, num_args = 2, value_names = ["CLIENT", "SERVER"], conflicts_with = "uninstall")]
    pub(crate) install: Option<Vec<String>>,
    /// Restore the entry
    #[arg(long, num_args = 2, value_names = ["CLIENT", "SERVER"])]
    pub(crate) uninstall: Option<Vec<String>>,
    /// Print the change of --install or --uninstall as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The change to the entry of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrapChange {
    Install,
    Uninstall,
}

impl WrapInstallArgs {
    /// Returns the requested change, the client and the server; `None` if a server is to be run.
    pub(crate) fn requested_change(&self) -> Option<(WrapChange, &str, &str)> {
        let install = self.install.as_deref().map(|names| (WrapChange::Install, names));
        let uninstall = self.uninstall.as_deref().map(|names| (WrapChange::Uninstall, names));
        match install.or(uninstall)? {
            (change, [client, server]) => Some((change, client, server)),
            (_, _) => None,
        }
    }
}
