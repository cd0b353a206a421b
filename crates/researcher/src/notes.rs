//! Notes: claims of the model, each with a quotation that its page has, word by word (K7).

use std::collections::HashSet;

use outlast_core::ProviderError;
use url::Url;

use crate::plan::{Plan, line};
use crate::prompts::{self, NoteAnswer, enclose, fill};
use crate::read::ReadPage;
use crate::work::{Question, RunContext};

/// The passages in one question to the model.
const BATCH: usize = 6;
const MAX_QUOTATION: usize = 600;
const MAX_CLAIM: usize = 400;
/// The claims of one answer that are used.
const MAX_CLAIMS: usize = 24;

/// A claim with its proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Note {
    /// The index of its sub-question.
    pub(crate) question: usize,
    /// The index of its page.
    pub(crate) page: usize,
    pub(crate) claim: String,
    pub(crate) quotation: String,
}

/// All notes, in order, each quotation once.
#[derive(Clone, Debug, Default)]
pub(crate) struct Notes {
    pub(crate) all: Vec<Note>,
    seen: HashSet<(usize, String)>,
}

impl Notes {
    /// Adds notes.
    pub(crate) fn extend(&mut self, notes: impl IntoIterator<Item = Note>) {
        for note in notes {
            if self.seen.insert((note.question, note.quotation.to_lowercase())) {
                self.all.push(note);
            }
        }
    }

    /// Returns the notes of a sub-question with their numbers, which begin with 1.
    pub(crate) fn of(&self, question: usize) -> Vec<(usize, &Note)> {
        let numbered = self.all.iter().enumerate().map(|(at, note)| (at + 1, note));
        numbered.filter(|(_, note)| note.question == question).collect()
    }
}

/// A question for notes, and the place of each of its passages.
pub(crate) struct AskedNotes {
    pub(crate) question: Question,
    sub: usize,
    /// The page of each passage.
    pages: Vec<usize>,
}

/// Returns the questions for notes about a sub-question: as many passages in each as fit.
pub(crate) fn note_questions(
    work: &RunContext,
    plan: &Plan,
    phase: &str,
    sub: usize,
    pages: &[ReadPage],
    passages: &[(usize, usize)],
) -> Vec<AskedNotes> {
    let mut asked: Vec<AskedNotes> = Vec::new();
    for (page, passage) in passages {
        let Some(text) = pages.get(*page).and_then(|page| page.passages.get(*passage)) else {
            continue;
        };
        let source = &pages[*page];
        let host = Url::parse(&source.url).ok().and_then(|url| url.host_str().map(str::to_owned));
        let title = line(&format!("{} {}", source.title, text.headings)).replace('"', "'");
        let from = host.unwrap_or_else(|| line(&source.url));
        let part = |number: usize| {
            enclose(
                "passage",
                &format!(" id=\"{number}\" site=\"{from}\" title=\"{title}\""),
                &text.text,
            )
        };
        if let Some(last) = asked.last_mut().filter(|last| last.pages.len() < BATCH) {
            let taken: u64 = last.question.parts.iter().map(|part| work.count(part)).sum();
            let next = part(last.pages.len() + 1);
            if taken + work.count(&next) <= work.room(&last.question) {
                last.question.parts.push(next);
                last.pages.push(*page);
                continue;
            }
        }
        let question = Question {
            key: format!("note:{phase}:{sub}:{}", asked.len()),
            kind: "note",
            system: fill(prompts::NOTE, work.date(), 0),
            head: enclose("question", "", &plan.questions[sub].question),
            parts: vec![part(1)],
            schema: prompts::note_schema(),
            max_tokens: 1_500,
            needs_room: true,
        };
        asked.push(AskedNotes { question, sub, pages: vec![*page] });
    }
    asked
}

/// Asks for notes. A claim whose quotation is not in its page is dropped.
pub(crate) async fn take_notes(
    work: &RunContext,
    pages: &[ReadPage],
    asked: AskedNotes,
) -> Result<Vec<Note>, ProviderError> {
    let AskedNotes { question, sub, pages: places } = asked;
    let answer: NoteAnswer = work.ask(question, |_| Ok(())).await?.unwrap_or_default();
    let mut notes = Vec::new();
    for noted in answer.claims.into_iter().take(MAX_CLAIMS) {
        let quotation = clean(&noted.quotation, MAX_QUOTATION);
        let number = usize::try_from(noted.passage).unwrap_or(0).wrapping_sub(1);
        // The page that the model names, otherwise any other page of the question that has the words.
        let named = places.get(number).copied();
        let others = places.iter().copied().filter(|page| Some(*page) != named);
        let page =
            named.into_iter().chain(others).find(|page| pages[*page].quotable.contains(&quotation));
        let Some(page) = page else {
            tracing::debug!(quotation, "dropped a claim: its quotation is not in its page");
            continue;
        };
        let claim = clean(&noted.text, MAX_CLAIM);
        let claim = if claim.is_empty() { quotation.clone() } else { claim };
        notes.push(Note { question: sub, page, claim, quotation });
    }
    Ok(notes)
}

fn clean(text: &str, longest: usize) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = unquote(text.trim());
    text[..text.floor_char_boundary(longest)].trim().to_owned()
}

/// Removes the quotation marks around a text. A mark whose partner is inside the text is a part of it.
fn unquote(text: &str) -> &str {
    const MARKS: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{201e}'];
    let inside = text.strip_prefix(MARKS).and_then(|text| text.strip_suffix(MARKS));
    inside.filter(|inside| !inside.contains(MARKS)).map_or(text, str::trim)
}

/// Returns the question about gaps. The claims of each sub-question are shortened until all questions fit.
pub(crate) fn gaps_question(
    work: &RunContext,
    plan: &Plan,
    phase: &str,
    notes: &Notes,
) -> Question {
    let mut question = Question {
        key: format!("gaps:{phase}"),
        kind: "gaps",
        system: fill(prompts::GAPS, work.date(), 0),
        head: enclose("question", "", &line(work.ask.question())),
        parts: Vec::new(),
        schema: prompts::gaps_schema(),
        max_tokens: 700,
        needs_room: true,
    };
    for shown in [12, 6, 3, 1, 0] {
        question.parts.clear();
        for (number, sub) in plan.questions.iter().enumerate() {
            let mut text = format!("{}\nearlier queries: {}", sub.question, sub.queries.join("; "));
            for (_, note) in notes.of(number).iter().take(shown) {
                text.push_str(&format!("\n- {}", note.claim));
            }
            question.parts.push(enclose("item", &format!(" id=\"{}\"", number + 1), &text));
        }
        let all: u64 = question.parts.iter().map(|part| work.count(part)).sum();
        if all <= work.room(&question) {
            break;
        }
    }
    question
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quotation_marks_around_the_whole_are_removed() {
        let cases = [
            ("\"We counted  twice.\"", "We counted twice."),
            ("\u{201e}Zweimal gez\u{e4}hlt\u{201c}", "Zweimal gez\u{e4}hlt"),
            ("\"We counted,\" said Ann.", "\"We counted,\" said Ann."),
            ("\"We\" and \"they\"", "\"We\" and \"they\""),
            ("\"", "\""),
        ];
        for (text, cleaned) in cases {
            assert_eq!(clean(text, 100), cleaned);
        }
    }
}
