//! What the real server does when the ground gives way; docs/faults.md says the same to people.

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
