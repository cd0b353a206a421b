//! `outlast launch SCRATCH FILE NAME [ARGUMENT...]`: becomes the command of a workflow once it is told to. Started by
//! `outlast serve` and `outlast worker`, never by people. Read by hand: to parse the whole command line would cost each
//! command several times what starting it does.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::process::ExitCode;

use outlast_provider::command::{CANNOT_START, CANNOT_START_CODE, Launched, launch};

use crate::ui;

/// What came of it; `None` when the arguments ask for something else.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != "launch" {
        return None;
    }
    let (scratch, program) = (arguments.next()?.into(), arguments.next()?.into());
    let name = arguments.next()?;
    let launched = Launched { scratch, program, name, arguments: arguments.collect() };
    let error = launch(std::io::stdin().lock(), launched);
    if error.kind() == ErrorKind::UnexpectedEof {
        // The server is gone: no process is left to report to.
        return Some(ExitCode::FAILURE);
    }
    ui::remark(&format!("{CANNOT_START}{error}"));
    Some(ExitCode::from(CANNOT_START_CODE))
}
