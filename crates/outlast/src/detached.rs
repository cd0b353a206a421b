//! The detached worker (H1): a worker in a separate session that runs the jobs of stdio servers and continues after
//! their clients have left. A server that leaves its jobs to one is its *front* (`front.rs`).
//!
//! A worker is found by a socket next to the store, whose name is a digest of everything that decides the worker's
//! behaviour (`identity.rs`). The work is in the store; the socket only announces that there is some.

mod identity;
pub(crate) mod socket;
pub(crate) mod start;
mod workers;
pub(crate) mod worker;
pub(crate) mod telling;
pub(crate) mod info;
pub(crate) mod log;
pub(crate) mod log_relay;
pub(crate) mod own_jobs;

pub(crate) use identity::WorkerIdentity;
pub(crate) use start::WorkerStarter;
pub(crate) use workers::Workers;
