//! Predicates about payment: whether a job may have been paid for, and whether a second start may pay again.

use crate::{
    Checkpoint, Code, Failure, Job, JobState, NewJob, Profile, RemoteRun, RemoteStop, RunStatus,
};

/// The outcome of a job's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestState<'a> {
    /// It was not sent.
    NotSent,
    /// It is on its way, or was, and no answer is recorded.
    Unanswered,
    /// It was refused, or never reached the provider.
    NotAccepted,
    /// It became this run.
    Accepted(&'a RemoteRun),
}

impl NewJob {
    /// As [`Job::may_be_charged`].
    pub fn may_be_charged(&self) -> bool {
        !self.request.is_workflow()
            && !self.request.is_citation_check()
            && self.profile.provider() != Profile::LIBRARY
    }
}

impl NewJob {
    /// Returns whether a run of the job is continued from its journal, whichever process works on it
    /// ([`crate::ResumePolicy::FromJournal`]).
    pub fn runs_from_journal(&self) -> bool {
        self.request.is_citation_check() || self.profile.provider() == Profile::RESEARCHER
    }
}

impl Job {
    /// Returns the run of an ended job that another job can continue from its journal (K3).
    pub fn journaled_run(&self) -> Option<&RemoteRun> {
        let Checkpoint::Running(run) = &self.checkpoint else { return None };
        let is_left = match self.state {
            JobState::Failed { .. } | JobState::Cancelled { .. } => self.new.runs_from_journal(),
            JobState::Queued { .. } | JobState::Running { .. } | JobState::Succeeded { .. } => {
                false
            }
        };
        is_left.then_some(run)
    }

    /// Returns whether the job is an ended workflow, whose command may have taken steps (K12). A job that repeats it takes
    /// them over.
    pub fn may_leave_steps(&self) -> bool {
        let has_ended = matches!(self.state, JobState::Failed { .. } | JobState::Cancelled { .. });
        has_ended && self.new.request.is_workflow()
    }

    /// Returns the provider's run that the job's failure or cancel left behind, if that run continues or has a
    /// report. A job that resumes it sends nothing and pays nothing.
    pub fn run_left(&self) -> Option<&RemoteRun> {
        use RemoteStop::{Completed, GoesOn};
        let Checkpoint::Running(run) = &self.checkpoint else { return None };
        let is_left = match self.state {
            JobState::Failed { .. } => self.failure().is_some_and(|failure| failure.run_goes_on),
            JobState::Cancelled { remote: Completed | GoesOn, .. } => self.may_be_charged(),
            JobState::Queued { .. }
            | JobState::Running { .. }
            | JobState::Succeeded { .. }
            | JobState::Cancelled { .. } => false,
        };
        is_left.then_some(run)
    }

    /// Returns whether the run that was left behind has ended, so that only its report is left to fetch.
    pub fn left_run_has_ended(&self) -> bool {
        let completed =
            matches!(self.state, JobState::Cancelled { remote: RemoteStop::Completed, .. });
        completed || self.failure().is_some_and(|it| matches!(it.run, RunStatus::Ended(_)))
    }

    /// Returns the outcome of the request, as far as it is recorded.
    pub fn request_state(&self) -> RequestState<'_> {
        match &self.checkpoint {
            Checkpoint::NotBegun => RequestState::NotSent,
            Checkpoint::Running(run) => RequestState::Accepted(run),
            Checkpoint::Beginning { .. } if self.was_refused() => RequestState::NotAccepted,
            Checkpoint::Beginning { .. } => RequestState::Unanswered,
        }
    }

    /// Returns whether every request that was sent under the recorded key got an answer, and none was accepted.
    fn was_refused(&self) -> bool {
        let is_unknown = |failure: &Failure| failure.code == Code::SubmitUnknown;
        let none_in_doubt = !self.failures.is_empty() && !self.failures.iter().any(is_unknown);
        match self.state {
            JobState::Queued { .. } | JobState::Failed { .. } => none_in_doubt,
            JobState::Cancelled { remote: RemoteStop::NotNeeded, .. } => true,
            JobState::Running { .. } | JobState::Succeeded { .. } | JobState::Cancelled { .. } => {
                false
            }
        }
    }

    /// Returns whether the job failed in such a way that only its owner's consent begins a new run; see
    /// [`Code::needs_consent`].
    pub fn needs_consent(&self) -> bool {
        self.failure().is_some_and(|failure| failure.code.needs_consent())
    }

    fn failure(&self) -> Option<&Failure> {
        self.failures.last().filter(|_| matches!(self.state, JobState::Failed { .. }))
    }

    /// Returns whether the job was cancelled and its run may continue at the provider, without any way for another
    /// job to resume it.
    pub fn may_run_on(&self) -> bool {
        use RemoteStop::{MaybeBegun, Owed, Told, Unsupported};
        let JobState::Cancelled { remote, .. } = self.state else { return false };
        self.may_be_charged() && matches!(remote, MaybeBegun | Owed | Told | Unsupported)
    }

    /// Returns whether the job asks a research provider that may charge for it. The library and the operator's own
    /// commands and tools do not charge.
    pub fn may_be_charged(&self) -> bool {
        self.new.may_be_charged()
    }

    /// Returns whether starting the job a second time may help (E16). The failure code decides. A second start may
    /// always help if a command of the operator ran and failed, because its input may have changed since. Returns
    /// false if it may pay a second time: that needs the owner's consent.
    pub fn may_succeed_again(&self) -> bool {
        let Some(failure) = self.failures.last() else { return false };
        let command_ran = matches!(&self.checkpoint, Checkpoint::Running(run) if run.provider == RemoteRun::COMMAND);
        match failure.code {
            code if code.needs_consent() => !self.may_be_charged(),
            Code::ExecutionError => command_ran,
            code => code.is_retryable(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cost;
    use crate::rules::tests::{NOW, failure, remote, running};

    /// A recorded refusal is an answer; a lost answer is not.
    #[test]
    fn a_refused_request_is_not_one_without_an_answer() {
        let beginning = || Checkpoint::Beginning { key: "k".to_owned() };
        let failed = |code| vec![Failure { code, ..failure() }];
        let cancelled = |remote| JobState::Cancelled { at: NOW, remote, cost: Cost::Unknown };
        let over = || JobState::Failed { at: NOW };
        let waits = || JobState::Queued { run_at: NOW };
        let cases = [
            (over(), failed(Code::Unauthorized), RequestState::NotAccepted),
            (waits(), failed(Code::RateLimited), RequestState::NotAccepted),
            (over(), failed(Code::SubmitUnknown), RequestState::Unanswered),
            (waits(), failed(Code::SubmitUnknown), RequestState::Unanswered),
            (waits(), Vec::new(), RequestState::Unanswered),
            (JobState::Running { since: NOW }, Vec::new(), RequestState::Unanswered),
            (JobState::Running { since: NOW }, failed(Code::RateLimited), RequestState::Unanswered),
            (cancelled(RemoteStop::NotNeeded), Vec::new(), RequestState::NotAccepted),
            (cancelled(RemoteStop::MaybeBegun), Vec::new(), RequestState::Unanswered),
        ];
        for (state, failures, expected) in cases {
            let mut job = running(beginning()).0.job;
            (job.state, job.failures) = (state, failures);
            assert_eq!(job.request_state(), expected, "{:?} {:?}", job.state, job.failures);
        }
    }

    /// P6, A3: what a retry of a cancelled job may do without consent.
    #[test]
    fn p6_only_a_run_that_was_seen_to_end_is_followed_by_a_new_one_without_consent() {
        use RemoteStop::{
            Completed, Ended, GoesOn, MaybeBegun, NotNeeded, Owed, Told, Unsupported,
        };
        let cases = [
            (NotNeeded, false, false),
            (Ended, false, false),
            (Completed, true, false),
            (GoesOn, true, false),
            (Owed, false, true),
            (Told, false, true),
            (MaybeBegun, false, true),
            (Unsupported, false, true),
        ];
        for (stop, resumes, needs_consent) in cases {
            let mut job = running(Checkpoint::Running(remote())).0.job;
            job.state = JobState::Cancelled { at: NOW, remote: stop, cost: Cost::Unknown };
            assert_eq!(
                (job.run_left().is_some(), job.may_run_on()),
                (resumes, needs_consent),
                "{stop:?}"
            );
        }
    }
}
