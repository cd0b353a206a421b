//! Builds a retry: the same request as a new job that names the original, for `outlast jobs retry` and for the page.

use std::time::Duration;

use outlast_core::{
    Checkpoint, Job, JobId, Key, NewJob, Profile, RequestNote, ResearchKind, Visibility,
};

/// The current settings.
#[derive(Clone, Copy, Debug)]
pub struct RetrySettings<'a> {
    /// The research providers that are configured.
    pub profiles: &'a [Profile],
    /// The number of failed attempts that are retried.
    pub max_failures: u32,
    /// The time limit of one research attempt.
    pub attempt_timeout: Duration,
    /// The time for which a job with a limited life may stay unfinished.
    pub life: Duration,
}

/// Returns the job that this one repeats.
pub fn retry_of(job: &Job) -> Option<JobId> {
    job.new.request.note(RequestNote::RetryOf)?.parse().ok()
}

/// Returns the key of a retry. One retry of a job is enough: a second retry finds the first.
pub fn retry_key(id: &JobId) -> Key {
    Key::from_caller(&format!("retry:{id}"), [0; 32])
}

/// Builds the same request for the queue, because the process that held the first call no longer runs. Time limits and the
/// provider's settings are the current ones, because changing them is a reason to try again.
pub fn retry_job(job: &Job, settings: &RetrySettings<'_>) -> NewJob {
    let mut new = job.new.clone();
    new.profile = profile(job, settings.profiles);
    let is_same = new.profile == job.new.profile;
    new.request.set_note(RequestNote::RetryOf, Some(job.id.to_string()));
    // If a request may have been accepted under this key, a provider that honours keys charges for it only once.
    let sent_under = match &job.checkpoint {
        Checkpoint::Beginning { key } if job.may_be_charged() && is_same => Some(key.clone()),
        Checkpoint::Beginning { .. } | Checkpoint::NotBegun | Checkpoint::Running(_) => None,
    };
    new.request.set_note(RequestNote::RetryKey, sent_under);
    new.life = new.life.map(|_| settings.life);
    if job.new.request.research().is_some_and(|ask| ask.kind == ResearchKind::Research) {
        new.attempt_timeout = settings.attempt_timeout;
    }
    let was = std::mem::replace(&mut new.visibility, Visibility::Promised);
    if was == Visibility::Unpromised {
        new.max_failures = settings.max_failures;
        new.keep = new.keep.filter(|_| new.conversation.is_none());
    }
    new
}

/// Returns the settings of the provider for the retry. A run that was left can be fetched only with its own settings. Any
/// other job uses the current ones, because correcting the key or the base URL is a reason to try again.
fn profile(job: &Job, profiles: &[Profile]) -> Profile {
    let was = &job.new.profile;
    let mut same = profiles.iter().filter(|it| it.provider() == was.provider());
    let is_fetched = job.run_left().is_some() && !job.new.runs_from_journal();
    if is_fetched || same.clone().any(|it| it == was) {
        return was.clone();
    }
    same.next().unwrap_or(was).clone()
}
