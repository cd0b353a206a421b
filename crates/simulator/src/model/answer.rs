//! The answer of the model: an object that fits the schema of the request, with words of its prompt.

use serde_json::{Map, Value, json};

use super::prompt::{Part, Prompt};
use crate::switches::{Switches, spread};
use crate::topic::Topic;

/// Items of a list whose schema does not say how many.
const ITEMS: usize = 3;
const SUMMARY_SENTENCES: usize = 5;
const MAX_DEPTH: usize = 8;
const INVENTED: &str =
    "Nine independent laboratories confirmed the doubling of every value within a week.";

/// Writes the answer to a prompt. `digest` is the one of the request body.
pub(super) fn write(prompt: &Prompt, schema: &Value, switches: &Switches, digest: u64) -> Value {
    let question = question(&prompt.text);
    let obeyed = trap(&prompt.text).filter(|_| switches.has("obey"));
    let topic = Topic::of(&question);
    let mut writer = Writer { prompt, switches, digest, topic, obeyed, items: 0 };
    writer.value(schema, "", None, 0)
}

/// Returns the line that contains the question: the first one that ends with a question mark, else the last.
pub(super) fn question(text: &str) -> String {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines().find(|line| line.ends_with('?')).or_else(|| lines().next_back());
    line.unwrap_or_default().chars().take(300).collect()
}

/// Returns the first address of a trap.
fn trap(text: &str) -> Option<String> {
    let place = text.find("/trap/")?;
    let start = text[..place].rfind("http://")?;
    let end = |c: char| c.is_whitespace() || matches!(c, '"' | ')' | '<' | '>' | ']' | '\\');
    let address = text[start..].split(end).next()?;
    Some(address.trim_end_matches('.').to_owned())
}

struct Writer<'a> {
    prompt: &'a Prompt,
    switches: &'a Switches,
    digest: u64,
    topic: Topic,
    /// The address that an obedient model was instructed to open.
    obeyed: Option<String>,
    /// Counts the objects of the answer, so that faults strike them independently.
    items: u64,
}

impl Writer<'_> {
    fn value(&mut self, schema: &Value, name: &str, part: Option<&Part>, depth: usize) -> Value {
        if let Some(first) = schema["enum"].get(0) {
            return first.clone();
        }
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        let kind = match &schema["type"] {
            Value::String(kind) => kind.as_str(),
            Value::Array(kinds) => kinds.first().and_then(Value::as_str).unwrap_or("string"),
            _ if schema["properties"].is_object() => "object",
            _ => "string",
        };
        match kind {
            "object" if depth < MAX_DEPTH => self.object(schema, part, depth),
            "array" if depth < MAX_DEPTH => self.array(schema, name, part, depth),
            "integer" | "number" => {
                part.and_then(|part| part.id.parse().ok()).map_or(json!(1), |id: u64| json!(id))
            }
            "boolean" => Value::Bool(false),
            "null" => Value::Null,
            _ => self.text(name, part).into(),
        }
    }

    fn object(&mut self, schema: &Value, part: Option<&Part>, depth: usize) -> Value {
        self.items += 1;
        let mut object = Map::new();
        if let Some(properties) = schema["properties"].as_object() {
            for (name, schema) in properties {
                let value = self.value(schema, name, part, depth + 1);
                object.insert(name.clone(), value);
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Value, name: &str, part: Option<&Part>, depth: usize) -> Value {
        let bound = |key: &str| schema[key].as_u64().map(|count| count as usize);
        let least = bound("minItems").unwrap_or(0);
        let most = bound("maxItems").unwrap_or(usize::MAX);
        let item = &schema["items"];
        let mut parts: Vec<&Part> = self.prompt.parts.iter().collect();
        match name {
            // A third of the questions has gaps, always the same ones.
            "gaps" => parts.retain(|part| spread(self.digest, &part.id).is_multiple_of(3)),
            // A summary is short; a correction has a quotation for each sentence.
            "sentences" if parts.iter().all(|part| part.is_finished_sentence()) => {
                parts.truncate(SUMMARY_SENTENCES);
            }
            _ => {}
        }
        let has_parts = !self.prompt.parts.is_empty();
        // A list of objects has an object for each part of the prompt; a list of ids inside of one is its id.
        let count = match (part, item["properties"].is_object()) {
            (None, true) if has_parts => parts.len(),
            (Some(_), false) => 1,
            _ => ITEMS,
        };
        let count = count.clamp(least, most.max(least));
        let item_of = |writer: &mut Self, nth: usize| {
            let part = part.or_else(|| parts.get(nth % parts.len().max(1)).copied());
            writer.items += 1;
            writer.value(item, name, part, depth + 1)
        };
        (0..count).map(|nth| item_of(self, nth)).collect()
    }

    fn text(&self, name: &str, part: Option<&Part>) -> String {
        let nth = self.items as usize;
        let term = &self.topic.terms[nth % self.topic.terms.len()];
        let fault =
            |fault: &str| self.switches.strikes(fault, self.digest ^ spread(self.items, fault));
        if let Some(address) = &self.obeyed
            && matches!(name, "query" | "queries" | "url" | "text" | "sentence")
        {
            return address.clone();
        }
        match (name, part) {
            ("id" | "ids" | "page" | "source" | "passage" | "claim" | "claims", Some(part)) => {
                part.id.clone()
            }
            ("quote" | "quotation", Some(_)) if fault("invent") => INVENTED.to_owned(),
            ("quote" | "quotation" | "text" | "sentence" | "summary", Some(part)) => {
                let sentence = part.best_sentence();
                match name {
                    "text" | "sentence" | "summary" if fault("alter") => alter(sentence),
                    _ => sentence.to_owned(),
                }
            }
            ("query" | "queries", _) => {
                format!("{term} {}", ["figures", "costs", "history", "risks"][nth % 4])
            }
            ("question" | "questions", _) => format!("What is known about {term}, part {nth}?"),
            ("title" | "heading" | "sections", _) => format!("{} {nth}", self.topic.title),
            _ => format!("The sources describe {term}."),
        }
    }
}

/// Changes the numbers of a sentence.
fn alter(sentence: &str) -> String {
    let changed = |c: char| match c.to_digit(10) {
        Some(digit) => char::from_digit((digit + 3) % 10, 10).unwrap_or(c),
        None => c,
    };
    sentence.chars().map(changed).collect()
}
