//! Validates a JSON body against a table of fields and responds like FastAPI: 422 with every fault and its
//! location.

use serde_json::{Value, json};

use crate::errors::Refusal;

/// The fields that an object may have, and their rules.
pub(crate) type Rules = &'static [(&'static str, Rule)];

/// The rule for a field; null counts as absent.
pub(crate) enum Rule {
    Any,
    /// A check and its description.
    Is(fn(&Value) -> bool, &'static str),
    /// The minimum and the maximum.
    Whole(u64, u64),
    Number(f64, f64),
    OneOf(&'static [&'static str]),
    Object(&'static [Rules]),
    /// A list of at least one object.
    Objects(Rules),
    Required(&'static Rule),
}

pub(crate) const TEXT: Rule = Rule::Is(Value::is_string, "a valid string");
pub(crate) const FLAG: Rule = Rule::Is(Value::is_boolean, "a valid boolean");
pub(crate) const DATE: Rule = Rule::Is(is_date, "a date as MM/DD/YYYY");
pub(crate) const TEXTS: Rule = Rule::Is(are_texts, "a list of at most 20 strings");

/// The fault of one field.
pub(crate) struct FieldFault {
    /// The path of the field in the request, such as `["body", "request", "model"]`.
    pub(crate) place: Vec<String>,
    pub(crate) message: String,
    pub(crate) kind: &'static str,
}

/// Parses the body and checks it against the rules.
pub(crate) fn body(bytes: &[u8], rules: &[Rules]) -> Result<Value, Refusal> {
    let body = serde_json::from_slice(bytes).unwrap_or_default();
    let faults = faults(&body, rules);
    let faults: Vec<Value> = faults
        .into_iter()
        .map(|fault| json!({"loc": fault.place, "msg": fault.message, "type": fault.kind}))
        .collect();
    if faults.is_empty() { Ok(body) } else { Err(Refusal::unprocessable(faults)) }
}

/// Returns all faults of the body. A field without a rule is one of them, so that a misspelt field cannot pass
/// unnoticed.
pub(crate) fn faults(body: &Value, rules: &[Rules]) -> Vec<FieldFault> {
    let mut faults = Vec::new();
    check_object(body, rules, &["body".to_owned()], &mut faults);
    faults
}

fn check_object(object: &Value, rules: &[Rules], place: &[String], faults: &mut Vec<FieldFault>) {
    let Some(fields) = object.as_object() else {
        let message = "Input should be a valid dictionary".to_owned();
        return faults.push(FieldFault { place: place.to_vec(), message, kind: "dict_type" });
    };
    let inside = |name: &str| [place, &[name.to_owned()]].concat();
    let rules = || rules.iter().copied().flatten();
    for name in fields.keys().filter(|name| rules().all(|(known, _)| known != name)) {
        let message = "Extra inputs are not permitted".to_owned();
        faults.push(FieldFault { place: inside(name), message, kind: "extra_forbidden" });
    }
    for (name, rule) in rules() {
        rule.check(&object[name], inside(name), faults);
    }
}

impl Rule {
    fn check(&self, value: &Value, place: Vec<String>, faults: &mut Vec<FieldFault>) {
        let wanted = match self {
            Self::Required(_) if value.is_null() => {
                let message = "Field required".to_owned();
                return faults.push(FieldFault { place, message, kind: "missing" });
            }
            Self::Required(rule) => return rule.check(value, place, faults),
            Self::Any => return,
            _ if value.is_null() => return,
            Self::Is(fits, _) if fits(value) => return,
            Self::Is(_, wanted) => (*wanted).to_owned(),
            Self::Whole(least, most) => match value.as_u64() {
                Some(number) if (least..=most).contains(&&number) => return,
                _ => format!("a whole number from {least} to {most}"),
            },
            Self::Number(least, most) => match value.as_f64() {
                Some(number) if (least..=most).contains(&&number) => return,
                _ => format!("a number from {least} to {most}"),
            },
            Self::OneOf(choices) => match value.as_str() {
                Some(text) if choices.contains(&text) => return,
                _ => format!("one of: {}", choices.join(", ")),
            },
            Self::Object(rules) => return check_object(value, rules, &place, faults),
            Self::Objects(rules) => match value.as_array().map(Vec::as_slice) {
                None | Some([]) => "a list of dictionaries".to_owned(),
                Some(items) => {
                    for (index, item) in items.iter().enumerate() {
                        let place = [place.as_slice(), &[index.to_string()]].concat();
                        check_object(item, &[rules], &place, faults);
                    }
                    return;
                }
            },
        };
        let message = format!("Input should be {wanted}");
        faults.push(FieldFault { place, message, kind: "value_error" });
    }
}

/// Returns the text of a message, which may be split into parts; other parts than text are ignored.
pub(crate) fn text_of(content: &Value) -> Option<String> {
    let text = |part: &Value| match part["type"].as_str()? {
        "image_url" | "file_url" | "pdf_url" | "video_url" => Some(String::new()),
        _ => part["text"].as_str().map(str::to_owned),
    };
    match content {
        Value::String(text) => Some(text.clone()),
        Value::Array(parts) => Some(parts.iter().map(text).collect::<Option<Vec<_>>>()?.join("\n")),
        _ => None,
    }
}

fn are_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|items| items.len() <= 20 && items.iter().all(Value::is_string))
}

fn is_date(value: &Value) -> bool {
    let parts: Vec<&str> = value.as_str().unwrap_or_default().split('/').collect();
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
            assert_eq!(is_date(&text.into()), good, "{text}");
        }
    }

    #[test]
    fn all_faults_are_reported_with_their_location() {
        const RULES: Rules = &[
            ("model", TEXT),
            ("n", Rule::Whole(1, 5)),
            ("ok", FLAG),
            ("messages", Rule::Required(&Rule::Any)),
        ];
        let body = json!({"model": 5, "temprature": 1, "n": 9, "ok": null});
        let mut places: Vec<String> =
            faults(&body, &[RULES]).iter().map(|fault| fault.place.join(".")).collect();
        places.sort();
        assert_eq!(places, ["body.messages", "body.model", "body.n", "body.temprature"]);
    }
}
