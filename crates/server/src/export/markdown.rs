//! A conversation as one Markdown document with front matter.

use outlast_core::Source;
use serde_json::Value;

use super::transcript::{Transcript, TurnAnswer};

/// The document.
pub fn markdown_document(told: &Transcript) -> String {
    let mut text = format!(
        "---\nconversation: {}\nquestion: {}\ncreated: {}\nupdated: {}\nturns: {}\n---\n",
        yaml_string(&told.id),
        yaml_string(&told.title),
        yaml_string(&told.created_at),
        yaml_string(&told.updated_at),
        told.turns.len()
    );
    for turn in &told.turns {
        // A quotation keeps a question of several lines, or one that looks like a heading, in one piece.
        let question = turn.question.trim().replace('\n', "\n> ");
        text.push_str(&format!("\n> **Question:** {question}\n"));
        match &turn.answer {
            Some(answer) => push_answer(&mut text, answer),
            None => {
                text.push_str(&format!("\n*{}*\n", turn.state.as_str()));
                for failure in &turn.failures {
                    text.push_str(&format!("\n- {}: {}\n", failure.code, failure.message));
                }
            }
        }
    }
    text
}

fn push_answer(text: &mut String, answer: &TurnAnswer) {
    text.push_str(&format!("\n{}\n", answer.text.trim()));
    text.push_str(&markdown_sources(&answer.sources));
    let model = answer.model.as_deref().unwrap_or("unknown");
    text.push_str(&format!("\n*model: {model}, cost: {}*\n", answer.price));
}

/// A YAML string: JSON's are.
pub fn yaml_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// What a report cites, under a heading; nothing where it cites nothing.
pub fn markdown_sources(sources: &[Source]) -> String {
    if sources.is_empty() {
        return String::new();
    }
    let lines = sources.iter().map(|source| {
        let title = source.title.as_deref().unwrap_or(&source.url);
        let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
        format!("{}. {title} <{}>\n", source.number, source.url)
    });
    format!("\n## Sources\n\n{}", lines.collect::<String>())
}
