//! The prompts and the schemas of their answers. A changed prompt is a changed step, so a run that an older version
//! began keeps its own version in its header.

use outlast_core::Day;
use serde::Deserialize;
use serde_json::{Value, json};

/// Incremented whenever a prompt or a schema changes.
pub(crate) const VERSION: u32 = 1;

pub(crate) const PLAN: &str = include_str!("prompts/plan.md");
pub(crate) const NOTE: &str = include_str!("prompts/note.md");
pub(crate) const GAPS: &str = include_str!("prompts/gaps.md");
pub(crate) const SECTION: &str = include_str!("prompts/section.md");
pub(crate) const REPAIR: &str = include_str!("prompts/repair.md");
pub(crate) const SUMMARY: &str = include_str!("prompts/summary.md");

/// Returns a prompt with its date and the number of questions.
pub(crate) fn fill(prompt: &str, date: Day, questions: usize) -> String {
    prompt
        .trim_end()
        .replace("{date}", &date.to_string())
        .replace("{questions}", &questions.to_string())
}

/// Encloses a text of others, so that it cannot end its own enclosure.
pub(crate) fn enclose(name: &str, attributes: &str, text: &str) -> String {
    let text = text.replace("</", "< /");
    format!("<{name}{attributes}>\n{text}\n</{name}>\n")
}

/// The answer to [`PLAN`].
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PlanAnswer {
    #[serde(default)]
    pub(crate) title: String,
    #[serde(default)]
    pub(crate) questions: Vec<PlannedQuestion>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct PlannedQuestion {
    #[serde(default)]
    pub(crate) question: String,
    #[serde(default)]
    pub(crate) heading: String,
    #[serde(default)]
    pub(crate) queries: Vec<String>,
}

/// The answer to [`NOTE`].
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NoteAnswer {
    #[serde(default)]
    pub(crate) claims: Vec<NotedClaim>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct NotedClaim {
    #[serde(default)]
    pub(crate) passage: u64,
    #[serde(default)]
    pub(crate) quotation: String,
    #[serde(default)]
    pub(crate) text: String,
}

/// The answer to [`GAPS`].
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct GapsAnswer {
    #[serde(default)]
    pub(crate) gaps: Vec<Gap>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Gap {
    #[serde(default)]
    pub(crate) question: u64,
    #[serde(default)]
    pub(crate) queries: Vec<String>,
}

/// The answer to [`SECTION`] and [`SUMMARY`].
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct SentencesAnswer {
    #[serde(default)]
    pub(crate) sentences: Vec<WrittenSentence>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct WrittenSentence {
    #[serde(default)]
    pub(crate) text: String,
    #[serde(default)]
    pub(crate) claims: Vec<u64>,
}

/// The answer to [`REPAIR`].
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RepairAnswer {
    #[serde(default)]
    pub(crate) sentences: Vec<RepairedSentence>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct RepairedSentence {
    #[serde(default)]
    pub(crate) sentence: u64,
    #[serde(default)]
    pub(crate) text: String,
}

fn object(fields: Value) -> Value {
    let required: Vec<_> = fields.as_object().into_iter().flat_map(|all| all.keys()).collect();
    json!({ "type": "object", "properties": fields, "required": required, "additionalProperties": false })
}

fn list(items: Value) -> Value {
    json!({ "type": "array", "items": items })
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn number() -> Value {
    json!({ "type": "integer" })
}

pub(crate) fn plan_schema() -> Value {
    let question =
        object(json!({ "question": text(), "heading": text(), "queries": list(text()) }));
    object(json!({ "title": text(), "questions": list(question) }))
}

pub(crate) fn note_schema() -> Value {
    object(
        json!({ "claims": list(object(json!({ "passage": number(), "quotation": text(), "text": text() }))) }),
    )
}

pub(crate) fn gaps_schema() -> Value {
    object(
        json!({ "gaps": list(object(json!({ "question": number(), "queries": list(text()) }))) }),
    )
}

pub(crate) fn sentences_schema() -> Value {
    object(
        json!({ "sentences": list(object(json!({ "text": text(), "claims": list(number()) }))) }),
    )
}

pub(crate) fn repair_schema() -> Value {
    object(json!({ "sentences": list(object(json!({ "sentence": number(), "text": text() }))) }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::tokens::estimate_tokens;

    /// K5: the instructions leave most of a small window to the passages.
    #[test]
    fn k5_prompts_are_short() {
        for prompt in [PLAN, NOTE, GAPS, SECTION, REPAIR, SUMMARY] {
            let tokens = estimate_tokens(prompt);
            assert!(tokens < 350, "{tokens} tokens: {prompt}");
        }
    }

    /// K8: a text of others cannot end its own enclosure.
    #[test]
    fn k8_an_enclosed_text_cannot_close_its_enclosure() {
        let enclosed = enclose("passage", " id=\"1\"", "a</passage> b </ passage>");
        assert_eq!(enclosed.matches("</").count(), 1);
    }
}
