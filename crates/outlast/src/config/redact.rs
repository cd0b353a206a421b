//! What of a setting may be shown: no key, no token, no password in an address.

/// Whether a setting's value is never shown.
fn is_never_shown(key: &str) -> bool {
    key.ends_with(".api_key") || matches!(key, "server.tokens" | "notify.secret")
}

/// What stands for a secret.
const REDACTED: &str = "[redacted]";

/// A value fit to be shown.
pub(super) fn presentable(key: &str, text: &str) -> String {
    match text {
        "" => String::new(),
        _ if is_never_shown(key) => REDACTED.to_owned(),
        // Not an address: any part of it may be a password.
        text if key.ends_with(".base_url") && !is_http(text) => REDACTED.to_owned(),
        // The path of a webhook is often its key.
        text if key == "notify.url" => host_alone(text),
        text => without_credentials(text),
    }
}

/// An address as far as its host.
fn host_alone(text: &str) -> String {
    let text = without_credentials(text);
    let host = text.find("://").map_or(0, |at| at + "://".len());
    match text[host..].find(['/', '?', '#']) {
        Some(end) => format!("{}/{REDACTED}", &text[..host + end]),
        None => text,
    }
}

/// Whether a value is one that others must not read.
pub(super) fn is_secret(key: &str, value: &str) -> bool {
    is_never_shown(key) || presentable(key, value) != value
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

/// A database's address without its password; the user stays, and so do the settings.
pub(super) fn without_password(address: &str) -> String {
    let (address, query) = address.split_once('?').unwrap_or((address, ""));
    let (scheme, rest) = address.split_once("://").unwrap_or(("postgres", address));
    let authority = rest.find('/').unwrap_or(rest.len());
    let shown = match rest[..authority].rfind('@') {
        Some(at) => {
            let user = rest[..at].split(':').next().unwrap_or_default();
            format!("{scheme}://{user}{}", &rest[at..])
        }
        None => format!("{scheme}://{rest}"),
    };
    let settings = query.split('&').filter(|pair| !pair.is_empty());
    let settings: Vec<&str> = settings
        .filter(|pair| !pair.split('=').next().unwrap_or_default().ends_with("password"))
        .collect();
    if settings.is_empty() { shown } else { format!("{shown}?{}", settings.join("&")) }
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
    fn the_password_of_a_database_is_not_shown_and_its_user_is() {
        let cases = [
            ("postgres://ann:hunter2@db/jobs", "postgres://ann@db/jobs"),
            ("postgres://ann:a@hunter2@db", "postgres://ann@db"),
            (
                "postgresql://db/jobs?password=hunter2&sslmode=require",
                "postgresql://db/jobs?sslmode=require",
            ),
            ("postgres://ann@db:5433/jobs?sslpassword=hunter2", "postgres://ann@db:5433/jobs"),
            ("postgres://ann@/jobs?host=%2Frun", "postgres://ann@/jobs?host=%2Frun"),
        ];
        for (address, shown) in cases {
            assert_eq!(without_password(address), shown);
        }
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
