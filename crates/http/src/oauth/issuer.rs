//! Requests to the issuer: its metadata (RFC 8414, OpenID Connect Discovery) and its key set. Without redirects, within limits.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::{Client, StatusCode};
use serde::Deserialize;
use url::{Host, Url};

use super::SetupError;
use super::jwk::KeySet;
use crate::{ProxyOptions, client_builder, error_chain, read_body};

const CONNECT: Duration = Duration::from_secs(3);
/// The time limit of one request.
const REQUEST: Duration = Duration::from_secs(5);
/// The maximum size of an answer.
const MAX_BYTES: usize = 64 * 1024;

/// An address that tokens must not depend on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{url}` must be an https address without user, query and fragment (http only for this machine)"
)]
pub struct BadUrl {
    url: String,
}

/// Parses an address of an issuer: https, or http at a loopback address.
pub fn parse_oauth_url(text: &str) -> Result<Url, BadUrl> {
    let url = Url::parse(text).ok().filter(|url| {
        let is_local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => IpAddr::V4(address).is_loopback(),
            Some(Host::Ipv6(address)) => IpAddr::V6(address).is_loopback(),
            None => false,
        };
        let is_plain = url.username().is_empty() && url.password().is_none();
        is_plain
            && url.query().is_none()
            && url.fragment().is_none()
            && url.has_host()
            && (url.scheme() == "https" || (url.scheme() == "http" && is_local))
    });
    url.ok_or_else(|| BadUrl { url: text.chars().take(200).collect() })
}

/// The metadata that this server and `outlast doctor` look at.
#[derive(Clone, Debug, Deserialize)]
pub struct IssuerMetadata {
    issuer: String,
    jwks_uri: Option<String>,
    /// The methods of PKCE.
    #[serde(default)]
    pub code_challenge_methods_supported: Vec<String>,
    /// The address at which clients register themselves.
    pub registration_endpoint: Option<String>,
    /// True if clients may be identified by the address of their metadata.
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
}

/// The issuer, as this server reaches it.
pub(super) struct Issuer {
    client: Client,
    name: String,
    url: Url,
    jwks_url: Option<Url>,
}

impl Issuer {
    pub(super) fn new(
        name: &str,
        jwks_url: Option<Url>,
        proxy: Option<&ProxyOptions>,
    ) -> Result<Self, SetupError> {
        let url = parse_oauth_url(name)?;
        let client = client_builder(proxy, CONNECT)?.timeout(REQUEST).build()?;
        Ok(Self { client, name: name.to_owned(), url, jwks_url })
    }

    /// Fetches the key set.
    pub(super) async fn keys(&self) -> Result<KeySet, String> {
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => {
                let found = self.metadata().await?.jwks_uri;
                let found = found.ok_or("the issuer's metadata has no jwks_uri")?;
                parse_oauth_url(&found).map_err(|error| format!("jwks_uri: {error}"))?
            }
        };
        let text = self.get(&url).await?;
        KeySet::parse(&text).ok_or_else(|| format!("{url} is not a key set"))
    }

    /// Fetches the metadata, which must name this issuer exactly.
    pub(super) async fn metadata(&self) -> Result<IssuerMetadata, String> {
        let mut problem = String::new();
        for url in self.metadata_urls() {
            let read = self.get(&url).await.and_then(|text| {
                let metadata = serde_json::from_slice::<IssuerMetadata>(&text);
                metadata.map_err(|_| format!("{url} is not the metadata of an issuer"))
            });
            match read {
                Ok(metadata) if metadata.issuer == self.name => return Ok(metadata),
                Ok(metadata) => {
                    let named: String = metadata.issuer.chars().take(200).collect();
                    return Err(format!(
                        "{url} names the issuer `{named}`, and `{}` is configured; they must be equal",
                        self.name
                    ));
                }
                // The first address is the one of the standard.
                Err(error) if problem.is_empty() => problem = error,
                Err(_) => {}
            }
        }
        Err(problem)
    }

    /// Returns the addresses of the metadata, in the order of the MCP specification.
    fn metadata_urls(&self) -> Vec<Url> {
        let path = self.url.path().trim_end_matches('/');
        let mut paths = vec![
            format!("/.well-known/oauth-authorization-server{path}"),
            format!("/.well-known/openid-configuration{path}"),
        ];
        if !path.is_empty() {
            paths.push(format!("{path}/.well-known/openid-configuration"));
        }
        let at = |path: &String| {
            let mut url = self.url.clone();
            url.set_path(path);
            url
        };
        paths.iter().map(at).collect()
    }

    async fn get(&self, url: &Url) -> Result<Vec<u8>, String> {
        let request = self.client.get(url.clone()).header("accept", "application/json");
        let failed = |error: reqwest::Error| {
            format!("{url} does not answer: {}", error_chain(&error.without_url()))
        };
        let response = request.send().await.map_err(failed)?;
        match response.status() {
            StatusCode::OK => {}
            status => return Err(format!("{url} answers with the status {}", status.as_u16())),
        }
        read_body(response, MAX_BYTES).await.map_err(|error| format!("{url}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// M1: keys come over TLS, or from this machine.
    #[test]
    fn m1_an_issuer_is_reached_by_https_or_on_this_machine() {
        for good in [
            "https://id.example",
            "https://id.example:8443/realms/team/",
            "http://localhost:3000",
            "http://127.0.0.1:3000/a",
            "http://[::1]:3000",
        ] {
            assert!(parse_oauth_url(good).is_ok(), "{good}");
        }
        for bad in [
            "",
            "id.example",
            "http://id.example",
            "http://localhost.evil.example",
            "http://127.0.0.1.evil.example",
            "https://user@id.example",
            "https://id.example?x=1",
            "https://id.example#x",
            "file:///etc/keys",
            "ftp://id.example",
        ] {
            assert!(parse_oauth_url(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn m1_the_metadata_is_looked_for_at_every_standard_address() {
        let urls = |name: &str| -> Vec<String> {
            let issuer = Issuer::new(name, None, None).unwrap();
            issuer.metadata_urls().iter().map(Url::to_string).collect()
        };
        let root = [
            "https://id.example/.well-known/oauth-authorization-server",
            "https://id.example/.well-known/openid-configuration",
        ];
        assert_eq!(urls("https://id.example"), root);
        assert_eq!(urls("https://id.example/"), root);
        let expected = [
            "https://id.example/.well-known/oauth-authorization-server/realms/team",
            "https://id.example/.well-known/openid-configuration/realms/team",
            "https://id.example/realms/team/.well-known/openid-configuration",
        ];
        assert_eq!(urls("https://id.example/realms/team"), expected);
    }
}
