//! Checks of a JSON object that answer as FastAPI does: 422 with every fault and where it is.

use std::fmt::Display;

use serde_json::{Map, Value, json};

use crate::errors::Refusal;

/// One object under check; null counts as absent.
pub(crate) struct Form<'a> {
    fields: &'a Map<String, Value>,
    /// Where the object stands in the request, such as `["body", "request"]`.
    place: Vec<&'a str>,
    faults: Vec<Value>,
}

/// The fields that an object may have, and what each must be.
pub(crate) type Rules = &'static [(&'static str, Rule)];

/// What a field must be.
#[derive(Clone, Copy)]
pub(crate) enum Rule {
    Any,
    Text,
    Flag,
    Object,
    /// A day such as `10/31/2026`.
    Date,
    /// From and to.
    Whole(u64, u64),
    Number(f64, f64),
    OneOf(&'static [&'static str]),
    /// At most this many.
    Texts(usize),
}

/// The body as an object.
pub(crate) fn body(bytes: &[u8]) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) => Err(fault(&["body"], "Input should be a valid dictionary", "dict_type")),
        Err(_) => Err(fault(&["body"], "JSON decode error", "json_invalid")),
    }
}

/// A refusal with a single fault.
pub(crate) fn fault(place: &[&str], message: &str, kind: &str) -> Refusal {
    Refusal::unprocessable(vec![json!({"loc": place, "msg": message, "type": kind})])
}

impl<'a> Form<'a> {
    /// Checks every field that is there. One without a rule is refused: a misspelt one must not pass as granted.
    pub(crate) fn of(fields: &'a Map<String, Value>, place: &[&'a str], rules: &[Rules]) -> Self {
        let mut form = Self { fields, place: place.to_vec(), faults: Vec::new() };
        for (name, value) in fields {
            match rules.iter().copied().flatten().find(|(known, _)| known == name) {
                None => form.wrong(name, "Extra inputs are not permitted", "extra_forbidden"),
                Some(_) if value.is_null() => {}
                Some((_, rule)) => {
                    if let Some((message, kind)) = rule.fault(value) {
                        form.wrong(name, &message, kind);
                    }
                }
            }
        }
        form
    }

    pub(crate) fn finish(self) -> Result<(), Refusal> {
        if self.faults.is_empty() { Ok(()) } else { Err(Refusal::unprocessable(self.faults)) }
    }

    pub(crate) fn present(&self, name: &str) -> Option<&'a Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    /// The field, which must be there.
    pub(crate) fn required(&mut self, name: &str) -> Option<&'a Value> {
        let value = self.present(name);
        if value.is_none() {
            self.wrong(name, "Field required", "missing");
        }
        value
    }

    pub(crate) fn text(&self, name: &str) -> Option<&'a str> {
        self.present(name)?.as_str()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.present(name).and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn whole(&self, name: &str) -> Option<usize> {
        usize::try_from(self.present(name)?.as_u64()?).ok()
    }

    pub(crate) fn object(&self, name: &str) -> Option<&'a Map<String, Value>> {
        self.present(name)?.as_object()
    }

    /// Takes over the faults of an object inside this one.
    pub(crate) fn adopt(&mut self, inner: Form<'_>) {
        self.faults.extend(inner.faults);
    }

    pub(crate) fn wrong(&mut self, name: &str, message: &str, kind: &str) {
        let place: Vec<&str> = self.place.iter().copied().chain([name]).collect();
        self.faults.push(json!({"loc": place, "msg": message, "type": kind}));
    }
}

impl Rule {
    /// What is wrong with a value, and what the vendor calls that.
    fn fault(&self, value: &Value) -> Option<(String, &'static str)> {
        let is_text = |value: &Value| value.is_string();
        let (fits, message, kind) = match *self {
            Self::Any => return None,
            Self::Flag => (value.is_boolean(), "Input should be a valid boolean", "bool_type"),
            Self::Object => (value.is_object(), "Input should be a valid dictionary", "dict_type"),
            Self::Whole(..) if !value.is_i64() && !value.is_u64() => {
                (false, "Input should be a valid integer", "int_type")
            }
            Self::Whole(least, most) => {
                let fits = value.as_u64().is_some_and(|value| (least..=most).contains(&value));
                return (!fits).then(|| out_of_range(&least, &most));
            }
            Self::Number(least, most) => match value.as_f64() {
                Some(value) if (least..=most).contains(&value) => return None,
                Some(_) => return Some(out_of_range(&least, &most)),
                None => (false, "Input should be a valid number", "float_type"),
            },
            Self::Texts(most) => match value.as_array() {
                Some(items) if items.len() > most => {
                    return Some((format!("List should have at most {most} items"), "too_long"));
                }
                items => (
                    items.is_some_and(|items| items.iter().all(is_text)),
                    "Input should be a list of strings",
                    "list_type",
                ),
            },
            Self::Text | Self::Date | Self::OneOf(_) if !value.is_string() => {
                (false, "Input should be a valid string", "string_type")
            }
            Self::Text => return None,
            Self::Date => (
                value.as_str().is_some_and(is_date),
                "Input should be a date as MM/DD/YYYY",
                "date_format",
            ),
            Self::OneOf(choices) => {
                let fits = value.as_str().is_some_and(|text| choices.contains(&text));
                let message = || format!("Input should be one of: {}", choices.join(", "));
                return (!fits).then(|| (message(), "enum"));
            }
        };
        (!fits).then(|| (message.to_owned(), kind))
    }
}

fn out_of_range(least: &dyn Display, most: &dyn Display) -> (String, &'static str) {
    (format!("Input should be from {least} to {most}"), "out_of_range")
}

fn is_date(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let [month, day, year] = parts.as_slice() else { return false };
    let number = |part: &str| part.bytes().all(|b| b.is_ascii_digit()).then(|| part.parse().ok());
    let in_range =
        |part: &str, most: u32| matches!(number(part), Some(Some(n)) if (1..=most).contains(&n));
    in_range(month, 12) && in_range(day, 31) && year.len() == 4 && in_range(year, 9_999)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_month_day_year() {
        for (text, good) in [
            ("10/31/2026", true),
            ("1/2/2026", true),
            ("2026-10-31", false),
            ("31/10/2026", false),
            ("10/31/26", false),
            ("+1/31/2026", false),
            ("", false),
        ] {
            assert_eq!(is_date(text), good, "{text}");
        }
    }

    #[test]
    fn all_faults_are_named_with_their_place() {
        let fields = json!({"model": 5, "temprature": 1, "n": 9, "ok": null});
        let fields = fields.as_object().unwrap();
        const RULES: Rules = &[("model", Rule::Text), ("n", Rule::Whole(1, 5)), ("ok", Rule::Flag)];
        let mut form = Form::of(fields, &["body"], &[RULES]);
        form.required("messages");
        let places: Vec<String> =
            form.faults.iter().map(|fault| fault["loc"].to_string()).collect();
        assert_eq!(places.len(), 4);
        assert!(places.contains(&r#"["body","temprature"]"#.to_owned()), "{places:?}");
    }
}
