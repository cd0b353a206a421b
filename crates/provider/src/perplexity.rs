//! Perplexity. The Agent API is the dialect that works today; the Sonar endpoints were retired in September
//! 2026.

mod agent;
mod run;
mod api;
mod events;
mod waits;

mod report;
mod meter;
mod errors;
mod wire;

pub(crate) mod fuzzing;

pub use agent::Agent;
pub use api::AgentOptions;
pub use waits::Waits;
pub(crate) use wire::effort as agent_effort;
