//! The host names that this server answers to, and the origins of web pages that may call it. A page that tricks a browser
//! into calling a local address is recognized by one of the two.

use std::net::Ipv6Addr;

/// An invalid entry of a list.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a name")]
pub struct NotAName(pub String);

/// The hosts that a request may be addressed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts(Vec<Authority>);

impl Hosts {
    /// Returns the names of this machine, on any port.
    pub fn loopback() -> Self {
        let names = ["localhost", "127.0.0.1", "::1"];
        Self(names.map(|host| Authority { host: host.to_owned(), port: None }).to_vec())
    }

    /// Parses names separated by commas, each with or without a port; a name without a port allows any port.
    pub fn parse(list: &str) -> Result<Self, NotAName> {
        entries(list, Authority::parse).map(Self)
    }

    /// Returns true if a request to this host is meant for this server.
    pub(super) fn allow(&self, host: &str) -> bool {
        let Some(asked) = Authority::parse(host) else { return false };
        self.0.iter().any(|ours| {
            let port = ours.port.is_none_or(|port| match asked.port {
                Some(asked) => asked == port,
                // The port is omitted if it is the default of the scheme; only a proxy may know the scheme.
                None => matches!(port, 80 | 443),
            });
            ours.host == asked.host && port
        })
    }
}

/// The origins of web pages that may call the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origins(Vec<(String, Authority)>);

impl Origins {
    /// Parses origins such as `https://app.example` or `null`, separated by commas.
    pub fn parse(list: &str) -> Result<Self, NotAName> {
        entries(list, origin).map(Self)
    }

    /// Returns true if pages of this origin may call the server.
    pub(super) fn allow(&self, text: &str) -> bool {
        origin(text).is_some_and(|origin| self.0.contains(&origin))
    }
}

fn entries<T>(list: &str, parse: impl Fn(&str) -> Option<T>) -> Result<Vec<T>, NotAName> {
    let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    entries.map(|entry| parse(entry).ok_or_else(|| NotAName(entry.to_owned()))).collect()
}

/// A host with an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    host: String,
    port: Option<u16>,
}

impl Authority {
    /// Parses strictly on purpose: no user, no empty port, no trailing dot, one spelling for an IPv6 address.
    fn parse(text: &str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                (address.parse::<Ipv6Addr>().ok()?.to_string(), port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                let fits =
                    |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_');
                if host.is_empty() || host.ends_with('.') || !host.bytes().all(fits) {
                    return None;
                }
                (host.to_ascii_lowercase(), port)
            }
        };
        let port = match port.strip_prefix(':') {
            None if port.is_empty() => None,
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            _ => return None,
        };
        Some(Self { host, port })
    }
}

/// Parses the scheme and the host of an origin, and adds the scheme's default port, if it has one. A browser that does not
/// reveal the origin of a page sends `null`.
fn origin(text: &str) -> Option<(String, Authority)> {
    if text == "null" {
        return Some((text.to_owned(), Authority { host: String::new(), port: None }));
    }
    let (scheme, authority) = text.split_once("://")?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    if scheme.is_empty() || !scheme.bytes().all(fits) {
        return None;
    }
    let scheme = scheme.to_ascii_lowercase();
    let mut authority = Authority::parse(authority)?;
    authority.port = authority.port.or(match scheme.as_str() {
        "http" => Some(80),
        "https" => Some(443),
        _ => None,
    });
    Some((scheme, authority))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_ours_only_when_it_is_spelled_like_ours() {
        let loopback = Hosts::loopback();
        let listed =
            Hosts::parse("Research.example, 10.0.0.5:8080,[2001:db8::1],tls.example:443").unwrap();
        let cases = [
            (&loopback, "localhost", true),
            (&loopback, "LOCALHOST:1", true),
            (&loopback, "127.0.0.1:65535", true),
            (&loopback, "[::1]:80", true),
            (&loopback, "[0:0:0:0:0:0:0:1]", true),
            (&loopback, "", false),
            (&loopback, "localhost.", false),
            (&loopback, "localhost:", false),
            (&loopback, "localhost:+80", false),
            (&loopback, "localhost:65536", false),
            (&loopback, "localhost:80:80", false),
            (&loopback, "localhost@evil.example", false),
            (&loopback, "evil@localhost", false),
            (&loopback, "localhost, evil.example", false),
            (&loopback, "localhost/", false),
            (&loopback, "localhost.evil.example", false),
            (&loopback, "127.0.0.1.nip.io", false),
            (&loopback, "127.1", false),
            (&loopback, "2130706433", false),
            (&loopback, "0.0.0.0", false),
            (&loopback, "::1", false),
            (&loopback, "[::1", false),
            (&loopback, "[::1]evil", false),
            (&loopback, "[::ffff:127.0.0.1]", false),
            (&listed, "research.example:99", true),
            (&listed, "10.0.0.5:8080", true),
            (&listed, "10.0.0.5", false),
            (&listed, "10.0.0.5:80", false),
            (&listed, "[2001:DB8:0::1]:7", true),
            (&listed, "tls.example", true),
            (&listed, "localhost", false),
        ];
        for (hosts, host, expected) in cases {
            assert_eq!(hosts.allow(host), expected, "{host}");
        }
    }

    #[test]
    fn an_origin_is_allowed_only_when_it_is_listed() {
        let none = Origins::default();
        let listed = Origins::parse("https://app.example, http://localhost:3000").unwrap();
        let null = Origins::parse("null").unwrap();
        let cases = [
            (&none, "http://localhost", false),
            (&none, "null", false),
            (&listed, "https://app.example", true),
            (&listed, "HTTPS://APP.example:443", true),
            (&listed, "https://app.example:444", false),
            (&listed, "http://app.example", false),
            (&listed, "https://app.example.evil.example", false),
            (&listed, "https://app.example/", false),
            (&listed, "http://localhost:3000", true),
            (&listed, "http://localhost:3001", false),
            (&listed, "null", false),
            (&null, "null", true),
            (&null, "", false),
        ];
        for (origins, origin, expected) in cases {
            assert_eq!(origins.allow(origin), expected, "{origin}");
        }
    }

    #[test]
    fn a_list_names_the_entry_that_is_wrong() {
        assert_eq!(Hosts::parse("good.example,http://bad"), Err(NotAName("http://bad".to_owned())));
        assert_eq!(Origins::parse("app.example"), Err(NotAName("app.example".to_owned())));
    }
}
