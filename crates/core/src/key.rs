//! Idempotency keys: a caller's promise that two requests are the same one. `rules/key.rs` decides how long a key names its
//! job.

use std::time::Duration;

use crate::JobId;

/// A caller's promise that two requests are the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The text of the key. Its scope is the owner.
    pub text: String,
    /// The digest of the whole request: the same key with other input is a conflict.
    pub input_hash: [u8; 32],
    /// The time that the key is valid. Every key is valid as long as its job is unfinished.
    pub life: KeyLife,
    /// The identity of the call, if it is a held research call.
    ///
    /// Next to a key from the caller, the identity is only recorded: the caller's key alone decides which job the
    /// call is for. Otherwise the identity decides, and the key is its form in the previous version: it is written
    /// for processes of that version, and looked up for jobs that they created.
    pub identity: Option<CallIdentity>,
}

impl Key {
    /// Creates a key from the caller's text. It is valid for a day.
    pub fn from_caller(text: &str, input_hash: [u8; 32]) -> Self {
        const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
        let (text, life) = (format!("given:{text}"), KeyLife::For(WINDOW));
        Self { text, input_hash, life, identity: None }
    }

    /// Creates the key of a job about this one, such as the check of a report (J1): it names that job until it ends.
    pub fn for_subject(subject: &JobId) -> Self {
        let (text, life) = (format!("about:{subject}"), KeyLife::For(Duration::ZERO));
        Self { text, input_hash: [0; 32], life, identity: None }
    }

    /// Creates the key of a report's check (J1): of several starts at once, each finds the job of the first, even if it
    /// has already ended.
    pub fn for_check(report: &JobId) -> Self {
        let life = KeyLife::UntilAnswered { after_end: UNANSWERED };
        Self { life, ..Self::for_subject(report) }
    }

    /// Creates the key of a check of the document with this digest: it names that job until it ends, so that a check
    /// that was interrupted goes on.
    pub fn for_document(digest: [u8; 32]) -> Self {
        let name: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let (text, life) = (format!("document:{name}"), KeyLife::For(Duration::ZERO));
        Self { text, input_hash: digest, life, identity: None }
    }

    /// Returns the same key for a call with this identity.
    pub fn with_identity(self, identity: CallIdentity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// Creates the key of a held call that a caller may repeat on purpose, such as a workflow's tool. The same tool
    /// with the same input is the same call until a call was answered.
    pub fn for_held_call(tool: &str, input_hash: [u8; 32]) -> Self {
        Self::of_call(tool, input_hash, KeyLife::UntilAnswered { after_end: UNANSWERED })
    }

    /// Creates the key of a held research call. Its report is replayed for a while after a call was answered with it.
    ///
    /// `input_hash` is the digest of all arguments, by which the previous version recognizes the call.
    pub fn research(tool: &str, input_hash: [u8; 32], answer: HeldAnswer) -> Self {
        Self::of_call(tool, input_hash, KeyLife::for_research(answer))
    }

    /// Returns the identity by which the call finds its job; `None` if the caller's own key decides.
    pub fn deciding_identity(&self) -> Option<&CallIdentity> {
        match self.life {
            KeyLife::Replays { .. } => self.identity.as_ref(),
            KeyLife::For(_) | KeyLife::UntilAnswered { .. } => None,
        }
    }

    /// Returns whether the previous version may have created the job of the same call. That version had no fresh
    /// calls.
    pub fn looks_up_previous_form(&self) -> bool {
        self.deciding_identity().is_some_and(|identity| identity.mode == CallMode::Attach)
    }

    fn of_call(tool: &str, input_hash: [u8; 32], life: KeyLife) -> Self {
        let hash: String = input_hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text: format!("held:{tool}:{hash}"), input_hash, life, identity: None }
    }
}

/// The attributes that make two held research calls of one owner the same call (promise 2).
///
/// A call attaches to an unfinished job of the same question. If the call names no provider, it attaches whichever
/// provider answers, so that a changed default does not buy the answer a second time. An ended job is replayed only
/// if the call resolves to the same provider and model too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallIdentity {
    /// The digest of the tool, the conversation and everything that is asked, without provider and model.
    pub question: [u8; 32],
    /// The provider that the call names, if it names one.
    pub named_provider: Option<String>,
    /// The model that answers with the present settings, as far as it is known.
    pub model: Option<String>,
    /// The mode of the call: it attaches to an earlier job, or starts over.
    pub mode: CallMode,
    /// The time that an ended job is replayed.
    pub life: KeyLife,
}

/// The mode of a call: whether it may be answered with the job of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// It attaches to the newest job of the same call.
    Attach,
    /// It starts over. It attaches only to the job of an earlier call that started over too, until a call was
    /// answered with that job.
    Fresh,
}

/// The time after its job's end that the key of a held call is valid while no call was answered.
const UNANSWERED: Duration = Duration::from_secs(30 * 60);

/// The kind of answer of a held research call. The replay time depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldAnswer {
    /// A report, which takes minutes.
    Report,
    /// An answer that takes seconds.
    Quick,
}

/// The time that a key is valid beyond the end of its job. The key of a held call never names a cancelled job: a
/// repeated call wants the work done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLife {
    /// A caller's own key: valid for this long after the job was created.
    For(Duration),
    /// A held call that a caller may repeat on purpose: valid until a call was answered with the outcome, and at most
    /// this long after the job's end.
    UntilAnswered {
        /// The maximum time after the job's end.
        after_end: Duration,
    },
    /// A held research call. It cannot be known whether a client received its answer, so a report is replayed even
    /// after an answer. A failure is not, unless a new run needs the caller's consent
    /// ([`crate::Code::needs_consent`]).
    Replays {
        /// The time after the job's end while no call was answered with it.
        unanswered: Duration,
        /// The time after the job's end once a call was answered with it.
        answered: Duration,
    },
}

impl KeyLife {
    /// Returns the life of the key and of the identity of a held research call.
    pub fn for_research(answer: HeldAnswer) -> Self {
        let answered = match answer {
            HeldAnswer::Report => Duration::from_secs(10 * 60),
            HeldAnswer::Quick => Duration::from_secs(60),
        };
        Self::Replays { unanswered: UNANSWERED, answered }
    }
}
