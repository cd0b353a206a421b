//! A run: the child, and the task that writes to it, reads from it and ends it.
//!
//! Dropping the run closes its channel; this is how a cancel or a worker's shutdown ends the child.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    Progress, ProviderError, ProviderErrorKind, RemoteRun, Run, RunJournal, Step, Timestamp,
};
use rustix::process::Signal;
use tokio::io::AsyncWriteExt;
use tokio::process::Child;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::group::Group;
use super::guard::Guard;
use super::launch::{CANNOT_START, CANNOT_START_CODE, frame};
use super::output::{Stderr, Stdout};
use super::steps::{StepServer, StepSocket};
use super::{Command, EXIT_GRACE, cannot_be_started};

/// The time to keep reading after the child has ended: its own children may hold the pipes.
const PIPE_LINGER: Duration = Duration::from_millis(500);
/// Progress that the engine has not taken yet; more of it is not worth keeping.
const MAX_UNTAKEN: usize = 64;

type Steps = mpsc::Sender<Result<Step, ProviderError>>;

/// The terms of a run.
pub(super) struct Terms<'a> {
    pub(super) key: &'a str,
    pub(super) begun_at: Timestamp,
    pub(super) timeout: Duration,
    pub(super) message: String,
}

/// A command that is under way.
pub(super) struct CommandRun {
    remote: RemoteRun,
    steps: mpsc::Receiver<Result<Step, ProviderError>>,
    /// Lets the launcher become the command.
    recorded: Option<oneshot::Sender<()>>,
    /// The socket for its steps, until the journal is known.
    socket: Option<StepSocket>,
    step_server: Option<StepServer>,
    /// Kept so that the task has an owner; it is never waited for.
    _task: JoinHandle<()>,
}

impl CommandRun {
    /// Takes over a launcher that was just started as the leader of its group. It becomes the command when the run is
    /// first asked for its next step: by then the run is on record, so that no second one begins next to it.
    pub(super) fn start(
        mut child: Child,
        terms: Terms<'_>,
        socket: Option<StepSocket>,
        guard: Arc<Guard>,
    ) -> std::io::Result<Self> {
        let group = Group::find_group(child.id().unwrap_or(0))?;
        if let Err(error) = guard.watch(group) {
            drop(child.start_kill());
            return Err(error);
        }
        let remote = RemoteRun {
            provider: Command::NAME.to_owned(),
            id: group.id(terms.key),
            cursor: None,
            begun_at: terms.begun_at,
        };
        let (sender, steps) = mpsc::channel(MAX_UNTAKEN);
        let (recorded, is_recorded) = oneshot::channel();
        let Terms { timeout, message, .. } = terms;
        let go = LauncherInput { is_recorded, message };
        let task = tokio::spawn(async move {
            let mut watched = GuardedGroup { group, guard, ended: false };
            run_child(child, &group, go, timeout, sender).await;
            watched.ended = true;
        });
        Ok(Self { remote, steps, recorded: Some(recorded), socket, step_server: None, _task: task })
    }
}

#[async_trait]
impl Run for CommandRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn set_journal(&mut self, journal: RunJournal) {
        self.step_server = self.socket.take().map(|socket| socket.serve(journal));
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(recorded) = self.recorded.take() {
            // A task that has ended already reports that by its last step.
            let _ = recorded.send(());
        }
        let step = self.steps.recv().await.unwrap_or_else(|| {
            let sentence = "the command was lost; the log of the server has the details";
            Err(ProviderError::new(ProviderErrorKind::RunFailed, sentence))
        });
        if let (Some(steps), Ok(Step::Done { .. }) | Err(_)) = (&self.step_server, &step) {
            steps.end_questions().await;
        }
        step.map_err(|error| match &self.step_server {
            Some(steps) if error.kind == ProviderErrorKind::RunFailed && steps.has_unanswered() => {
                let sentence = "a question of the command was not answered before its deadline; start it again, and \
                                answer it with `outlast jobs answer`";
                ProviderError {
                    detail: error.detail,
                    ..ProviderError::new(ProviderErrorKind::NotAnswered, sentence)
                }
            }
            Some(_) | None => error,
        })
    }
}

/// A group the guard watches over until it is gone. If the task that has it does not come to its end, because it
/// panicked or the process leaves, the group is killed here and the guard keeps watching.
struct GuardedGroup {
    group: Group,
    guard: Arc<Guard>,
    ended: bool,
}

impl Drop for GuardedGroup {
    fn drop(&mut self) {
        if self.ended {
            self.guard.release(&self.group);
        } else {
            self.group.signal(Signal::KILL);
        }
    }
}

/// The input that a launcher waits for.
struct LauncherInput {
    is_recorded: oneshot::Receiver<()>,
    message: String,
}

/// The cause of a run's end.
enum RunEnd {
    Exited(std::io::Result<ExitStatus>),
    TimedOut,
    /// The run was dropped.
    Dropped,
}

/// Writes, reads and waits until the child and its group have ended.
async fn run_child(
    mut child: Child,
    group: &Group,
    go: LauncherInput,
    limit: Duration,
    steps: Steps,
) {
    let (input, output, errors) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (mut stdout, mut stderr) = (Stdout::default(), Stderr::default());
    let feed = async {
        if let (Some(mut input), Ok(())) = (input, go.is_recorded.await) {
            // A launcher that was ended in the meantime is noticed by its end.
            drop(input.write_all(&frame(&go.message)).await);
        }
    };
    let read = async {
        if let Some(output) = output {
            stdout.collect(output).await;
        }
    };
    // The engine keeps only the newest, so what does not fit may be lost.
    let tell = |progress: Progress| drop(steps.try_send(Ok(Step::Progress(progress))));
    let listen = async {
        if let Some(errors) = errors {
            stderr.collect(errors, tell).await;
        }
    };
    let mut talk = Box::pin(async { tokio::join!(feed, read, listen) });
    let mut talking = true;
    let over = tokio::time::sleep(limit);
    tokio::pin!(over);
    let ended = loop {
        tokio::select! {
            _ = &mut talk, if talking => talking = false,
            status = child.wait() => break RunEnd::Exited(status),
            () = &mut over => break RunEnd::TimedOut,
            () = steps.closed() => break RunEnd::Dropped,
        }
    };
    if !matches!(ended, RunEnd::Exited(_)) {
        group.signal(Signal::TERM);
        // Reading goes on: a full pipe must not hold up a command that writes before it exits.
        let leave = async {
            loop {
                tokio::select! {
                    _ = &mut talk, if talking => talking = false,
                    _ = child.wait() => return,
                }
            }
        };
        if timeout(EXIT_GRACE, leave).await.is_err() {
            group.signal(Signal::KILL);
            // At once, but for a process that is stuck in the kernel.
            drop(timeout(EXIT_GRACE, child.wait()).await);
        }
    }
    if talking {
        drop(timeout(PIPE_LINGER, &mut talk).await);
    }
    drop(talk);
    let step = match ended {
        RunEnd::Exited(Ok(status)) if status.success() => {
            Some(Ok(Step::Done { output: Box::new(stdout.into_output()), raw: None }))
        }
        RunEnd::Exited(status) => Some(Err(failure(status, stderr.tail()))),
        RunEnd::TimedOut => Some(Err(timeout_error(limit, stderr.tail()))),
        RunEnd::Dropped => None,
    };
    if let Some(step) = step {
        // Fails only when the run was dropped.
        drop(steps.send(step).await);
    }
    // What a command leaves behind in its group ends with it.
    if group.has_members() {
        group.end_own(EXIT_GRACE).await;
    }
    if let Err(error) = child.wait().await {
        tracing::warn!(%group, %error, "failed to wait for a command");
    }
}

fn failure(status: std::io::Result<ExitStatus>, tail: Option<String>) -> ProviderError {
    let code = status.as_ref().ok().and_then(ExitStatus::code);
    if code == Some(CANNOT_START_CODE.into())
        && let Some(why) = tail.as_deref().and_then(|tail| tail.strip_prefix(CANNOT_START))
    {
        return cannot_be_started(why.to_owned());
    }
    let how = match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => format!("ended with exit code {code}"),
            (None, Some(signal)) => format!("was ended by signal {signal}"),
            (None, None) => "ended in an unknown way".to_owned(),
        },
        Err(error) => {
            tracing::error!(%error, "failed to wait for a command");
            "was lost".to_owned()
        }
    };
    let sentence = format!(
        "the command {how}; the server's log and `outlast jobs show` have what it wrote to standard error"
    );
    ProviderError { detail: tail, ..ProviderError::new(ProviderErrorKind::RunFailed, sentence) }
}

fn timeout_error(limit: Duration, tail: Option<String>) -> ProviderError {
    let sentence = format!(
        "the command did not end within {} s and was ended; give its workflow a longer timeout if that is too \
         short",
        limit.as_secs_f64()
    );
    ProviderError { detail: tail, ..ProviderError::new(ProviderErrorKind::RunTimedOut, sentence) }
}
