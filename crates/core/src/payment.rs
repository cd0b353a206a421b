//! What of a job may have been paid for, and whether starting it a second time may pay a second time.

use serde_json::Value;

use crate::{Checkpoint, Code, Failure, Job, JobState, NewJob, Profile, RemoteRun, RemoteStop};

impl NewJob {
    /// As [`Job::may_be_charged`].
    pub fn may_be_charged(&self) -> bool {
        let is_workflow = matches!(&self.ask, Value::Object(ask) if !ask.contains_key("messages"));
        !is_workflow && self.profile.provider() != Profile::LIBRARY
    }
}

impl Job {
    /// The provider's run that the job's failure left behind, if that run may still finish. A job that takes it up pays
    /// nothing.
    pub fn run_left(&self) -> Option<&RemoteRun> {
        let failure = self.failure()?;
        match &self.checkpoint {
            Checkpoint::Running(run) if failure.run_goes_on => Some(run),
            Checkpoint::Running(_) | Checkpoint::NotBegun | Checkpoint::Beginning { .. } => None,
        }
    }

    /// Whether the job failed so that only its owner's consent begins a new run; see [`Code::needs_consent`].
    pub fn needs_consent(&self) -> bool {
        self.failure().is_some_and(|failure| failure.code.needs_consent())
    }

    fn failure(&self) -> Option<&Failure> {
        self.failures.last().filter(|_| matches!(self.state, JobState::Failed { .. }))
    }

    /// Whether the job was cancelled and a run of it may go on at the provider all the same.
    pub fn may_run_on(&self) -> bool {
        use RemoteStop::{MaybeBegun, Unsupported};
        self.may_be_charged()
            && matches!(self.state, JobState::Cancelled { remote: MaybeBegun | Unsupported, .. })
    }

    /// Whether the job asks a research provider that may charge for it: not the library, nor a command or a tool of the
    /// operator's own.
    pub fn may_be_charged(&self) -> bool {
        self.new.may_be_charged()
    }

    /// Whether starting the job a second time may help (E16): by what it failed with, and always where a command of the
    /// operator's ran and failed, because what the command works on may have changed. Not where it may pay a second
    /// time: that needs the owner's consent.
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
