//! `outlast completions` and `outlast man`: shell completions and manual pages, generated from the definition of the
//! command line.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::cli::Cli;
use crate::error::{CommandResult, DONE};
use crate::ui;

pub(super) fn run(shell: clap_complete::Shell) -> CommandResult {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::definition(), "outlast", &mut script);
    ui::raw(&script);
    DONE
}

/// Prints the output of `outlast --version`.
pub(super) fn version() -> CommandResult {
    ui::line(Cli::definition().render_version().trim_end());
    DONE
}

pub(super) fn man(dir: Option<PathBuf>) -> CommandResult {
    let mut command = Cli::definition();
    command.build();
    let Some(dir) = dir else {
        if ui::is_terminal() {
            ui::aside("This is its source; `outlast man | man -l -` shows it.");
        }
        ui::raw(&page(command).context("make the manual page")?);
        return DONE;
    };
    std::fs::create_dir_all(&dir).with_context(|| format!("make {}", dir.display()))?;
    pages(&dir, command, "outlast")?;
    DONE
}

/// Writes the page of a command, then those of the commands below it.
fn pages(dir: &Path, command: clap::Command, name: &str) -> CommandResult<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        if below.get_name() != "help" {
            pages(dir, below.clone(), &format!("{name}-{}", below.get_name()))?;
        }
    }
    let path = dir.join(format!("{name}.1"));
    let text = page(command.display_name(name.to_owned())).context("make the manual page")?;
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    ui::line(&path.display().to_string());
    Ok(())
}

fn page(command: clap::Command) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    clap_mangen::Man::new(command).render(&mut text)?;
    Ok(text)
}
