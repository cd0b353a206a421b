//! The chunks of a stream, joined: the text of all of them, every other field from the latest that has it.

use outlast_core::Output;

use super::report;
use super::wire::Completion;
use crate::http::MAX_BODY;
use crate::vendor::lenient::{Items, Known};

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct Joined {
    said: String,
    words: usize,
    /// Everything but the text.
    rest: Completion,
    /// The chunk that ended the answer, as it came.
    end: Option<Vec<u8>>,
    /// A chunk came that could not be read.
    lossy: bool,
}

/// The answer is longer than we will hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is longer than {MAX_BODY} bytes")]
pub(super) struct TooLong;

impl Joined {
    /// Adds a chunk; `data` is its original text.
    pub(super) fn add(&mut self, chunk: Completion, data: &str) -> Result<(), TooLong> {
        let delta = chunk.delta().unwrap_or_default();
        if self.said.len() + delta.len() > MAX_BODY {
            return Err(TooLong);
        }
        self.said.push_str(delta);
        self.words += delta.split_whitespace().count();
        if chunk.finish_reason().is_some() {
            self.end = Some(data.as_bytes().to_vec());
        }
        let before = std::mem::take(&mut self.rest);
        self.rest = Completion {
            id: Known(chunk.id.0.or(before.id.0)),
            model: Known(chunk.model.0.or(before.model.0)),
            citations: chunk.citations.or(before.citations),
            search_results: chunk.search_results.or(before.search_results),
            usage: Known(chunk.usage.0.or(before.usage.0)),
            related_questions: Items(chunk.related_questions.0.or(before.related_questions.0)),
            // A chunk after the end has usage and no choices.
            choices: Items(chunk.choices.0.filter(|said| !said.is_empty()).or(before.choices.0)),
            error: None,
        };
        Ok(())
    }

    /// Notes a chunk that could not be read: its text is lost, unless a later one repeats it.
    pub(super) fn add_unreadable(&mut self) {
        self.lossy = true;
    }

    /// The number of words that have arrived.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns true if the answer is complete.
    pub(super) fn is_whole(&self) -> bool {
        self.end.is_some()
    }

    /// The whole answer and the chunk that ended it; `None` if it is not whole, or has no text.
    pub(super) fn output(&self) -> Option<(Box<Output>, Vec<u8>)> {
        let end = self.end.clone()?;
        // In full mode the last chunk repeats everything. It wins if it has more: if a chunk was lost, or
        // if there are no deltas at all.
        let repeated = self.rest.message().unwrap_or_default();
        let said = if repeated.len() > self.said.len() { repeated } else { &self.said };
        if self.lossy && repeated.len() < self.said.len() {
            return None;
        }
        Some((report::said(said.to_owned(), self.rest.clone())?, end))
    }
}
