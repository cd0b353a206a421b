//! The latest commits of this process. Its own changes need not be read again, so a wake-up costs no read unless another
//! process has written in between.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use outlast_core::{Change, Changes, Rev, Timestamp};
use tokio::sync::watch;
use tokio::time::Instant;

/// The number of commits to remember. A reader that is further behind must read the database.
const REMEMBERED: usize = 64;

/// Commits in order.
pub(super) struct OwnCommits {
    log: Mutex<Log>,
    /// Receives the number of each commit.
    told: watch::Sender<Rev>,
}

#[derive(Default)]
struct Log {
    commits: VecDeque<OwnCommit>,
    /// The latest change as last observed, and the time of that observation.
    known: Option<(Rev, Instant)>,
}

/// The changes of one commit.
pub(super) struct OwnCommit {
    pub(super) rev: Rev,
    pub(super) changes: Vec<Change>,
    pub(super) next_due: Option<Timestamp>,
}

impl OwnCommits {
    pub(super) fn new() -> Self {
        Self { log: Mutex::default(), told: watch::Sender::new(Rev::default()) }
    }

    /// Remembers a commit and wakes the tasks that wait for one.
    pub(super) fn add(&self, commit: OwnCommit) {
        let rev = commit.rev;
        {
            let mut log = self.log();
            log.known = Some((rev, Instant::now()));
            log.commits.push_back(commit);
            if log.commits.len() > REMEMBERED {
                log.commits.pop_front();
            }
        }
        self.told.send_replace(rev);
    }

    /// Returns a receiver for all commits from now on.
    pub(super) fn follow(&self) -> watch::Receiver<Rev> {
        self.told.subscribe()
    }

    /// Records that this was the latest change at this time.
    pub(super) fn saw(&self, rev: Rev, at: Instant) {
        let mut log = self.log();
        if log.known.is_none_or(|(_, before)| before < at) {
            log.known = Some((rev, at));
        }
    }

    /// Returns the latest time at which there was no change after this number, as far as is known. Returns `None` if a later
    /// change is known.
    pub(super) fn unchanged_at(&self, after: Rev) -> Option<Instant> {
        self.log().known.filter(|(rev, _)| *rev <= after).map(|(_, at)| at)
    }

    /// Returns the changes after this number, if all of them are from this process.
    pub(super) fn after(&self, after: Rev) -> Option<Changes> {
        let log = self.log();
        let commits: Vec<&OwnCommit> =
            log.commits.iter().filter(|commit| commit.rev > after).collect();
        let without_gap =
            (1..).zip(&commits).all(|(number, commit)| commit.rev.0 == after.0 + number);
        let last = commits.last().filter(|_| without_gap)?;
        // Each job once, at its latest change.
        let mut seen = HashSet::new();
        let latest = commits.iter().rev().flat_map(|commit| commit.changes.iter().rev());
        let mut jobs: Vec<Change> =
            latest.filter(|change| seen.insert(change.id)).copied().collect();
        jobs.reverse();
        Some(Changes { rev: last.rev, jobs, next_due: last.next_due })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use outlast_core::{HeldCallState, JobId, StateKind};
    use uuid::Uuid;

    use super::*;

    fn change(id: u128, state: StateKind) -> Change {
        Change {
            id: JobId::new(Uuid::from_u128(id)),
            state,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false,
        }
    }

    fn commit(rev: u64, changes: &[Change]) -> OwnCommit {
        OwnCommit { rev: Rev(rev), changes: changes.to_vec(), next_due: None }
    }

    #[test]
    fn what_lies_between_own_commits_must_be_read() {
        let commits = OwnCommits::new();
        assert_eq!(commits.after(Rev(0)), None);
        let (one, two) = (change(1, StateKind::Queued), change(2, StateKind::Queued));
        commits.add(commit(4, &[one, two]));
        let ended = change(1, StateKind::Succeeded);
        commits.add(commit(5, &[ended]));
        let jobs = |after| commits.after(Rev(after)).map(|changes| changes.jobs);
        assert_eq!(jobs(3), Some(vec![two, ended]), "each once, where it changed last");
        assert_eq!(jobs(4), Some(vec![ended]));
        assert_eq!(jobs(5), None, "nothing after it");
        assert_eq!(jobs(2), None, "another process's commit has number 3");
        commits.add(commit(7, &[two]));
        assert_eq!(jobs(4), None, "and one has number 6");
        assert_eq!(jobs(6), Some(vec![two]));
    }

    #[test]
    fn what_was_seen_last_counts() {
        let commits = OwnCommits::new();
        assert_eq!(commits.unchanged_at(Rev(9)), None);
        let now = Instant::now();
        commits.saw(Rev(9), now);
        assert_eq!((commits.unchanged_at(Rev(9)), commits.unchanged_at(Rev(8))), (Some(now), None));
        commits.add(commit(10, &[]));
        assert_eq!(commits.unchanged_at(Rev(9)), None);
        commits.saw(Rev(9), now);
        assert_eq!(commits.unchanged_at(Rev(9)), None, "an older look says nothing");
        let later = Instant::now() + Duration::from_secs(1);
        commits.saw(Rev(12), later);
        assert_eq!(commits.unchanged_at(Rev(12)), Some(later));
    }

    #[test]
    fn only_the_latest_are_remembered() {
        let commits = OwnCommits::new();
        for rev in 1..=REMEMBERED as u64 + 1 {
            commits.add(commit(rev, &[change(1, StateKind::Running)]));
        }
        assert_eq!(commits.after(Rev(0)), None);
        assert_eq!(commits.after(Rev(1)).unwrap().rev, Rev(REMEMBERED as u64 + 1));
    }
}
