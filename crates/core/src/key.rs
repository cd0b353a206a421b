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
}

impl Key {
    /// A key of the caller's own; it is valid for a day.
    pub fn given(text: &str, input_hash: [u8; 32]) -> Self {
        const WINDOW: Duration = Duration::from_secs(24 * 60 * 60);
        Self { text: format!("given:{text}"), input_hash, life: KeyLife::For(WINDOW) }
    }

    /// The key of a held call that may be made twice on purpose, as of a workflow's tool: the same tool with the same
    /// input is the same call until a call was answered.
    pub fn held(tool: &str, input_hash: [u8; 32]) -> Self {
        Self::of_call(tool, input_hash, KeyLife::UntilAnswered { after_end: UNANSWERED })
    }

    /// The key of a held research call: its report is replayed for a while after a call was answered with it.
    pub fn research(tool: &str, input_hash: [u8; 32], answer: HeldAnswer) -> Self {
        let answered = match answer {
            HeldAnswer::Report => Duration::from_secs(10 * 60),
            HeldAnswer::Quick => Duration::from_secs(60),
        };
        Self::of_call(tool, input_hash, KeyLife::Replays { unanswered: UNANSWERED, answered })
    }

    fn of_call(tool: &str, input_hash: [u8; 32], life: KeyLife) -> Self {
        let hash: String = input_hash.iter().map(|byte| format!("{byte:02x}")).collect();
        Self { text: format!("held:{tool}:{hash}"), input_hash, life }
    }
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
