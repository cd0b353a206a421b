//! The child of tests with several processes: this test binary, started again as a server that starts and runs
//! conversations until it is killed.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Progress, Provider, ProviderError, RecoverySemantics, RemoteRun, Request,
    ResendPolicy, ResumePolicy, Run, Step, StopOutcome, Timestamp,
};
use outlast_engine::Options;
use outlast_testkit::scripted::{Scripted, report};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::bench::{MAX_WAIT, Process, ann, new_id, owner, turn};

const DIRECTORY: &str = "OUTLAST_TEST_MIRROR_DIRECTORY";
/// The number of concurrent conversations of one child.
const SIDE_BY_SIDE: usize = 4;

/// A process that starts conversations until it is killed.
pub(crate) struct Busy {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Busy {
    pub(crate) fn spawn(dir: &Path) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child::a_busy_process", "--ignored", "--nocapture"])
            .env(DIRECTORY, dir)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    /// Waits until one more turn was answered.
    pub(crate) async fn answered(&mut self) {
        let answered = async {
            while let Some(line) = self.lines.next_line().await.unwrap() {
                if line.contains("answered") {
                    return;
                }
            }
            panic!("the child ended: {:?}", self.child.wait().await);
        };
        tokio::time::timeout(MAX_WAIT, answered).await.expect("a turn is answered");
    }

    /// Sends SIGKILL; the process must still be running.
    pub(crate) async fn kill(mut self) {
        assert_eq!(self.child.try_wait().unwrap(), None, "it exited by itself");
        self.child.kill().await.unwrap();
    }
}

/// Not a test: the program of [`Busy`].
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "run by other tests, in a separate process"]
#[expect(clippy::disallowed_methods, reason = "the other test passes its directory this way")]
async fn a_busy_process() {
    let Some(dir) = std::env::var_os(DIRECTORY).map(PathBuf::from) else { return };
    let provider = Arc::new(Quick);
    let mut process =
        Process::open(&dir, ann(), Options::default(), provider, Scripted::paid()).await;
    process.follow();
    process.work();
    let process = Arc::new(process);
    let talks = (0..SIDE_BY_SIDE).map(|_| tokio::spawn(talk(Arc::clone(&process), dir.clone())));
    for talk in talks.collect::<Vec<_>>() {
        talk.await.unwrap();
    }
}

/// Asks, waits for the end, asks again in the same conversation, and begins another one.
#[expect(clippy::print_stdout, reason = "this is how it speaks to the other test")]
async fn talk(process: Arc<Process>, dir: PathBuf) {
    loop {
        let id = new_id();
        for question in ["one?", "two?", "three?"] {
            let job = process.start(turn(&id, question)).await;
            // C2 holds no matter which process follows.
            let folder = dir.join("conversation-logs").join(id.as_str());
            assert!(
                folder.join("conversation.json").exists() && folder.join("status.json").exists()
            );
            println!("answered {id}");
            let ended = process.engine.poll(&owner(), &job, MAX_WAIT).await.unwrap().unwrap();
            assert!(ended.job.state.kind().is_terminal());
        }
    }
}

/// A provider that makes progress every few milliseconds and then returns a long report.
struct Quick;

const PERCENTS: [u8; 4] = [30, 50, 70, 90];

#[async_trait]
impl Provider for Quick {
    fn name(&self) -> &'static str {
        "quick"
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: ResendPolicy::Idempotent,
            resume: ResumePolicy::Always,
            can_stop: false,
        }
    }

    async fn begin(&self, _request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let begun_at = Timestamp::from_millis(0);
        let remote =
            RemoteRun { provider: "quick".into(), id: key.to_owned(), cursor: None, begun_at };
        Ok(Box::new(QuickRun { remote, at: 0 }))
    }

    async fn resume(
        &self,
        _request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Ok(Box::new(QuickRun { remote: run.clone(), at: 0 }))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        Ok(StopOutcome::Unknown)
    }
}

struct QuickRun {
    remote: RemoteRun,
    at: usize,
}

#[async_trait]
impl Run for QuickRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        tokio::time::sleep(Duration::from_millis(fastrand::u64(1..10))).await;
        let Some(percent) = PERCENTS.get(self.at).copied() else {
            let output = Box::new(report(&"A long report. ".repeat(2_000)));
            return Ok(Step::Done { output, raw: None });
        };
        self.at += 1;
        Ok(Step::Progress(Progress { percent: Some(percent), message: "at it".to_owned() }))
    }
}
