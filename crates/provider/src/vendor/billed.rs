//! Checks that money can be counted by a vendor's bill.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{DeserializeOwned, DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::lenient::NOT_A_NUMBER;

/// The usage of a run, and a check that money can be counted by it.
#[derive(Clone, Debug, Default)]
pub(crate) struct BilledUsage<T> {
    usage: T,
    /// True if any number in it is below zero or absurdly large, its currency is not the dollar, or a cost in it is not a
    /// number: a cost read from it, or computed, would be wrong (G6).
    pub(crate) is_odd: bool,
}

impl<'de, T: DeserializeOwned> Deserialize<'de> for BilledUsage<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let field = <&RawValue>::deserialize(deserializer)?;
        let usage = serde_json::from_str(field.get()).map_err(D::Error::custom)?;
        let looked = UsageValidator { field: FieldPath::Other }
            .deserialize(&mut serde_json::Deserializer::from_str(field.get()));
        // A number that no program can hold must not make the whole answer unreadable: it would be asked for for ever.
        Ok(Self { usage, is_odd: looked.unwrap_or(true) })
    }
}

impl<T> Deref for BilledUsage<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.usage
    }
}

/// Looks through a bill without keeping it: it may be megabytes.
struct UsageValidator {
    field: FieldPath,
}

/// The field that a value is in.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FieldPath {
    Currency,
    Cost,
    Other,
}

impl FieldPath {
    fn from_name(name: &str) -> Self {
        match name {
            "currency" => Self::Currency,
            name if name.ends_with("cost") => Self::Cost,
            _ => Self::Other,
        }
    }
}

/// No run has as many tokens.
const ABSURD: f64 = 1e15;

/// No run costs as many dollars.
const ABSURD_COST: f64 = 1e6;

impl UsageValidator {
    fn is_odd_number(&self, number: f64) -> bool {
        let too_large = if self.field == FieldPath::Cost { ABSURD_COST } else { ABSURD };
        !(0.0..too_large).contains(&number)
    }
}

impl<'de> DeserializeSeed<'de> for UsageValidator {
    type Value = bool;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<bool, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for UsageValidator {
    type Value = bool;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a bill")
    }

    fn visit_unit<E>(self) -> Result<bool, E> {
        Ok(false)
    }

    fn visit_bool<E>(self, _: bool) -> Result<bool, E> {
        Ok(self.field == FieldPath::Cost)
    }

    fn visit_u64<E>(self, number: u64) -> Result<bool, E> {
        Ok(self.is_odd_number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<bool, E> {
        Ok(number < 0)
    }

    fn visit_f64<E>(self, number: f64) -> Result<bool, E> {
        Ok(self.is_odd_number(number))
    }

    fn visit_str<E>(self, text: &str) -> Result<bool, E> {
        Ok(match self.field {
            FieldPath::Currency => !text.eq_ignore_ascii_case("usd"),
            FieldPath::Cost => true,
            FieldPath::Other => text == NOT_A_NUMBER,
        })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<bool, A::Error> {
        let mut is_odd = false;
        while let Some(odd) = list.next_element_seed(Self { field: FieldPath::Other })? {
            is_odd |= odd;
        }
        Ok(is_odd)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<bool, A::Error> {
        let mut is_odd = false;
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            is_odd |= fields.next_value_seed(Self { field: FieldPath::from_name(&name) })?;
        }
        Ok(is_odd)
    }
}
