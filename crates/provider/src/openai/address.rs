//! Parses a base URL: the root of the API, with or without its version, and Azure's hosts.

use reqwest::Url;

/// Azure's names for resources that serve the API.
const AZURE: [&str; 3] =
    [".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"];

/// The address of the API.
#[derive(Debug, PartialEq)]
pub(super) struct Address {
    /// The address before the version and the endpoints.
    pub(super) root: String,
    /// True if keys go into Azure's own header.
    pub(super) is_azure: bool,
}

/// Parses the configured address; one that is not a URL is left to the HTTP client.
pub(super) fn of(base_url: &str) -> Address {
    let Ok(mut url) = Url::parse(base_url) else {
        return Address { root: base_url.to_owned(), is_azure: false };
    };
    let is_azure = url.host_str().is_some_and(|host| AZURE.iter().any(|name| host.ends_with(name)));
    let path = url.path().trim_end_matches('/');
    let root = path.strip_suffix("/v1").unwrap_or(path).to_owned();
    url.set_path(if is_azure && root.is_empty() { "/openai" } else { &root });
    Address { root: url.into(), is_azure }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G3: `base_url` is the vendor's root, with or without its version path; Azure's is found by its host.
    #[test]
    fn g3_the_root_is_the_same_with_and_without_the_version() {
        let cases = [
            ("https://api.openai.com", "https://api.openai.com/", false),
            ("https://api.openai.com/v1", "https://api.openai.com/", false),
            ("https://api.openai.com/v1/", "https://api.openai.com/", false),
            ("http://127.0.0.1:8000/openai/v1", "http://127.0.0.1:8000/openai", false),
            ("http://localhost:1234/v10", "http://localhost:1234/v10", false),
            ("https://a.openai.azure.com", "https://a.openai.azure.com/openai", true),
            ("https://a.openai.azure.com/openai/v1/", "https://a.openai.azure.com/openai", true),
            (
                "https://a.services.ai.azure.com/openai/v1",
                "https://a.services.ai.azure.com/openai",
                true,
            ),
            (
                "https://openai.azure.com.evil.example/v1",
                "https://openai.azure.com.evil.example/",
                false,
            ),
            ("https://gw.example/v1?tenant=7", "https://gw.example/?tenant=7", false),
            ("no url", "no url", false),
        ];
        for (given, root, is_azure) in cases {
            assert_eq!(of(given), Address { root: root.to_owned(), is_azure }, "{given}");
        }
    }
}
