//! Perplexity. The Agent API is the dialect that works today; the Sonar endpoints were retired in September
//! 2026, and are spoken for gateways that still have them. The Search API is the same in both.

mod agent;
mod sonar;
mod search;

mod report;
mod wire;

#[doc(hidden)]
pub mod fuzzing;

use crate::vendor::{KeyHeader, Vendor};
pub use agent::Agent;
#[cfg(test)]
pub(crate) use agent::{DIALECT as AGENT, typical as agent_typical};
pub use sonar::Sonar;
#[cfg(test)]
pub(crate) use sonar::typical as sonar_typical;

/// The conventions of Perplexity's services.
pub const VENDOR: Vendor = Vendor {
    name: "Perplexity",
    key_variable: "PERPLEXITY_API_KEY",
    base_url_variable: "PERPLEXITY_BASE_URL",
    proxy_variable: "PERPLEXITY_PROXY",
    querying: "Querying Perplexity API...",
    retired_hint: "set PERPLEXITY_API=agent",
    key_header: KeyHeader::Bearer,
    headers: &[],
};
