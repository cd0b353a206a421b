//! The questions of the model's operations.

use std::time::Duration;

use outlast_core::NewQuestion;
use proptest::prelude::*;

use super::operation::seconds;

/// The distinguishing features of a question.
#[derive(Clone, Copy, Debug)]
pub(super) struct QuestionSpec {
    key: usize,
    seconds: u64,
    is_approval: bool,
}

pub(super) fn question() -> impl Strategy<Value = QuestionSpec> {
    (0..2_usize, seconds(), any::<bool>()).prop_map(|(key, seconds, is_approval)| QuestionSpec {
        key,
        seconds,
        is_approval,
    })
}

impl QuestionSpec {
    pub(super) fn value(self) -> NewQuestion {
        let approval = NewQuestion::approval(
            question_key(self.key),
            "Start?",
            Duration::from_secs(self.seconds),
        );
        match self.is_approval {
            true => approval,
            false => NewQuestion { choices: Vec::new(), default: None, ..approval },
        }
    }
}

pub(super) fn question_key(number: usize) -> String {
    format!("ask:{number}")
}
