//! HTTP to providers: limits on everything, and no error text that could contain a key.

mod redact;
mod retry_after;

use std::sync::OnceLock;
use std::time::Duration;

use outlast_core::BoxError;
use reqwest::{Client, ClientBuilder, RequestBuilder, Response};

pub(crate) use outlast_http::{BodyError, read_body};
pub use outlast_http::{ProxyOptions, ProxyScope};
pub(crate) use redact::{body_shape, redact};
pub(crate) use retry_after::retry_after;

/// The time a connection may take to open; at most half the limit of a call, so that a call that ran out of time was
/// certainly sent.
const CONNECT: Duration = Duration::from_secs(10);

/// An answer larger than this is refused, not read.
pub(crate) const MAX_BODY: usize = 32 * 1024 * 1024;

/// An event of a stream that is larger than this is refused, not read.
pub(crate) const MAX_EVENT: usize = 8 * 1024 * 1024;

/// The number of bytes read of an answer that is not a success.
pub(crate) const MAX_REFUSAL: usize = 256 * 1024;

/// The time limit for the body of an answer that is not a success.
const REFUSAL_LIMIT: Duration = Duration::from_secs(10);

/// The options of an HTTP client.
#[derive(Clone, Debug)]
pub struct HttpOptions {
    /// The limit of a whole call; on streams, of the silence between bytes.
    pub timeout: Duration,
    /// The proxy, if configured.
    pub proxy: Option<ProxyOptions>,
}

/// HTTP clients, made at first use: a server that only answers polls never pays for TLS.
pub struct Http {
    options: HttpOptions,
    calls: OnceLock<Client>,
    submits: OnceLock<Client>,
}

impl Http {
    /// Keeps the options for later; fails at once on a proxy that cannot be used.
    pub fn new(options: HttpOptions) -> Result<Self, BoxError> {
        if let Some(proxy) = &options.proxy {
            proxy.to_proxy()?;
        }
        Ok(Self { options, calls: OnceLock::new(), submits: OnceLock::new() })
    }

    /// The limit of a whole call.
    pub(crate) fn timeout(&self) -> Duration {
        self.options.timeout
    }

    /// For calls that may be repeated; reuses connections.
    pub(crate) fn calls(&self) -> Result<Client, BoxError> {
        self.build_once(&self.calls, |builder| builder.pool_idle_timeout(Duration::from_secs(60)))
    }

    /// For the call that costs money; every one gets its own connection.
    ///
    /// A pooled connection can die under a request, and then whether the request arrived cannot be known.
    pub(crate) fn submits(&self) -> Result<Client, BoxError> {
        self.build_once(&self.submits, |builder| builder.pool_max_idle_per_host(0))
    }

    fn build_once(
        &self,
        slot: &OnceLock<Client>,
        tune: impl FnOnce(ClientBuilder) -> ClientBuilder,
    ) -> Result<Client, BoxError> {
        if let Some(client) = slot.get() {
            return Ok(client.clone());
        }
        let client = tune(self.builder()?).build()?;
        Ok(slot.get_or_init(|| client).clone())
    }

    fn builder(&self) -> Result<ClientBuilder, BoxError> {
        let connect_timeout = CONNECT.min(self.options.timeout / 2);
        let builder = outlast_http::client_builder(self.options.proxy.as_ref(), connect_timeout)?;
        Ok(builder.read_timeout(self.options.timeout))
    }
}

/// Sends a request, keeping apart what never left from what may have arrived.
pub(crate) async fn send(request: RequestBuilder) -> Result<Response, SendError> {
    request.send().await.map_err(|error| {
        let error = error.without_url();
        if error.is_connect() || error.is_builder() {
            SendError::NotSent(error)
        } else {
            SendError::Lost(error)
        }
    })
}

/// The reason for a missing answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SendError {
    /// No connection was made.
    #[error("no connection")]
    NotSent(#[source] reqwest::Error),
    /// The request was on its way, or had arrived.
    #[error("no answer")]
    Lost(#[source] reqwest::Error),
}

impl SendError {
    /// Returns true if it timed out.
    pub(crate) fn is_timeout(&self) -> bool {
        let (Self::NotSent(error) | Self::Lost(error)) = self;
        error.is_timeout()
    }

    /// The chain of causes, for the operator.
    pub(crate) fn detail(&self) -> String {
        outlast_http::error_chain(self)
    }
}

/// Reads the body of an answer that is not a success, as far as it comes within the limits: its status counts without it,
/// so a body that breaks off or never ends must not hide the status.
pub(crate) async fn read_refusal(mut response: Response, limit: Duration) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = async {
        while let Ok(Some(chunk)) = response.chunk().await {
            let room = MAX_REFUSAL - body.len();
            body.extend_from_slice(&chunk[..chunk.len().min(room)]);
            if chunk.len() > room {
                return;
            }
        }
    };
    drop(tokio::time::timeout(limit.min(REFUSAL_LIMIT), reading).await);
    body
}
