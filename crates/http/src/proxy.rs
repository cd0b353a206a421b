//! The choice of requests that go through a proxy. It comes from the configuration; this module does not read
//! the environment.

mod no_proxy;

use std::fmt;

use reqwest::{Proxy, Url};

use no_proxy::NoProxy;

/// A proxy and its exceptions.
#[derive(Clone)]
pub struct ProxyOptions {
    /// The address, with credentials if the proxy requires them. Without a scheme, `http://` is assumed.
    pub url: String,
    /// The requests that use the proxy.
    pub scope: ProxyScope,
    /// A comma-separated list of exceptions: hosts, domains with their subdomains, addresses, networks such as
    /// `10.0.0.0/8`, each with an optional port, or `*` for everything.
    pub except: String,
}

/// The requests that use a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProxyScope {
    /// Every request: the proxy was configured for this program.
    Everything,
    /// Requests that leave this machine: the proxy was configured for all programs and cannot reach local
    /// listeners.
    OtherMachines,
}

/// Omits the address, which may contain credentials.
impl fmt::Debug for ProxyOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyOptions").field("scope", &self.scope).finish_non_exhaustive()
    }
}

impl ProxyOptions {
    /// Returns true if a request to this address goes through the proxy.
    pub fn applies_to(&self, url: &Url) -> bool {
        let except = self.exceptions();
        !except.is_everything() && !except.covers(url)
    }

    /// Returns the proxy for an HTTP client, or `None` if nothing goes through it. Errors never repeat the
    /// address.
    pub fn to_proxy(&self) -> Result<Option<Proxy>, BadProxy> {
        let except = self.exceptions();
        if except.is_everything() {
            return Ok(None);
        }
        let address = self.address()?;
        Ok(Some(Proxy::custom(move |url| (!except.covers(url)).then(|| address.clone()))))
    }

    fn exceptions(&self) -> NoProxy {
        let except = NoProxy::parse(&self.except);
        match self.scope {
            ProxyScope::Everything => except,
            ProxyScope::OtherMachines => except.and_loopback(),
        }
    }

    fn address(&self) -> Result<Url, BadProxy> {
        let text = match self.url.contains("://") {
            true => self.url.clone(),
            false => format!("http://{}", self.url),
        };
        let url = Url::parse(&text).map_err(|_| BadProxy)?;
        // The HTTP library ignores a proxy it cannot use and would send the request without it.
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(BadProxy);
        }
        Ok(url)
    }
}

/// The address of the proxy is unusable.
#[derive(Debug, thiserror::Error)]
#[error("the proxy must be an address that begins with http:// or https://")]
pub struct BadProxy;

#[cfg(test)]
mod tests {
    use super::*;

    fn proxy(url: &str) -> ProxyOptions {
        ProxyOptions { url: url.to_owned(), scope: ProxyScope::Everything, except: String::new() }
    }

    #[test]
    fn an_unusable_address_is_refused_without_repeating_it() {
        for url in ["proxy.example:3128", "http://u:hunter2@proxy.example", "https://[::1]:8"] {
            assert!(proxy(url).to_proxy().unwrap().is_some(), "{url}");
        }
        for url in ["socks5://u:hunter2@proxy.example", "http://", "ftp://hunter2", "http://a b"] {
            let error = proxy(url).to_proxy().unwrap_err().to_string();
            assert!(error.contains("http://") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn credentials_are_never_shown() {
        assert!(!format!("{:?}", proxy("http://u:hunter2@proxy.example")).contains("hunter2"));
    }
}
