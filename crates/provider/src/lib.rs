//! The providers: adapters of the [`outlast_core::Provider`] port.
//!
//! Adapters map, call and map back; they hold no policy. Only a vendor's `wire` modules know its JSON.

pub mod citations;
pub mod command;
pub mod http;
pub mod mcp_tool;
pub mod notify;
pub mod perplexity;
pub mod openai;
pub mod anthropic;
pub mod gemini;
mod responses;
pub mod vendor;
mod prices;

use outlast_core::{ProviderError, ProviderErrorKind};

/// The name of this machine, or of the container this process is in.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

#[doc(hidden)]
pub use perplexity::fuzzing;

/// An error with the upstream message, for the operator.
fn with_detail(
    kind: ProviderErrorKind,
    sentence: impl Into<String>,
    detail: impl Into<String>,
) -> ProviderError {
    ProviderError { detail: Some(detail.into()), ..ProviderError::new(kind, sentence) }
}
