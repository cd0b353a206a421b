//! Fields as this API sends them: of any type, or none.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A field, if it has the type we know.
pub(in crate::perplexity) fn known<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(T::deserialize(Value::deserialize(deserializer)?).ok())
}

/// A word; empty when it is null or no word.
pub(super) fn word<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(known(deserializer)?.unwrap_or_default())
}

/// A list, without the items whose type we do not know.
pub(in crate::perplexity) fn known_items<'de, D, T>(
    deserializer: D,
) -> Result<Option<Vec<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let Value::Array(items) = Value::deserialize(deserializer)? else { return Ok(None) };
    Ok(Some(items.into_iter().filter_map(|item| T::deserialize(item).ok()).collect()))
}
