//! Checks of a JSON object that answer as FastAPI does: 422 with every fault and where it is.

use serde_json::{Map, Value, json};

use crate::errors::Refusal;

/// One object under check; null counts as absent.
pub(crate) struct Form<'a> {
    fields: &'a Map<String, Value>,
    /// Where the object stands in the request, such as `["body", "request"]`.
    place: Vec<&'a str>,
    faults: Vec<Value>,
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
    /// Refuses every field that is not among `known`: a misspelt one must not pass as granted.
    pub(crate) fn of(fields: &'a Map<String, Value>, place: &[&'a str], known: &[&str]) -> Self {
        let mut form = Self { fields, place: place.to_vec(), faults: Vec::new() };
        for field in fields.keys().filter(|field| !known.contains(&field.as_str())) {
            form.wrong(field, "Extra inputs are not permitted", "extra_forbidden");
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

    pub(crate) fn text(&mut self, name: &str) -> Option<&'a str> {
        let text = self.present(name)?.as_str();
        if text.is_none() {
            self.wrong(name, "Input should be a valid string", "string_type");
        }
        text
    }

    pub(crate) fn flag(&mut self, name: &str) -> Option<bool> {
        let flag = self.present(name)?.as_bool();
        if flag.is_none() {
            self.wrong(name, "Input should be a valid boolean", "bool_type");
        }
        flag
    }

    pub(crate) fn whole(&mut self, name: &str, least: u64, most: u64) -> Option<u64> {
        let value = self.present(name)?;
        match value.as_u64() {
            Some(value) if (least..=most).contains(&value) => Some(value),
            _ if value.is_i64() || value.is_u64() => {
                let message = format!("Input should be from {least} to {most}");
                self.wrong(name, &message, "out_of_range");
                None
            }
            _ => {
                self.wrong(name, "Input should be a valid integer", "int_type");
                None
            }
        }
    }

    pub(crate) fn number(&mut self, name: &str, least: f64, most: f64) {
        let Some(value) = self.present(name) else { return };
        match value.as_f64() {
            Some(value) if (least..=most).contains(&value) => {}
            Some(_) => {
                let message = format!("Input should be from {least} to {most}");
                self.wrong(name, &message, "out_of_range");
            }
            None => self.wrong(name, "Input should be a valid number", "float_type"),
        }
    }

    pub(crate) fn one_of(&mut self, name: &str, choices: &[&str]) -> Option<&'a str> {
        let text = self.text(name)?;
        if !choices.contains(&text) {
            let message = format!("Input should be one of: {}", choices.join(", "));
            self.wrong(name, &message, "enum");
        }
        Some(text)
    }

    /// A day such as `10/31/2026`.
    pub(crate) fn date(&mut self, name: &str) {
        if let Some(text) = self.text(name)
            && !is_date(text)
        {
            self.wrong(name, "Input should be a date as MM/DD/YYYY", "date_format");
        }
    }

    pub(crate) fn texts(&mut self, name: &str, most: usize) -> Option<Vec<&'a str>> {
        let items = self.present(name)?.as_array();
        let texts: Option<Vec<&str>> =
            items.and_then(|items| items.iter().map(Value::as_str).collect());
        match &texts {
            None => self.wrong(name, "Input should be a list of strings", "list_type"),
            Some(texts) if texts.len() > most => {
                let message = format!("List should have at most {most} items");
                self.wrong(name, &message, "too_long");
            }
            Some(_) => {}
        }
        texts
    }

    pub(crate) fn object(&mut self, name: &str) -> Option<&'a Map<String, Value>> {
        let fields = self.present(name)?.as_object();
        if fields.is_none() {
            self.wrong(name, "Input should be a valid dictionary", "dict_type");
        }
        fields
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
        let mut form = Form::of(fields, &["body"], &["model", "n", "ok"]);
        assert_eq!(form.text("model"), None);
        assert_eq!(form.whole("n", 1, 5), None);
        assert_eq!(form.flag("ok"), None);
        form.required("messages");
        let places: Vec<String> =
            form.faults.iter().map(|fault| fault["loc"].to_string()).collect();
        assert_eq!(places.len(), 4);
        assert!(places.contains(&r#"["body","temprature"]"#.to_owned()), "{places:?}");
    }
}
