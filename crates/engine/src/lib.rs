//! The only loop: a face starts, polls and cancels jobs through [`Engine`]; a [`Worker`] carries them.
//!
//! The one path: [`Engine::start`] makes a job durable; a worker claims it, `attempt` works on it, the rules
//! decide how the try is settled, and [`Engine::poll`] answers the moment it ends.

mod engine;
mod poll;
mod watch;
mod held_calls;

mod worker;
mod attempt;
mod keeper;
mod rescuer;
mod remote_stops;
mod sweeper;

mod wakeups;
mod follower;
mod shutdown;

mod mirror;

pub use engine::{Engine, Expected, Options, Providers, Started};
pub use mirror::{ArchiveError, Archived, Mirror, MirrorOptions};
pub use poll::{PollError, Reading};
pub use shutdown::Shutdown;
pub use wakeups::PollLimits;
pub use watch::JobWatch;
pub use worker::{Takes, Until, Worker};
