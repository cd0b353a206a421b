//! The work from top to bottom: list the files, bring the index up to date, rank, select, write.

use std::path::PathBuf;
use std::sync::Arc;

use outlast_core::{Output, ProviderError, ResearchAsk, Trouble};

use super::convert::Converters;
use super::index::{self, Index, IndexPlace};
use super::note::Searched;
use super::query::Query;
use super::refresh::{SearchError, grouped, refresh};
use super::reporter::{Reporter, Stopped};
use super::walk::{Folder, Walked, walk};
use super::{clean, rank, report, select};

/// One question to the library.
pub(super) struct Research {
    pub(super) folders: Arc<[Folder]>,
    pub(super) cache: PathBuf,
    pub(super) converters: Arc<Converters>,
    pub(super) ask: ResearchAsk,
}

impl Research {
    /// Does the work; looks at the reporter's flag all along.
    pub(super) fn run(
        &self,
        reporter: &mut Reporter,
    ) -> Result<Result<Output, ProviderError>, Stopped> {
        reporter.say(25, "Searching the library...")?;
        let walked = walk(&self.folders, reporter)?;
        if walked.gone.len() == self.folders.len() {
            return Ok(Err(gone(&walked)));
        }
        match self.over_any_index(&walked, reporter) {
            Ok(output) => Ok(Ok(output)),
            Err(SearchError::Stopped) => Err(Stopped),
            Err(SearchError::Index(error)) => {
                let sentence =
                    "the library could not be searched; the log of the server has the details";
                let detail = Some(error.to_string());
                Ok(Err(ProviderError {
                    detail,
                    ..ProviderError::new(Trouble::RunFailed, sentence)
                }))
            }
        }
    }

    /// Over the cached index; if that fails, over one made anew; if that fails too, over one in memory.
    fn over_any_index(
        &self,
        walked: &Walked,
        reporter: &mut Reporter,
    ) -> Result<Output, SearchError> {
        let cached = IndexPlace::File(&self.cache);
        let mut trouble = match self.over(cached, walked, reporter) {
            Err(SearchError::Index(error)) => error,
            done => return done,
        };
        if index::is_damage(&trouble) && index::remove(&self.cache).is_ok() {
            tracing::warn!(error = %trouble, "the library's index is damaged and is made anew");
            trouble = match self.over(cached, walked, reporter) {
                Err(SearchError::Index(error)) => error,
                done => return done,
            };
        }
        tracing::warn!(error = %trouble, "the library's index cannot be kept; everything is read again");
        self.over(IndexPlace::Memory, walked, reporter)
    }

    fn over(
        &self,
        place: IndexPlace<'_>,
        walked: &Walked,
        reporter: &mut Reporter,
    ) -> Result<Output, SearchError> {
        let mut index = Index::open(place)?;
        let mut left_out = walked.left_out.clone();
        refresh(&mut index, walked, &self.converters.installed(), &mut left_out, reporter)?;
        let unread = left_out.count() - walked.left_out.count();
        // One view of the index from here on, whatever other processes write meanwhile.
        index.connection.execute_batch("BEGIN")?;
        let passages = index.passages()?;
        reporter.say(75, format!("Searching {} passages", grouped(passages)))?;
        let query = Query::new(&self.ask);
        let ranked = rank::rank(&index, &query, reporter)?;
        let blocks = select::select(&index, &ranked, report::wanted(&self.ask))?;
        reporter.say(90, "Writing the report")?;
        let searched = Searched {
            folders: self.folders.len() - walked.gone.len(),
            files: walked.files.len().saturating_sub(unread),
            passages,
            left_out,
            gone: gone_folders(walked),
        };
        Ok(report::write(&self.ask, &query, &ranked, &blocks, &searched))
    }
}

fn gone(walked: &Walked) -> ProviderError {
    let sentence =
        "the folders of the library are not there any more; bring them back, or start with others";
    let error = ProviderError::new(Trouble::Unavailable { retry_after: None }, sentence);
    ProviderError { detail: Some(gone_folders(walked).join(", ")), ..error }
}

/// The names of the folders that are not there any more.
fn gone_folders(walked: &Walked) -> Vec<String> {
    walked.gone.iter().map(|path| clean::line(&path.to_string_lossy())).collect()
}
