//! The command that a client's agent runs to be notified of the end of a job (L1).

use std::path::Path;

use outlast_core::WaitCommand;

use crate::config::Config;

/// The name under which this program is found on the search path.
const NAME: &str = "outlast";

/// Returns the command for the jobs of this configuration; `None` if no options name its store.
pub(crate) fn wait_command(config: &Config) -> Option<WaitCommand> {
    let own = std::env::current_exe().ok()?;
    let is_own = |found: &Path| found.canonicalize().is_ok_and(|found| found == own);
    let found = std::env::split_paths(&config.search_path).map(|folder| folder.join(NAME));
    let is_on_path = found.filter(|program| program.is_file()).take(1).any(|it| is_own(&it));
    let program =
        if is_on_path { NAME.to_owned() } else { own.into_os_string().into_string().ok()? };
    Some(WaitCommand { program, options: config.same_jobs.clone()? })
}
