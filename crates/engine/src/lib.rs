//! The engine: interfaces start, poll and cancel jobs through [`Engine`], and a [`Worker`] runs them. It contains the
//! only loop.
//!
//! The path of a job: [`Engine::start`] makes a job durable; a worker claims it; `attempt` works on it; the rules
//! decide how the attempt is settled; and [`Engine::poll`] answers at the moment when it ends.

mod engine;
mod worker;
mod attempt;
mod poll;
mod report_check;

mod options;
mod shared;
mod dispatch;
mod handover;
mod observers;
mod asking;
mod writes;
mod handle;
mod held_calls;
mod citation_checks;

mod idle;
mod lease_renewer;
mod leaving;
mod rescuer;
mod remote_stops;
mod notices;
mod sweeper;

mod wakeups;
mod follower;
mod shutdown;
mod wind_downs;
mod task;

pub use dispatch::Dispatch;
pub use engine::{Engine, StartOutcome};
pub use handle::{JobSnapshot, JobWatch, PollError};
pub use handover::{DetachedWorkers, WaitingJobs};
pub use idle::LeaveTime;
pub use observers::Observers;
pub use options::{Options, Providers, RunRetention};
pub use report_check::ReportCheck;
pub use shared::RequestForecast;
pub use shutdown::Shutdown;
pub use task::spawn;
pub use wakeups::PollLimits;
pub use worker::{Worker, WorkerRole};
