//! Runs one conversion: a child process with limits on output, time and concurrency, whose process group ends
//! with it.

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, kill_process_group, waitid,
};
use tokio::time::Instant;

use super::{ConvertError, ConvertLimits};
use crate::reporter::{Reporter, ReporterGone};
use crate::skip::Skip;

/// The maximum number of concurrent conversions in this process.
const AT_ONCE: usize = 2;
/// The interval at which a conversion checks whether the run was cancelled.
const LOOK: Duration = Duration::from_millis(50);
/// The maximum length of standard error that is kept.
const MAX_STDERR: usize = 4 << 10;

/// The result of a conversion.
pub(super) struct ConversionEnd {
    /// `None` if a signal ended it.
    pub(super) code: Option<i32>,
    pub(super) text: String,
    pub(super) stderr: String,
}

/// Runs a converter, whose standard input is already set, until it exits.
pub(super) fn run_child(
    command: &mut Command,
    limits: &ConvertLimits,
    reporter: &Reporter,
) -> Result<ConversionEnd, ConvertError> {
    let _slot = Slot::take(reporter)?;
    let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut group = match command.process_group(0).spawn() {
        Ok(child) => ConverterGroup { leader: Pid::from_child(&child), child },
        Err(error) => {
            tracing::warn!(%error, "failed to start a converter");
            return Err(ConvertError::NotStarted);
        }
    };
    let (mut text, mut stderr) = (Vec::new(), Vec::new());
    let mut stdout_pipe = group.child.stdout.take();
    let mut stderr_pipe = group.child.stderr.take();
    let deadline = Instant::now() + limits.time;
    loop {
        reporter.check()?;
        if Instant::now() >= deadline {
            return Err(ConvertError::LeftOut(Skip::TooSlow));
        }
        let ended = group.exit_status();
        if ended.is_some() {
            // Processes that the converter left behind must not go on writing.
            group.kill();
        }
        let wait = if ended.is_some() { Duration::ZERO } else { LOOK };
        let [text_ready, stderr_ready] = ready(stdout_pipe.as_ref(), stderr_pipe.as_ref(), wait);
        if text_ready && !read_some(&mut stdout_pipe, &mut text) {
            stdout_pipe = None;
        }
        if stderr_ready && !read_some(&mut stderr_pipe, &mut stderr) {
            stderr_pipe = None;
        }
        stderr.truncate(MAX_STDERR);
        if text.len() > limits.text {
            return Err(ConvertError::LeftOut(Skip::TooMuchText));
        }
        if let Some(status) = ended.filter(|_| !text_ready && !stderr_ready) {
            if status.terminating_signal() == Some(Signal::XCPU.as_raw()) {
                return Err(ConvertError::LeftOut(Skip::TooSlow));
            }
            let text = String::from_utf8_lossy(&text).into_owned();
            let stderr = String::from_utf8_lossy(&stderr).into_owned();
            return Ok(ConversionEnd { code: status.exit_status(), text, stderr });
        }
    }
}

/// Waits at most this long and returns which of the two pipes can be read without blocking.
fn ready(stdout: Option<&impl AsFd>, stderr: Option<&impl AsFd>, wait: Duration) -> [bool; 2] {
    let pipes = [stdout.map(AsFd::as_fd), stderr.map(AsFd::as_fd)];
    let mut polled: Vec<_> =
        pipes.iter().flatten().map(|pipe| PollFd::from_borrowed_fd(*pipe, PollFlags::IN)).collect();
    let wait = Timespec { tv_sec: 0, tv_nsec: i64::from(wait.subsec_nanos()) };
    // An interrupted call reports nothing; the caller tries again.
    let found = poll(&mut polled, Some(&wait)).unwrap_or(0) > 0;
    let mut events = polled.iter().map(|pipe| found && !pipe.revents().is_empty());
    pipes.map(|pipe| pipe.is_some() && events.next().unwrap_or(false))
}

/// Reads the available bytes; returns false at the end of the pipe.
fn read_some(pipe: &mut Option<impl Read>, into: &mut Vec<u8>) -> bool {
    let mut piece = [0; 64 << 10];
    let Some(Ok(length)) = pipe.as_mut().map(|pipe| pipe.read(&mut piece)) else { return false };
    into.extend_from_slice(&piece[..length]);
    length > 0
}

/// A child that leads a process group. No process of the group outlives this value.
struct ConverterGroup {
    child: Child,
    leader: Pid,
}

impl ConverterGroup {
    /// Returns the exit status of the child if it has exited. The child is reaped only on drop; until then its
    /// process id cannot be reused.
    fn exit_status(&self) -> Option<WaitIdStatus> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.leader), options).ok().flatten()
    }

    fn kill(&self) {
        // The group may be empty already.
        let _ = kill_process_group(self.leader, Signal::KILL);
    }
}

impl Drop for ConverterGroup {
    fn drop(&mut self) {
        self.kill();
        drop(self.child.wait());
    }
}

/// A permit for one of the [`AT_ONCE`] conversions.
struct Slot;

static TAKEN: Mutex<usize> = Mutex::new(0);
static GIVEN_BACK: Condvar = Condvar::new();

impl Slot {
    fn take(reporter: &Reporter) -> Result<Self, ReporterGone> {
        let mut taken = Self::lock_slots();
        while *taken >= AT_ONCE {
            reporter.check()?;
            let waited = GIVEN_BACK.wait_timeout(taken, LOOK);
            taken = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        *taken += 1;
        Ok(Self)
    }

    fn lock_slots() -> MutexGuard<'static, usize> {
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        *Self::lock_slots() -= 1;
        GIVEN_BACK.notify_one();
    }
}
