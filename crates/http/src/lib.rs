//! The HTTP code that requests to providers and to MCP servers share: the client, the proxy, and responses that
//! are read up to a limit. Also verifies the access tokens of an OAuth issuer, whose keys it fetches.

mod body;
pub mod oauth;
mod proxy;
mod sse;

use std::error::Error;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, redirect};

pub use body::{BodyError, read_body};
pub use proxy::{BadProxy, ProxyOptions, ProxyScope};
pub use sse::{EventTooLarge, SseDecoder, SseEvent};

/// Returns an HTTP client that takes nothing from the environment, follows no redirects and retries no
/// requests.
#[expect(clippy::disallowed_methods, reason = "this is the one place")]
pub fn client_builder(
    proxy: Option<&ProxyOptions>,
    connect_timeout: Duration,
) -> Result<ClientBuilder, BadProxy> {
    // This fails only if a provider is already installed, which serves as well.
    drop(rustls::crypto::ring::default_provider().install_default());
    let builder = Client::builder()
        .user_agent(concat!("outlast/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect_timeout)
        .redirect(redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy();
    let proxy = proxy.map(ProxyOptions::to_proxy).transpose()?.flatten();
    Ok(match proxy {
        Some(proxy) => builder.proxy(proxy),
        None => builder,
    })
}

/// Formats an error with its causes, separated by colons.
pub fn error_chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(": ");
        text.push_str(&error.to_string());
        source = error.source();
    }
    text
}
