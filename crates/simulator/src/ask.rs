//! One accepted request for research, whatever API it came through.

use crate::effort::Effort;
use crate::sonar::prices::{Context, Model};

/// What a run is made from.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) api: Api,
    /// The question as JSON: two submits with the same one are the same question asked twice.
    pub(crate) input: String,
    /// All texts of the question; markers are looked for here.
    pub(crate) prompt: String,
    /// The last message without markers: what the report is about.
    pub(crate) question: String,
    pub(crate) effort: Effort,
    /// What `model` shows until the run has completed.
    pub(crate) label: String,
    pub(crate) model: &'static str,
    pub(crate) background: bool,
    pub(crate) stream: bool,
    pub(crate) store: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Api {
    Agent,
    Sonar(Sonar),
}

/// What only Sonar asks for.
#[derive(Clone, Debug)]
pub(crate) struct Sonar {
    pub(crate) via: Via,
    pub(crate) model: &'static Model,
    pub(crate) context: Context,
    pub(crate) related_questions: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Via {
    Chat,
    /// A job, with the key that makes its submit safe to repeat.
    Async(Option<IdempotencyKey>),
}

#[derive(Clone, Debug)]
pub(crate) struct IdempotencyKey {
    pub(crate) key: String,
    /// The whole request: the same key with another one is a mistake.
    pub(crate) request: String,
}
