//! The requests to the scripted model, search and web, counted by body, so that a test can prove that nothing was
//! bought twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use serde_json::Value;

use crate::ids::fnv1a64;

/// Prompts that are kept for tests.
const KEPT_PROMPTS: usize = 500;

/// The counts since the start or the last reset.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Calls {
    /// Requests by lane, which is the part of an address that selects its faults.
    pub lanes: BTreeMap<String, Lane>,
    /// Requests by page address.
    pub pages: BTreeMap<String, u64>,
    /// Requested addresses that no search had returned, except `robots.txt`.
    pub strays: BTreeSet<String>,
    /// Addresses that searches have returned, with the targets of their redirects.
    #[serde(skip)]
    offered: BTreeSet<String>,
}

/// The requests of one lane.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Lane {
    /// Requests to the model, by digest of the body.
    pub model: BTreeMap<String, RequestCount>,
    /// Searches, by digest of page number and query.
    pub search: BTreeMap<String, RequestCount>,
    /// The most requests to the model at the same time.
    pub most_at_once: u64,
    /// The longest prompt in tokens.
    pub longest_prompt: u64,
    /// Prompts that exceeded the window.
    pub over_window: u64,
    #[serde(skip)]
    at_once: u64,
}

/// The requests with one body.
#[derive(Clone, Copy, Debug, Default, Serialize, PartialEq, Eq)]
pub struct RequestCount {
    /// Requests received.
    pub requests: u64,
    /// Requests answered successfully; each one is money spent, even if the answer was lost.
    pub answers: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    Model,
    Search,
}

#[derive(Default)]
pub(crate) struct CallCounts {
    calls: Mutex<Calls>,
    prompts: Mutex<VecDeque<Value>>,
}

impl Lane {
    /// Returns the number of answers that were given to a body that had one already.
    #[must_use]
    pub fn bought_again(&self) -> u64 {
        let all = self.model.values().chain(self.search.values());
        all.map(|asked| asked.answers.saturating_sub(1)).sum()
    }

    fn kind(&mut self, kind: Kind) -> &mut BTreeMap<String, RequestCount> {
        match kind {
            Kind::Model => &mut self.model,
            Kind::Search => &mut self.search,
        }
    }
}

impl CallCounts {
    pub(crate) fn snapshot(&self) -> Calls {
        self.lock().clone()
    }

    pub(crate) fn clear(&self) {
        *self.lock() = Calls::default();
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Counts a request and returns how many with this body came before.
    pub(crate) fn count_request(&self, lane: &str, kind: Kind, body: &[u8]) -> u64 {
        let mut calls = self.lock();
        let asked = calls.lane(lane).kind(kind).entry(digest(body)).or_default();
        asked.requests += 1;
        asked.requests - 1
    }

    pub(crate) fn count_answer(&self, lane: &str, kind: Kind, body: &[u8]) {
        self.lock().lane(lane).kind(kind).entry(digest(body)).or_default().answers += 1;
    }

    /// Counts a request to the model as under way until the guard is dropped.
    pub(crate) fn enter<'a>(&'a self, lane: &'a str) -> Visit<'a> {
        let mut calls = self.lock();
        let entry = calls.lane(lane);
        entry.at_once += 1;
        entry.most_at_once = entry.most_at_once.max(entry.at_once);
        Visit { counts: self, lane }
    }

    /// Records the length of a prompt.
    pub(crate) fn measure(&self, lane: &str, tokens: u64, over: bool) {
        let mut calls = self.lock();
        let lane = calls.lane(lane);
        lane.longest_prompt = lane.longest_prompt.max(tokens);
        lane.over_window += u64::from(over);
    }

    pub(crate) fn keep_prompt(&self, body: Value) {
        let mut prompts = self.prompts.lock().unwrap_or_else(PoisonError::into_inner);
        if prompts.len() == KEPT_PROMPTS {
            prompts.pop_front();
        }
        prompts.push_back(body);
    }

    pub(crate) fn prompts(&self) -> Vec<Value> {
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    pub(crate) fn offer(&self, url: &str) {
        self.lock().offered.insert(url.to_owned());
    }

    pub(crate) fn count_page(&self, url: &str) {
        let mut calls = self.lock();
        *calls.pages.entry(url.to_owned()).or_default() += 1;
        if !calls.offered.contains(url) && !url.ends_with("/robots.txt") {
            calls.strays.insert(url.to_owned());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Calls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Calls {
    fn lane(&mut self, lane: &str) -> &mut Lane {
        self.lanes.entry(lane.to_owned()).or_default()
    }
}

/// A request that is under way.
pub(crate) struct Visit<'a> {
    counts: &'a CallCounts,
    lane: &'a str,
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        let mut calls = self.counts.lock();
        let lane = calls.lane(self.lane);
        lane.at_once = lane.at_once.saturating_sub(1);
    }
}

fn digest(body: &[u8]) -> String {
    format!("{:016x}", fnv1a64(&[body]))
}
