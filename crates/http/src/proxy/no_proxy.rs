//! The list of hosts that bypass the proxy, in the usual syntax of `NO_PROXY`: names with their subdomains,
//! addresses and networks, each with an optional port. The HTTP library's own list has no ports and reads
//! `*.example.org` as a literal name.

use std::net::IpAddr;

use ipnet::IpNet;
use reqwest::Url;

/// A list of exceptions.
#[derive(Debug, Default, PartialEq)]
pub(super) struct NoProxy(Vec<NoProxyEntry>);

#[derive(Debug, PartialEq)]
struct NoProxyEntry {
    host: NoProxyHost,
    /// `None` means every port.
    port: Option<u16>,
}

#[derive(Debug, PartialEq)]
enum NoProxyHost {
    Any,
    /// In lower case; matches its subdomains too.
    Name(String),
    Network(IpNet),
}

impl NoProxy {
    /// Parses a list separated by commas or spaces. Entries that cannot be parsed are ignored.
    pub(super) fn parse(text: &str) -> Self {
        let parts = text.split(|c: char| c == ',' || c.is_whitespace());
        Self(parts.filter(|part| !part.is_empty()).filter_map(NoProxyEntry::parse).collect())
    }

    /// Adds this machine to the list.
    pub(super) fn and_loopback(mut self) -> Self {
        self.0.extend(Self::parse("localhost,127.0.0.0/8,::1").0);
        self
    }

    /// Returns true if nothing goes through the proxy at all.
    pub(super) fn is_everything(&self) -> bool {
        self.0.contains(&NoProxyEntry { host: NoProxyHost::Any, port: None })
    }

    /// Returns true if requests to this address bypass the proxy.
    pub(super) fn covers(&self, url: &Url) -> bool {
        let Some(host) = url.host_str() else { return false };
        let host = host.trim_start_matches('[').trim_end_matches(']').trim_end_matches('.');
        let port = url.port_or_known_default();
        self.0.iter().any(|entry| {
            entry.port.is_none_or(|excepted| port == Some(excepted)) && entry.host.covers(host)
        })
    }
}

impl NoProxyEntry {
    fn parse(part: &str) -> Option<Self> {
        if let Some(host) = NoProxyHost::address(part) {
            return Some(Self { host, port: None });
        }
        // Only an address is written in brackets, and its colons do not start a port.
        let bracketed = part.strip_prefix('[').and_then(|part| part.split_once(']'));
        let (host, port) = match bracketed {
            Some((address, "")) => (NoProxyHost::address(address)?, None),
            Some((address, port)) => {
                (NoProxyHost::address(address)?, Some(port.strip_prefix(':')?))
            }
            None => match part.rsplit_once(':') {
                Some((host, port)) => {
                    (NoProxyHost::address(host).or_else(|| NoProxyHost::name(host))?, Some(port))
                }
                None => (NoProxyHost::name(part)?, None),
            },
        };
        let port = port.map(str::parse).transpose().ok()?;
        Some(Self { host, port })
    }
}

impl NoProxyHost {
    fn name(text: &str) -> Option<Self> {
        if text == "*" {
            return Some(Self::Any);
        }
        let name = text.strip_prefix('*').unwrap_or(text).trim_matches('.');
        let is_name = !name.is_empty() && !name.contains(['/', ':', '[', ']', '*']);
        is_name.then(|| Self::Name(name.to_ascii_lowercase()))
    }

    fn address(text: &str) -> Option<Self> {
        let network = text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.map(Self::Network)
    }

    fn covers(&self, host: &str) -> bool {
        match self {
            Self::Any => true,
            Self::Name(name) => {
                let host = host.to_ascii_lowercase();
                host.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
            }
            Self::Network(network) => {
                host.parse::<IpAddr>().is_ok_and(|host| network.contains(&host))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_networks_and_ports_are_distinguished() {
        let cases: [(&str, &[&str], &[&str]); 15] = [
            ("", &[], &["http://a.example", "http://10.0.0.1"]),
            ("example", &["http://example", "http://a.b.EXAMPLE."], &["http://anexample"]),
            (".example", &["http://example", "http://a.example"], &["http://anexample"]),
            ("*.example", &["http://a.example"], &["http://anexample"]),
            ("a.example:8080", &["http://a.example:8080"], &["http://a.example"]),
            ("a.example:443", &["https://a.example"], &["http://a.example", "https://b.example"]),
            ("10.1.2.3:80", &["http://10.1.2.3"], &["http://10.1.2.3:81", "http://10.1.2.4"]),
            ("10.0.0.0/8", &["http://10.9.9.9:1"], &["http://11.0.0.1", "http://ten.example"]),
            ("0.0.0.0/0", &["http://10.9.9.9"], &["http://[::1]", "http://a.example"]),
            ("::1", &["http://[::1]:8080"], &["http://[::2]"]),
            ("[::1]", &["http://[::1]:8080", "https://[::1]"], &["http://[::2]"]),
            ("[fd00::1]:80", &["http://[fd00::1]"], &["http://[fd00::1]:9", "http://[fd00::2]"]),
            (
                "[fd00::1]:80, fd01::/16",
                &["http://[fd00::1]", "http://[fd01:2::3]:9"],
                &["http://[fd00::1]:9"],
            ),
            (
                "a.example b.example,\tc.example",
                &["http://b.example", "http://c.example"],
                &["http://d.example"],
            ),
            ("*:8080", &["http://a.example:8080", "http://10.0.0.1:8080"], &["http://a.example"]),
        ];
        for (text, excepted, others) in cases {
            let list = NoProxy::parse(text);
            assert!(!list.is_everything(), "{text}");
            for url in excepted {
                assert!(list.covers(&Url::parse(url).unwrap()), "`{text}` and {url}");
            }
            for url in others {
                assert!(!list.covers(&Url::parse(url).unwrap()), "`{text}` and {url}");
            }
        }
        assert!(NoProxy::parse("a, *").is_everything());
    }

    #[test]
    fn an_unreadable_entry_is_ignored() {
        for odd in [
            ".",
            "*.",
            "10.0.0.0/33",
            "::/129",
            "a.example:http",
            "a:b:c",
            ",, ,",
            ":80",
            "[::1",
            "[::1]80",
            "[::1]:",
            "[a.example]",
            "[]",
        ] {
            assert_eq!(NoProxy::parse(odd), NoProxy::default(), "{odd}");
        }
    }
}
