//! Names and values of an address or a form, and the other way round.

use axum::body::Body;
use http_body_util::{BodyExt as _, Limited};

/// A question of ten thousand characters, each of them written as twelve.
const MAX_FORM_BYTES: usize = 256 * 1024;

/// Names and values in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// Those of an address or of a form's body.
    pub(super) fn parse(text: &str) -> Self {
        let pairs = text.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name), decoded(value))
        });
        Self(pairs.collect())
    }

    /// Those of a request's body; `None` where it is too long or breaks off.
    pub(super) async fn read(body: Body) -> Option<Self> {
        let bytes = Limited::new(body, MAX_FORM_BYTES).collect().await.ok()?.to_bytes();
        Some(Self::parse(std::str::from_utf8(&bytes).ok()?))
    }

    /// The first value of this name that is not blank, without space around it.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let named = self.0.iter().filter(|(it, _)| it == name);
        named.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
    }

    pub(super) fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// An address with these values; those that are empty are left out.
pub(super) fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    let pairs = pairs.iter().filter(|(_, value)| !value.is_empty());
    let query: Vec<String> =
        pairs.map(|(name, value)| format!("{name}={}", encoded(value))).collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

fn decoded(text: &str) -> String {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text.bytes());
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let mut ahead = rest.clone();
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                match (digit(ahead.next()), digit(ahead.next())) {
                    (Some(high), Some(low)) => {
                        bytes.extend(u8::try_from(high * 16 + low));
                        rest = ahead;
                    }
                    _ => bytes.push(b'%'),
                }
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn encoded(text: &str) -> String {
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                encoded.push(char::from(byte));
            }
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_carries_is_read_as_it_was_written() {
        for text in ["", "a b", "ü & <script>=%2", "100%", "a+b\nc", "😀"] {
            let address = address("/ui", &[("q", text), ("state", "failed"), ("none", "")]);
            let fields = Fields::parse(address.split_once('?').unwrap().1);
            assert_eq!(fields.get("q").unwrap_or_default(), text.trim(), "{address}");
            assert_eq!((fields.get("state"), fields.get("none")), (Some("failed"), None));
        }
        assert_eq!(Fields::parse("a=%zz&b=%4&c").get("a"), Some("%zz"));
    }
}
