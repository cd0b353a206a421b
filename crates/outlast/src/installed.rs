//! The way in which this program was installed, from the path of its file. It decides which command starts the program
//! again from another place (N3), and how to upgrade it.

use std::path::{Component, Path, PathBuf};

use anyhow::Context as _;

use crate::error::{CommandResult, refuse};

/// The npm and PyPI package.
const PACKAGE: &str = "outlast-mcp";

/// A way of installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstallWay {
    /// Started by `npx`, from its cache.
    Npx,
    /// An npm package of the user or of a project.
    Npm,
    /// Started by `uvx`, from its cache.
    Uvx,
    UvTool,
    Pipx,
    /// In a virtual environment of Python.
    Pip,
    Homebrew,
    Cargo,
    /// A bundle (MCPB), which the client unpacked.
    Bundle,
    /// A file that was copied there, by install.sh for example.
    File,
}

/// This program: its file and the way in which it was installed.
#[derive(Debug)]
pub(crate) struct InstalledProgram {
    pub(crate) path: PathBuf,
    pub(crate) way: InstallWay,
}

impl InstalledProgram {
    /// Finds this program's own file.
    pub(crate) fn find() -> CommandResult<Self> {
        let path = std::env::current_exe().context("find this program's own file")?;
        Ok(Self { way: InstallWay::of(&path), path })
    }

    /// Returns the path of the program, unless it is in a cache that is cleared at any time.
    pub(crate) fn lasting_path(&self) -> CommandResult<String> {
        let install = match self.way {
            InstallWay::Npx => "npm install --global outlast-mcp",
            InstallWay::Uvx => "uv tool install outlast-mcp",
            _ => return Ok(self.path.display().to_string()),
        };
        let why = format!("this program was {}, from a cache that may be cleared", self.way.name());
        refuse(why, format!("install it: `{install}`, then try again"))
    }

    /// Returns the command that starts this program from any place, with its first arguments. A file in a cache is not
    /// there for long; desktop programs do not have a shell's PATH, so others are started by their whole path.
    pub(crate) fn command(&self) -> (String, Vec<String>) {
        match self.way {
            InstallWay::Npx => ("npx".to_owned(), vec!["-y".to_owned(), PACKAGE.to_owned()]),
            InstallWay::Uvx => ("uvx".to_owned(), vec![PACKAGE.to_owned()]),
            InstallWay::Homebrew => (homebrew_link(&self.path).display().to_string(), Vec::new()),
            _ => (self.path.display().to_string(), Vec::new()),
        }
    }
}

impl InstallWay {
    fn of(path: &Path) -> Self {
        let names: Vec<_> = path.components().map(Component::as_os_str).collect();
        let has = |wanted: &str| names.iter().any(|name| *name == wanted);
        let in_order =
            |wanted: [&str; 2]| names.windows(2).any(|pair| [pair[0], pair[1]] == wanted);
        let starts = |prefix: &str| names.iter().any(|it| it.to_string_lossy().starts_with(prefix));
        let prefix = path.parent().and_then(Path::parent);
        let is_beside = |file: &str| prefix.is_some_and(|prefix| prefix.join(file).is_file());
        if has("_npx") {
            Self::Npx
        } else if has("node_modules") {
            Self::Npm
        } else if in_order(["tools", PACKAGE]) {
            Self::UvTool
        } else if starts("archive-v") {
            Self::Uvx
        } else if has("pipx") {
            Self::Pipx
        } else if is_beside("pyvenv.cfg") {
            Self::Pip
        } else if in_order(["Cellar", "outlast"]) {
            Self::Homebrew
        } else if is_beside(".crates.toml") {
            Self::Cargo
        } else if has("Claude Extensions") {
            Self::Bundle
        } else {
            Self::File
        }
    }

    /// Returns its name in a sentence.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Npx => "started by npx",
            Self::Npm => "installed by npm",
            Self::Uvx => "started by uvx",
            Self::UvTool => "installed by uv",
            Self::Pipx => "installed by pipx",
            Self::Pip => "installed by pip",
            Self::Homebrew => "installed by Homebrew",
            Self::Cargo => "installed by cargo",
            Self::Bundle => "unpacked by the client",
            Self::File => "installed as a file",
        }
    }

    /// Returns the command or the step that upgrades it.
    pub(crate) fn upgrade(self) -> &'static str {
        match self {
            // npx keeps the version that it fetched first.
            Self::Npx => {
                "rm -r \"$(npm config get cache)/_npx\"; the next start fetches the newest"
            }
            Self::Npm => "npm install --global outlast-mcp@latest",
            Self::Uvx => "uvx --refresh outlast-mcp version",
            Self::UvTool => "uv tool upgrade outlast-mcp",
            Self::Pipx => "pipx upgrade outlast-mcp",
            Self::Pip => "pip install --upgrade outlast-mcp",
            Self::Homebrew => "brew upgrade outlast",
            Self::Cargo => {
                "cargo install --locked --git https://github.com/outlast-mcp/outlast outlast"
            }
            Self::Bundle => "install the newest bundle in the client",
            Self::File => {
                "curl -fsSL https://github.com/outlast-mcp/outlast/releases/latest/download/install.sh | sh"
            }
        }
    }
}

/// Returns the link to a program of Homebrew, which stays when the version in the program's path changes.
fn homebrew_link(path: &Path) -> PathBuf {
    let cellar = path.ancestors().find(|it| it.file_name().is_some_and(|name| name == "Cellar"));
    match cellar.and_then(Path::parent) {
        Some(prefix) => prefix.join("bin").join("outlast"),
        None => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// N3: the command fits the way in which the program was installed.
    #[test]
    fn n3_the_command_fits_the_way_of_installation() {
        let npx = (InstallWay::Npx, "npx -y outlast-mcp");
        let uvx = (InstallWay::Uvx, "uvx outlast-mcp");
        let cases = [
            ("/home/a/.npm/_npx/1d3c/node_modules/outlast-mcp-linux-x64/bin/outlast", npx),
            ("/home/a/.cache/uv/archive-v0/Kq3/bin/outlast", uvx),
            ("/usr/lib/node_modules/outlast-mcp/node_modules/x/bin/outlast", (InstallWay::Npm, "")),
            ("/home/a/.local/share/uv/tools/outlast-mcp/bin/outlast", (InstallWay::UvTool, "")),
            ("/home/a/.local/share/pipx/venvs/outlast-mcp/bin/outlast", (InstallWay::Pipx, "")),
            (
                "/opt/homebrew/Cellar/outlast/0.1.0/bin/outlast",
                (InstallWay::Homebrew, "/opt/homebrew/bin/outlast"),
            ),
            ("/home/a/Claude Extensions/outlast/server/outlast", (InstallWay::Bundle, "")),
            ("/usr/local/bin/outlast", (InstallWay::File, "")),
        ];
        for (path, (way, command)) in cases {
            let installed =
                InstalledProgram { path: path.into(), way: InstallWay::of(Path::new(path)) };
            let (program, args) = installed.command();
            let words = [vec![program], args].concat().join(" ");
            let expected = if command.is_empty() { path } else { command };
            assert_eq!((installed.way, words.as_str()), (way, expected), "{path}");
        }
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("bin/outlast");
        for (file, way) in [(".crates.toml", InstallWay::Cargo), ("pyvenv.cfg", InstallWay::Pip)] {
            std::fs::write(folder.path().join(file), "").unwrap();
            assert_eq!(InstallWay::of(&program), way);
        }
    }
}
