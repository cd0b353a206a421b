//! Three owners over the same servers do at random whatever can be done, with their own ids, each other's and invented
//! ones (E7). Everything each of them hears is searched for what belongs to the others; the first find is a panic that
//! says how to see it again.

mod owners;
mod client;
mod request;
mod ledger;
mod inspect;
mod timing;

mod worker;
mod making;
mod reading;
mod prying;
mod sessions;
mod servers;
mod verdict;

pub use owners::NAMES;
pub use servers::Servers;
pub use timing::Timing;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::Value;
use tokio::task::JoinSet;

use inspect::Secrets;
use ledger::Ledger;
use timing::Timings;
use worker::Worker;

/// What is to be done.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How many requests, all owners together; a few more where two belong together.
    pub operations: u64,
    /// How many of an owner's connections are open at a time.
    pub connections: usize,
    /// What decides everything random here; timing aside, the same seed does the same again.
    pub seed: u64,
}

/// What was seen.
#[derive(Debug)]
pub struct Report {
    /// Requests made.
    pub operations: u64,
    /// Ids that the owners were given, all different.
    pub ids: usize,
    /// Jobs that others tried to end, and could not.
    pub attacked: usize,
    /// Pairs of answers about a foreign and an invented id, all the same but for the id.
    pub pairs: usize,
    /// How long those answers took, by what was asked.
    pub timings: Vec<(&'static str, Timing)>,
}

/// What all workers share.
struct Shared {
    plan: Plan,
    doors: Vec<SocketAddr>,
    ledger: Ledger,
    secrets: Secrets,
    timings: Timings,
    done: AtomicU64,
}

/// Does all of it, then looks at what is left behind. `upstream` is what the provider was sent.
pub async fn run(servers: Servers, plan: Plan, upstream: impl FnOnce() -> Vec<Value>) -> Report {
    let shared = Arc::new(Shared {
        plan,
        doors: servers.addresses(),
        ledger: Ledger::default(),
        secrets: Secrets::new(servers.folder()),
        timings: Timings::default(),
        done: AtomicU64::new(0),
    });
    let mut workers = JoinSet::new();
    for owner in 0..NAMES.len() {
        for slot in 0..plan.connections {
            let worker = Worker::new(Arc::clone(&shared), owner, slot);
            workers.spawn(worker.work());
        }
    }
    while let Some(ended) = workers.join_next().await {
        if let Err(error) = ended {
            workers.abort_all();
            std::panic::resume_unwind(error.into_panic());
        }
    }
    verdict::check(&shared, servers, &upstream()).await;
    Report {
        operations: shared.done.load(Ordering::Relaxed),
        ids: shared.ledger.ids(),
        attacked: shared.ledger.attacked().len(),
        pairs: shared.timings.pairs(),
        timings: shared.timings.medians(),
    }
}
