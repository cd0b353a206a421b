//! The guard: our small process that holds the other end of a pipe. When the pipe closes, because we ended or were
//! killed, it ends every command that still runs. One guard watches over all commands of a process.
//!
//! A command runs only once the guard knows of it: until then it is a launcher that waits for its message.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::{self, BufRead, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Signal;

use super::EXIT_GRACE;
use super::group::{Group, LOOK_EVERY};

/// Ends the commands of this process when the process cannot.
pub struct Guard {
    program: PathBuf,
    arguments: Vec<OsString>,
    state: Mutex<GuardState>,
}

#[derive(Default)]
struct GuardState {
    child: Option<Child>,
    watched: HashSet<Group>,
}

impl Guard {
    /// A guard that is started, when there is something to watch, as this program with these arguments; it must call
    /// [`keep_watch`].
    pub fn new(program: PathBuf, arguments: Vec<OsString>) -> Self {
        Self { program, arguments, state: Mutex::default() }
    }

    /// Starts it if it does not run.
    pub(crate) fn ready(&self) -> io::Result<()> {
        let mut state = self.state();
        let runs = match &mut state.child {
            Some(child) => child.try_wait()?.is_none(),
            None => false,
        };
        if runs { Ok(()) } else { self.start(&mut state) }
    }

    /// Makes it watch a group.
    pub(crate) fn watch(&self, group: Group) -> io::Result<()> {
        let mut state = self.state();
        state.watched.insert(group);
        if tell(&mut state, &format!("+{group}\n")).is_err() {
            // The guard was ended from outside. A new one is sent all groups.
            self.start(&mut state)?;
        }
        Ok(())
    }

    /// Makes it watch the group that this child leads.
    pub fn watch_leader(&self, pid: u32) -> io::Result<()> {
        self.watch(Group::find_group(pid)?)
    }

    /// Makes it forget the group of a leader that is gone.
    pub fn release_leader(&self, pid: u32) {
        let found = self.state().watched.iter().find(|group| group.is_led_by(pid)).copied();
        if let Some(group) = found {
            self.release(&group);
        }
    }

    /// Makes it forget a group that is gone.
    pub(crate) fn release(&self, group: &Group) {
        let mut state = self.state();
        state.watched.remove(group);
        if tell(&mut state, &format!("-{group}\n")).is_err() {
            tracing::debug!(%group, "lost the guard; starting a new one with the next command");
        }
    }

    /// Returns true if it watches this group, which then belongs to a run of this process.
    pub(super) fn watches(&self, group: &Group) -> bool {
        self.state().watched.contains(group)
    }

    fn start(&self, state: &mut GuardState) -> io::Result<()> {
        if let Some(mut gone) = state.child.take() {
            // Reaped, so that no zombie is left of it.
            drop(gone.kill());
            drop(gone.wait());
            tracing::warn!("the guard over commands has exited; starting a new one");
        }
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .arg0("outlast")
            .env_clear()
            // Out of reach of a Ctrl-C in our terminal.
            .process_group(0)
            .stdin(Stdio::piped())
            // A reader of our output must not wait for the guard's.
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        state.child = Some(child);
        let all: String = state.watched.iter().map(|group| format!("+{group}\n")).collect();
        tell(state, &all)
    }

    fn state(&self) -> MutexGuard<'_, GuardState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A few bytes into a pipe that is read at once: it does not block.
fn tell(state: &mut GuardState, line: &str) -> io::Result<()> {
    let pipe = state.child.as_mut().and_then(|child| child.stdin.as_mut());
    pipe.ok_or(io::ErrorKind::BrokenPipe)?.write_all(line.as_bytes())
}

/// The guard itself: reads what to watch over until the other end closes, then ends what is left of it.
pub fn keep_watch(input: impl BufRead) {
    let mut watched = HashSet::new();
    for line in input.lines() {
        // A line that cannot be read is the end as well.
        let Ok(line) = line else { break };
        match (line.split_at_checked(1), line.get(1..).and_then(Group::parse)) {
            (Some(("+", _)), Some(group)) => drop(watched.insert(group)),
            (Some(("-", _)), Some(group)) => drop(watched.remove(&group)),
            _ => {}
        }
    }
    let mut left: Vec<Group> = watched.into_iter().filter(is_ours).collect();
    for group in &left {
        group.signal(Signal::TERM);
    }
    let looks = EXIT_GRACE.as_millis() / LOOK_EVERY.as_millis();
    for _ in 0..looks {
        left.retain(|group| group.has_members());
        if left.is_empty() {
            return;
        }
        wait_a_little();
    }
    for group in &left {
        group.signal(Signal::KILL);
    }
}

/// Not a number that was used again: its leader is the one that was reported, or is gone while other members are running.
fn is_ours(group: &Group) -> bool {
    group.is_led() || !group.has_a_leader()
}

#[expect(
    clippy::disallowed_methods,
    reason = "nothing reports the end of a process that is not our child"
)]
fn wait_a_little() {
    std::thread::sleep(LOOK_EVERY);
}
