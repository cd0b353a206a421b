//! What every HTTP request of outlast shares, to a provider or to an MCP server. Knows neither.

mod proxy;
mod sse;

pub use proxy::{BadProxy, ProxyOptions, ProxyScope};
pub use sse::{Decoder, Frame, MAX_EVENT, TooLarge};
