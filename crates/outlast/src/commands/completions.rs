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
    let script = String::from_utf8_lossy(&script);
    ui::raw(with_ids(shell, &script).as_bytes());
    DONE
}

/// Adds the ids of the newest jobs, which only the store knows. `clap_complete` can complete them only by an interface that
/// is unstable.
fn with_ids(shell: clap_complete::Shell, script: &str) -> String {
    match shell {
        clap_complete::Shell::Bash => {
            format!(
                "{BASH_IDS}{}",
                script.replace("complete -F _outlast ", "complete -F _outlast_or_ids ")
            )
        }
        clap_complete::Shell::Zsh => script
            .replace("\n    _outlast \"$@\"\nelse", "\n    _outlast_or_ids \"$@\"\nelse")
            .replace("compdef _outlast outlast", "compdef _outlast_or_ids outlast")
            .replace("\nif [ \"$funcstack[1]\"", &format!("\n{ZSH_IDS}if [ \"$funcstack[1]\"")),
        clap_complete::Shell::Fish => format!("{script}{FISH_IDS}"),
        _ => script.to_owned(),
    }
}

const BASH_IDS: &str = r#"_outlast_or_ids() {
    local word=${COMP_WORDS[COMP_CWORD]}
    if [[ $COMP_CWORD -eq 2 && ${COMP_WORDS[1]} == check && $word != -* ]]; then
        COMPREPLY=($(compgen -W "$(outlast jobs list --limit 100 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word") $(compgen -f -- "$word"))
        return
    fi
    if [[ $COMP_CWORD -ge 3 && ${COMP_WORDS[1]} == jobs && $word != -* ]]; then
        case ${COMP_WORDS[2]} in
            show | watch | wait | cancel | retry)
                COMPREPLY=($(compgen -W "$(outlast jobs list --limit 100 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word"))
                return
                ;;
        esac
    fi
    _outlast "$@"
}

"#;

const ZSH_IDS: &str = r#"_outlast_or_ids() {
    if (( CURRENT == 3 )) && [[ $words[2] == check && $words[CURRENT] != -* ]]; then
        compadd -V jobs -- ${(f)"$(outlast jobs list --limit 100 2>/dev/null | awk 'NR > 1 { print $1 }')"}
        _files
        return
    fi
    if (( CURRENT >= 4 )) && [[ $words[2] == jobs && $words[CURRENT] != -* ]]; then
        case $words[3] in
            show | watch | wait | cancel | retry)
                compadd -V jobs -- ${(f)"$(outlast jobs list --limit 100 2>/dev/null | awk 'NR > 1 { print $1 }')"}
                return
                ;;
        esac
    fi
    _outlast "$@"
}

"#;

const FISH_IDS: &str = r#"complete -c outlast -f -n '__fish_seen_subcommand_from jobs; and __fish_seen_subcommand_from show watch wait cancel retry' -a '(outlast jobs list --limit 100 2>/dev/null | awk \'NR > 1 { print $1 "\t" $2 }\')'
complete -c outlast -n '__fish_seen_subcommand_from check; and not __fish_seen_subcommand_from store' -a '(outlast jobs list --limit 100 2>/dev/null | awk \'NR > 1 { print $1 "\t" $2 }\')'
"#;

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

#[cfg(test)]
mod tests {
    use clap_complete::Shell;

    use super::*;

    #[test]
    fn the_scripts_complete_the_ids_of_jobs() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::definition(), "outlast", &mut script);
            let script = with_ids(shell, &String::from_utf8_lossy(&script));
            assert!(script.contains("outlast jobs list --limit 100"), "{shell}");
            let called = match shell {
                Shell::Bash => "complete -F _outlast_or_ids -o",
                Shell::Zsh => "compdef _outlast_or_ids outlast",
                _ => "__fish_seen_subcommand_from show",
            };
            assert!(
                script.contains(called),
                "{shell}: clap_complete ends its script in another way"
            );
        }
    }
}
