//! The command line of `outlast wrap --install` and `--uninstall`.

use clap::Args;

/// Options of `outlast wrap` that change a client's file and run nothing.
#[derive(Debug, Args)]
pub(crate) struct WrapInstallArgs {
    /// Make a server of a client go through wrap: rewrites its entry in the client's file, and nothing else there
    #[arg(long, num_args = 2, value_names = ["CLIENT", "SERVER"], conflicts_with = "uninstall")]
    pub(crate) install: Option<Vec<String>>,
    /// Bring the entry back as it was
    #[arg(long, num_args = 2, value_names = ["CLIENT", "SERVER"])]
    pub(crate) uninstall: Option<Vec<String>>,
    /// With --install or --uninstall: print what would change, as a diff, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What is to be done with the entry of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WrapChange {
    Install,
    Uninstall,
}

impl WrapInstallArgs {
    /// What was asked for, of which client and which server; `None` where a server is to be run.
    pub(crate) fn asked(&self) -> Option<(WrapChange, &str, &str)> {
        let install = self.install.as_deref().map(|names| (WrapChange::Install, names));
        let uninstall = self.uninstall.as_deref().map(|names| (WrapChange::Uninstall, names));
        match install.or(uninstall)? {
            (change, [client, server]) => Some((change, client, server)),
            (_, _) => None,
        }
    }
}
