//! The identity of a held research call (promise 2): which job a repeated call attaches to.

use super::key::{KeyRecord, key_is_valid, run_to_resume};
use crate::{
    CallIdentity, CallMode, Job, Key, KeyLife, NewJob, Record, RemoteRun, StateKind, Timestamp,
    Visibility,
};

/// The identity of a job's call, as a store keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentityRecord {
    /// The digest of the request.
    pub question: [u8; 32],
    /// The provider that was asked.
    pub provider: String,
    /// The model that was expected to answer, as far as it was known.
    pub model: Option<String>,
    /// The mode of the call that created the job.
    pub mode: CallMode,
    /// The time when the job was created.
    pub made_at: Timestamp,
    /// The time that the job is replayed after its end.
    pub life: KeyLife,
    /// The time when a call was first answered with the outcome of the job.
    pub answered_at: Option<Timestamp>,
}

impl IdentityRecord {
    /// Creates the identity of a new job.
    pub fn new(identity: &CallIdentity, new: &NewJob, now: Timestamp) -> Self {
        Self {
            question: identity.question,
            provider: new.profile.provider().to_owned(),
            model: identity.model.clone(),
            mode: identity.mode,
            made_at: now,
            life: identity.life,
            answered_at: None,
        }
    }

    /// Returns whether the call is the same one. An unfinished job matches, whichever provider answers it, unless the
    /// call names another provider. An ended job matches if the same provider and model would answer. A fresh call
    /// matches only a fresh one.
    pub fn matches(&self, call: &CallIdentity, new: &NewJob, job: StateKind) -> bool {
        let may_attach = match call.mode {
            CallMode::Attach => true,
            CallMode::Fresh => self.mode == CallMode::Fresh,
        };
        let is_answered_by = |provider: &str| self.provider == provider;
        let same_answerer = if job.is_terminal() {
            is_answered_by(new.profile.provider()) && self.model == call.model
        } else {
            call.named_provider.as_deref().is_none_or(is_answered_by)
        };
        self.question == call.question && may_attach && same_answerer
    }

    /// Returns the key by which the call finds the job: for a fresh call until one was answered, for any other as
    /// long as the job is replayed.
    pub fn key(&self, call: &CallIdentity) -> KeyRecord {
        let life = match (call.mode, self.life) {
            (CallMode::Fresh, KeyLife::Replays { unanswered, .. }) => {
                KeyLife::UntilAnswered { after_end: unanswered }
            }
            (CallMode::Attach | CallMode::Fresh, life) => life,
        };
        let (made_at, answered_at) = (self.made_at, self.answered_at);
        KeyRecord { input_hash: self.question, made_at, life, answered_at }
    }
}

/// An earlier job that may have the same call.
#[derive(Clone, Debug, PartialEq)]
pub struct EarlierCall<N> {
    /// The position of the job in order of arrival.
    pub seq: N,
    pub job: Job,
    /// The key by which the call finds it.
    pub key: KeyRecord,
}

/// Chooses between the newest job of the same call and the job that the previous form of the call's key names. The
/// latter has no identity because the previous version created it. An unfinished job wins, then the newer one.
pub fn newest_call<N: Ord>(
    identified: Option<EarlierCall<N>>,
    previous: Option<EarlierCall<N>>,
    new: &NewJob,
) -> Option<EarlierCall<N>> {
    let is_unfinished = |call: &EarlierCall<N>| !call.job.state.kind().is_terminal();
    // The previous version did not distinguish providers: of another provider, only an unfinished job is the same
    // call.
    let is_same = |call: &EarlierCall<N>| {
        is_unfinished(call) || call.job.new.profile.provider() == new.profile.provider()
    };
    let previous = previous.filter(is_same);
    let (Some(one), Some(other)) = (&identified, &previous) else {
        return identified.or(previous);
    };
    let rank = |call: &EarlierCall<N>| is_unfinished(call);
    match rank(one).cmp(&rank(other)).then(one.seq.cmp(&other.seq)) {
        std::cmp::Ordering::Less => previous,
        std::cmp::Ordering::Equal | std::cmp::Ordering::Greater => identified,
    }
}

/// The effect of an earlier job of the same call on a start.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Earlier {
    /// The start attaches to that job.
    Attach,
    /// The start is refused: the caller's key belongs to another request.
    Conflict,
    /// The start creates a new job, which resumes the run that the earlier one left, if it left one.
    MakeNew(Option<RemoteRun>),
}

/// Decides whether a start under `asked` attaches to the job that its key or identity names, by the `found` key.
pub(super) fn earlier(
    asked: &Key,
    found: &KeyRecord,
    job: &Job,
    new: &NewJob,
    now: Timestamp,
) -> Earlier {
    let is_same = asked.deciding_identity().is_some() || asked.input_hash == found.input_hash;
    match (key_is_valid(found, job, now), is_same) {
        (true, true) => Earlier::Attach,
        (true, false) => Earlier::Conflict,
        (false, _) => Earlier::MakeNew(run_to_resume(found, job, new)),
    }
}

/// Promises a held job if a call that attached to it is answered with its id (a task, or a queued answer). The job
/// then gets the retention of that call. Returns whether that changed the job.
pub fn promise(record: &mut Record, new: &NewJob, now: Timestamp) -> bool {
    if !is_promised_by(&record.job, new) {
        return false;
    }
    let job = &mut record.job;
    // It does not enter the queue: a worker was asked for it by id.
    job.new.visibility = Visibility::Task;
    job.new.keep = new.keep;
    if !job.state.kind().is_terminal() {
        job.updated_at = now;
    }
    true
}

/// Returns whether a call that attaches to the job gives out its id for the first time.
pub fn is_promised_by(job: &Job, new: &NewJob) -> bool {
    new.visibility.caller_has_id() && !job.new.visibility.caller_has_id()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::tests::{NOW, failure, queued, remote};
    use crate::{Checkpoint, Code, Failure, JobState, Profile};

    const HOUR: Duration = Duration::from_secs(3600);
    const LIFE: KeyLife = KeyLife::Replays { unanswered: HOUR, answered: Duration::from_secs(60) };

    fn call(mode: CallMode, named: Option<&str>, model: &str) -> CallIdentity {
        CallIdentity {
            question: [1; 32],
            named_provider: named.map(str::to_owned),
            model: Some(model.to_owned()),
            mode,
            life: LIFE,
        }
    }

    fn asking(identity: &CallIdentity) -> Key {
        Key { life: LIFE, ..Key::from_caller("k", [9; 32]) }.with_identity(identity.clone())
    }

    fn asked(provider: &str) -> NewJob {
        NewJob { profile: Profile::new(provider), ..queued().job.new }
    }

    /// Promise 2: a changed default buys nothing while the first job runs; afterwards it makes another question.
    #[test]
    fn an_unfinished_job_is_the_same_call_whichever_provider_answers_it() {
        use CallMode::{Attach, Fresh};
        let first = IdentityRecord::new(&call(Attach, None, "m"), &asked("openai"), NOW);
        let fresh = IdentityRecord { mode: Fresh, ..first.clone() };
        // The call, its provider now, and whether an unfinished and an ended job are the same call.
        let cases = [
            (&first, call(Attach, None, "m"), "openai", [true, true]),
            (&first, call(Attach, None, "n"), "openai", [true, false]),
            (&first, call(Attach, None, "m"), "gemini", [true, false]),
            (&first, call(Attach, Some("openai"), "m"), "openai", [true, true]),
            (&first, call(Attach, Some("openai"), "n"), "openai", [true, false]),
            (&first, call(Attach, Some("gemini"), "m"), "gemini", [false, false]),
            (&first, call(Fresh, None, "m"), "openai", [false, false]),
            (&fresh, call(Fresh, None, "m"), "openai", [true, true]),
            (&fresh, call(Fresh, None, "m"), "gemini", [true, false]),
            (&fresh, call(Attach, None, "m"), "openai", [true, true]),
        ];
        for (record, call, provider, expected) in cases {
            let is_of = |state| record.matches(&call, &asked(provider), state);
            let got = [StateKind::Running, StateKind::Succeeded].map(is_of);
            assert_eq!(got, expected, "{call:?} to {provider}");
        }
        let other = CallIdentity { question: [2; 32], ..call(Attach, None, "m") };
        assert!(!first.matches(&other, &asked("openai"), StateKind::Running));
    }

    /// A fresh call is the same as an earlier fresh one until a call was answered with it, even after a failure that
    /// needs consent. Then it starts over, like a new key.
    #[test]
    fn a_fresh_call_attaches_until_one_was_answered() {
        let mut job = queued().job;
        job.failures = vec![Failure { code: Code::SubmitUnknown, ..failure() }];
        job.state = JobState::Failed { at: NOW };
        let mut record = IdentityRecord::new(&call(CallMode::Fresh, None, "m"), &job.new, NOW);
        let [fresh, plain] = [CallMode::Fresh, CallMode::Attach].map(|mode| call(mode, None, "m"));
        let decide = |record: &IdentityRecord, call: &CallIdentity| {
            earlier(&asking(call), &record.key(call), &job, &job.new, NOW)
        };
        assert_eq!(decide(&record, &fresh), Earlier::Attach);
        record.answered_at = Some(NOW);
        assert_eq!(decide(&record, &fresh), Earlier::MakeNew(None));
        assert_eq!(decide(&record, &plain), Earlier::Attach, "nothing is sent without consent");
    }

    /// A fresh call pays again; any other resumes the run that a failure left.
    #[test]
    fn a_fresh_call_resumes_no_run() {
        let mut job = queued().job;
        job.failures = vec![Failure { run_goes_on: true, ..failure() }];
        job.checkpoint = Checkpoint::Running(remote());
        job.state = JobState::Failed { at: NOW };
        let mut record = IdentityRecord::new(&call(CallMode::Fresh, None, "m"), &job.new, NOW);
        record.answered_at = Some(NOW);
        for (mode, expected) in [(CallMode::Fresh, None), (CallMode::Attach, Some(remote()))] {
            let call = call(mode, None, "m");
            let decided = earlier(&asking(&call), &record.key(&call), &job, &job.new, NOW);
            assert_eq!(decided, Earlier::MakeNew(expected), "{mode:?}");
        }
    }

    #[test]
    fn of_two_earlier_calls_an_unfinished_one_comes_first_then_the_newer() {
        let key = KeyRecord { input_hash: [1; 32], made_at: NOW, life: LIFE, answered_at: None };
        let at = |seq: u64, provider: &str, is_over: bool| {
            let mut job = queued().job;
            job.new = asked(provider);
            if is_over {
                job.state = JobState::Failed { at: NOW };
            }
            Some(EarlierCall { seq, job, key })
        };
        let new = asked("openai");
        let cases = [
            (at(1, "openai", true), None, Some(1)),
            (None, at(1, "openai", true), Some(1)),
            (None, at(1, "gemini", true), None),
            (None, at(1, "gemini", false), Some(1)),
            (at(1, "openai", true), at(2, "openai", true), Some(2)),
            (at(2, "openai", true), at(1, "openai", true), Some(2)),
            (at(2, "openai", true), at(1, "openai", false), Some(1)),
            (at(1, "openai", false), at(2, "openai", true), Some(1)),
            (None, None, None),
        ];
        for (identified, previous, expected) in cases {
            let shown = format!("{identified:?} {previous:?}");
            let chosen = newest_call(identified, previous, &new).map(|call| call.seq);
            assert_eq!(chosen, expected, "{shown}");
        }
    }

    #[test]
    fn a_call_that_gives_out_the_id_of_a_held_job_keeps_it_as_long_as_its_own() {
        let held = NewJob { visibility: Visibility::Unpromised, keep: Some(HOUR), ..asked("p") };
        for (asked_as, expected) in [
            (Visibility::Unpromised, Visibility::Unpromised),
            (Visibility::Task, Visibility::Task),
            (Visibility::Promised, Visibility::Task),
        ] {
            let mut record = queued();
            record.job.new = held.clone();
            let new = NewJob { visibility: asked_as, keep: None, ..held.clone() };
            let changed = promise(&mut record, &new, NOW.after(HOUR));
            assert_eq!(changed, expected == Visibility::Task, "{asked_as:?}");
            let new = &record.job.new;
            assert_eq!((new.visibility, new.keep.is_none()), (expected, changed), "{asked_as:?}");
            assert!(!promise(&mut record, &held, NOW), "{asked_as:?}: never taken back");
        }
    }
}
