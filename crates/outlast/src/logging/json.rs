//! Events as JSON objects, one per line, for log collectors.

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::Event;
use tracing::field::{Field, Visit};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};

/// Returns the members of an event without its time: level, target, message and fields.
pub(crate) fn object(event: &Event<'_>) -> Map<String, Value> {
    let mut members = Members::default();
    event.record(&mut members);
    let metadata = event.metadata();
    let Members { message, fields } = members;
    let mut object = Map::new();
    object.insert("level".to_owned(), metadata.level().as_str().into());
    object.insert("target".to_owned(), metadata.target().into());
    object.insert("message".to_owned(), message.into());
    if !fields.is_empty() {
        object.insert("fields".to_owned(), fields.into());
    }
    object
}

/// Returns the same with the present time, as a line of at most `limit` bytes. A longer line loses its fields, then its
/// message.
pub(crate) fn line(event: &Event<'_>, limit: usize) -> String {
    let mut object = with_time(object(event));
    let whole = Value::Object(object.clone()).to_string();
    if whole.len() <= limit {
        return whole;
    }
    object.remove("fields");
    object.insert("truncated".to_owned(), true.into());
    let without_fields = Value::Object(object.clone()).to_string();
    if without_fields.len() <= limit {
        return without_fields;
    }
    object.insert("message".to_owned(), "too long to be passed on".into());
    Value::Object(object).to_string()
}

/// Returns a line of another process that is not JSON as an object.
pub(crate) fn wrap_text(level: tracing::Level, target: &str, line: &str) -> String {
    let object = json!({ "level": level.as_str(), "target": target, "message": line });
    match object {
        Value::Object(object) => Value::Object(with_time(object)).to_string(),
        other => other.to_string(),
    }
}

/// Adds the present time.
pub(super) fn with_time(mut object: Map<String, Value>) -> Map<String, Value> {
    let mut time = String::new();
    // Writing to a string does not fail.
    if SystemTime.format_time(&mut Writer::new(&mut time)).is_ok() {
        object.insert("timestamp".to_owned(), time.into());
    }
    object
}

#[derive(Default)]
struct Members {
    message: String,
    fields: Map<String, Value>,
}

impl Members {
    fn add(&mut self, field: &Field, value: Value) {
        match (field.name(), value) {
            ("message", Value::String(text)) => self.message = text,
            (name, value) => {
                self.fields.insert(name.to_owned(), value);
            }
        }
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value.into());
    }
}
