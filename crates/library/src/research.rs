//! The steps of a search: list the files, update the index, rank, select, write.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_core::{Output, ProviderError, ProviderErrorKind, ResearchRequest};

use super::convert::Converters;
use super::index::{self, Index, IndexPlace};
use super::note::SearchScope;
use super::query::Query;
use super::refresh::{SearchError, group_digits, refresh};
use super::reporter::{Reporter, ReporterGone};
use super::walk::{Folder, WalkResult, walk};
use super::{cited, clean, rank, report, select};

pub(super) struct Research {
    pub(super) folders: Arc<[Folder]>,
    pub(super) cache: PathBuf,
    pub(super) converters: Arc<Converters>,
    pub(super) ask: ResearchRequest,
}

impl Research {
    /// Runs the search and checks throughout whether the run was cancelled.
    pub(super) fn run(
        &self,
        reporter: &mut Reporter,
    ) -> Result<Result<Output, ProviderError>, ReporterGone> {
        reporter.report(25, "Searching the library...")?;
        let walked = walk(&self.folders, reporter)?;
        if walked.gone.len() == self.folders.len() {
            return Ok(Err(folders_missing(&walked)));
        }
        match self.over_any_index(&walked, reporter) {
            Ok(output) => Ok(Ok(output)),
            Err(SearchError::Stopped) => Err(ReporterGone),
            Err(SearchError::Index(error)) => {
                let sentence =
                    "the library could not be searched; the log of the server has the details";
                let detail = Some(error.to_string());
                Ok(Err(ProviderError {
                    detail,
                    ..ProviderError::new(ProviderErrorKind::RunFailed, sentence)
                }))
            }
        }
    }

    /// Searches the cached index; if that fails, a rebuilt one; if that fails too, one in memory.
    fn over_any_index(
        &self,
        walked: &WalkResult,
        reporter: &mut Reporter,
    ) -> Result<Output, SearchError> {
        let cached = IndexPlace::File(&self.cache);
        let mut error = match self.over(cached, walked, reporter) {
            Err(SearchError::Index(error)) => error,
            done => return done,
        };
        if index::is_damage(&error) && index::remove(&self.cache).is_ok() {
            tracing::warn!(error = %error, "the library's index is damaged; rebuilding it");
            error = match self.over(cached, walked, reporter) {
                Err(SearchError::Index(error)) => error,
                done => return done,
            };
        }
        tracing::warn!(error = %error, "failed to store the library's index; reading all files again");
        self.over(IndexPlace::Memory, walked, reporter)
    }

    fn over(
        &self,
        place: IndexPlace<'_>,
        walked: &WalkResult,
        reporter: &mut Reporter,
    ) -> Result<Output, SearchError> {
        let mut index = Index::open(place)?;
        let mut left_out = walked.left_out.clone();
        refresh(&mut index, walked, &self.converters.find_installed(), &mut left_out, reporter)?;
        let unread = left_out.count() - walked.left_out.count();
        // From here on, a single view of the index that ignores concurrent writes.
        index.connection.execute_batch("BEGIN")?;
        let passages = index.passages()?;
        reporter.report(75, format!("Searching {} passages", group_digits(passages)))?;
        let query = Query::new(&self.ask);
        let ranked = rank::rank(&index, &query, reporter)?;
        let blocks = select::select(&index, &ranked, report::read_limits(&self.ask))?;
        reporter.report(90, "Writing the report")?;
        let searched = SearchScope {
            folders: self.folders.len() - walked.gone.len(),
            files: walked.files.len().saturating_sub(unread),
            passages,
            left_out,
            gone: missing_folders(walked),
        };
        let mut output = report::write(&self.ask, &query, &ranked, &blocks, &searched);
        cited::record_digests(&mut output, walked);
        Ok(output)
    }
}

fn folders_missing(walked: &WalkResult) -> ProviderError {
    let sentence = "the folders of the library no longer exist; restore them, or start with others";
    let error = ProviderError::new(ProviderErrorKind::Unavailable { retry_after: None }, sentence);
    ProviderError { detail: Some(missing_folders(walked).join(", ")), ..error }
}

/// Returns the names of the folders that no longer exist.
fn missing_folders(walked: &WalkResult) -> Vec<String> {
    walked.gone.iter().map(|path| clean::line(&path.to_string_lossy())).collect()
}
