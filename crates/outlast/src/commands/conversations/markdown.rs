//! A conversation as one Markdown document with front matter.

use super::transcript::{Transcript, TurnAnswer};
use crate::commands::job_view::markdown::{quoted, sources};

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
    text.push_str(&sources(&answer.sources));
    let model = answer.model.as_deref().unwrap_or("unknown");
    text.push_str(&format!("\n*model: {model}, cost: {}*\n", answer.price));
}
