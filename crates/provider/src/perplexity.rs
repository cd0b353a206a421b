//! Perplexity. The Agent API is the dialect that works today; the Sonar endpoints were retired in September
//! 2026, and are spoken for gateways that still have them. The Search API is the same in both.

mod agent;
mod run;
mod sonar;
mod search;
mod api;
mod submit;
mod delivered;
mod events;
mod waits;
mod check;

mod narrowing;
mod report;
mod milestones;
mod meter;
mod errors;
mod wire;

#[doc(hidden)]
pub mod fuzzing;

pub use agent::Agent;
pub use api::PerplexityOptions;
pub use check::{Checked, KeyState};
pub use sonar::Sonar;
pub use waits::Waits;
pub(crate) use wire::effort as agent_effort;
