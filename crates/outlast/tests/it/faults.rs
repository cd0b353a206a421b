//! The behaviour of the real server under faults of its environment; docs/faults.md describes the same.

pub(crate) mod small_disk;

mod clock;
mod corrupt;
mod full_disk;
pub(crate) mod hostile;
mod lost_log;
pub(crate) mod memory;
mod read_only;
mod replaced;
mod signals;
mod stopped;
