//! The parts of a prompt that an answer is made of.

use serde_json::Value;

/// A prompt as the model reads it.
#[derive(Debug, Default)]
pub(super) struct Prompt {
    pub(super) text: String,
    /// Delimited data, such as passages of a page: `<passage id="3">...</passage>`.
    pub(super) parts: Vec<Part>,
}

/// One delimited part.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) text: String,
}

impl Prompt {
    /// Reads the messages of a request.
    pub(super) fn of(messages: &[Value]) -> Self {
        let text = messages.iter().map(content).collect::<Vec<_>>().join("\n");
        let parts = parts(&text);
        Self { text, parts }
    }

    /// Keeps the end of the prompt, as a server does that cuts it without a word.
    pub(super) fn keep_end(&mut self, chars: usize) {
        let skip = self.text.chars().count().saturating_sub(chars);
        self.text = self.text.chars().skip(skip).collect();
        self.parts = parts(&self.text);
    }
}

impl Part {
    /// Returns true for a sentence of a report, which has no quotations with it.
    pub(super) fn is_finished_sentence(&self) -> bool {
        self.name == "sentence" && self.quotation().is_none()
    }

    /// Returns the sentence that the part is best represented by: in a correction the quotation, else the first one.
    pub(super) fn best_sentence(&self) -> &str {
        let quotation = self.quotation().filter(|_| self.name == "sentence");
        quotation.or_else(|| sentences(&self.text).first().copied()).unwrap_or(&self.text)
    }

    fn quotation(&self) -> Option<&str> {
        self.text.lines().find_map(|line| line.strip_prefix("quotation: "))
    }
}

/// Returns the text of a message, which may consist of parts.
pub(super) fn content(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// Finds `<name id="...">text</name>` with the same name at both ends.
fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some(start) = rest.find('<') {
        rest = &rest[start + 1..];
        let Some(end) = rest.find('>') else { break };
        let tag = &rest[..end];
        let name = tag.split(' ').next().unwrap_or_default();
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-') {
            continue;
        }
        let Some(id) = attribute(tag, "id") else { continue };
        let Some(close) = rest.find(&format!("</{name}>")) else { continue };
        if close > end {
            parts.push(Part {
                name: name.to_owned(),
                id,
                text: rest[end + 1..close].trim().to_owned(),
            });
            rest = &rest[close..];
        }
    }
    parts
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, after) = tag.split_once(&format!(" {name}=\""))?;
    after.split_once('"').map(|(value, _)| value.to_owned())
}

/// Returns the sentences of a text that are worth quoting.
pub(super) fn sentences(text: &str) -> Vec<&str> {
    let lines = text.lines().flat_map(|line| line.split_inclusive(". "));
    lines
        .map(str::trim)
        .filter(|line| line.split(' ').count() >= 5 && line.ends_with('.'))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn parts_are_found_by_their_delimiters() {
        let prompt = Prompt::of(&[
            json!({"role": "system", "content": "You <b>are</b> a model."}),
            json!({"role": "user", "content": [{"type": "text", "text": "Read:\n<passage id=\"a1\" page=\"x\">\nOne < two.\n</passage>"}]}),
        ]);
        let parts: Vec<_> = prompt.parts.iter().map(|part| (&*part.id, &*part.text)).collect();
        assert_eq!(parts, [("a1", "One < two.")]);
    }
}
