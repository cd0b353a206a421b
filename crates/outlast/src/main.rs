//! outlast: a tool call that outlasts its client.
//!
//! Reads the command line and the configuration, runs one command, and turns what came of it into an exit code.

mod cli;
mod config;
mod duration;
mod logging;

mod armed;
mod wire;

mod commands;
mod failed;
mod ui;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    ui::set_color(cli.global.color);
    match commands::run(cli) {
        Ok(code) => code,
        Err(failed) => {
            ui::error(&failed);
            ExitCode::from(failed.exit_code())
        }
    }
}
