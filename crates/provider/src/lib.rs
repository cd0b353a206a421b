//! Who does the work: adapters of the [`outlast_core::Provider`] port.
//!
//! Adapters map, call and map back; they hold no policy. Only `perplexity/wire.rs` knows the vendor's JSON.

pub mod command;
pub mod http;
pub mod mcp_tool;
pub mod perplexity;
pub mod prices;
mod provider_error;

#[doc(hidden)]
pub use perplexity::fuzzing;
