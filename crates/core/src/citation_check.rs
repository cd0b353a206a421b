//! A check of citations as a job (J1): the form that interfaces write into [`crate::NewJob::request`] and the checker
//! reads.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{
    Body, CallMode, Job, LIBRARY_NOTE, NewJob, OwnerId, Profile, Request, Source, Timestamp,
    Visibility,
};

/// A report whose citations are checked. It is a copy: a report never changes, and the worker reads no other job.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckRequest {
    /// The report, in Markdown.
    pub report: String,
    /// The sources that are listed next to the report.
    #[serde(default)]
    pub sources: Vec<CheckedAddress>,
    /// The conversation of the report, for answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation: Option<String>,
    /// The profile of the library that wrote the report: its sources that are not addresses are files of this library.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<Profile>,
    /// The time of the report, for files without a digest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_at: Option<Timestamp>,
    /// True if pages must not be fetched: the report has text of local documents, which their addresses could reveal.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stays_local: bool,
    /// True if the pages are fetched although the run that wrote the report has kept them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fetch_again: bool,
}

/// A person's consent to fetch the web sources of a report with text of local documents (J4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchConsent {
    /// All sources are fetched.
    Given,
    /// Only files of the library are read. Reports without local text need no consent.
    NotGiven,
}

/// A source that is listed next to a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckedAddress {
    /// The `n` of `[n]`.
    pub number: u32,
    /// The address.
    pub url: String,
    /// The digest of a local file, as in [`Source::digest`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
}

/// The time limit of one attempt at a check: that of the check itself, and the wait for earlier checks.
const ATTEMPT: Duration = Duration::from_secs(60 * 60);

/// The number of failed attempts that another one may follow.
const MAX_FAILURES: u32 = 2;

/// The retention of a check that belongs to no report.
const KEEP: Duration = Duration::from_secs(24 * 60 * 60);

impl NewJob {
    /// Creates the check of a report; `None` if the job has no report. A fresh check does not use the pages that the
    /// researcher has kept.
    pub fn check_of(report: &Job, consent: FetchConsent, mode: CallMode) -> Option<Self> {
        let Body::Report { text, sources, .. } = &report.output()?.body else { return None };
        let address = |source: &Source| CheckedAddress {
            number: source.number,
            url: source.url.clone(),
            digest: source.digest.clone(),
        };
        let check = CheckRequest {
            report: text.clone(),
            sources: sources.iter().map(address).collect(),
            conversation: report.new.conversation.as_ref().map(ToString::to_string),
            library: report.is_of_library().then(|| report.new.profile.clone()),
            written_at: report.ended_at().filter(|_| report.is_of_library()),
            stays_local: consent == FetchConsent::NotGiven && report.holds_library_text(),
            fetch_again: mode == CallMode::Fresh,
        };
        let new = Self::check(report.new.owner.clone(), &report.new.title, &check);
        Some(Self { subject: Some(report.id), keep: None, ..new })
    }

    /// Creates the check of a document that belongs to no job.
    pub fn check_of_text(owner: OwnerId, title: &str, text: String) -> Self {
        Self::check(owner, title, &CheckRequest { report: text, ..CheckRequest::default() })
    }

    fn check(owner: OwnerId, title: &str, check: &CheckRequest) -> Self {
        let title = if title.is_empty() { "a document" } else { title };
        Self {
            owner,
            conversation: None,
            subject: None,
            profile: Profile::new(Profile::CITATIONS),
            workflow: Self::CHECK_CITATIONS.to_owned(),
            title: format!("Citations: {title}"),
            request: Request::from(serde_json::json!(check)),
            priority: 0,
            // Not in the queue: slow sites must not take the room of research.
            visibility: Visibility::Task,
            max_failures: MAX_FAILURES,
            attempt_timeout: ATTEMPT,
            life: None,
            keep: Some(KEEP),
        }
    }
}

impl Job {
    /// Returns true if it has a report, which can be checked.
    pub fn has_report(&self) -> bool {
        self.output().is_some_and(|output| matches!(output.body, Body::Report { .. }))
    }

    /// Returns true if the library does its work: the sources of its report are local files.
    pub fn is_of_library(&self) -> bool {
        self.new.profile.provider() == Profile::LIBRARY
    }

    /// Returns whether its report may contain text of local documents, which the addresses of its sources could
    /// reveal (J4): nothing of it is fetched unless a person asks for it.
    pub fn holds_library_text(&self) -> bool {
        let is_quoted = |job: &Self| match job.output().map(|output| &output.body) {
            Some(Body::Report { text, .. }) => text.contains(LIBRARY_NOTE),
            Some(Body::Tool { .. }) | None => false,
        };
        self.new.profile.reads_documents() || self.new.sends_library_text() || is_quoted(self)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::rules::tests::{NOW, queued};
    use crate::{Cost, JobState, Output, RequestContent, Usage};

    fn report(text: &str) -> Job {
        let mut job = queued().job;
        let source = Source { number: 1, url: "https://a.example".to_owned(), ..Source::default() };
        let body = Body::report(text, vec![source]);
        let output = Output { body, model: None, usage: Usage::default(), cost: Cost::Unknown };
        job.state = JobState::Succeeded { at: NOW, output: Arc::new(output) };
        job
    }

    /// J1: the check is free, belongs to no conversation, and contains what it needs.
    #[test]
    fn j1_a_check_is_a_free_job_about_its_report() {
        let job = report("It is so [1].");
        let new = NewJob::check_of(&job, FetchConsent::NotGiven, CallMode::Attach).unwrap();
        assert_eq!((new.subject, &new.conversation), (Some(job.id), &None));
        assert!(!new.may_be_charged() && !new.request.is_workflow());
        let RequestContent::CitationCheck(check) = new.request.content() else { panic!("{new:?}") };
        assert_eq!((check.report.as_str(), check.sources[0].number), ("It is so [1].", 1));
        assert_eq!(
            NewJob::check_of(&queued().job, FetchConsent::Given, CallMode::Attach),
            None,
            "there is no report yet"
        );
    }

    /// J4: text of local documents is recognised in every report.
    #[test]
    fn j4_a_report_with_local_text_is_recognised() {
        assert!(!report("It is so [1].").holds_library_text());
        assert!(report(&format!("It is so.\n\n{LIBRARY_NOTE}")).holds_library_text());
        let mut local = report("It is so [1].");
        local.new.profile = Profile::new("library 0");
        assert!(local.holds_library_text());
        let mut moved = report("It is so [1].");
        moved.new.request = serde_json::json!({ "messages": [] }).into();
        moved.new = moved.new.with_moved_from(Profile::LIBRARY);
        assert!(moved.holds_library_text());
    }
}
