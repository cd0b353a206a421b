//! The steps of a researcher's run, summed by their kind (K10).

use std::fmt;
use std::time::Duration;

use outlast_core::{JournalStep, NanoUsd, StepState};

use crate::text::count_noun;

/// The kinds of steps that people are interested in, in the order of a run, with their names for one and for many.
const KINDS: [(&str, &str, &str); 8] = [
    ("plan", "plan", "plans"),
    ("search", "search", "searches"),
    ("read", "page", "pages"),
    ("note", "request for notes", "requests for notes"),
    ("gaps", "look for gaps", "looks for gaps"),
    ("section", "section", "sections"),
    ("repair", "correction", "corrections"),
    ("summary", "summary", "summaries"),
];

/// The steps of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepTotals {
    /// The kind as the journal stores it.
    pub kind: String,
    /// The number of steps that have ended well.
    pub done: usize,
    /// The number of steps that have failed.
    pub failed: usize,
    /// The number of steps without a recorded end.
    pub open: usize,
    /// The time from the beginning of each step to its end, as a sum: steps that ran at the same time count twice.
    pub time: Duration,
    /// The known cost.
    pub spent: NanoUsd,
    /// The tokens that the model read and wrote.
    pub tokens: (u64, u64),
    names: (&'static str, &'static str),
}

impl StepTotals {
    /// Sums the steps of each kind, in the order of a run. Decisions of the run itself are left out.
    pub fn sum(steps: &[JournalStep]) -> Vec<Self> {
        let of_kind = |(kind, one, many): (&str, &'static str, &'static str)| {
            let empty = Self {
                kind: kind.to_owned(),
                done: 0,
                failed: 0,
                open: 0,
                time: Duration::ZERO,
                spent: NanoUsd(0),
                tokens: (0, 0),
                names: (one, many),
            };
            let own = steps.iter().filter(|step| step.kind == kind);
            own.fold(empty, Self::with)
        };
        let totals = KINDS.into_iter().map(of_kind);
        totals.filter(|totals| totals.count() > 0).collect()
    }

    fn with(mut self, step: &JournalStep) -> Self {
        match step.state {
            StepState::Done => self.done += 1,
            StepState::Failed => self.failed += 1,
            StepState::Sending => self.open += 1,
        }
        self.time += step.ended_at.map_or(Duration::ZERO, |at| at.since(step.started_at));
        self.spent = [self.spent, step.spent].into_iter().sum();
        self.tokens.0 = self.tokens.0.saturating_add(step.tokens_in);
        self.tokens.1 = self.tokens.1.saturating_add(step.tokens_out);
        self
    }

    fn count(&self) -> usize {
        self.done + self.failed + self.open
    }

    /// Returns the name of a kind for one step.
    pub fn name_of(kind: &str) -> Option<&'static str> {
        KINDS.iter().find(|(known, _, _)| *known == kind).map(|(_, one, _)| *one)
    }
}

impl fmt::Display for StepTotals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (one, many) = self.names;
        write!(f, "{}", count_noun(self.count(), one, many))?;
        if self.failed > 0 {
            write!(f, ", {} failed", self.failed)?;
        }
        if self.open > 0 {
            write!(f, ", {} open", self.open)?;
        }
        write!(f, ", {:.1} s", self.time.as_secs_f32())?;
        if self.tokens != (0, 0) {
            write!(f, ", {} tokens read, {} written", self.tokens.0, self.tokens.1)?;
        }
        if self.spent > NanoUsd(0) {
            write!(f, ", {}", self.spent)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::{Fence, Timestamp};

    use super::*;

    /// K10: the steps are summed by kind, in the order of a run, without decisions.
    #[test]
    fn k10_steps_are_summed_by_kind() {
        let step = |kind: &str, state, seconds: i64| JournalStep {
            key: format!("{kind}:{seconds}"),
            kind: kind.to_owned(),
            input_digest: [0; 32],
            state,
            fence: Fence(1),
            bound: NanoUsd(0),
            spent: NanoUsd(2_000_000),
            tokens_in: 10,
            tokens_out: 1,
            resent: 0,
            started_at: Timestamp::from_millis(0),
            ended_at: Some(Timestamp::from_millis(seconds * 1_000)),
        };
        let steps = [
            step("read", StepState::Done, 2),
            step("decision", StepState::Done, 1),
            step("plan", StepState::Done, 1),
            step("read", StepState::Failed, 3),
        ];
        let totals = StepTotals::sum(&steps);
        let lines: Vec<_> = totals.iter().map(StepTotals::to_string).collect();
        assert_eq!(lines[0], "1 plan, 1.0 s, 10 tokens read, 1 written, $0.0020");
        assert!(lines[1].starts_with("2 pages, 1 failed, 5.0 s, 20 tokens read"), "{lines:?}");
        assert_eq!(lines.len(), 2);
    }
}
