//! What of a setting may be shown: no key, no token, no password in an address.

/// Settings whose value is never shown.
const SECRETS: &[&str] = &["perplexity.api_key", "server.tokens"];

/// What stands for a secret.
const REDACTED: &str = "[redacted]";

/// A value fit to be shown.
pub(super) fn presentable(key: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        _ if SECRETS.contains(&key) => REDACTED.to_owned(),
        // Not an address: any part of it may be a password.
        text if key == "perplexity.base_url" && !is_http(text) => REDACTED.to_owned(),
        text => without_credentials(text),
    }
}

/// Whether a value is one that others must not read.
pub(super) fn is_secret(key: &str, value: &str) -> bool {
    SECRETS.contains(&key) || without_credentials(value) != value
}

/// An address without the name and the password in it. Anything up to an `@` in the authority is taken for those; so is
/// what follows a `?`, and the whole of a list of settings that has a password.
pub(super) fn without_credentials(text: &str) -> String {
    if text.contains("password=") {
        return REDACTED.to_owned();
    }
    if let (true, Some(at)) = (text.contains("://"), text.find('?')) {
        return format!("{}?{REDACTED}", without_credentials(&text[..at]));
    }
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), text),
    };
    let authority = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..authority].rfind('@') {
        Some(at) if scheme.is_empty() && !rest[..at].contains(':') => text.to_owned(),
        Some(at) => format!("{scheme}{REDACTED}{}", &rest[at..]),
        None => text.to_owned(),
    }
}

/// Whether this is an address with a scheme of the web's and a host.
pub(super) fn is_http(text: &str) -> bool {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_in_an_address_are_not_shown() {
        let cases = [
            ("http://user:hunter2@proxy:8080", "http://[redacted]@proxy:8080"),
            ("http://hunter2@proxy", "http://[redacted]@proxy"),
            ("http://a@b:hunter2@proxy/x@y", "http://[redacted]@proxy/x@y"),
            ("user:hunter2@proxy:8080", "[redacted]@proxy:8080"),
            ("https://api.perplexity.ai", "https://api.perplexity.ai"),
            ("https://api.example/a@b", "https://api.example/a@b"),
            ("ann@example", "ann@example"),
            ("https://api.example/v1?key=hunter2", "https://api.example/v1?[redacted]"),
            ("host=db password=hunter2", "[redacted]"),
            ("sqlite:/data/jobs.db", "sqlite:/data/jobs.db"),
        ];
        for (text, shown) in cases {
            assert_eq!(without_credentials(text), shown);
        }
    }
}
