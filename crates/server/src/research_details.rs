//! The questions, searches, pages and notes of a researcher's run, with time and cost (K10). Their texts are data of
//! others.

use std::collections::HashMap;
use std::time::Duration;

use outlast_core::{JournalStep, NanoUsd, NoteRecord, ResearchRecord, StepOutput, StepState};

use crate::text::count_noun;

/// What a run has asked, searched, read and noted so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResearchDetails {
    pub questions: Vec<String>,
    pub searches: Vec<TakenStep>,
    pub pages: Vec<TakenStep>,
    pub notes: Vec<NoteRecord>,
}

/// A search or a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenStep {
    /// The query or the address; empty if it is not recorded.
    pub subject: String,
    /// The result in a few words; `None` for a page that was read.
    pub result: Option<String>,
    pub failed: bool,
    pub time: Option<Duration>,
    pub spent: NanoUsd,
}

impl ResearchDetails {
    /// Collects the records of a run in the order of its steps. `outputs` are those of [`ResearchRecord::KINDS`].
    pub fn new(steps: &[JournalStep], outputs: Vec<StepOutput>) -> Self {
        let outputs: HashMap<String, StepOutput> =
            outputs.into_iter().map(|output| (output.key.clone(), output)).collect();
        let mut details = Self::default();
        for step in steps {
            let output = outputs.get(&step.key);
            let record = output.and_then(ResearchRecord::parse);
            match (&*step.kind, record) {
                (_, Some(ResearchRecord::Questions(record))) => {
                    details.questions = record.questions;
                }
                (_, Some(ResearchRecord::Notes(record))) => details.notes.extend(record.notes),
                (_, Some(ResearchRecord::Search(record))) => {
                    let found = count_noun(record.hits.len(), "result", "results");
                    details.searches.push(TakenStep::new(step, record.query, Some(found)));
                }
                (_, Some(ResearchRecord::Read(record))) => {
                    details.pages.push(TakenStep::new(step, record.url, None));
                }
                (kind @ (ResearchRecord::SEARCH | ResearchRecord::READ), record) => {
                    let (subject, result) = match record {
                        Some(ResearchRecord::Failed(failed)) => (failed.subject, failed.reason),
                        _ if step.state == StepState::Sending => {
                            (String::new(), "no answer recorded".to_owned())
                        }
                        // A request that was not accepted; it was sent again as another step.
                        _ => {
                            (String::new(), output.map(|it| it.output.clone()).unwrap_or_default())
                        }
                    };
                    let taken = TakenStep::new(step, subject, Some(result));
                    match kind {
                        ResearchRecord::SEARCH => details.searches.push(taken),
                        _ => details.pages.push(taken),
                    }
                }
                _ => {}
            }
        }
        details
    }
}

impl TakenStep {
    fn new(step: &JournalStep, subject: String, result: Option<String>) -> Self {
        let failed = step.state == StepState::Failed;
        let time = step.ended_at.map(|at| at.since(step.started_at));
        Self { subject, result, failed, time, spent: step.spent }
    }

    /// Returns the result, the time and the cost.
    pub fn facts(&self) -> String {
        let result = self.result.as_ref().filter(|result| !result.is_empty()).cloned();
        let result =
            result.map(|result| if self.failed { format!("failed: {result}") } else { result });
        let time = self.time.map(|time| format!("{:.1} s", time.as_secs_f32()));
        let cost = (self.spent > NanoUsd(0)).then(|| self.spent.to_string());
        [result, time, cost].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::{Fence, Timestamp};

    use super::*;

    fn step(kind: &str, key: &str, state: StepState) -> JournalStep {
        JournalStep {
            key: key.to_owned(),
            kind: kind.to_owned(),
            input_digest: [0; 32],
            state,
            fence: Fence(1),
            bound: NanoUsd(0),
            spent: NanoUsd(5_000_000),
            tokens_in: 0,
            tokens_out: 0,
            resent: 0,
            started_at: Timestamp::from_millis(0),
            ended_at: (state != StepState::Sending).then(|| Timestamp::from_millis(1_500)),
        }
    }

    /// K10: queries, addresses and notes with time and cost; failed, open and unreadable steps too.
    #[test]
    fn k10_the_details_name_queries_addresses_and_notes() {
        use StepState::{Done, Failed, Sending};
        let steps = [
            ("questions", "questions", Done, r#"{"questions":["How many?"]}"#),
            ("search", "search:0:0", Done, r#"{"query":"pumps","hits":[{"url":"u"}]}"#),
            ("search", "search:0:1", Failed, r#"{"subject":"heat","reason":"no JSON"}"#),
            ("search", "search:0:2", Failed, "not accepted: busy"),
            ("search", "search:0:3", Sending, ""),
            ("read", "read:1", Done, r#"{"url":"https://a.example/","page":"00"}"#),
            ("read", "read:2", Failed, r#"{"subject":"https://b.example/","reason":"404"}"#),
            (
                "notes",
                "notes:0",
                Done,
                r#"{"notes":[{"question":"q","claim":"c","quotation":"w","url":"u","page":""}]}"#,
            ),
            ("notes", "notes:1", Done, r#"{"notes":[{"qu"#),
            ("section", "section:0", Done, "{}"),
        ];
        let outputs = steps.iter().filter(|(_, _, state, _)| *state != Sending);
        let outputs = outputs.map(|(kind, key, _, output)| StepOutput {
            key: (*key).to_owned(),
            kind: (*kind).to_owned(),
            output: (*output).to_owned(),
        });
        let outputs = outputs.collect();
        let steps: Vec<_> =
            steps.iter().map(|(kind, key, state, _)| step(kind, key, *state)).collect();
        let details = ResearchDetails::new(&steps, outputs);
        let lines = |steps: &[TakenStep]| {
            steps.iter().map(|it| format!("{}|{}", it.subject, it.facts())).collect::<Vec<_>>()
        };
        assert_eq!(details.questions, ["How many?"]);
        assert_eq!(
            lines(&details.searches),
            [
                "pumps|1 result, 1.5 s, $0.0050",
                "heat|failed: no JSON, 1.5 s, $0.0050",
                "|failed: not accepted: busy, 1.5 s, $0.0050",
                "|no answer recorded, $0.0050"
            ]
        );
        assert_eq!(
            lines(&details.pages),
            ["https://a.example/|1.5 s, $0.0050", "https://b.example/|failed: 404, 1.5 s, $0.0050"]
        );
        assert_eq!((details.notes.len(), &*details.notes[0].claim), (1, "c"));
    }
}
