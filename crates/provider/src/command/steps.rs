//! The worker's side of `outlast step` (K12): a socket for each run, and the journal of its job.
//!
//! Only a step that has exited with 0 is done. A failed one is closed, and the next try has the next key, so that the
//! journal never forgets a failure. An output that is too large for a row is recorded in parts before the step is.

use std::collections::BTreeSet;
use std::fs::{DirBuilder, read_dir, remove_file};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use outlast_core::{
    NanoUsd, NewStep, Resend, RunJournal, StepEnd, StepResult, StepStart, StoreError,
};
use outlast_platform::with_socket_path;
use serde::{Deserialize, Serialize};
use tokio::io::BufReader;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{RwLock, watch};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::timeout;

use super::step_protocol::{
    FirstMessage, StepOutcome, StepReply, StepRequest, is_step_name, read_bytes, read_message,
    write_message,
};

/// The kind of steps in the journal.
pub const STEP_KIND: &str = "command";
/// The kind of the parts of a large output.
const PART_KIND: &str = "output";
/// The separator between the name of a step and the number of a try.
const TRY_SEPARATOR: char = '#';
/// The maximum number of tries of one step.
const MAX_TRIES: u32 = 1_000;
/// The maximum size of an output in one row, before it is encoded.
const PART_BYTES: usize = 180_000;
/// The time between two tries to reach the store.
pub(super) const STORE_PAUSE: Duration = Duration::from_millis(500);

/// The longest time to record the answer to a question of a command that has ended.
const ASK_GRACE: Duration = Duration::from_secs(5);

/// A bound socket of a run, whose file is removed with it.
#[derive(Debug)]
pub(super) struct StepSocket {
    listener: UnixListener,
    file: SocketFile,
}

#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        drop(remove_file(&self.0));
    }
}

impl StepSocket {
    /// Binds a socket in a folder that only this user can enter, and removes those of processes that were killed.
    pub(super) fn bind(scratch: &Path) -> io::Result<Self> {
        let folder = scratch.join("steps");
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        for entry in read_dir(&folder)?.flatten() {
            let is_dead = with_socket_path(&entry.path(), |path| net::UnixStream::connect(path))
                .is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused);
            if is_dead {
                drop(remove_file(entry.path()));
            }
        }
        let path = folder.join(uuid::Uuid::new_v4().simple().to_string());
        let listener = with_socket_path(&path, |path| UnixListener::bind(path))?;
        Ok(Self { listener, file: SocketFile(path) })
    }

    /// Returns its path.
    pub(super) fn path(&self) -> &Path {
        &self.file.0
    }

    /// Answers steps until the server is dropped.
    pub(super) fn serve(self, journal: RunJournal) -> StepServer {
        let not_answered = Arc::new(AtomicBool::new(false));
        let run = Arc::new(RunSteps {
            journal,
            active: Mutex::default(),
            asking: tokio::sync::Mutex::default(),
            not_answered: Arc::clone(&not_answered),
            asks: RwLock::default(),
            ending: watch::Sender::default(),
        });
        let served = Arc::clone(&run);
        let task = tokio::spawn(async move {
            // The whole socket moves here, with its file.
            let Self { listener, file: _file } = self;
            let mut connections = JoinSet::new();
            loop {
                tokio::select! {
                    accepted = listener.accept() => match accepted {
                        Ok((stream, _)) => {
                            let run = Arc::clone(&served);
                            connections.spawn(async move { run.serve(stream).await });
                        }
                        Err(error) => {
                            tracing::warn!(%error, "failed to accept a step");
                            tokio::time::sleep(STORE_PAUSE).await;
                        }
                    },
                    Some(_) = connections.join_next() => {}
                }
            }
        });
        StepServer { task, run, not_answered }
    }
}

/// Answers the steps of a run; a step that is under way ends with it.
pub(super) struct StepServer {
    task: JoinHandle<()>,
    run: Arc<RunSteps>,
    not_answered: Arc<AtomicBool>,
}

impl StepServer {
    /// Withdraws the questions of a command that has ended, so that its job does not end with an answer that is not recorded.
    pub(super) async fn end_questions(&self) {
        self.run.ending.send_replace(true);
        drop(timeout(ASK_GRACE, self.run.asks.write()).await);
    }

    /// Returns whether a question of the run was not answered before its deadline.
    pub(super) fn has_unanswered(&self) -> bool {
        self.not_answered.load(Ordering::Acquire)
    }
}

impl Drop for StepServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The steps of one run.
pub(super) struct RunSteps {
    pub(super) journal: RunJournal,
    /// The names of the steps that are under way.
    active: Mutex<BTreeSet<String>>,
    /// Held while a question waits for its answer.
    pub(super) asking: tokio::sync::Mutex<()>,
    /// Read while a question is asked.
    pub(super) asks: RwLock<()>,
    /// True once the command has ended.
    pub(super) ending: watch::Sender<bool>,
    /// True if a question was not answered before its deadline.
    pub(super) not_answered: Arc<AtomicBool>,
}

/// Removes the name of a step that has ended.
struct ActiveStep<'a> {
    run: &'a RunSteps,
    name: &'a str,
}

impl Drop for ActiveStep<'_> {
    fn drop(&mut self) {
        self.run.active.lock().unwrap_or_else(PoisonError::into_inner).remove(self.name);
    }
}

/// The recorded output of a step.
#[derive(Debug, Default, Serialize, Deserialize)]
struct RecordedOutput {
    /// The output itself, in Base64, if it is small.
    #[serde(default)]
    data: String,
    /// The keys of its parts otherwise.
    #[serde(default)]
    parts: Vec<String>,
}

/// The reason why a step does not run.
pub(super) enum NotRun {
    /// It was done before, with this output.
    Done(Vec<u8>),
    Refused {
        why: String,
        hint: String,
    },
    /// The worker does not own the job any more.
    Gone,
}

impl From<StoreError> for NotRun {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::LeaseLost | StoreError::NotFound => Self::Gone,
            StoreError::TooManyBytes => Self::refused(
                "the job has no room for another step",
                "a run has room for 4,000 steps and 64 MiB",
            ),
            error => Self::refused(
                &format!("the step cannot be recorded: {error}"),
                "the log of the worker has the details",
            ),
        }
    }
}

impl NotRun {
    fn refused(why: &str, hint: &str) -> Self {
        Self::Refused { why: why.to_owned(), hint: hint.to_owned() }
    }
}

impl RunSteps {
    async fn serve(&self, stream: UnixStream) {
        if let Err(error) = self.serve_step(BufReader::new(stream)).await {
            // The step was killed, or its command was. Its end stays unknown.
            tracing::debug!(%error, "a step has left");
        }
    }

    async fn serve_step(&self, mut stream: BufReader<UnixStream>) -> io::Result<()> {
        let (request, question) = match read_message(&mut stream).await? {
            FirstMessage::Step(request) => (request, None),
            FirstMessage::Ask(question) => (question.step(), Some(question)),
        };
        let name = request.name.as_str();
        let is_free = {
            let mut active = self.active.lock().unwrap_or_else(PoisonError::into_inner);
            active.insert(name.to_owned())
        };
        if !is_free {
            let why = format!("another step with the name `{name}` is running");
            let hint = "give each step of a command its own name".to_owned();
            return write_message(&mut stream, &StepReply::Refused { why, hint }, b"").await;
        }
        let _active = ActiveStep { run: self, name };
        let key = match self.begin(&request).await {
            Ok(key) => key,
            Err(why) => return reply(&mut stream, why).await,
        };
        if let Some(question) = question {
            return self.ask(&mut stream, &question, &key).await;
        }
        write_message(&mut stream, &StepReply::Run, b"").await?;
        let outcome: StepOutcome = read_message(&mut stream).await?;
        let output = read_bytes(&mut stream, outcome.bytes).await?;
        match self.end(&key, outcome.code, &output).await {
            Ok(()) => write_message(&mut stream, &StepReply::Recorded, b"").await,
            Err(error) => reply(&mut stream, error.into()).await,
        }
    }

    /// Records that a step is about to run, and returns its key.
    async fn begin(&self, request: &StepRequest) -> Result<String, NotRun> {
        let StepRequest { name, digest, rerun } = request;
        let Some(input_digest) = parse_digest(digest).filter(|_| is_step_name(name)) else {
            return Err(NotRun::refused("the step cannot be read", "use `outlast step`"));
        };
        for nth in 1..=MAX_TRIES {
            let key = match nth {
                1 => name.clone(),
                nth => format!("{name}{TRY_SEPARATOR}{nth}"),
            };
            let step = NewStep {
                key,
                kind: STEP_KIND.to_owned(),
                input_digest,
                bound: NanoUsd(0),
                resend: if *rerun { Resend::Allow } else { Resend::Refuse },
                max_bytes: self.journal.max_bytes(),
            };
            match self.begin_certainly(step.clone()).await? {
                StepStart::New => return Ok(step.key),
                StepStart::Done(output) => return Err(self.recorded(&output).await?),
                StepStart::Failed(_) => {}
                StepStart::Open { .. } => {
                    return Err(NotRun::refused(
                        &format!(
                            "the step `{name}` was interrupted, and it is not known how far it came"
                        ),
                        &format!(
                            "when the job has ended, `outlast step resolve {job} {name} --done` or `--rerun` \
                             decides; a step that may run twice has `--rerun` in the script",
                            job = self.journal.job()
                        ),
                    ));
                }
                StepStart::Changed => {
                    return Err(NotRun::refused(
                        &format!("the step `{name}` was recorded with another command"),
                        "give it another name, or --input with what its result depends on",
                    ));
                }
            }
        }
        let why = format!("the step `{name}` has failed {MAX_TRIES} times");
        Err(NotRun::refused(&why, "start a new job"))
    }

    /// Begins a step, again and again while the store cannot be reached. The run ends with its lease.
    async fn begin_certainly(&self, mut step: NewStep) -> Result<StepStart, StoreError> {
        loop {
            match self.journal.begin_step(&step).await {
                Err(StoreError::Unconfirmed(_)) => {
                    // It may be recorded as open by this very call, and has certainly not run.
                    step.resend = Resend::Allow;
                }
                Err(StoreError::Unavailable(_)) => {}
                answer => return answer,
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Records the end of a step.
    pub(super) async fn end(&self, key: &str, code: i32, output: &[u8]) -> Result<(), StoreError> {
        if code != 0 {
            let why = format!("exit code {code}");
            return self.end_certainly(key, StepResult::Failed(why)).await;
        }
        let mut recorded = RecordedOutput::default();
        if output.len() <= PART_BYTES {
            recorded.data = STANDARD.encode(output);
        } else {
            let nonce = uuid::Uuid::new_v4().simple();
            for (nth, part) in output.chunks(PART_BYTES).enumerate() {
                let part_key = format!("{key}{TRY_SEPARATOR}{nonce}.{nth}");
                self.begin_certainly(part_step(part_key.clone())).await?;
                self.end_certainly(&part_key, StepResult::Done(STANDARD.encode(part))).await?;
                recorded.parts.push(part_key);
            }
        }
        let recorded = serde_json::to_string(&recorded).unwrap_or_default();
        self.end_certainly(key, StepResult::Done(recorded)).await
    }

    async fn end_certainly(&self, key: &str, result: StepResult) -> Result<(), StoreError> {
        let end = StepEnd::free(result);
        loop {
            match self.journal.end_step(key, &end).await {
                Err(StoreError::Unconfirmed(_) | StoreError::Unavailable(_)) => {}
                answer => return answer,
            }
            tokio::time::sleep(STORE_PAUSE).await;
        }
    }

    /// Reads a recorded output.
    async fn recorded(&self, text: &str) -> Result<NotRun, NotRun> {
        let damaged = || NotRun::refused("the recorded output cannot be read", "start a new job");
        // A step that a person has declared done has no output.
        if text.is_empty() {
            return Ok(NotRun::Done(Vec::new()));
        }
        let output: RecordedOutput = serde_json::from_str(text).map_err(|_| damaged())?;
        let mut bytes = STANDARD.decode(&output.data).map_err(|_| damaged())?;
        for key in output.parts {
            match self.begin_certainly(part_step(key)).await? {
                StepStart::Done(part) => {
                    bytes.extend(STANDARD.decode(part).map_err(|_| damaged())?);
                }
                _ => return Err(damaged()),
            }
        }
        Ok(NotRun::Done(bytes))
    }
}

/// Returns the step that records a part of an output, whatever room there is.
fn part_step(key: String) -> NewStep {
    NewStep {
        key,
        kind: PART_KIND.to_owned(),
        input_digest: [0; 32],
        bound: NanoUsd(0),
        resend: Resend::Refuse,
        max_bytes: u64::MAX,
    }
}

pub(super) async fn reply(stream: &mut BufReader<UnixStream>, why: NotRun) -> io::Result<()> {
    match why {
        NotRun::Done(output) => {
            write_message(stream, &StepReply::Done { bytes: output.len() }, &output).await
        }
        NotRun::Refused { why, hint } => {
            write_message(stream, &StepReply::Refused { why, hint }, b"").await
        }
        NotRun::Gone => write_message(stream, &StepReply::Gone, b"").await,
    }
}

fn parse_digest(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(digest)
}

/// Returns the name and the number of the try of a key; `None` for a part of an output.
pub fn step_of_key(key: &str) -> Option<(&str, u32)> {
    match key.split_once(TRY_SEPARATOR) {
        None => Some((key, 1)),
        Some((name, nth)) => Some((name, nth.parse().ok()?)),
    }
}
