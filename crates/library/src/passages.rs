//! Ranks passages of texts that are not files of a library, such as pages of the web, by the same rules.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use outlast_core::{Message, ResearchRequest, Role};
use rusqlite::TransactionBehavior;

use super::document::{Document, Passage, PassageKind, Unit};
use super::index::{Index, IndexPlace};
use super::query::Query;
use super::refresh::{FileStamp, SearchError, insert_document};
use super::reporter::Reporter;
use super::select::alike;
use super::{clean, rank, words};

/// The share of the best score that a passage needs.
const LEAST: f64 = 0.15;
/// The weight of each further passage of the same document.
const FURTHER: f64 = 0.85;

/// A document whose passages are ranked.
#[derive(Clone, Debug, Default)]
pub struct PassageDocument {
    pub title: Option<String>,
    pub passages: Vec<PassageText>,
}

/// A passage of a document.
#[derive(Clone, Debug, Default)]
pub struct PassageText {
    /// The headings above it.
    pub headings: Arc<str>,
    pub text: String,
}

/// A passage that may answer a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RankedPassage {
    /// The index of its document.
    pub document: usize,
    /// Its index in the document.
    pub passage: usize,
    pub score: f64,
}

/// Returns for each question the passages that best answer it, best first, without near-duplicates. Equal arguments
/// give equal results. Takes processor time, and waits for nothing.
pub fn rank_passages(
    documents: &[PassageDocument],
    questions: &[String],
    at_most: usize,
) -> Vec<Vec<RankedPassage>> {
    match try_rank(documents, questions, at_most) {
        Ok(ranked) => ranked,
        Err(SearchError::Stopped) => vec![Vec::new(); questions.len()],
        Err(SearchError::Index(error)) => {
            tracing::warn!(%error, "failed to rank passages");
            vec![Vec::new(); questions.len()]
        }
    }
}

fn try_rank(
    documents: &[PassageDocument],
    questions: &[String],
    at_most: usize,
) -> Result<Vec<Vec<RankedPassage>>, SearchError> {
    let mut index = Index::open(IndexPlace::Memory)?;
    let transaction = index.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for (number, document) in documents.iter().enumerate() {
        // The name is a number, which must not match a number of the question.
        let name = format!("_{number:06}");
        insert_document(&transaction, &name, FileStamp::default(), &to_document(document), 0)?;
    }
    transaction.commit()?;
    questions.iter().map(|question| rank_one(&index, question, at_most)).collect()
}

fn rank_one(
    index: &Index,
    question: &str,
    at_most: usize,
) -> Result<Vec<RankedPassage>, SearchError> {
    let message = Message { role: Role::User, content: question.to_owned() };
    let ask = ResearchRequest { messages: vec![message], ..ResearchRequest::default() };
    let ranked = rank::rank(index, &Query::new(&ask), &Reporter::unheard())?;
    let Some(best) = ranked.hits.first().map(|hit| hit.score) else { return Ok(Vec::new()) };
    let mut left: Vec<_> = ranked.hits.iter().filter(|hit| hit.score >= best * LEAST).collect();
    let mut chosen: Vec<RankedPassage> = Vec::new();
    let mut seen: Vec<HashSet<String>> = Vec::new();
    let mut per_file: HashMap<i64, i32> = HashMap::new();
    while chosen.len() < at_most && !left.is_empty() {
        let worth =
            |file: i64, score: f64| score * FURTHER.powi(per_file.get(&file).copied().unwrap_or(0));
        // The first of equals, because hits are in order.
        let next = (0..left.len()).rev().max_by(|one, other| {
            let of = |at: usize| worth(left[at].stored.file, left[at].score);
            of(*one).total_cmp(&of(*other))
        });
        let Some(hit) = next.map(|at| left.remove(at)) else { break };
        let words: HashSet<_> = words::of(&hit.stored.text).collect();
        if seen.iter().any(|other| alike(other, &words)) {
            continue;
        }
        seen.push(words);
        *per_file.entry(hit.stored.file).or_default() += 1;
        let document = hit.stored.name.trim_start_matches('_').parse();
        if let (Ok(document), Ok(line)) = (document, usize::try_from(hit.stored.line)) {
            chosen.push(RankedPassage { document, passage: line, score: hit.score });
        }
    }
    Ok(chosen)
}

fn to_document(document: &PassageDocument) -> Document {
    let (mut section, mut headings) = (0, Arc::<str>::from(""));
    let mut passages = Vec::with_capacity(document.passages.len());
    for (number, passage) in document.passages.iter().enumerate() {
        if passage.headings != headings {
            headings = Arc::clone(&passage.headings);
            section += 1;
        }
        let number = u32::try_from(number).unwrap_or(u32::MAX);
        passages.push(Passage {
            section,
            block: number,
            line: number,
            kind: PassageKind::Paragraph,
            headings: Arc::clone(&headings),
            text: clean::line(&passage.text),
            is_navigation: false,
        });
    }
    Document { title: document.title.clone(), unit: Unit::default(), passages }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(title: &str, texts: &[&str]) -> PassageDocument {
        let passage = |text: &&str| PassageText { headings: "".into(), text: (*text).to_owned() };
        PassageDocument {
            title: Some(title.to_owned()),
            passages: texts.iter().map(passage).collect(),
        }
    }

    /// K5: passages are selected without a model, the best of any page first, and nothing twice.
    #[test]
    fn k5_passages_of_pages_are_ranked_by_the_question() {
        let harbour = document(
            "Port of Arlen",
            &["Menu and contact.", "The harbour of Arlen handled 1,204 ships in 2023."],
        );
        let copy = document(
            "Copy",
            &["The harbour of Arlen handled 1,204 ships in 2023.", "The town has a school."],
        );
        let documents = [harbour, copy];
        let question = ["How many ships did the harbour of Arlen handle?".to_owned()];
        let all = rank_passages(&documents, &question, 3);
        let ranked = &all[0];
        assert_eq!((ranked[0].document, ranked[0].passage), (0, 1), "{ranked:?}");
        assert!(
            !ranked.iter().any(|found| (found.document, found.passage) == (1, 0)),
            "{ranked:?}"
        );
        assert_eq!(all, rank_passages(&documents, &question, 3));
        assert_eq!(rank_passages(&[], &question, 3), [vec![]]);
        assert_eq!(rank_passages(&documents, &["zebra".to_owned()], 3), [vec![]]);
    }
}
