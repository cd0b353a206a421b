//! `outlast launch`: becomes the command of a workflow once it is told to. Started by `outlast serve` and `outlast worker`,
//! never by people.

use std::io::ErrorKind;
use std::process::ExitCode;

use outlast_provider::command::{CANNOT_START, CANNOT_START_CODE, Launched, launch};

use crate::cli::LaunchArgs;
use crate::ui;

pub(super) fn run(args: LaunchArgs) -> ExitCode {
    let mut line = args.line.into_iter();
    let (Some(program), Some(name)) = (line.next(), line.next()) else {
        return ExitCode::FAILURE;
    };
    let launched = Launched {
        scratch: args.scratch,
        program: program.into(),
        name,
        arguments: line.collect(),
    };
    let error = launch(std::io::stdin().lock(), launched);
    if error.kind() == ErrorKind::UnexpectedEof {
        // The server is gone, and with it whoever could be told.
        return ExitCode::FAILURE;
    }
    ui::remark(&format!("{CANNOT_START}{error}"));
    ExitCode::from(CANNOT_START_CODE)
}
