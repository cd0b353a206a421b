//! Idempotency keys: a caller's promise that two requests are the same one. How long a key names its job is decided by
//! [`crate::rules::key_is_valid`].

use std::time::Duration;

/// A caller's promise that two requests are the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// What it is called; its scope is the owner.
    pub text: String,
    /// Of the whole request: the same key with other input is a conflict.
    pub input_hash: [u8; 32],
    /// How long it is valid. Every key is valid as long as its job is unfinished.
    pub life: KeyLife,
    /// The identity of the call, if it is a held research call.
    ///
    /// Next to a key of the caller's own it is only recorded: that key alone decides which job the call is for. Otherwise
    /// it decides, and the key is the form of it that the previous version knows: it is written for processes of that
    /// version, and looked up for jobs that they made.
    pub identity: Option<CallIdentity>,
}

impl Key {
    /// A key of the caller's own; it is valid for a day.
    pub fn given(text: &str, input_hash: [u8; 32]) -> Self {
        const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
        let (text, life) = (format!("given:{text}"), KeyLife::For(WINDOW));
        Self { text, input_hash, life, identity: None }
    }

    /// The same key for a call with this identity.
    pub fn identified(self, identity: CallIdentity) -> Self {
        Self { identity: Some(identity), ..self }
    }

    /// The key of a held call that may be made twice on purpose, as of a workflow's tool: the same tool with the same
    /// input is the same call until a call was answered.
    pub fn held(tool: &str, input_hash: [u8; 32]) -> Self {
        Self::of_call(tool, input_hash, KeyLife::UntilAnswered { after_end: UNANSWERED })
    }

    /// The key of a held research call: its report is replayed for a while after a call was answered with it.
    ///
    /// `input_hash` is the digest of all arguments, by which the previous version recognizes the call.
    pub fn research(tool: &str, input_hash: [u8; 32], answer: HeldAnswer) -> Self {
        Self::of_call(tool, input_hash, KeyLife::of_research(answer))
    }

    /// The identity by which the call finds its job: none if a key of the caller's own decides.
    pub fn deciding_identity(&self) -> Option<&CallIdentity> {
        match self.life {
            KeyLife::Replays { .. } => self.identity.as_ref(),
            KeyLife::For(_) | KeyLife::UntilAnswered { .. } => None,
        }
    }

    /// Returns true if the job of the same call may have been made by the previous version, which knew no fresh calls.
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
/// A call attaches to an unfinished job of the same question. A call that names no provider does so whoever answers, so
/// that a changed default does not buy the answer a second time. An ended job is repeated only if the provider and the
/// model that the call resolves to are the same too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallIdentity {
    /// The digest of the tool, the conversation and everything that is asked, without provider and model.
    pub question: [u8; 32],
    /// The provider that the call names, if it names one.
    pub named_provider: Option<String>,
    /// The model that answers with the present settings, as far as it is known.
    pub model: Option<String>,
    /// Whether the call starts over.
    pub mode: CallMode,
    /// The time that an ended job is repeated.
    pub life: KeyLife,
}

/// Whether a call may be answered with the job of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMode {
    /// It attaches to the newest job of the same call.
    Attach,
    /// It starts over, and attaches only to the job of an earlier call that did so too, until one was answered with it.
    Fresh,
}

/// How long after its job's end the key of a held call is valid while no call was answered.
const UNANSWERED: Duration = Duration::from_secs(30 * 60);

/// What a held research call brings: how long it is replayed depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeldAnswer {
    /// A report that takes minutes.
    Report,
    /// An answer that takes seconds.
    Quick,
}

/// How long a key is valid beyond the end of its job. The key of a held call never names a cancelled job: the same call
/// made again wants the work done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyLife {
    /// A caller's own key: for so long after the job was made.
    For(Duration),
    /// A held call that may be made twice on purpose: until a call was answered with the outcome, at most so long after
    /// the job's end.
    UntilAnswered {
        /// So long.
        after_end: Duration,
    },
    /// A held research call. Whether a client received its answer cannot be known, so a report is replayed also after
    /// one; a failure is not, unless a new run needs the caller's consent
    /// ([`crate::Code::needs_consent`]).
    Replays {
        /// So long after the job's end while no call was answered with it.
        unanswered: Duration,
        /// So long after the job's end once one was.
        answered: Duration,
    },
}

impl KeyLife {
    /// The life of the key and of the identity of a held research call.
    pub fn of_research(answer: HeldAnswer) -> Self {
        let answered = match answer {
            HeldAnswer::Report => Duration::from_secs(10 * 60),
            HeldAnswer::Quick => Duration::from_secs(60),
        };
        Self::Replays { unanswered: UNANSWERED, answered }
    }
}
