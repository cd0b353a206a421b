//! The end of every command's help: examples.txt, a block for each command. A test parses each line.

use clap::Command;

const EXAMPLES: &str = include_str!("examples.txt");

/// Adds its examples to the command line.
pub(super) fn add_to(root: Command) -> Command {
    EXAMPLES.split("\n\n").filter_map(|block| block.split_once(":\n")).fold(
        root,
        |root, (path, lines)| {
            let path: Vec<&str> = path.split(' ').collect();
            add_at(root, &path, lines.trim_end())
        },
    )
}

fn add_at(command: Command, path: &[&str], lines: &str) -> Command {
    match path.split_first() {
        Some((name, rest)) => command.mut_subcommand(name, |below| add_at(below, rest, lines)),
        None => command.after_long_help(format!("Examples:\n{lines}")),
    }
}
