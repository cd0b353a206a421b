//! The library as a search service: files that may answer a question, and the text of a file.

use std::collections::HashSet;
use std::sync::Arc;

use outlast_core::{Message, ResearchRequest, Role};
use tokio::sync::mpsc;

use super::index::{Index, IndexPlace};
use super::passages::{PassageDocument, PassageText};
use super::query::Query;
use super::refresh::{SearchError, refresh};
use super::reporter::Reporter;
use super::walk::walk;
use super::{Library, rank};

/// A file that may answer a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LibraryFile {
    /// Its name in reports: the path in the library.
    pub name: String,
    pub title: Option<String>,
    /// The passage that fits best.
    pub snippet: String,
}

/// The reason a library cannot be searched.
#[derive(Debug, thiserror::Error)]
pub enum LibrarySearchError {
    /// The index cannot be read or written.
    #[error("the index of the library failed: {0}")]
    Index(#[from] rusqlite::Error),
    /// None of the folders exists any longer.
    #[error("the folders of the library no longer exist")]
    FoldersMissing,
}

impl From<SearchError> for LibrarySearchError {
    fn from(error: SearchError) -> Self {
        match error {
            SearchError::Index(error) => Self::Index(error),
            // The reporter of these calls stops nothing.
            SearchError::Stopped => Self::Index(rusqlite::Error::InvalidQuery),
        }
    }
}

impl Library {
    /// Returns the files with the best passages for a question, best first. Reads files that have changed; waits for
    /// the disk.
    pub fn find_files(
        &self,
        question: &str,
        at_most: usize,
    ) -> Result<Vec<LibraryFile>, LibrarySearchError> {
        let index = self.refreshed_index()?;
        let message = Message { role: Role::User, content: question.to_owned() };
        let ask = ResearchRequest { messages: vec![message], ..ResearchRequest::default() };
        let ranked = rank::rank(&index, &Query::new(&ask), &Reporter::unheard())?;
        let mut seen = HashSet::new();
        let best = ranked.hits.into_iter().filter(|hit| seen.insert(hit.stored.file));
        let file = |hit: rank::Hit| LibraryFile {
            name: hit.stored.name,
            title: hit.stored.title,
            snippet: hit.stored.text,
        };
        Ok(best.take(at_most).map(file).collect())
    }

    /// Returns whether the folders have any text that can be read.
    pub fn has_text(&self) -> Result<bool, LibrarySearchError> {
        Ok(self.refreshed_index()?.passages()? > 0)
    }

    /// Returns the title and the passages of a file in their order; `None` if the library does not have it.
    pub fn read_file(&self, name: &str) -> Result<Option<PassageDocument>, LibrarySearchError> {
        let index = self.refreshed_index()?;
        let passages = index.passages_of(name)?;
        let Some(first) = passages.first() else { return Ok(None) };
        let title = first.title.clone();
        let passages = passages
            .into_iter()
            .map(|stored| PassageText { headings: stored.headings.into(), text: stored.text });
        Ok(Some(PassageDocument { title, passages: passages.collect() }))
    }

    fn refreshed_index(&self) -> Result<Index, LibrarySearchError> {
        // Progress needs a receiver: without one, the work counts as cancelled.
        let (sender, _receiver) = mpsc::unbounded_channel();
        let mut reporter = Reporter::new(sender, Arc::default());
        let walked = walk(&self.folders, &reporter).map_err(SearchError::from)?;
        if walked.gone.len() == self.folders.len() {
            return Err(LibrarySearchError::FoldersMissing);
        }
        let cache = self.cache_dir.join(format!("{}.db", self.hash));
        let mut open = |place| {
            let mut index = Index::open(place)?;
            let mut left_out = walked.left_out.clone();
            let converters = self.converters.find_installed();
            refresh(&mut index, &walked, &converters, &mut left_out, &mut reporter)?;
            Ok::<_, SearchError>(index)
        };
        match open(IndexPlace::File(&cache)) {
            Err(SearchError::Index(error)) => {
                tracing::warn!(%error, "failed to store the library's index; reading all files again");
                Ok(open(IndexPlace::Memory)?)
            }
            opened => Ok(opened?),
        }
    }
}
