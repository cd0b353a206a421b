//! Whether a vendor's bill can be summed up.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
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
        let field = <&RawValue>::deserialize(deserializer)?;
        let usage = serde_json::from_str(field.get()).map_err(D::Error::custom)?;
        let looked = Oddness { is_currency: false }
            .deserialize(&mut serde_json::Deserializer::from_str(field.get()));
        Ok(Self { usage, is_odd: looked.map_err(D::Error::custom)? })
    }
}

impl<T> Deref for Billed<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.usage
    }
}

/// Looks through a bill without keeping it: it may be megabytes.
struct Oddness {
    is_currency: bool,
}

impl<'de> DeserializeSeed<'de> for Oddness {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Oddness {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a bill")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_u64<E>(self, _: u64) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_i64<E>(self, number: i64) -> Result<bool, E> {
        Ok(number < 0)
    }

    fn visit_f64<E>(self, number: f64) -> Result<bool, E> {
        Ok(number < 0.0)
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(self.is_currency && !text.eq_ignore_ascii_case("usd"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut is_odd = false;
        while let Some(odd) = list.next_element_seed(Self { is_currency: false })? {
            is_odd |= odd;
        }
        Ok(is_odd)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let mut is_odd = false;
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            is_odd |= fields.next_value_seed(Self { is_currency: name == "currency" })?;
        }
        Ok(is_odd)
    }
}
