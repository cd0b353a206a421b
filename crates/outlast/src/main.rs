//! outlast: a tool call that outlasts its client.
//!
//! Reads the command line and the configuration, runs one command, and turns what came of it into an exit code.

mod cli;
mod config;
mod logging;

mod wire;
mod observed;
mod armed;
mod shifted;

mod commands;
mod failed;
mod duration;
mod ui;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    if let Some(code) = commands::launch::run(std::env::args_os()) {
        return code;
    }
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
