//! Parses the fields of an address or a form, and builds addresses.

use serde::Deserialize;

/// The maximum size of a form: a question of ten thousand characters, each encoded in twelve.
pub(super) const MAX_FORM_BYTES: usize = 256 * 1024;
/// The maximum size of the sign-in form: a token and an address to continue at.
pub(super) const MAX_SIGN_IN_BYTES: usize = 4 * 1024;

/// Names and values in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// Parses the body of a form, or the query of an address.
    pub(super) fn parse(bytes: &[u8]) -> Self {
        Self(form_urlencoded::parse(bytes).into_owned().collect())
    }

    /// Returns the first value of this name that is not blank, trimmed.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.all(name).find(|value| !value.is_empty())
    }

    /// Returns every value of this name, trimmed.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.0.iter().filter(move |(it, _)| it == name).map(|(_, value)| value.trim())
    }
}

/// Builds an address with these values; empty values are omitted.
pub(super) fn address(path: &str, pairs: &[(&str, &str)]) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(pairs.iter().filter(|(_, value)| !value.is_empty()));
    match query.finish().as_str() {
        "" => path.to_owned(),
        query => format!("{path}?{query}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_an_address_are_read_as_they_were_written() {
        let read = |query: &str| Fields::parse(query.as_bytes());
        for text in ["", "a b", "ü & <script>=%2", "100%", "a+b\nc", "😀"] {
            let address = address("/ui", &[("q", text), ("state", "failed"), ("none", "")]);
            let fields = read(address.split_once('?').unwrap().1);
            assert_eq!(fields.get("q").unwrap_or_default(), text.trim(), "{address}");
            assert_eq!((fields.get("state"), fields.get("none")), (Some("failed"), None));
        }
        assert_eq!(read("a=%zz&b=%4&c").get("a"), Some("%zz"));
    }
}
