//! The address of an HTTP server, and the headers it requires.

use std::fmt;

use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderName, HeaderValue};
use outlast_http::ProxyOptions;
use reqwest::Url;

use crate::error::ClientError;

/// The address of a server, with the headers to send.
#[derive(Clone)]
pub struct Endpoint {
    pub(crate) url: Url,
    headers: HeaderMap,
    pub(crate) proxy: Option<ProxyOptions>,
}

/// Headers that the protocol uses itself.
const RESERVED: [&str; 7] = [
    "accept",
    "content-type",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
    "mcp-method",
    "mcp-name",
];

impl Endpoint {
    /// Creates an endpoint from a URL that begins with `http://` or `https://`.
    pub fn new(url: &str) -> Result<Self, ClientError> {
        let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = parsed.ok_or_else(|| {
            ClientError::Usage("the URL must begin with http:// or https://".to_owned())
        })?;
        Ok(Self { url, headers: HeaderMap::new(), proxy: None })
    }

    /// Sends this token in the Authorization header.
    pub fn bearer(mut self, token: &str) -> Result<Self, ClientError> {
        let value = HeaderValue::from_str(&format!("Bearer {token}"));
        let mut value = value.map_err(|_| {
            ClientError::Usage(
                "the token has characters that are not allowed in a header".to_owned(),
            )
        })?;
        value.set_sensitive(true);
        self.headers.append(AUTHORIZATION, value);
        Ok(self)
    }

    /// Uses this proxy. Without it, every request goes directly to the server: the environment is not read.
    pub fn proxy(mut self, proxy: ProxyOptions) -> Result<Self, ClientError> {
        proxy.to_proxy().map_err(|error| ClientError::Usage(error.to_string()))?;
        self.proxy = Some(proxy);
        Ok(self)
    }

    /// Sends this header with every request.
    pub fn header(mut self, name: &str, value: &str) -> Result<Self, ClientError> {
        let usage = |why: &str| ClientError::Usage(format!("the header `{name}` {why}"));
        let parsed: HeaderName = name.parse().map_err(|_| usage("is not a valid header name"))?;
        if RESERVED.contains(&parsed.as_str()) {
            return Err(usage("belongs to the protocol"));
        }
        let mut value: HeaderValue =
            value.parse().map_err(|_| usage("has a value that is not allowed in a header"))?;
        value.set_sensitive(true);
        self.headers.append(parsed, value);
        Ok(self)
    }

    /// Returns an HTTP client for the caller's own requests.
    pub fn http_client(&self) -> Result<reqwest::Client, ClientError> {
        crate::http::client(self.proxy.as_ref())
    }

    /// Builds a request to this address, with the token and the headers.
    pub fn request(
        &self,
        client: &reqwest::Client,
        method: reqwest::Method,
    ) -> reqwest::RequestBuilder {
        client.request(method, self.url.clone()).headers(self.headers.clone())
    }
}

/// Omits tokens.
impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.url.host_str().unwrap_or_default();
        f.debug_struct("Endpoint").field("host", &host).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_validated_when_created_and_keeps_its_secrets() {
        for url in ["", "localhost:80/mcp", "ftp://host/", "/mcp", "https://"] {
            assert!(Endpoint::new(url).is_err(), "{url}");
        }
        let endpoint = Endpoint::new("https://user:pw@host/mcp?key=pw").unwrap();
        let endpoint = endpoint.bearer("pw").unwrap().header("X-Key", "pw").unwrap();
        assert!(!format!("{endpoint:?}").contains("pw"), "{endpoint:?}");
        assert!(endpoint.clone().header("Mcp-Session-Id", "1").is_err());
        assert!(endpoint.clone().header("two words", "1").is_err());
        assert!(endpoint.clone().header("X", "a\nb").is_err());
        assert!(endpoint.bearer("a\nb").is_err());
    }
}
