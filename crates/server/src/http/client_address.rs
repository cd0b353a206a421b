//! Finds the address of the client: the peer of the connection, or the address that a trusted proxy reports.

use std::net::{IpAddr, SocketAddr};

use http::HeaderMap;
use ipnet::IpNet;

use super::allowed_hosts::NotAName;

/// The proxies whose `X-Forwarded-For` counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Parses addresses and networks such as `10.0.0.0/8`, separated by commas.
    pub fn parse(list: &str) -> Result<Self, NotAName> {
        let entries = list.split(',').map(str::trim).filter(|entry| !entry.is_empty());
        let parse = |entry: &str| -> Option<IpNet> {
            let address =
                entry.parse::<IpAddr>().map(|address| IpNet::from(address.to_canonical()));
            entry.parse().or(address).ok()
        };
        entries
            .map(|entry| parse(entry).ok_or_else(|| NotAName(entry.to_owned())))
            .collect::<Result<_, _>>()
            .map(Self)
    }

    /// Returns the address of the client. Reads from the right, because each proxy appends the address that it saw: the
    /// client itself wrote everything to the left of the first address that is not a trusted proxy.
    pub(super) fn client_address(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let values = headers.get_all("x-forwarded-for").iter().rev();
        let hops = values.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
        for hop in hops {
            if !self.trusts(client) {
                break;
            }
            let Some(address) = parse_forwarded(hop.trim()) else { break };
            client = address.to_canonical();
        }
        client
    }

    fn trusts(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(&address))
    }
}

/// Parses an address with or without a port.
fn parse_forwarded(hop: &str) -> Option<IpAddr> {
    let bare = hop.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(hop);
    bare.parse().ok().or_else(|| hop.parse::<SocketAddr>().ok().map(|address| address.ip()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_trusted_proxy_says_who_the_client_is() {
        let table: [(&str, &str, &[&str], &str); 12] = [
            ("", "192.0.2.1", &["198.51.100.7"], "192.0.2.1"),
            ("10.0.0.1", "192.0.2.1", &["198.51.100.7"], "192.0.2.1"),
            ("10.0.0.1", "10.0.0.1", &["198.51.100.7"], "198.51.100.7"),
            ("10.0.0.0/8", "10.9.9.9", &["1.2.3.4, 198.51.100.7"], "198.51.100.7"),
            ("10.0.0.0/8", "10.9.9.9", &["1.2.3.4, 198.51.100.7, 10.1.1.1"], "198.51.100.7"),
            ("10.0.0.0/8", "10.9.9.9", &["1.2.3.4", "198.51.100.7", "10.1.1.1"], "198.51.100.7"),
            ("10.0.0.0/8", "10.9.9.9", &["198.51.100.7:1234"], "198.51.100.7"),
            ("10.0.0.0/8", "10.9.9.9", &["[2001:db8::7]:1234"], "2001:db8::7"),
            ("10.0.0.0/8", "10.9.9.9", &["198.51.100.7, unknown"], "10.9.9.9"),
            ("10.0.0.0/8", "10.9.9.9", &[], "10.9.9.9"),
            ("::1, 127.0.0.1", "::ffff:127.0.0.1", &["::ffff:198.51.100.7"], "198.51.100.7"),
            ("10.0.0.0/8", "10.9.9.9", &["10.1.1.1, 10.2.2.2"], "10.1.1.1"),
        ];
        for (trusted, peer, headers, expected) in table {
            let proxies = TrustedProxies::parse(trusted).unwrap();
            let mut sent = HeaderMap::new();
            for header in headers {
                sent.append("x-forwarded-for", header.parse().unwrap());
            }
            let client = proxies.client_address(peer.parse().unwrap(), &sent);
            assert_eq!(client.to_string(), expected, "{trusted} {peer} {headers:?}");
        }
        for wrong in ["example.com", "10.0.0.0/33", "10.0.0.1:80"] {
            assert!(TrustedProxies::parse(wrong).is_err(), "{wrong}");
        }
    }
}
