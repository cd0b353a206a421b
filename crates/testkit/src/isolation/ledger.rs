//! The ids of each owner.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard};

use super::owners::NAMES;

/// Ids are drawn from the newest, so that unfinished jobs are among them.
const NEWEST: usize = 150;

/// The kind of object that an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Job,
    Conversation,
}

#[derive(Default)]
pub(super) struct Ledger(Mutex<Entries>);

#[derive(Default)]
struct Entries {
    /// Every id that an owner received, with the first owner who received it.
    told: HashMap<String, usize>,
    own: [Own; NAMES.len()],
    /// Jobs that other owners tried to end.
    attacked: HashSet<String>,
}

#[derive(Default)]
struct Own {
    jobs: Vec<String>,
    conversations: Vec<String>,
    /// Each with the index of the server that has it.
    sessions: Vec<(usize, String)>,
    /// Jobs that their owner may have ended.
    cancelled: HashSet<String>,
}

impl Ledger {
    /// Records that an owner received an id; returns the name of another owner who received the same id.
    pub(super) fn record(&self, owner: usize, id: &str) -> Option<&'static str> {
        let first = *self.open().told.entry(id.to_owned()).or_insert(owner);
        (first != owner).then(|| NAMES[first])
    }

    pub(super) fn ids(&self) -> usize {
        self.open().told.len()
    }

    pub(super) fn add(&self, owner: usize, kind: Kind, id: &str) {
        self.open().own[owner].of(kind).push(id.to_owned());
    }

    /// Draws one of an owner's ids.
    pub(super) fn some(
        &self,
        owner: usize,
        kind: Kind,
        random: &mut fastrand::Rng,
    ) -> Option<String> {
        let mut entries = self.open();
        let all = entries.own[owner].of(kind);
        random.choice(&all[all.len().saturating_sub(NEWEST)..]).cloned()
    }

    pub(super) fn will_cancel(&self, owner: usize, id: &str) {
        self.open().own[owner].cancelled.insert(id.to_owned());
    }

    pub(super) fn may_be_cancelled(&self, owner: usize, id: &str) -> bool {
        self.open().own[owner].cancelled.contains(id)
    }

    /// Records that another owner attacks a job.
    pub(super) fn attack(&self, id: &str) {
        self.open().attacked.insert(id.to_owned());
    }

    /// Returns the attacked jobs with their owners.
    pub(super) fn attacked(&self) -> Vec<(usize, String)> {
        let entries = self.open();
        let owned = |id: &String| Some((*entries.told.get(id)?, id.clone()));
        entries.attacked.iter().filter_map(owned).collect()
    }

    pub(super) fn add_session(&self, owner: usize, door: usize, id: &str) {
        self.open().own[owner].sessions.push((door, id.to_owned()));
    }

    pub(super) fn end_session(&self, owner: usize, id: &str) {
        self.open().own[owner].sessions.retain(|(_, session)| session != id);
    }

    /// Draws one of an owner's sessions at a server.
    pub(super) fn some_session(
        &self,
        owner: usize,
        door: usize,
        random: &mut fastrand::Rng,
    ) -> Option<String> {
        let entries = self.open();
        let here = entries.own[owner].sessions.iter().filter(|(at, _)| *at == door);
        random.choice(here.collect::<Vec<_>>()).map(|(_, id)| id.clone())
    }

    fn open(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap()
    }
}

impl Own {
    fn of(&mut self, kind: Kind) -> &mut Vec<String> {
        match kind {
            Kind::Job => &mut self.jobs,
            Kind::Conversation => &mut self.conversations,
        }
    }
}
