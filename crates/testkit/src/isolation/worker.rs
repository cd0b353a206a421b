//! One of an owner's connections, and its next operation.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::Shared;
use super::client::{Answer, Client};
use super::ledger::Kind;
use super::owners::{NAMES, token};
use super::request::Request;

pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) owner: usize,
    /// The index of the connection.
    pub(super) slot: usize,
    /// The index of the server it is connected to.
    pub(super) door: usize,
    pub(super) random: fastrand::Rng,
    /// The number of questions asked.
    pub(super) asked: u64,
    /// The number of keys used.
    pub(super) keys: u64,
    client: Client,
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, owner: usize, slot: usize) -> Self {
        let door = slot % shared.doors.len();
        let number = (owner * shared.plan.connections + slot) as u64;
        Self {
            owner,
            slot,
            door,
            random: fastrand::Rng::with_seed(shared.plan.seed.wrapping_mul(1009) + number),
            asked: 0,
            keys: 0,
            client: Client::new(shared.doors[door], token(owner)),
            shared,
        }
    }

    pub(super) async fn work(mut self) {
        while self.shared.done.load(Ordering::Relaxed) < self.shared.plan.operations {
            match self.random.u8(..100) {
                0..14 => self.make_something().await,
                14..34 => self.read_own().await,
                34..80 => self.pry().await,
                80..90 => self.pry_in_a_batch().await,
                90..99 => self.use_sessions().await,
                _ => self.read_pages().await,
            }
        }
    }

    /// Sends a request; the answer must not contain anything of another owner.
    pub(super) async fn send(&mut self, request: &Request) -> Answer {
        let number = self.shared.done.fetch_add(1, Ordering::Relaxed);
        let heard = self.client.make(request).await;
        let Shared { secrets, ledger, .. } = &*self.shared;
        if let Some(leak) = secrets.leak(ledger, self.owner, request, &heard) {
            self.fail(number, &leak, request, &heard);
        }
        heard
    }

    /// Sends a call that is answered in MCP; returns the `result`, or null.
    pub(super) async fn result(&mut self, request: &Request) -> Value {
        let heard = self.send(request).await;
        let answer = heard.answer();
        if heard.status != 200 || answer.is_null() {
            self.fail(self.number(), "it is not an answer", request, &heard);
        }
        answer["result"].clone()
    }

    /// Panics with everything needed to reproduce the failure.
    pub(super) fn fail(&self, number: u64, why: &str, request: &Request, heard: &Answer) -> ! {
        let super::Plan { operations, seed, .. } = self.shared.plan;
        panic!(
            "operation {number} of seed {seed}, by {}: {why}\n--- asked: {request:?}\n--- heard: {} {}\n{}\n\
             --- to replay: scripts/isolation {operations} {seed}\n",
            NAMES[self.owner], heard.status, heard.head, heard.body
        );
    }

    pub(super) fn number(&self) -> u64 {
        self.shared.done.load(Ordering::Relaxed)
    }

    /// The id of a request; there are few of them, so that different owners use the same ones.
    pub(super) fn request_id(&mut self) -> u64 {
        self.random.u64(1..40)
    }

    /// Draws one of the other owners.
    pub(super) fn other(&mut self) -> usize {
        (self.owner + self.random.usize(1..NAMES.len())) % NAMES.len()
    }

    pub(super) fn own(&mut self, kind: Kind) -> Option<String> {
        self.shared.ledger.some(self.owner, kind, &mut self.random)
    }
}
