//! `outlast step`: one durable step of a workflow command (K12). It asks the worker that runs the command, which has
//! the journal of the job; the store is not opened here.

mod list;
mod resolve;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{ExitCode, ExitStatus, Stdio};

use anyhow::Context as _;
use outlast_provider::command::{
    MAX_STEP_BYTES, STEP_SOCKET, StepOutcome, StepReply, StepRequest, is_step_name, read_bytes,
    read_message, write_message,
};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

use crate::cli::{Global, StepArgs, StepCommand};
use crate::error::{CommandError, CommandResult, refuse};
use crate::ui;

/// Set for the command of a step to its name.
const STEP_NAME: &str = "OUTLAST_STEP";
/// The added number of the exit code of a process that was killed by a signal, as shells count.
const SIGNALLED: i32 = 128;

pub(super) async fn run(global: &Global, args: StepArgs) -> CommandResult {
    let StepArgs { command, name, rerun, input, program } = args;
    let Some(name) = name else {
        return match command {
            Some(StepCommand::List(args)) => list::run(global, args).await,
            Some(StepCommand::Resolve(args)) => resolve::run(global, args).await,
            None => refuse("no step is named", "outlast step NAME -- COMMAND"),
        };
    };
    let socket = find_worker("outlast step", &name)?;
    if !is_step_name(&name) {
        let why = format!("`{}` cannot be the name of a step", ui::short(&name, 64));
        return refuse(why, "use 1 to 64 of the characters A-Z a-z 0-9 - _ . : /");
    }
    let digest = digest(input.as_deref(), &program);
    let request = StepRequest { name, digest, rerun };
    let mut worker = connect(&socket)?;
    match ask(&mut worker, &request).await? {
        StepReply::Run => perform(worker, &request.name, &program).await,
        StepReply::Done { bytes } => {
            let output = read_bytes(&mut worker, bytes).await.map_err(|_| gone())?;
            ui::raw(&output);
            Ok(ExitCode::SUCCESS)
        }
        StepReply::Refused { why, hint } => Err(CommandError::failed(why, hint)),
        StepReply::Recorded | StepReply::NotAnswered | StepReply::Gone => Err(gone()),
    }
}

/// Connects to the worker that runs the command.
pub(super) fn connect(socket: &OsString) -> CommandResult<BufReader<UnixStream>> {
    let Ok(stream) = outlast_platform::with_socket_path(Path::new(socket), |path| {
        std::os::unix::net::UnixStream::connect(path)
    }) else {
        return Err(gone());
    };
    stream.set_nonblocking(true)?;
    Ok(BufReader::new(UnixStream::from_std(stream)?))
}

/// Returns the path of the worker's socket, for a step or question of this name.
pub(super) fn find_worker(command: &str, name: &str) -> CommandResult<OsString> {
    #[expect(clippy::disallowed_methods, reason = "the worker set them for this process")]
    let variable = |name| std::env::var_os(name);
    if let Some(outer) = variable(STEP_NAME) {
        let name = ui::short(name, 64);
        let why = format!("`{command} {name}` is inside of the step `{}`", outer.display());
        return refuse(why, "run one after the other: a step is recorded as a whole");
    }
    variable(STEP_SOCKET).map_or_else(
        || {
            refuse(
                format!("`{command}` works inside a workflow command only"),
                "start the script as a job: a [[workflow]] of outlast.toml with `steps = true`",
            )
        },
        Ok,
    )
}

/// Returns the digest of a step's input: its command, or the text that replaces it.
fn digest(input: Option<&str>, program: &[OsString]) -> String {
    let mut digest = Sha256::new();
    let mut add = |bytes: &[u8]| {
        digest.update((bytes.len() as u64).to_le_bytes());
        digest.update(bytes);
    };
    match input {
        Some(text) => {
            add(b"input");
            add(text.as_bytes());
        }
        None => {
            add(b"command");
            program.iter().for_each(|argument| add(argument.as_bytes()));
        }
    }
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) async fn ask(
    worker: &mut BufReader<UnixStream>,
    request: &impl Serialize,
) -> CommandResult<StepReply> {
    write_message(worker, request, b"").await.map_err(|_| gone())?;
    read_message(worker).await.map_err(|_| gone())
}

/// Runs the command of a step, and prints its output once that is recorded.
async fn perform(
    mut worker: BufReader<UnixStream>,
    name: &str,
    program: &[OsString],
) -> CommandResult {
    let (path, arguments) = program.split_first().context("no command is given")?;
    let started = Command::new(path)
        .args(arguments)
        .env(STEP_NAME, name)
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn();
    let (code, output, failure) = match started {
        Ok(child) => {
            let mut byte = [0; 1];
            // The worker sends nothing now: the end of the connection is the end of the worker, or of its lease.
            tokio::select! {
                finished = finish(child) => finished?,
                _ = worker.read(&mut byte) => return Err(gone()),
            }
        }
        Err(error) => {
            let why = format!("the step `{name}` cannot be started: {}: {error}", path.display());
            (127, Vec::new(), Some(why))
        }
    };
    let outcome = StepOutcome { code, bytes: output.len() };
    write_message(&mut worker, &outcome, &output).await.map_err(|_| gone())?;
    match read_message(&mut worker).await.map_err(|_| gone())? {
        StepReply::Recorded => {}
        StepReply::Refused { why, hint } => return Err(CommandError::failed(why, hint)),
        StepReply::Run | StepReply::Done { .. } | StepReply::NotAnswered | StepReply::Gone => {
            return Err(gone());
        }
    }
    if let Some(why) = failure {
        return Err(CommandError::failed(why, "the step is recorded as failed"));
    }
    ui::raw(&output);
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(1)))
}

/// Waits for the end of a command. Returns its exit code, its output, and the reason why that cannot be recorded.
async fn finish(mut child: Child) -> CommandResult<(i32, Vec<u8>, Option<String>)> {
    let mut output = Vec::new();
    if let Some(stdout) = child.stdout.take() {
        stdout.take(MAX_STEP_BYTES as u64 + 1).read_to_end(&mut output).await?;
    }
    if output.len() > MAX_STEP_BYTES {
        child.kill().await?;
        let why = "the output of the step is larger than 1 MiB; let it write to a file instead";
        return Ok((1, Vec::new(), Some(why.to_owned())));
    }
    Ok((exit_code(child.wait().await?), output, None))
}

fn exit_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or_default())
}

/// Returns the error for a worker that has ended, or that does not own the job any more.
pub(super) fn gone() -> CommandError {
    let why = "the worker of this job is gone; the command of the step was ended";
    CommandError::worker_gone(
        why,
        "another worker runs the script again, and skips the steps that are done",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K12: commands have different digests, however their arguments are split.
    #[test]
    fn k12_a_step_is_recognized_by_its_command_or_by_its_input() {
        let of = |line: &[&str]| digest(None, &line.iter().map(OsString::from).collect::<Vec<_>>());
        assert_eq!(of(&["a", "b"]), of(&["a", "b"]));
        assert_ne!(of(&["a", "b"]), of(&["ab"]));
        assert_ne!(of(&["input", "b"]), digest(Some("b"), &[]));
        assert_eq!(digest(Some("b"), &["x".into()]), digest(Some("b"), &["y".into()]));
        assert_eq!(digest(None, &[]).len(), 64);
    }
}
