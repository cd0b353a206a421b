//! The commands with which outlast runs itself, never people: the `guard` of a server's commands, and the two that
//! become another program (`launch`, `limited`). Those two are parsed by hand: parsing the whole command line would
//! cost each command several times its start.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use outlast_provider::command::{
    CANNOT_START, CANNOT_START_CODE, LaunchedProgram, keep_watch, launch,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ui;

/// The first argument of [`run_limited`].
pub(crate) const LIMITED: &str = "limited";
/// The exit code when it could not become the program.
const CANNOT_LIMIT: u8 = 126;

/// Runs `launch` or `limited`; `None` if the arguments request something else.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    match arguments.next()?.to_str()? {
        "launch" => run_launch(arguments),
        LIMITED => run_limited(arguments),
        _ => None,
    }
}

/// `outlast guard`: waits at the other end of a pipe and ends the commands of a server that was killed.
pub(super) fn guard() -> ExitCode {
    keep_watch(io::stdin().lock());
    ExitCode::SUCCESS
}

/// `outlast launch SCRATCH FILE NAME [ARGUMENT...]`: becomes the command of a workflow when it gets the signal to.
fn run_launch(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let (scratch, program) = (arguments.next()?.into(), arguments.next()?.into());
    let name = arguments.next()?;
    let launched = LaunchedProgram { scratch, program, name, arguments: arguments.collect() };
    let error = launch(io::stdin().lock(), launched);
    if error.kind() == ErrorKind::UnexpectedEof {
        // The server is gone: there is no process left to report to.
        return Some(ExitCode::FAILURE);
    }
    ui::remark(&format!("{CANNOT_START}{error}"));
    Some(ExitCode::from(CANNOT_START_CODE))
}

/// `outlast limited BYTES SECONDS PROGRAM [ARGUMENT...]`: limits its own memory and processor time and becomes a converter
/// of the library.
fn run_limited(mut arguments: impl Iterator<Item = OsString>) -> Option<ExitCode> {
    let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let (bytes, seconds) = (number()?, number()?);
    let program = arguments.next()?;
    let error = match limit(bytes, seconds) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    ui::remark(&format!("outlast: the program cannot be started: {error}"));
    Some(ExitCode::from(CANNOT_LIMIT))
}

fn limit(bytes: u64, seconds: u64) -> io::Result<()> {
    // A converter must not outlive a server that was killed.
    outlast_platform::die_with_starter()?;
    // A core file would hold the text of a document.
    let limits = [(Resource::Core, 0), (Resource::Cpu, seconds), (Resource::As, bytes)];
    for (resource, most) in limits {
        let Rlimit { maximum, .. } = getrlimit(resource);
        let most = maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum })?;
    }
    Ok(())
}
