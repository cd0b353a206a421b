//! The follower's pending work, and the revision up to which it is done. Does no I/O. Nothing is removed before
//! it is done, so a follower may be dropped at any point.

use std::collections::HashMap;
use std::time::Duration;

use outlast_core::{Change, Changes, ConversationId, JobId, Rev, StateKind};
use tokio::time::Instant;

/// The minimum time between two writes of progress within a state.
const PROGRESS_EVERY: Duration = Duration::from_secs(1);
/// The delay after a first failure; it doubles.
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The maximum delay after a failure, short enough to notice soon that disk space was freed.
const MAX_RETRY: Duration = Duration::from_secs(16);
/// The number of jobs whose conversations are cached, so that a percent of progress does not cost a read.
const MAX_REMEMBERED: usize = 10_000;

/// The pending work.
#[derive(Debug, Default)]
pub(crate) struct Backlog {
    /// Every change up to this revision has been added; the next read of changes starts here.
    pub(crate) rev: Rev,
    /// Changed jobs whose conversation is not known yet, each with a revision before the change.
    unsorted: Vec<(Change, Rev)>,
    /// Conversations to be written.
    waiting: HashMap<ConversationId, WaitingConversation>,
    /// Unfinished conversations that were written, with their state and the time.
    written: HashMap<ConversationId, (StateKind, Instant)>,
    /// The conversations of unfinished jobs.
    known: HashMap<JobId, Option<ConversationId>>,
}

#[derive(Debug)]
struct WaitingConversation {
    /// A revision before its first unwritten change.
    since: Rev,
    due: Instant,
    state: StateKind,
    failures: u32,
}

impl Backlog {
    /// Creates a backlog with nothing to do before `rev`.
    pub(crate) fn new(rev: Rev) -> Self {
        Self { rev, ..Self::default() }
    }

    /// Adds changes.
    pub(crate) fn add(&mut self, changes: &Changes) {
        let since = self.rev;
        self.unsorted.extend(changes.jobs.iter().map(|change| (*change, since)));
        self.rev = changes.rev.max(self.rev);
    }

    /// Returns the next change to sort, newest first: after a long absence, current changes are not delayed.
    pub(crate) fn next_unsorted(&self) -> Option<Change> {
        self.unsorted.last().map(|(change, _)| *change)
    }

    /// Returns the conversation of a job that was sorted before; `None` if it was not.
    pub(crate) fn known_conversation(&self, id: &JobId) -> Option<Option<ConversationId>> {
        self.known.get(id).cloned()
    }

    /// Assigns the next change to its conversation.
    pub(crate) fn sort(&mut self, conversation: Option<ConversationId>, now: Instant) {
        let Some((change, since)) = self.unsorted.pop() else { return };
        if change.state.is_terminal() {
            self.known.remove(&change.id);
        } else if self.known.len() < MAX_REMEMBERED {
            self.known.insert(change.id, conversation.clone());
        }
        let Some(conversation) = conversation else { return };
        let due = match self.written.get(&conversation) {
            Some((state, at)) if *state == change.state => *at + PROGRESS_EVERY,
            Some(_) | None => now,
        };
        let waiting = self.waiting.entry(conversation).or_insert(WaitingConversation {
            since,
            due,
            state: change.state,
            failures: 0,
        });
        waiting.since = waiting.since.min(since);
        if waiting.failures == 0 {
            waiting.due = waiting.due.min(due);
        }
        waiting.state = change.state;
    }

    /// Returns up to `limit` conversations that are due at `at`; without a time, all of them are due.
    pub(crate) fn due(&self, at: Option<Instant>, limit: usize) -> Vec<ConversationId> {
        let is_due = |waiting: &WaitingConversation| at.is_none_or(|now| waiting.due <= now);
        let due = self.waiting.iter().filter(|(_, waiting)| is_due(waiting));
        due.take(limit).map(|(id, _)| id.clone()).collect()
    }

    /// Returns the time at which the next conversation is due.
    pub(crate) fn next_due(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.due).min()
    }

    /// Records that a conversation was written.
    pub(crate) fn record_written(&mut self, id: ConversationId, now: Instant) {
        // Conversations that were written longer ago do not have to wait.
        self.written.retain(|_, (_, at)| *at + PROGRESS_EVERY > now);
        match self.waiting.remove(&id) {
            Some(WaitingConversation { state, .. }) if !state.is_terminal() => {
                self.written.insert(id, (state, now));
            }
            Some(_) | None => drop(self.written.remove(&id)),
        }
    }

    /// Records that a conversation could not be written.
    pub(crate) fn record_failure(&mut self, id: &ConversationId, now: Instant) {
        let Some(waiting) = self.waiting.get_mut(id) else { return };
        let wait = FIRST_RETRY.saturating_mul(1 << waiting.failures.min(10)).min(MAX_RETRY);
        waiting.due = now + wait;
        waiting.failures = waiting.failures.saturating_add(1);
    }

    /// Returns the revision up to which everything is written.
    pub(crate) fn last_written(&self) -> Rev {
        let unsorted = self.unsorted.iter().map(|(_, since)| *since);
        let waiting = self.waiting.values().map(|waiting| waiting.since);
        unsorted.chain(waiting).min().unwrap_or(self.rev)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const ALL: usize = usize::MAX;

    fn change(state: StateKind) -> Change {
        Change {
            id: JobId::new(Uuid::from_u128(1)),
            state,
            uncarried: outlast_core::HeldCallState::NotWaiting,
            in_conversation: false,
        }
    }

    fn id() -> Option<ConversationId> {
        Some(ConversationId::new("conversation-1"))
    }

    fn sort(backlog: &mut Backlog, rev: u64, state: StateKind, now: Instant) {
        backlog.add(&Changes { rev: Rev(rev), jobs: vec![change(state)], next_due: None });
        backlog.sort(id(), now);
    }

    fn write(backlog: &mut Backlog, now: Instant) -> usize {
        let due = backlog.due(Some(now), ALL);
        let number = due.len();
        due.into_iter().for_each(|id| backlog.record_written(id, now));
        number
    }

    #[tokio::test(start_paused = true)]
    async fn progress_waits_a_second_and_a_new_state_does_not() {
        let (mut backlog, start) = (Backlog::new(Rev(0)), Instant::now());
        sort(&mut backlog, 1, StateKind::Running, start);
        assert_eq!(write(&mut backlog, start), 1);
        sort(&mut backlog, 2, StateKind::Running, start);
        assert_eq!(write(&mut backlog, start), 0, "a percent more");
        assert_eq!(backlog.next_due(), Some(start + PROGRESS_EVERY));
        assert_eq!(write(&mut backlog, start + PROGRESS_EVERY), 1);
        sort(&mut backlog, 3, StateKind::Running, start + PROGRESS_EVERY);
        sort(&mut backlog, 4, StateKind::Succeeded, start + PROGRESS_EVERY);
        assert_eq!(write(&mut backlog, start + PROGRESS_EVERY), 1, "its end");
        assert_eq!(backlog.next_due(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_cursor_stays_behind_unwritten_changes() {
        let (mut backlog, now) = (Backlog::new(Rev(5)), Instant::now());
        assert_eq!(backlog.last_written(), Rev(5));
        backlog.add(&Changes {
            rev: Rev(8),
            jobs: vec![change(StateKind::Queued)],
            next_due: None,
        });
        assert_eq!(backlog.last_written(), Rev(5), "unsorted");
        backlog.sort(id(), now);
        sort(&mut backlog, 9, StateKind::Running, now);
        assert_eq!(backlog.last_written(), Rev(5), "unwritten");
        let due = backlog.due(Some(now), ALL);
        assert_eq!(backlog.last_written(), Rev(5), "being written");
        backlog.record_failure(&due[0], now);
        assert_eq!(backlog.last_written(), Rev(5), "not writable");
        assert_eq!(backlog.due(Some(now), ALL).len(), 0, "it waits");
        assert_eq!(write(&mut backlog, now + FIRST_RETRY), 1);
        assert_eq!(backlog.last_written(), Rev(9));
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_does_not_shorten_the_wait_after_a_failure() {
        let (mut backlog, now) = (Backlog::new(Rev(0)), Instant::now());
        sort(&mut backlog, 1, StateKind::Queued, now);
        let due = backlog.due(Some(now), ALL);
        backlog.record_failure(&due[0], now);
        sort(&mut backlog, 2, StateKind::Running, now);
        assert_eq!(write(&mut backlog, now), 0);
        assert_eq!(backlog.due(None, ALL).len(), 1, "but a process that exits tries once more");
    }
}
