//! outlast: a tool call that outlasts its client.
//!
//! Reads the command line and the configuration, runs one command, and turns its result into an exit code.

mod cli;
mod config;
mod logging;

mod data_dir;
mod installed;
mod wire;
mod wait_command;
mod open_store;
mod audit;
mod metered;
mod detached;
mod client_files;
mod kill_points;
mod test_clock;

mod commands;
mod error;
mod duration;
mod ui;

use std::process::ExitCode;

fn main() -> ExitCode {
    // First of all: while there is one thread, and no open file but those that were inherited.
    if let Err(error) = outlast_sys::leave_starter() {
        ui::error(&error.into());
        return ExitCode::FAILURE;
    }
    outlast_sys::return_large_blocks();
    outlast_sys::count_no_sqlite_memory();
    if let Some(code) = commands::own_processes::run(std::env::args_os()) {
        return code;
    }
    let done = match cli::Cli::read() {
        Ok(cli) => {
            ui::set_color(cli.global.color);
            ui::set_quiet(cli.global.quiet);
            commands::run(cli)
        }
        Err(told) => Ok(ui::print_parser_message(&told)),
    };
    match done.and_then(|code| ui::finish().map(|()| code)) {
        Ok(code) => code,
        Err(failed) => {
            ui::error(&failed);
            ExitCode::from(failed.exit_code())
        }
    }
}
