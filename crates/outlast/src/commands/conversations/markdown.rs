//! A conversation as one Markdown document with front matter.

use serde_json::Value;

use super::transcript::{Transcript, TurnAnswer};

/// The document.
pub(super) fn document(told: &Transcript) -> String {
    let mut text = format!(
        "---\nconversation: {}\nquestion: {}\ncreated: {}\nupdated: {}\nturns: {}\n---\n",
        quoted(&told.id),
        quoted(&told.title),
        quoted(&told.created_at),
        quoted(&told.updated_at),
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
    if !answer.sources.is_empty() {
        text.push_str("\n## Sources\n\n");
        for source in &answer.sources {
            let title = source.title.as_deref().unwrap_or(&source.url);
            let title = title.split_whitespace().collect::<Vec<_>>().join(" ");
            text.push_str(&format!("{}. {title} <{}>\n", source.number, source.url));
        }
    }
    let model = answer.model.as_deref().unwrap_or("unknown");
    text.push_str(&format!("\n*model: {model}, cost: {}*\n", answer.price));
}

/// A YAML string: JSON's are.
fn quoted(text: &str) -> String {
    Value::String(text.to_owned()).to_string()
}
