//! Checks of reports: one at a time for each report, started on request or after the success of the research.

use outlast_core::{Body, Job, JobId, Key, NewJob, ResearchKind, Scope, StateKind, StoreError};

use crate::engine::{Engine, StartOutcome};

/// The recorded tool of a check that starts by itself.
const AUTOMATIC: &str = "citations.check = always";

impl Engine {
    /// Starts the check of a report for `tool`, or finds the one that is under way; `None` if the job has no report.
    /// This process runs it if it runs such jobs.
    pub async fn start_check(
        &self,
        report: &Job,
        tool: &str,
    ) -> Result<Option<StartOutcome>, StoreError> {
        let Some(check) = NewJob::check_of(report) else { return Ok(None) };
        let key = Key::for_subject(&report.id);
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

    /// Starts the check of a report that has just succeeded, at most once. A report with text of local documents is
    /// left alone: its addresses could reveal that text (J4).
    pub(crate) async fn check_new_report(&self, report: &Job) {
        if !is_checkable(report) {
            return;
        }
        let started = async {
            let scope = Scope::Owner(report.new.owner.clone());
            if self.newest_check(&scope, &report.id).await?.is_none() {
                self.start_check(report, AUTOMATIC).await?;
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
    let has_report =
        report.output().is_some_and(|output| matches!(output.body, Body::Report { .. }));
    is_research && has_report && !report.holds_library_text()
}
