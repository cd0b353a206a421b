//! The records that a run of the researcher leaves in its journal: its questions, searches, pages and notes. People read
//! them (K10), and the next question of the conversation starts from them.

use serde::{Deserialize, Serialize};

use crate::StepOutput;

/// The output of the step of kind [`ResearchRecord::QUESTIONS`]: the plan that the run follows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionsRecord {
    pub questions: Vec<String>,
}

/// The output of a search that was answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchRecord {
    pub query: String,
    pub hits: Vec<SearchHit>,
}

/// A hit of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchHit {
    pub url: String,
    #[serde(default)]
    pub title: String,
    /// A few words of the page, as the search service shows them.
    #[serde(default)]
    pub snippet: String,
}

/// The output of a page that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadRecord {
    pub url: String,
    /// The digest of the kept page, in hexadecimal digits.
    pub page: String,
}

/// The output of a search or a page that failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedRecord {
    /// The query or the address.
    pub subject: String,
    pub reason: String,
}

/// The output of a step of kind [`ResearchRecord::NOTES`]: the notes of one phase whose quotations are in their pages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotesRecord {
    pub notes: Vec<NoteRecord>,
}

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRecord {
    /// The question that it answers.
    pub question: String,
    pub claim: String,
    /// Words of the page.
    pub quotation: String,
    pub url: String,
    /// The digest of the kept page, in hexadecimal digits.
    pub page: String,
}

/// A record of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResearchRecord {
    Questions(QuestionsRecord),
    Search(SearchRecord),
    Read(ReadRecord),
    Failed(FailedRecord),
    Notes(NotesRecord),
}

impl ResearchRecord {
    pub const QUESTIONS: &str = "questions";
    pub const SEARCH: &str = "search";
    pub const READ: &str = "read";
    pub const NOTES: &str = "notes";
    /// All kinds of steps that have such a record.
    pub const KINDS: [&str; 4] = [Self::QUESTIONS, Self::SEARCH, Self::READ, Self::NOTES];

    /// Reads the record of a step; `None` if it has none, such as a step that was cut.
    pub fn parse(step: &StepOutput) -> Option<Self> {
        let text = &*step.output;
        let read = match &*step.kind {
            Self::QUESTIONS => serde_json::from_str(text).map(Self::Questions),
            Self::SEARCH => serde_json::from_str(text).map(Self::Search),
            Self::READ => serde_json::from_str(text).map(Self::Read),
            Self::NOTES => serde_json::from_str(text).map(Self::Notes),
            _ => return None,
        };
        read.or_else(|_| serde_json::from_str(text).map(Self::Failed)).ok()
    }

    /// Returns the addresses and digests of the kept pages that it names.
    pub fn kept_pages(&self) -> Vec<(&str, [u8; 32])> {
        let named: Vec<(&str, &str)> = match self {
            Self::Read(read) => vec![(&read.url, &read.page)],
            Self::Notes(notes) => {
                notes.notes.iter().map(|note| (&*note.url, &*note.page)).collect()
            }
            Self::Questions(_) | Self::Search(_) | Self::Failed(_) => Vec::new(),
        };
        named.into_iter().filter_map(|(url, page)| Some((url, digest_from_hex(page)?))).collect()
    }
}

/// Reads the digest of a kept page from hexadecimal digits.
pub fn digest_from_hex(hex: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    for (byte, at) in digest.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&hex[at..at + 2], 16).ok()?;
    }
    Some(digest)
}
