//! Perplexity. The Agent API is the dialect that works today; the Sonar endpoints were retired in September
//! 2026.

mod agent;
mod errors;
mod events;
mod meter;
mod report;
mod run;
mod waits;
mod wire;

pub use agent::{Agent, AgentOptions};
pub use waits::Waits;
