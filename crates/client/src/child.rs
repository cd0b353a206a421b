//! A server as a child process in its own process group.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::error::ClientError;

/// The time a child has to exit: on its own, and again after SIGTERM.
const EXIT_GRACE: Duration = Duration::from_secs(1);
/// The maximum time to wait for the exit status of a child whose pipe broke.
const STATUS_WAIT: Duration = Duration::from_millis(500);
/// The number of bytes of standard error that are kept.
const STDERR_KEPT: usize = 8 * 1024;
/// The number of lines of standard error that an error shows.
const STDERR_LINES: usize = 5;

/// A program to start.
#[derive(Clone, Debug)]
pub struct ProgramToStart {
    name: OsString,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
    clear: bool,
    folder: Option<PathBuf>,
    stderr: StderrMode,
}

/// The handling of a child's standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StderrMode {
    /// The end of it is kept for error messages.
    #[default]
    Keep,
    /// It is inherited from this process.
    Pass,
}

impl ProgramToStart {
    /// Creates a program by name or path.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        Self {
            name: name.as_ref().to_owned(),
            arguments: Vec::new(),
            environment: Vec::new(),
            clear: false,
            folder: None,
            stderr: StderrMode::Keep,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args<A: AsRef<OsStr>>(self, arguments: impl IntoIterator<Item = A>) -> Self {
        arguments.into_iter().fold(self, Self::arg)
    }

    /// Sets a variable of its environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts the program with an empty environment.
    pub fn env_clear(mut self) -> Self {
        self.clear = true;
        self
    }

    /// Sets its working directory.
    pub fn current_dir(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// Sets the handling of its standard error.
    pub fn stderr(mut self, stderr: StderrMode) -> Self {
        self.stderr = stderr;
        self
    }
}

/// The way a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChildEnd {
    /// It exited on its own.
    ByItself(ExitStatus),
    /// It exited after SIGTERM.
    Terminated(ExitStatus),
    /// It was killed with SIGKILL.
    Killed,
}

/// A running child.
pub(crate) struct Child {
    process: Mutex<tokio::process::Child>,
    group: ChildGroup,
    tail: Option<StderrTail>,
}

impl Child {
    /// Starts a program whose standard input and output are the connection.
    pub(crate) fn start(
        program: &ProgramToStart,
    ) -> Result<(Self, ChildStdout, ChildStdin), ClientError> {
        let failed = |source| ClientError::Start {
            program: program.name.to_string_lossy().into_owned(),
            source,
        };
        let gone = || failed(std::io::ErrorKind::BrokenPipe.into());
        let mut process = command(program).spawn().map_err(failed)?;
        let pid = process.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let group = ChildGroup { pid: pid.ok_or_else(gone)?, over: false };
        let streams = process.stdout.take().zip(process.stdin.take());
        let (output, input) = streams.ok_or_else(gone)?;
        let tail = process.stderr.take().map(StderrTail::of);
        Ok((Self { process: Mutex::new(process), group, tail }, output, input))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.group.pid.as_raw_nonzero().get().unsigned_abs()
    }

    /// Stops the child, whose standard input is already closed.
    pub(crate) async fn stop(self) -> ChildEnd {
        let Self { process, mut group, tail: _tail } = self;
        let mut process = process.into_inner();
        let mut exit = async || tokio::time::timeout(EXIT_GRACE, process.wait()).await.ok()?.ok();
        let mut end = exit().await.map(ChildEnd::ByItself);
        if end.is_none() {
            group.send(Signal::TERM);
            end = exit().await.map(ChildEnd::Terminated);
        }
        if end.is_none() {
            group.send(Signal::KILL);
            // SIGKILL cannot be refused, but a process in a system call may take a while to end.
            exit().await;
        }
        group.over = true;
        end.unwrap_or(ChildEnd::Killed)
    }

    /// Adds the exit status and the last output to an error if the child exited.
    pub(crate) async fn add_child_details(&self, error: ClientError) -> ClientError {
        match error {
            ClientError::Gone { .. } => ClientError::Gone { how: self.end().await },
            ClientError::Handshake(why) => match self.end().await {
                end if end.is_empty() => ClientError::Handshake(why),
                end => ClientError::Handshake(format!("{why}; {end}")),
            },
            other => other,
        }
    }

    /// Returns its exit status and the end of its standard error.
    async fn end(&self) -> String {
        let mut process = self.process.lock().await;
        let status = match tokio::time::timeout(STATUS_WAIT, process.wait()).await {
            Ok(Ok(status)) => Some(status.to_string()),
            Ok(Err(_)) | Err(_) => None,
        };
        let lines = match &self.tail {
            Some(tail) => tail.read().await,
            None => None,
        };
        let stderr = lines.map(|lines| format!("its last output: {lines}"));
        status.into_iter().chain(stderr).collect::<Vec<_>>().join("; ")
    }
}

/// Adds what is known about the child to an error, if there is a child.
pub(crate) async fn add_child_details(child: Option<&Child>, error: ClientError) -> ClientError {
    match child {
        Some(child) => child.add_child_details(error).await,
        None => error,
    }
}

fn command(program: &ProgramToStart) -> Command {
    let mut command = Command::new(&program.name);
    command.args(&program.arguments);
    if program.clear {
        command.env_clear();
    }
    command.envs(program.environment.iter().map(|(name, value)| (name, value)));
    if let Some(folder) = &program.folder {
        command.current_dir(folder);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    command.stderr(match program.stderr {
        StderrMode::Keep => Stdio::piped(),
        StderrMode::Pass => Stdio::inherit(),
    });
    // Its own group: Ctrl-C reaches only this process, and the child's descendants can be killed with it.
    command.process_group(0);
    command
}

/// A child's process group. If dropped before the child ended, it is killed.
struct ChildGroup {
    pid: Pid,
    over: bool,
}

impl ChildGroup {
    fn send(&self, signal: Signal) {
        // This fails only if the group is gone already.
        let _ = kill_process_group(self.pid, signal);
    }
}

impl Drop for ChildGroup {
    fn drop(&mut self) {
        if !self.over {
            self.send(Signal::KILL);
        }
    }
}

/// The end of a child's standard error.
struct StderrTail {
    kept: watch::Receiver<Vec<u8>>,
    reading: JoinHandle<()>,
}

impl StderrTail {
    fn of(stderr: ChildStderr) -> Self {
        let (keeps, kept) = watch::channel(Vec::new());
        Self { kept, reading: tokio::spawn(keep(stderr, keeps)) }
    }

    /// Returns the last lines, if there are any.
    async fn read(&self) -> Option<String> {
        let mut kept = self.kept.clone();
        // Wait until the pipe is closed, but not for long: a grandchild may keep it open.
        drop(tokio::time::timeout(STATUS_WAIT, kept.wait_for(|_| false)).await);
        let text = String::from_utf8_lossy(&kept.borrow()).into_owned();
        let lines: Vec<&str> =
            text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines.get(lines.len().saturating_sub(STDERR_LINES)..).unwrap_or_default();
        (!last.is_empty()).then(|| last.join(" | "))
    }
}

impl Drop for StderrTail {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

async fn keep(mut stderr: ChildStderr, keeps: watch::Sender<Vec<u8>>) {
    let mut piece = vec![0; 4096];
    while let Ok(read @ 1..) = stderr.read(&mut piece).await {
        keeps.send_modify(|kept| {
            kept.extend_from_slice(piece.get(..read).unwrap_or_default());
            kept.drain(..kept.len().saturating_sub(STDERR_KEPT));
        });
    }
}
