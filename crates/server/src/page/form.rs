//! Names and values of an address or a form, and the other way round.

use axum::body::Body;
use http_body_util::{BodyExt as _, Limited};
use serde::Deserialize;

/// A question of ten thousand characters, each of them written as twelve.
const MAX_FORM_BYTES: usize = 256 * 1024;

/// Names and values in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub(super) struct Fields(pub(super) Vec<(String, String)>);

impl Fields {
    /// Those of a request's body; `None` where it is too long or breaks off.
    pub(super) async fn read(body: Body) -> Option<Self> {
        let bytes = Limited::new(body, MAX_FORM_BYTES).collect().await.ok()?.to_bytes();
        Some(Self(form_urlencoded::parse(&bytes).into_owned().collect()))
    }

    /// The first value of this name that is not blank, without space around it.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let named = self.0.iter().filter(|(it, _)| it == name);
        named.map(|(_, value)| value.trim()).find(|value| !value.is_empty())
    }
}

/// An address with these values; those that are empty are left out.
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

    #[tokio::test]
    async fn what_an_address_carries_is_read_as_it_was_written() {
        let read = async |query: &str| Fields::read(Body::from(query.to_owned())).await.unwrap();
        for text in ["", "a b", "ü & <script>=%2", "100%", "a+b\nc", "😀"] {
            let address = address("/ui", &[("q", text), ("state", "failed"), ("none", "")]);
            let fields = read(address.split_once('?').unwrap().1).await;
            assert_eq!(fields.get("q").unwrap_or_default(), text.trim(), "{address}");
            assert_eq!((fields.get("state"), fields.get("none")), (Some("failed"), None));
        }
        assert_eq!(read("a=%zz&b=%4&c").await.get("a"), Some("%zz"));
    }
}
