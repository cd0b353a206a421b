//! Checks of reports: one at a time for each report, started on request or after the success of the research.

use outlast_core::{
    CallMode, FetchConsent, Job, JobId, Key, NewJob, ResearchKind, Scope, StateKind, StoreError,
};

use crate::engine::{Engine, StartOutcome};

/// The recorded tool of a check that starts by itself.
const AUTOMATIC: &str = "citations.check = always";

impl Engine {
    /// Starts the check of a report for `tool`, or finds the one that is under way; `None` if the job has no report.
    /// This process runs it if it runs such jobs.
    ///
    /// With [`CallMode::Attach`], a check that ends while another one is started is the result of both. A fresh check
    /// attaches only to an unfinished one.
    pub async fn start_check(
        &self,
        report: &Job,
        tool: &str,
        consent: FetchConsent,
        mode: CallMode,
    ) -> Result<Option<StartOutcome>, StoreError> {
        let Some(check) = NewJob::check_of(report, consent, mode) else { return Ok(None) };
        let scope = Scope::Owner(report.new.owner.clone());
        let ended = self.newest_check(&scope, &report.id).await?;
        let is_outdated =
            |ended: &Job| mode == CallMode::Fresh || ended.state.kind() != StateKind::Succeeded;
        if let Some(ended) = ended.filter(is_outdated) {
            // Its key then names no job; an unfinished one stays as it is.
            self.record_answer(&ended.id).await?;
        }
        let key = Key::for_check(&report.id);
        self.start_held(check.with_tool(tool), key).await.map(Some)
    }

    /// Starts the check of a document, or finds the one of the same document that is under way.
    pub async fn start_document_check(
        &self,
        check: NewJob,
        digest: [u8; 32],
    ) -> Result<StartOutcome, StoreError> {
        self.start_held(check, Key::for_document(digest)).await
    }

    /// Returns the newest check of a report that has a result.
    pub async fn finished_check(
        &self,
        scope: &Scope,
        report: &JobId,
    ) -> Result<Option<Job>, StoreError> {
        self.shared.store.newest_about(scope, report, &[StateKind::Succeeded]).await
    }

    /// Returns the newest check of a report, in any state.
    pub async fn newest_check(
        &self,
        scope: &Scope,
        report: &JobId,
    ) -> Result<Option<Job>, StoreError> {
        self.shared.store.newest_about(scope, report, &[]).await
    }

    /// Starts the check of a report that has just succeeded, at most once. No page is fetched for a report with text of
    /// local documents: the address could reveal that text (J4).
    pub(crate) async fn check_new_report(&self, report: &Job) {
        if !is_checkable(report) {
            return;
        }
        let started = async {
            let scope = Scope::Owner(report.new.owner.clone());
            if self.newest_check(&scope, &report.id).await?.is_none() {
                self.start_check(report, AUTOMATIC, FetchConsent::NotGiven, CallMode::Attach)
                    .await?;
            }
            Ok::<(), StoreError>(())
        };
        if let Err(error) = started.await {
            tracing::warn!(job.id = %report.id, %error, "failed to start the check of a report");
        }
    }
}

fn is_checkable(report: &Job) -> bool {
    let is_research =
        report.new.request.research().is_some_and(|ask| ask.kind == ResearchKind::Research);
    let has_readable_sources = report.is_of_library() || !report.holds_library_text();
    is_research && report.has_report() && has_readable_sources
}
