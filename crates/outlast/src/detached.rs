//! The detached worker (H1): a worker in a session of its own that carries the jobs of stdio servers and goes on when their
//! clients have left. A server that leaves its jobs to one is its *front* (`front.rs`).
//!
//! A worker is found by a socket whose name is a digest of all that decides what the worker does (`identity.rs`), beside the
//! store. The store carries the work; the socket says only that there is some.

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

pub(crate) use identity::Identity;
pub(crate) use start::WorkerStarter;
pub(crate) use workers::Workers;
