//! Questions of running jobs to their owners (M4): a plan that needs an approval, a choice of a command.
//! `rules/question.rs` decides what happens to them.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Job, StateKind, Timestamp};

/// A question that a run asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewQuestion {
    /// The name of the question in its run, the same in every attempt: a run that asks again finds its question.
    pub key: String,
    pub text: String,
    /// The possible answers; empty if any text is one.
    pub choices: Vec<String>,
    /// The answer after the deadline. Without one, the job fails.
    pub default: Option<String>,
    /// The time until the deadline.
    pub timeout: Duration,
}

impl NewQuestion {
    /// The time until the deadline unless another is given.
    pub const TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);
    /// The answer that approves.
    pub const YES: &str = "yes";
    /// The answer that does not approve.
    pub const NO: &str = "no";

    /// Creates a question for an approval. After the deadline it is answered with no.
    pub fn approval(key: impl Into<String>, text: impl Into<String>, timeout: Duration) -> Self {
        Self {
            key: key.into(),
            text: text.into(),
            choices: [Self::YES, Self::NO].map(str::to_owned).to_vec(),
            default: Some(Self::NO.to_owned()),
            timeout,
        }
    }
}

/// A question of a job, as stores keep it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// The id, unique within its job: `q1`, `q2`.
    pub id: String,
    /// See [`NewQuestion::key`].
    pub key: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    pub asked_at: Timestamp,
    pub deadline: Timestamp,
    /// The time since which the job waits for the answer without a worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked_at: Option<Timestamp>,
    pub state: QuestionState,
}

/// The state of a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum QuestionState {
    /// It has no answer yet.
    Open,
    /// It has an answer, which its run has not recorded yet.
    Answered(Answer),
    /// The deadline is over, and it has no default.
    NotAnswered,
}

/// The answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    pub text: String,
    pub at: Timestamp,
    /// True if nobody answered before the deadline, and the text is the default.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_default: bool,
}

/// The questions of a job. It asks one at a time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Questions {
    /// The number of questions that it has asked.
    pub asked: u32,
    /// The time for which it has waited for answers without a worker. Its life is longer by this time.
    #[serde(default)]
    pub waited_ms: u64,
    /// The present question, until its run has recorded the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current: Option<Question>,
}

impl Questions {
    /// Returns whether the job has never asked anything.
    pub fn is_empty(&self) -> bool {
        self.asked == 0
    }

    /// Returns the open question.
    pub fn open(&self) -> Option<&Question> {
        self.current.as_ref().filter(|question| question.state == QuestionState::Open)
    }
}

impl Job {
    /// Returns the question that waits for an answer of the job's owner.
    pub fn open_question(&self) -> Option<&Question> {
        self.questions.open().filter(|_| !self.state.kind().is_terminal())
    }

    /// Returns the state of the job as it is shown: [`StateKind::Waiting`] while it has an open question.
    pub fn kind(&self) -> StateKind {
        match self.open_question() {
            Some(_) => StateKind::Waiting,
            None => self.state.kind(),
        }
    }
}

/// An event of a question, besides its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionEvent {
    Asked,
    /// Nobody has answered before the deadline.
    TimedOut,
}

/// The reason to remove a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseReason {
    /// Its run has recorded the answer, or that there is none.
    Recorded,
    /// Nobody waits for an answer any more. A question that has one is kept, because its run may still record it.
    Unwanted,
}

/// The result of [`crate::Store::answer`].
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerOutcome {
    /// The answer counts.
    Accepted(Box<Job>),
    Refused(AnswerRefusal),
}

/// The reason why an answer does not count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerRefusal {
    #[error("the job has no open question")]
    NoQuestion,
    /// The first answer counts.
    #[error("the question is answered already")]
    AlreadyAnswered,
    #[error("the deadline of the question was {0}")]
    TooLate(Timestamp),
    /// The answer is not one of these choices.
    #[error("the answer must be one of: {}", .0.join(", "))]
    NotAChoice(Vec<String>),
    #[error("an answer has at most {0} bytes")]
    TooLong(usize),
}
