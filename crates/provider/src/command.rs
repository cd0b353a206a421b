//! A configured command line as a provider: a child in its own process group, its message on standard input, its
//! result on standard output. Never through a shell, and nothing a client sends becomes an argument or a program.
//!
//! A run does not outlive this process: the guard ends it when we cannot.

mod run;
mod program;
mod group;
mod guard;
mod launch;
mod output;
mod questions;
mod step_protocol;
mod steps;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Clock, Cost, Provider, ProviderError, ProviderErrorKind, RecoverySemantics,
    RemoteRun, Request, RequestNote, ResendPolicy, ResumePolicy, Run, StopOutcome, WorkflowRequest,
    rules,
};
use serde_json::Value;
use tokio::process;

pub(crate) use self::group::Group;
pub use self::guard::{Guard, keep_watch};
pub use self::launch::{CANNOT_START, CANNOT_START_CODE, LaunchedProgram, launch};
pub(crate) use self::output::Stderr;
pub use self::output::output_bytes;
pub(crate) use self::program::locate;
pub use self::questions::is_question_step;
use self::run::{CommandRun, Terms};
pub use self::step_protocol::{
    AskRequest, MAX_ASK_BYTES, MAX_STEP_BYTES, STEP_SOCKET, StepOutcome, StepReply, StepRequest,
    is_step_name, read_bytes, read_message, write_message,
};
use self::steps::StepSocket;
pub use self::steps::{STEP_KIND, step_of_key};
use crate::with_detail;

/// The longest time a group may take to exit after SIGTERM, before it is killed.
const EXIT_GRACE: Duration = Duration::from_secs(2);

/// The options of a command.
pub struct CommandOptions {
    /// The program and its arguments, as configured.
    pub program: Vec<String>,
    /// The working directory, in which a program with a relative path is looked for.
    pub cwd: PathBuf,
    /// All of its environment but what a job adds.
    pub environment: Vec<(String, String)>,
    /// The time limit of a run whose job has none.
    pub timeout: Duration,
    /// The rule for repeating a run after a crash.
    pub rerun: Rerun,
    /// True if the command may run durable steps (K12).
    pub steps: bool,
    /// Ends its children when this process cannot.
    pub guard: Arc<Guard>,
    /// The program that calls [`launch()`] when its first argument is `launch`.
    pub launcher: PathBuf,
    /// The directory that holds a message while a command reads it.
    pub scratch: PathBuf,
    /// Called when the launcher was started and the guard does not know of it yet: tests end the process here.
    pub started: Option<fn()>,
    /// Dates the begin of a run.
    pub clock: Arc<dyn Clock>,
}

/// The rule for repeating a run of which it is unknown how far it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rerun {
    /// No: it may have done half of something.
    Never,
    /// Yes, as configured.
    AfterCrash,
}

impl From<Rerun> for ResendPolicy {
    fn from(rerun: Rerun) -> Self {
        match rerun {
            Rerun::Never => Self::Never,
            Rerun::AfterCrash => Self::Idempotent,
        }
    }
}

/// A configured command line as a provider.
pub struct Command {
    options: CommandOptions,
}

impl Command {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = RemoteRun::COMMAND;

    /// Starts nothing yet.
    pub fn new(options: CommandOptions) -> Self {
        Self { options }
    }

    /// Returns true if a command on another machine may still run: a cancel, or the end of its lease, ends it long before.
    fn may_still_run(&self, run: &RemoteRun) -> bool {
        self.options.clock.now().since(run.begun_at) < Duration::from_secs(24 * 60 * 60)
    }

    /// The launcher that becomes the program.
    fn command(
        &self,
        file: &Path,
        program: &str,
        request: &Request,
        ask: &WorkflowRequest,
        key: &str,
    ) -> process::Command {
        let arguments = Value::Object(ask.arguments.clone()).to_string();
        let job = rules::job_of_key(key).map(|job| job.to_string()).unwrap_or_default();
        let mut command = process::Command::new(&self.options.launcher);
        command
            .arg0("outlast")
            .arg("launch")
            .arg(&self.options.scratch)
            .arg(file)
            .arg(program)
            .args(self.options.program.iter().skip(1))
            .current_dir(&self.options.cwd)
            .env_clear()
            .envs(self.options.environment.iter().map(|(name, value)| (name, value)))
            .env("OUTLAST_ARGUMENTS", arguments)
            .env("OUTLAST_SESSION_ID", ask.session_id.as_deref().unwrap_or_default())
            .env("OUTLAST_JOB_ID", job)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(trace) = request.note(RequestNote::Traceparent) {
            command.env("TRACEPARENT", trace);
        }
        command
    }
}

#[async_trait]
impl Provider for Command {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: self.options.rerun.into(),
            resume: ResumePolicy::Never,
            can_stop: true,
        }
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_workflow().map_err(BeginError::Refused)?;
        let (key, earlier) = Group::split(key);
        if let Some(earlier) = earlier {
            // Begun by a process that died: it must not run next to the new one.
            earlier.end(EXIT_GRACE).await;
        }
        let Some(program) = self.options.program.first() else {
            return Err(BeginError::Refused(unreadable("the command line is empty")));
        };
        self.options
            .guard
            .ready()
            .map_err(|error| BeginError::NotSent(report_unguarded(&error)))?;
        let file = program::locate(program, &self.options.cwd, &self.options.environment);
        program::check(&file).map_err(|error| not_started(program, &error))?;
        let mut command = self.command(&file, program, request, ask, key);
        let socket = self.options.steps.then(|| StepSocket::bind(&self.options.scratch));
        let socket =
            socket.transpose().map_err(|error| BeginError::NotSent(report_no_steps(&error)))?;
        if let Some(socket) = &socket {
            command.env(STEP_SOCKET, socket.path());
        }
        let child = command.spawn();
        let child = child.map_err(|error| not_started(program, &error))?;
        if let Some(started) = self.options.started {
            started();
        }
        let begun_at = self.options.clock.now();
        let timeout = ask.timeout_ms.map_or(self.options.timeout, Duration::from_millis);
        let terms =
            Terms { key, begun_at, timeout, message: ask.message.clone().unwrap_or_default() };
        match CommandRun::start(child, terms, socket, Arc::clone(&self.options.guard)) {
            Ok(run) => Ok(Box::new(run)),
            Err(error) => Err(BeginError::Unknown(report_unguarded(&error))),
        }
    }

    async fn resume(
        &self,
        _request: &Request,
        _run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Err(ProviderError::new(
            ProviderErrorKind::RunLost,
            "a command ends with the server that ran it",
        ))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        if let (_, Some(group)) = Group::split(&run.id) {
            if group.is_elsewhere() && self.may_still_run(run) {
                return Err(elsewhere());
            }
            if self.options.guard.watches(&group) {
                // Its own run is ending it already.
                group.wait_until_empty(2 * EXIT_GRACE).await;
            }
            group.end(EXIT_GRACE).await;
        }
        Ok(StopOutcome::Ended { cost: Cost::Unknown })
    }
}

/// The worker there ends the command itself: when it is notified of the cancel, or when its lease expires.
fn elsewhere() -> ProviderError {
    let sentence = "the command runs on another machine, whose worker ends it";
    ProviderError::new(ProviderErrorKind::Unavailable { retry_after: None }, sentence)
}

/// A program that is not there will not be there at the next try; a system that is out of processes may have some.
fn not_started(program: &str, error: &std::io::Error) -> BeginError {
    use std::io::ErrorKind;
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::OutOfMemory | ErrorKind::Interrupted => {
            let sentence = "the system cannot start another process just now; try again later";
            let kind = ProviderErrorKind::Unavailable { retry_after: None };
            BeginError::NotSent(with_detail(kind, sentence, format!("{program}: {error}")))
        }
        _ => BeginError::Refused(cannot_be_started(format!("{program}: {error}"))),
    }
}

fn cannot_be_started(why: String) -> ProviderError {
    let sentence = "the program of this workflow cannot be started; the server's log says why, and its \
                    configuration names the program";
    with_detail(ProviderErrorKind::Rejected, sentence, why)
}

fn unreadable(why: &str) -> ProviderError {
    with_detail(
        ProviderErrorKind::Rejected,
        "the request cannot be read by this version; start it again",
        why,
    )
}

fn report_no_steps(error: &std::io::Error) -> ProviderError {
    let sentence =
        "the socket for the steps of this command cannot be created; the server's log says why";
    with_detail(ProviderErrorKind::Unavailable { retry_after: None }, sentence, error.to_string())
}

fn report_unguarded(error: &std::io::Error) -> ProviderError {
    let sentence =
        "the process that watches over commands cannot be started; the server's log says why";
    with_detail(ProviderErrorKind::Unavailable { retry_after: None }, sentence, error.to_string())
}
