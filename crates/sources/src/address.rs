//! The addresses that may be fetched (J5). A page is chosen by a report, which is untrusted text: without these rules
//! a report could make this machine send requests into its own network.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use url::{Host, Url};

/// The rules that a person may lift for an intranet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policy {
    /// Allows addresses and names that are not public.
    pub(crate) any_address: bool,
    /// Allows other ports than 80 for http and 443 for https.
    pub(crate) any_port: bool,
}

/// The rule because of which an address is not fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressRefusal {
    /// The address cannot be parsed, or its host has a zone id.
    #[error("the address is not a valid URL")]
    Invalid,
    /// The scheme is neither http nor https.
    #[error("only http and https are fetched")]
    Scheme,
    /// The port is not the scheme's own.
    #[error("only port 80 for http and port 443 for https are fetched")]
    Port,
    /// The address contains a user name or a password.
    #[error("the address contains a user name or a password")]
    UserInfo,
    /// The name belongs to a local network.
    #[error("the name is not a public one")]
    LocalName,
    /// The address, or one of the addresses of the name, is not public.
    #[error("the name or address leads into a private network")]
    PrivateAddress,
    /// The address is this machine's own.
    #[error("the address is this machine's own")]
    OwnAddress,
    /// A redirect leads from https to http.
    #[error("a redirect leads from https to http")]
    Downgrade,
    /// A proxy would choose the address, which therefore cannot be checked.
    #[error("the address cannot be checked behind a proxy")]
    Proxy,
    /// The robots.txt of the site disallows the page.
    #[error("the site's robots.txt disallows it")]
    Robots,
    /// The report has text of local documents, and no person has agreed to fetch its sources.
    #[error("the report has text of local documents: its sources are fetched only with consent")]
    Consent,
}

impl Policy {
    /// Parses an address and checks everything but the addresses of its name.
    pub(crate) fn parse(self, address: &str) -> Result<Url, AddressRefusal> {
        let mut url = Url::parse(address.trim()).map_err(|_| AddressRefusal::Invalid)?;
        if let Some(Host::Domain(name)) = url.host() {
            // A full stop at the end names the same host, but certificates and lists do not have it.
            let bare = name.trim_end_matches('.').to_owned();
            if bare.len() < name.len() {
                url.set_host(Some(&bare)).map_err(|_| AddressRefusal::Invalid)?;
            }
        }
        url.set_fragment(None);
        self.check(&url)?;
        Ok(url)
    }

    /// Checks everything but the addresses of the URL's name.
    pub(crate) fn check(self, url: &Url) -> Result<(), AddressRefusal> {
        let own_port = match url.scheme() {
            "http" => 80,
            "https" => 443,
            _ => return Err(AddressRefusal::Scheme),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err(AddressRefusal::UserInfo);
        }
        if !self.any_port && url.port_or_known_default() != Some(own_port) {
            return Err(AddressRefusal::Port);
        }
        match url.host() {
            None => Err(AddressRefusal::Invalid),
            Some(Host::Domain(name)) => self.check_name(name),
            Some(Host::Ipv4(address)) => self.check_address(address.into()),
            Some(Host::Ipv6(address)) => self.check_address(address.into()),
        }
    }

    fn check_name(self, name: &str) -> Result<(), AddressRefusal> {
        const LOCAL: [&str; 5] = ["localhost", "local", "internal", "home.arpa", "onion"];
        let name = name.to_ascii_lowercase();
        let is_below = |suffix: &&str| {
            name.strip_suffix(*suffix).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let is_local = !name.contains('.') || LOCAL.iter().any(is_below);
        if is_local && !self.any_address { Err(AddressRefusal::LocalName) } else { Ok(()) }
    }

    /// Checks an address to which a connection would go.
    pub(crate) fn check_address(self, address: IpAddr) -> Result<(), AddressRefusal> {
        if self.any_address {
            return Ok(());
        }
        let is_public = match address {
            IpAddr::V4(address) => is_public_v4(address),
            IpAddr::V6(address) => is_public_v6(address),
        };
        if !is_public {
            return Err(AddressRefusal::PrivateAddress);
        }
        // Only an address of this machine can be bound. No packet is sent.
        match UdpSocket::bind((address, 0)) {
            Ok(_) => Err(AddressRefusal::OwnAddress),
            Err(_) => Ok(()),
        }
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    const REFUSED: [([u8; 4], u32); 16] = [
        ([0, 0, 0, 0], 8),
        ([10, 0, 0, 0], 8),
        ([100, 64, 0, 0], 10),
        ([127, 0, 0, 0], 8),
        ([169, 254, 0, 0], 16),
        ([172, 16, 0, 0], 12),
        ([192, 0, 0, 0], 24),
        ([192, 0, 2, 0], 24),
        ([192, 88, 99, 0], 24),
        ([192, 168, 0, 0], 16),
        ([198, 18, 0, 0], 15),
        ([198, 51, 100, 0], 24),
        ([203, 0, 113, 0], 24),
        ([224, 0, 0, 0], 4),
        ([240, 0, 0, 0], 4),
        // The address at which a cloud's host answers its guests.
        ([168, 63, 129, 16], 32),
    ];
    let address = address.to_bits();
    REFUSED
        .iter()
        .all(|(network, length)| (address ^ u32::from_be_bytes(*network)).leading_zeros() < *length)
}

fn is_public_v6(address: Ipv6Addr) -> bool {
    const REFUSED: [(Ipv6Addr, u32); 4] = [
        (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
        (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
        (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
    ];
    if let Some(address) = embedded_v4(address) {
        return is_public_v4(address);
    }
    let is_within = |network: Ipv6Addr, length: u32| {
        (address.to_bits() ^ network.to_bits()).leading_zeros() >= length
    };
    is_within(Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3)
        && !REFUSED.iter().any(|(network, length)| is_within(*network, *length))
}

/// Returns the IPv4 part of an IPv4-mapped, IPv4-compatible or NAT64 address.
fn embedded_v4(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let [a, b, c, d, e, f, high, low] = address.segments();
    let is_embedded =
        matches!([a, b, c, d, e, f], [0, 0, 0, 0, 0, 0 | 0xffff] | [0x64, 0xff9b, 0, 0, 0, 0]);
    let [a, b] = high.to_be_bytes();
    let [c, d] = low.to_be_bytes();
    is_embedded.then(|| Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRICT: Policy = Policy { any_address: false, any_port: false };
    const PRIVATE: Policy = Policy { any_address: true, any_port: true };

    /// J5
    #[test]
    fn addresses_that_are_not_public_are_refused_in_every_notation() {
        let refused = [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.1",
            "0x7f.1",
            "2130706433",
            "0177.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "168.63.129.16",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:10.0.0.1]",
            "[::7f00:1]",
            "[64:ff9b::7f00:1]",
            "[64:ff9b::a9fe:a9fe]",
            "[fe80::1]",
            "[fc00::1]",
            "[fd12::1]",
            "[ff02::1]",
            "[2001::1]",
            "[2001:1ff::1]",
            "[2001:db8::1]",
            "[2002:7f00:1::]",
            "[3fff::1]",
            "[3fff:fff::1]",
            "[4000::1]",
            "[64:ff9b:1::1]",
        ];
        for host in refused {
            let refusal = STRICT.parse(&format!("http://{host}/"));
            assert_eq!(refusal, Err(AddressRefusal::PrivateAddress), "{host}");
            assert!(PRIVATE.parse(&format!("http://{host}/")).is_ok(), "{host}");
        }
        let public = [
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "198.17.0.1",
            "198.20.0.1",
            "192.0.1.1",
            "223.255.255.255",
            "168.63.129.17",
            "[2606:4700::1111]",
            "[2001:200::1]",
            "[2003::1]",
            "[3fff:1000::1]",
            "[::ffff:1.1.1.1]",
            "[64:ff9b::101:101]",
        ];
        for host in public {
            assert!(STRICT.parse(&format!("https://{host}/")).is_ok(), "{host}");
        }
    }

    /// J5
    #[test]
    fn schemes_ports_names_and_user_info_are_checked_after_parsing() {
        let cases = [
            ("ftp://example.org/", AddressRefusal::Scheme),
            ("file:///etc/passwd", AddressRefusal::Scheme),
            ("javascript:alert(1)", AddressRefusal::Scheme),
            ("not a url", AddressRefusal::Invalid),
            ("http://", AddressRefusal::Invalid),
            ("http://[fe80::1%25eth0]/", AddressRefusal::Invalid),
            ("http://example.org:8080/", AddressRefusal::Port),
            ("http://example.org:443/", AddressRefusal::Port),
            ("https://example.org:80/", AddressRefusal::Port),
            ("https://user@example.org/", AddressRefusal::UserInfo),
            ("https://user:pass@example.org/", AddressRefusal::UserInfo),
            ("https://:pass@example.org/", AddressRefusal::UserInfo),
            ("http://wiki/", AddressRefusal::LocalName),
            ("http://localhost/", AddressRefusal::LocalName),
            ("http://LOCALHOST./", AddressRefusal::LocalName),
            ("http://a.localhost/", AddressRefusal::LocalName),
            ("http://printer.local/", AddressRefusal::LocalName),
            ("http://metadata.google.internal/", AddressRefusal::LocalName),
            ("http://router.home.arpa/", AddressRefusal::LocalName),
            ("http://abc.onion/", AddressRefusal::LocalName),
            ("http:\\\\127.0.0.1\\", AddressRefusal::PrivateAddress),
            ("http://１２７.０.０.１/", AddressRefusal::PrivateAddress),
        ];
        for (address, refusal) in cases {
            assert_eq!(STRICT.parse(address), Err(refusal), "{address}");
        }
        for address in ["https://user@wiki/", "https://[fe80::1%25eth0]/", "ftp://wiki/"] {
            assert!(PRIVATE.parse(address).is_err(), "{address}");
        }
        for address in ["http://wiki:8080/a", "https://printer.local/"] {
            assert!(PRIVATE.parse(address).is_ok(), "{address}");
        }
        let url = STRICT.parse(" https://example.org.:443/a?b#c ").unwrap();
        assert_eq!(url.as_str(), "https://example.org/a?b");
        assert!(STRICT.parse("https://notlocal/").is_err());
        assert!(STRICT.parse("https://www.mylocal.example/").is_ok());
    }

    /// J5
    #[test]
    fn an_address_of_this_machine_can_be_recognised_by_binding_it() {
        assert!(UdpSocket::bind(("127.0.0.1", 0)).is_ok());
        assert!(UdpSocket::bind(("1.1.1.1", 0)).is_err());
    }
}
