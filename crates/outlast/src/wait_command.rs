//! The command that a client's agent runs to be notified of the end of a job (L1).

use std::path::Path;

use outlast_core::WaitCommand;

use crate::config::Config;
use crate::installed::{InstallWay, InstalledProgram};

/// The name under which this program is found on the search path.
const NAME: &str = "outlast";

/// Returns the command for the jobs of this configuration; `None` if no options name its store.
pub(crate) fn wait_command(config: &Config) -> Option<WaitCommand> {
    let start = start(&InstalledProgram::find().ok()?, &config.search_path)?;
    Some(WaitCommand { start, options: config.same_jobs.clone()? })
}

/// Returns the words that start this program from the shell of an agent; `None` if its path is not UTF-8.
fn start(own: &InstalledProgram, search_path: &str) -> Option<Vec<String>> {
    // The cache of npx or uvx is on the search path of the processes that they start, and of no others.
    let is_cached = matches!(own.way, InstallWay::Npx | InstallWay::Uvx);
    let is_own = |found: &Path| found.canonicalize().is_ok_and(|found| found == own.path);
    let found = std::env::split_paths(search_path).map(|folder| folder.join(NAME));
    let is_on_path = found.filter(|program| program.is_file()).take(1).any(|it| is_own(&it));
    if is_on_path && !is_cached {
        return Some(vec![NAME.to_owned()]);
    }
    own.path.to_str()?;
    let (program, arguments) = own.command();
    Some([vec![program], arguments].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L1, N3: the command starts the program as it was installed.
    #[test]
    fn l1_the_command_fits_the_way_of_installation() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let path = folder.join(NAME);
        std::fs::write(&path, "").unwrap();
        let installed = |way| InstalledProgram { path: path.clone(), way };
        let words = |way, search: &Path| start(&installed(way), search.to_str().unwrap()).unwrap();
        let (here, elsewhere) = (folder.as_path(), Path::new("/nowhere"));
        assert_eq!(words(InstallWay::Cargo, here), ["outlast"]);
        assert_eq!(words(InstallWay::Cargo, elsewhere), [path.to_str().unwrap()]);
        for search in [here, elsewhere] {
            assert_eq!(words(InstallWay::Npx, search), ["npx", "-y", "outlast-mcp"]);
            assert_eq!(words(InstallWay::Uvx, search), ["uvx", "outlast-mcp"]);
        }
    }
}
