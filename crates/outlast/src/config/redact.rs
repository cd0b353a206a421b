//! Makes values fit to be shown: without keys, tokens and passwords in addresses.

use super::settings::{Setting, SettingType};

/// The replacement for a secret.
pub(crate) const REDACTED: &str = "[redacted]";

/// Returns a value in a form fit to be shown.
pub(super) fn presentable(setting: &Setting, text: &str) -> String {
    match setting.kind {
        _ if text.is_empty() => String::new(),
        SettingType::Secret => REDACTED.to_owned(),
        // It is not an address, so any part of it may be a password.
        SettingType::Address if is_of_provider(setting) && !is_http(text) => REDACTED.to_owned(),
        SettingType::StoreAddress => store_address(text),
        // The path of a webhook is often its key.
        SettingType::Webhook => host_alone(text),
        _ => without_credentials(text),
    }
}

/// Returns true for the address of a service that also needs a key, which is easily mistaken for the address.
fn is_of_provider(setting: &Setting) -> bool {
    [".base_url", ".model_url", ".search_url"].iter().any(|name| setting.key.ends_with(name))
}

/// Returns a store's address without its password. One that cannot be parsed is shown only if it has no place for a
/// password.
fn store_address(text: &str) -> String {
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return outlast_store::without_password(text).unwrap_or_else(|| REDACTED.to_owned());
    }
    let may_have_password = text.contains('@') || text.contains("password");
    if may_have_password && !text.starts_with("sqlite:") {
        return REDACTED.to_owned();
    }
    text.to_owned()
}

/// Returns an address up to its host.
fn host_alone(text: &str) -> String {
    let text = without_credentials(text);
    let host = text.find("://").map_or(0, |at| at + "://".len());
    match text[host..].find(['/', '?', '#']) {
        Some(end) => format!("{}/{REDACTED}", &text[..host + end]),
        None => text,
    }
}

/// Returns true if others must not read the value.
pub(super) fn is_secret(setting: &Setting, value: &str) -> bool {
    setting.kind == SettingType::Secret || presentable(setting, value) != value
}

/// Returns true if a `/`, `?` or `#` comes before the `@` of an address whose "port" is not a number: it is part of a
/// password that should have been percent-encoded.
fn is_cut_password(text: &str) -> bool {
    let Some((_, rest)) = text.split_once("://") else { return false };
    let Some(end) = rest.find(['/', '?', '#']) else { return false };
    let (authority, tail) = rest.split_at(end);
    let port = authority.rsplit_once(':').map_or("", |(_, port)| port);
    let is_port = port.bytes().all(|byte| byte.is_ascii_digit()) || authority.ends_with(']');
    tail.contains('@') && !authority.contains('@') && !is_port
}

/// Returns an address without its user name and password. Everything up to an `@` in the authority counts as those; so
/// does everything after a `?`, and the whole of a list of settings that has a password.
pub(crate) fn without_credentials(text: &str) -> String {
    if text.contains("password=") {
        return REDACTED.to_owned();
    }
    if is_cut_password(text) {
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

/// Returns true if this is an address with a web scheme and a host.
pub(super) fn is_http(text: &str) -> bool {
    let host = text.strip_prefix("https://").or(text.strip_prefix("http://"));
    host.is_some_and(|host| !host.is_empty() && !host.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::super::settings;
    use super::*;

    #[test]
    fn the_password_of_a_database_is_not_shown_and_its_user_is() {
        let cases = [
            ("postgres://ann:hun/ter#2@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://ann:a@hunter2@db", REDACTED),
            ("postgre://ann:hun/ter2@db/jobs", REDACTED),
            ("host=db password=hunter2", REDACTED),
            ("sqlite:/home/ann@work/outlast.db", "sqlite:/home/ann@work/outlast.db"),
            ("sqllite:/data/outlast.db", "sqllite:/data/outlast.db"),
            ("memory:", "memory:"),
        ];
        for (address, shown) in cases {
            assert_eq!(presentable(settings::STORE_URL, address), shown);
        }
    }

    #[test]
    fn a_password_with_a_slash_in_an_address_is_not_shown() {
        for address in [
            "http://user:hun/ter2@proxy:8080",
            "http://user:hun#ter2@proxy",
            "http://user:hun?ter2@proxy",
        ] {
            let shown = presentable(settings::NETWORK_PROXY, address);
            assert!(!shown.contains("hun") && !shown.contains("ter2"), "{shown}");
        }
        assert_eq!(
            presentable(settings::NETWORK_PROXY, "http://proxy:8080/a@b"),
            "http://proxy:8080/a@b"
        );
    }

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
