//! Whether a vendor's bill can be summed up.

use std::ops::Deref;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// What a run consumed, and whether money can be counted by it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Billed<T> {
    usage: T,
    /// Whether any number in it is below zero, or its currency is not the dollar: a cost read from it, or computed, would
    /// be wrong (G6).
    pub(crate) is_odd: bool,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for Billed<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let field = <Box<RawValue>>::deserialize(deserializer)?;
        let usage: T = serde_json::from_str(field.get()).map_err(D::Error::custom)?;
        let bill: Value = serde_json::from_str(field.get()).map_err(D::Error::custom)?;
        Ok(Self { usage, is_odd: is_odd(&bill) })
    }
}

impl<T> Deref for Billed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.usage
    }
}

fn is_odd(bill: &Value) -> bool {
    match bill {
        Value::Number(number) => number.as_f64().is_some_and(|number| number < 0.0),
        Value::Array(items) => items.iter().any(is_odd),
        Value::Object(fields) => fields.iter().any(|(name, value)| {
            let currency = value.as_str().filter(|_| name == "currency");
            currency.is_some_and(|currency| !currency.eq_ignore_ascii_case("usd")) || is_odd(value)
        }),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
}
