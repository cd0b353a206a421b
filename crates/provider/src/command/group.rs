//! The process group of a command: its name in a checkpoint, and its end.

use std::fmt;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, sleep};

/// The interval for polling whether a process that is not our child has ended; there is no notification.
pub(super) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A process group that was led by this process, which was started then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Group {
    pub(super) leader: Pid,
    /// In ticks since the machine was started; zero if the system does not report it.
    pub(super) started: u64,
    /// The machine; `None` in the name of a group from before machines were recorded.
    pub(super) home: Option<Home>,
}

/// A machine, or a container with its own processes, and its boot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Home {
    host: u32,
    boot: u32,
}

impl Home {
    /// The machine of this process.
    pub(super) fn here() -> Self {
        static HERE: OnceLock<Home> = OnceLock::new();
        *HERE.get_or_init(|| {
            let boot = short_hash(&outlast_platform::boot_id());
            Self { host: short_hash(crate::host_name().as_bytes()), boot }
        })
    }
}

fn short_hash(bytes: &[u8]) -> u32 {
    let hash = Sha256::digest(bytes);
    u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]])
}

impl Group {
    /// The group of a child that was made its leader.
    pub(crate) fn find_group(pid: u32) -> io::Result<Self> {
        let leader = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let leader = leader.ok_or_else(|| io::Error::other("a child has no process id"))?;
        Ok(Self { leader, started: start_time(leader).unwrap_or(0), home: Some(Home::here()) })
    }

    /// Returns true if this process leads it, or led it.
    pub(crate) fn is_led_by(&self, pid: u32) -> bool {
        self.leader.as_raw_nonzero().get().unsigned_abs() == pid
    }

    /// The key a run was begun under and the group it ran as, from the run's id; from a plain key, the key alone.
    pub(super) fn split(id: &str) -> (&str, Option<Self>) {
        let Some((key, group)) = id.split_once("-group.") else { return (id, None) };
        (key, Self::parse(group))
    }

    /// Reads what [`fmt::Display`] writes.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('.');
        let leader = Pid::from_raw(parts.next()?.parse().ok()?)?;
        let started = parts.next()?.parse().ok()?;
        let home = match (parts.next(), parts.next()) {
            (Some(host), Some(boot)) => {
                let number = |text| u32::from_str_radix(text, 16).ok();
                Some(Home { host: number(host)?, boot: number(boot)? })
            }
            _ => None,
        };
        Some(Self { leader, started, home })
    }

    /// The id of a run begun under this key.
    pub(super) fn id(&self, key: &str) -> String {
        format!("{key}-group.{self}")
    }

    /// Returns true if it belongs to another machine, where this process can see and end nothing.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.home.is_some_and(|home| home.host != Home::here().host)
    }

    /// Returns true if its leader is alive and no other process that got the same number since.
    pub(super) fn is_led(&self) -> bool {
        self.home.is_none_or(|home| home == Home::here())
            && self.started != 0
            && start_time(self.leader) == Some(self.started)
    }

    /// Returns true if any process has its leader's number.
    pub(super) fn has_a_leader(&self) -> bool {
        rustix::process::test_kill_process(self.leader) != Err(Errno::SRCH)
    }

    /// Returns true if it has a process. Only for a group that is known to be ours: numbers are used again.
    pub(super) fn has_members(&self) -> bool {
        !matches!(test_kill_process_group(self.leader), Err(Errno::SRCH))
    }

    /// Sends a signal to every process in it. An empty group is not an error.
    pub(super) fn signal(&self, signal: Signal) {
        match kill_process_group(self.leader, signal) {
            Ok(()) | Err(Errno::SRCH) => {}
            Err(error) => {
                tracing::warn!(group = %self, %error, "failed to signal the process group of a command");
            }
        }
    }

    /// Waits until it is empty, at most this long; whether it is.
    pub(super) async fn wait_until_empty(&self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while self.has_members() {
            if Instant::now() >= end {
                return false;
            }
            sleep(LOOK_EVERY).await;
        }
        true
    }

    /// Sends SIGTERM to the group, and SIGKILL after `grace`. Leaves a group alone whose number was used again.
    pub(crate) async fn end(&self, grace: Duration) {
        if self.is_led() {
            self.end_own(grace).await;
        }
    }

    /// The same for a group that is known to be ours.
    pub(super) async fn end_own(&self, grace: Duration) {
        self.signal(Signal::TERM);
        if !self.wait_until_empty(grace).await {
            self.signal(Signal::KILL);
        }
    }
}

impl fmt::Display for Group {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.leader.as_raw_nonzero(), self.started)?;
        match self.home {
            Some(Home { host, boot }) => write!(f, ".{host:08x}.{boot:08x}"),
            None => Ok(()),
        }
    }
}

/// The start of a process, in ticks since the boot; `None` if there is no such process, or it cannot be known.
fn start_time(pid: Pid) -> Option<u64> {
    outlast_platform::process_start(pid.as_raw_nonzero().get())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_keeps_its_name_in_the_id_of_its_run() {
        let leader = Pid::from_raw(4711).unwrap();
        for home in [None, Some(Home { host: 7, boot: u32::MAX })] {
            let group = Group { leader, started: 99, home };
            let id = group.id("00000000000000000000000000000007-0");
            assert_eq!(Group::split(&id), ("00000000000000000000000000000007-0", Some(group)));
        }
        assert_eq!(Group::split("plain-0"), ("plain-0", None));
        assert_eq!(Group::split("k-group.x.y"), ("k", None));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_number_that_was_used_again_is_another_group() {
        let me = Group::find_group(std::process::id()).unwrap();
        assert!(me.started > 0 && me.is_led());
        assert!(!Group { started: me.started + 1, ..me }.is_led());
        assert!(!Group { leader: Pid::from_raw(i32::MAX).unwrap(), ..me }.is_led());
        let here = Home::here();
        let (other_host, other_boot) =
            (Home { host: !here.host, ..here }, Home { boot: !here.boot, ..here });
        for (home, is_led, is_elsewhere) in
            [(here, true, false), (other_host, false, true), (other_boot, false, false)]
        {
            let group = Group { home: Some(home), ..me };
            assert_eq!((group.is_led(), group.is_elsewhere()), (is_led, is_elsewhere));
        }
    }
}
