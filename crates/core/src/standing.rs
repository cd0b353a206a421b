//! The sentence that describes the state of a job: what it waits for or does, what failed before and what comes next
//! (P4); after its end, what is known of the provider's run. Every interface shows exactly this.

use std::fmt;
use std::time::Duration;

use crate::{Code, Job, JobState, Profile, Progress, RemoteStop, StateKind, Timestamp};

/// The maximum number of characters of a question in the sentence.
const QUESTION_CHARS: usize = 200;

/// The reason why a queued job waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// No live worker has its profile: it waits until one is started.
    ForAWorker,
    /// It waits for the time of its next attempt.
    Until(Timestamp),
    /// It waits for its turn.
    ForItsTurn {
        /// The number of jobs before it.
        ahead: u64,
    },
}

/// The state of a job in words. It is displayed as a sentence without its full stop: `Processing response... (50 %);
/// attempt 2, after TIMEOUT: no result within 600 s`.
#[derive(Clone, Copy, Debug)]
pub struct Standing<'a> {
    job: &'a Job,
    waits: Option<Waits>,
}

impl<'a> Standing<'a> {
    /// Creates the standing of a job that was read together with the reason why it waits.
    pub fn new(job: &'a Job, waits: Option<Waits>) -> Self {
        Self { job, waits }
    }

    /// Returns its present activity, or the reason why it waits.
    pub fn present(&self) -> String {
        if let Some(question) = self.job.open_question() {
            let text: Vec<&str> = question.text.split_whitespace().collect();
            let text: String = text.join(" ").chars().take(QUESTION_CHARS).collect();
            return format!(
                "Waiting for an answer to \"{text}\" until {}; `outlast jobs answer {} TEXT` gives it",
                question.deadline, self.job.id
            );
        }
        match &self.job.state {
            JobState::Queued { .. } => self.describe_wait(),
            JobState::Running { .. } => match &self.job.progress {
                Some(Progress { message, .. }) if !message.is_empty() => message.clone(),
                Some(_) | None => initial_activity(&self.job.new.profile),
            },
            JobState::Succeeded { .. } => "Completed".to_owned(),
            JobState::Failed { .. } => "Failed".to_owned(),
            JobState::Cancelled { .. } => "Cancelled".to_owned(),
        }
    }

    /// Returns the progress of the running attempt, if it is known.
    pub fn percent(&self) -> Option<u8> {
        let JobState::Running { .. } = &self.job.state else { return None };
        self.job.progress.as_ref()?.percent
    }

    /// Returns the sentence without the percent, for a reader that shows the percent next to it.
    pub fn words(&self) -> String {
        match self.tries() {
            Some(tries) => format!("{}; {tries}", self.present()),
            None => self.present(),
        }
    }

    /// Returns the number of the attempt and the last failure, for an unfinished job that has failed before.
    fn tries(&self) -> Option<String> {
        let failure = self.job.failures.last().filter(|_| !self.job.state.kind().is_terminal())?;
        let attempt = self.job.failures.len() + 1;
        Some(format!("attempt {attempt}, after {}: {}", failure.code, failure.message))
    }

    fn describe_wait(&self) -> String {
        match self.waits {
            Some(Waits::ForAWorker) => {
                let (has, with) = match self.job.new.profile.provider() {
                    Profile::LIBRARY => ("the folders it was asked with", "the same settings"),
                    Profile::WORKFLOW => ("its workflow", "the configuration that has it"),
                    Profile::CITATIONS => ("citation checks switched on", "citations.check"),
                    _ => ("the provider and key it was asked with", "the same settings"),
                };
                format!(
                    "Queued: no live worker has {has}; `outlast serve` or `outlast worker` with {with} would run it"
                )
            }
            Some(Waits::Until(moment)) if self.is_rate_limited() => {
                format!("Queued: the provider limits the rate of requests, until {moment}")
            }
            Some(Waits::Until(moment)) => format!("Queued: it waits for its next try at {moment}"),
            Some(Waits::ForItsTurn { ahead }) if ahead > 0 => format!(
                "Queued: it waits for its turn, at position {}; owners take turns, and among your jobs higher \
                 priority comes first, then older",
                ahead + 1
            ),
            Some(Waits::ForItsTurn { .. }) => {
                "Queued: it waits for its turn and is next".to_owned()
            }
            None => "Queued".to_owned(),
        }
    }

    fn is_rate_limited(&self) -> bool {
        self.job.failures.last().is_some_and(|failure| failure.code == Code::RateLimited)
    }
}

impl fmt::Display for Standing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.present())?;
        if let Some(percent) = self.percent() {
            write!(f, " ({percent} %)")?;
        }
        match self.tries() {
            Some(tries) => write!(f, "; {tries}"),
            None => Ok(()),
        }
    }
}

impl Job {
    /// Returns whether conversation tools show it. No caller has the id of a held call that has not succeeded.
    pub fn is_shown(&self) -> bool {
        self.new.visibility.caller_has_id() || self.state.kind() == StateKind::Succeeded
    }

    /// Returns the time from its start to its end, or to `now` while it is unfinished.
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        self.ended_at().unwrap_or(now).since(self.created_at)
    }

    /// Returns how the owner of a failed job can get the run that the failure left behind, if it left one.
    pub fn run_left_text(&self) -> Option<String> {
        let JobState::Failed { .. } = self.state else { return None };
        self.run_left()?;
        let paid = if self.may_be_charged() { ", and be paid for" } else { "" };
        let id = self.id;
        Some(if self.left_run_has_ended() {
            format!(
                "the provider's run has ended: `outlast jobs retry {id}`, where the server runs, looks for its report \
                 again and sends nothing"
            )
        } else {
            format!(
                "the provider's run may still finish{paid}: `outlast jobs retry {id}`, where the server runs, goes on \
                 with it"
            )
        })
    }

    /// Returns what is known of the provider's run after a cancel, for the owner of the job. It states a stop only if
    /// a check showed it.
    pub fn stop_text(&self) -> Option<String> {
        let JobState::Cancelled { remote, cost, .. } = self.state else { return None };
        if self.new.profile.provider() == Profile::WRAP {
            return Some(wrapped_stop_text(remote).to_owned());
        }
        if !self.may_be_charged() {
            return None;
        }
        let id = self.id;
        let paid = cost.amount().map(|amount| format!(", at a cost of {amount}"));
        Some(match remote {
            RemoteStop::NotNeeded => return None,
            RemoteStop::MaybeBegun => {
                "The question was on its way to the provider: a run may have been begun and paid for. It is stopped \
                 once the provider has named it, where the provider can stop runs; if the server that sent the \
                 question has died, it could not be stopped."
                    .to_owned()
            }
            RemoteStop::Owed => {
                "The provider is being told to stop its run; what it has done so far may still be charged."
                    .to_owned()
            }
            RemoteStop::Told => {
                "The provider was told to stop its run; nobody looked whether it did, so it may still finish, and be \
                 charged."
                    .to_owned()
            }
            RemoteStop::Ended => match paid {
                Some(paid) => {
                    format!("The provider's run was stopped, or ended without a report{paid}.")
                }
                None => "The provider's run was stopped, or ended without a report; what it had done may be charged."
                    .to_owned(),
            },
            RemoteStop::Completed => format!(
                "The provider's run had already completed{}: `outlast jobs retry {id}`, where the server runs, fetches \
                 its report and sends nothing.",
                paid.unwrap_or_default()
            ),
            RemoteStop::GoesOn => format!(
                "The provider did not stop its run, which goes on and may still finish, and be charged: `outlast jobs \
                 retry {id}`, where the server runs, follows it and sends nothing."
            ),
            RemoteStop::Unsupported => {
                "The provider could not be told to stop, so its run may still finish, and be charged.".to_owned()
            }
        })
    }
}

/// Returns what is known of a cancelled call of a wrapped server. Such a job begins after its call was sent.
fn wrapped_stop_text(remote: RemoteStop) -> &'static str {
    match remote {
        RemoteStop::NotNeeded | RemoteStop::MaybeBegun | RemoteStop::Owed => {
            "The server is being asked to stop the call, which may still be carried out."
        }
        RemoteStop::Told | RemoteStop::GoesOn => {
            "The server was asked to stop the call and did not confirm it: the call may still be carried out."
        }
        RemoteStop::Ended => {
            "The call was stopped: the server answered that it failed or was cancelled, or had not received it yet."
        }
        RemoteStop::Completed => {
            "The server had already carried out the call when it was asked to stop it."
        }
        RemoteStop::Unsupported => {
            "The server could not be asked to stop the call, which may have been carried out."
        }
    }
}

/// Returns the activity of a running job before its provider has reported anything (B6). It names the provider that
/// is really asked.
fn initial_activity(profile: &Profile) -> String {
    match profile.provider() {
        Profile::PERPLEXITY => "Querying Perplexity API...".to_owned(),
        Profile::WORKFLOW => "Running".to_owned(),
        Profile::CITATIONS => "Reading the sources...".to_owned(),
        // In the words of these vendors' adapters.
        "openai" => "Querying OpenAI...".to_owned(),
        "anthropic" => "Querying Anthropic...".to_owned(),
        "gemini" => "Querying Gemini...".to_owned(),
        provider => format!("Querying {provider}..."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::rules::tests::{NOW, queued};

    fn job(profile: &str, state: JobState, codes: &[Code]) -> Job {
        let mut job = queued().job;
        job.new.profile = Profile::new(profile);
        job.state = state;
        job.failures = codes
            .iter()
            .map(|code| Failure {
                code: *code,
                message: "so and so".to_owned(),
                detail: None,
                at: NOW,
                run_goes_on: false,
                run: crate::RunStatus::Unknown,
            })
            .collect();
        job
    }

    const PERPLEXITY: &str = "perplexity/agent https://api.example 0";

    /// P4, tools.md: a pending job states why it waits, and what failed last.
    #[test]
    fn p4_a_queued_job_says_why_it_waits_and_what_failed_last() {
        let then = Timestamp::from_millis(0);
        let cases = [
            (&[][..], None, "Queued"),
            (&[], Some(Waits::ForItsTurn { ahead: 0 }), "waits for its turn and is next"),
            (&[], Some(Waits::ForItsTurn { ahead: 2 }), "at position 3"),
            (&[], Some(Waits::ForAWorker), "no live worker has the provider and key"),
            (
                &[Code::Timeout],
                Some(Waits::ForAWorker),
                "would run it; attempt 2, after TIMEOUT: so and so",
            ),
            (
                &[Code::Timeout],
                Some(Waits::Until(then)),
                "next try at 1970-01-01T00:00:00.000Z; attempt 2, after TIMEOUT: so and so",
            ),
            (
                &[Code::RateLimited],
                Some(Waits::Until(then)),
                "limits the rate of requests, until 1970-01-01T00:00:00.000Z; attempt 2",
            ),
        ];
        for (codes, waits, expected) in cases {
            let job = job(PERPLEXITY, JobState::Queued { run_at: NOW }, codes);
            let said = Standing::new(&job, waits).to_string();
            assert!(said.starts_with("Queued") && said.contains(expected), "{said}");
            assert_eq!(said, Standing::new(&job, waits).words());
        }
    }

    /// P4, B6: a running job never waits for a worker, however silent it is, and names the provider that is asked.
    #[test]
    fn p4_a_silent_run_says_who_is_asked() {
        let cases = [
            (PERPLEXITY, "Querying Perplexity API..."),
            ("library 0", "Querying library..."),
            ("workflow nightly", "Running"),
        ];
        for (profile, expected) in cases {
            let mut job = job(profile, JobState::Running { since: NOW }, &[]);
            assert_eq!(Standing::new(&job, None).to_string(), expected);
            job.progress = Some(Progress { percent: Some(50), message: "Reading".to_owned() });
            assert_eq!(Standing::new(&job, None).to_string(), "Reading (50 %)");
            assert_eq!(Standing::new(&job, None).words(), "Reading");
        }
    }
}
