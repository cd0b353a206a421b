//! The only loop: a face starts, polls and cancels jobs through [`Engine`]; a [`Worker`] carries them.
//!
//! The one path: [`Engine::start`] makes a job durable; a worker claims it, `attempt` works on it, the rules
//! decide how the try is settled, and [`Engine::poll`] answers the moment it ends.

mod engine;
mod poll;
mod watch;
mod hold;

mod worker;
mod attempt;
mod keeper;
mod warden;
mod stopper;
mod sweeper;

mod hub;
mod follower;
mod stop;

mod mirror;

pub use engine::{Engine, Expected, Options, Providers, Started};
pub use hub::PollLimits;
pub use mirror::{ArchiveError, Archived, Mirror, MirrorOptions};
pub use poll::{PollError, Reading};
pub use stop::Stop;
pub use watch::Watch;
pub use worker::{Takes, Until, Worker};
