//! `outlast guard`: waits at the other end of a pipe and ends the commands of a server that was killed. Started by
//! `outlast serve` and `outlast worker`, never by people.

use std::process::ExitCode;

use outlast_provider::command::keep_watch;

pub(super) fn run() -> ExitCode {
    keep_watch(std::io::stdin().lock());
    ExitCode::SUCCESS
}
