//! Three owners on the same servers make random requests with their own ids, each other's ids and invented ids
//! (E7). All answers to an owner are searched for data of the others; the first match is a panic that describes
//! how to reproduce it.

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

/// The size and seed of the test.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// The number of requests of all owners together; slightly exceeded when two requests belong together.
    pub operations: u64,
    /// The number of open connections of an owner.
    pub connections: usize,
    /// The seed of all random decisions; apart from timing, the same seed repeats the same requests.
    pub seed: u64,
}

/// The result of the test.
#[derive(Debug)]
pub struct Report {
    /// The number of requests made.
    pub operations: u64,
    /// The number of distinct ids that the owners received.
    pub ids: usize,
    /// The number of jobs that others tried to end and could not.
    pub attacked: usize,
    /// The number of pairs of answers about a foreign and an invented id, identical except for the id.
    pub pairs: usize,
    /// The times of those answers, by kind of request.
    pub timings: Vec<(&'static str, Timing)>,
}

/// The state shared by all workers.
struct Shared {
    plan: Plan,
    doors: Vec<SocketAddr>,
    ledger: Ledger,
    secrets: Secrets,
    timings: Timings,
    done: AtomicU64,
}

/// Runs all requests, then checks the data left behind. `upstream` returns the requests that the provider
/// received.
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
