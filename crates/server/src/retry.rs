//! Builds a retry: the same request as a new job that names the original, for `outlast jobs retry` and for the page.

use std::time::Duration;

use outlast_core::rules::RETRY_KEY;
use outlast_core::{
    AskKind, Checkpoint, Job, JobId, Key, NewJob, Profile, ResearchAsk, Visibility,
};
use serde_json::Value;

/// The field in which a request names the job it repeats.
const RETRY_OF: &str = "retry_of";

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
    job.new.ask.get(RETRY_OF)?.as_str()?.parse().ok()
}

/// Returns the key of a retry. One retry of a job is enough: a second retry finds the first.
pub fn retry_key(id: &JobId) -> Key {
    Key::given(&format!("retry:{id}"), [0; 32])
}

/// Builds the same request for the queue, because the process that held the first call no longer runs. Time limits and the
/// provider's settings are the current ones, because changing them is a reason to try again.
pub fn retry_job(job: &Job, settings: &RetrySettings<'_>) -> NewJob {
    let mut new = job.new.clone();
    new.profile = profile(job, settings.profiles);
    let is_same = new.profile == job.new.profile;
    if let Value::Object(ask) = &mut new.ask {
        ask.insert(RETRY_OF.to_owned(), Value::String(job.id.to_string()));
        ask.remove(RETRY_KEY);
        // If a request may have been accepted under this key, a provider that honours keys charges for it only once.
        let may_be_charged = job.may_be_charged() && is_same;
        if let (Checkpoint::Beginning { key }, true) = (&job.checkpoint, may_be_charged) {
            ask.insert(RETRY_KEY.to_owned(), Value::String(key.clone()));
        }
    }
    new.life = new.life.map(|_| settings.life);
    let ask: Result<ResearchAsk, _> = serde_json::from_value(job.new.ask.clone());
    if ask.is_ok_and(|ask| ask.kind == AskKind::Research) {
        new.attempt_timeout = settings.attempt_timeout;
    }
    let was = std::mem::replace(&mut new.visibility, Visibility::Promised);
    if was == Visibility::Unpromised {
        new.max_failures = settings.max_failures;
        new.keep = new.keep.filter(|_| new.conversation.is_none());
    }
    new
}

/// Returns the settings of the provider for the retry. A run that was left can be fetched only with its own settings. A job
/// that left no run uses the current ones, because correcting the key or the base URL is a reason to try again.
fn profile(job: &Job, profiles: &[Profile]) -> Profile {
    let was = &job.new.profile;
    let mut same = profiles.iter().filter(|it| it.provider() == was.provider());
    if job.run_left().is_some() || same.clone().any(|it| it == was) {
        return was.clone();
    }
    same.next().unwrap_or(was).clone()
}
