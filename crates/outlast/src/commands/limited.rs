//! `outlast limited BYTES SECONDS PROGRAM [ARGUMENT...]`: limits its own memory and processor time and becomes a converter
//! of the library. Started by outlast itself, never by people; read by hand, as `launch` is.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::ui;

/// The first argument.
pub(crate) const NAME: &str = "limited";
/// What it exits with when it could not become the program.
const CANNOT_START: u8 = 126;

/// What came of it; `None` when the arguments ask for something else.
pub(crate) fn run(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    let mut arguments = arguments.into_iter().skip(1);
    if arguments.next()? != NAME {
        return None;
    }
    let mut number = || arguments.next()?.to_str()?.parse::<u64>().ok();
    let (bytes, seconds) = (number()?, number()?);
    let program = arguments.next()?;
    let error = match limit(bytes, seconds) {
        Ok(()) => Command::new(program).args(arguments).exec(),
        Err(error) => error,
    };
    ui::remark(&format!("outlast: the program cannot be started: {error}"));
    Some(ExitCode::from(CANNOT_START))
}

fn limit(bytes: u64, seconds: u64) -> io::Result<()> {
    // A converter must not outlive a server that was killed.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))?;
    // A core file would hold the text of a document.
    let limits = [(Resource::Core, 0), (Resource::Cpu, seconds), (Resource::As, bytes)];
    for (resource, most) in limits {
        let Rlimit { maximum, .. } = getrlimit(resource);
        let most = maximum.map_or(most, |maximum| maximum.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum })?;
    }
    Ok(())
}
