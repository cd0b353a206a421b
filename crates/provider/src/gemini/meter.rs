//! The progress of a run, by its actual work: thoughts, queries asked, pages read, words written (B6).

use std::collections::HashMap;

use outlast_core::Progress;

use super::wire::{Event, EventKind, Interaction};
use crate::vendor::{Milestones, WorkDone};

/// A longer title of a thought is cut.
const MAX_TITLE_CHARS: usize = 100;

/// Of more steps than this no count is kept.
const MAX_STEPS: usize = 10_000;

/// Counts what happened and turns it into percent; never goes down.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) milestones: Milestones,
    /// Counted by the events of the stream that is open.
    by_events: StreamedWork,
    /// Counted by checks, which show all that was done so far; never added to the counts of events, which show the same work.
    by_checks: WorkDone,
}

/// The work shown by the events of one stream.
#[derive(Debug, Default)]
struct StreamedWork {
    /// Queries and pages by the number of their step: a step reports them when it begins, and may report them again.
    steps: HashMap<u64, (usize, usize)>,
    words: usize,
    thoughts: usize,
}

impl Meter {
    /// Starts over for a stream that repeats everything from the first event on.
    pub(super) fn stream_from_the_beginning(&mut self) {
        self.by_events = StreamedWork::default();
    }

    /// Counts an event; returns progress if it adds anything a person would notice.
    pub(super) fn event(&mut self, event: &Event, kind: EventKind) -> Option<Progress> {
        match kind {
            EventKind::Searched { queries, pages } => {
                let steps = &mut self.by_events.steps;
                let index = event.index.unwrap_or(steps.len() as u64);
                if steps.len() < MAX_STEPS || steps.contains_key(&index) {
                    let step = steps.entry(index).or_default();
                    *step = (step.0.max(queries), step.1.max(pages));
                }
                let done = self.work_done();
                self.milestones.report_search(done.queries, done.sources)
            }
            EventKind::Thought(summary) => {
                self.by_events.thoughts += 1;
                let done = self.work_done();
                let steps = done.queries + done.sources + self.by_events.thoughts;
                let message = format!("Researching: {}", title(&summary)?);
                Some(self.milestones.report_step(steps, message))
            }
            EventKind::OutputBegins => self.milestones.report_processing(),
            EventKind::Wrote { words } => {
                self.by_events.words += words;
                self.milestones.report_words(self.work_done().words)
            }
            EventKind::Ended | EventKind::StreamError | EventKind::Other => None,
        }
    }

    /// Counts the searches and the text that a check shows.
    pub(super) fn snapshot(&mut self, interaction: &Interaction) -> Option<Progress> {
        self.by_checks = self.by_checks.max(WorkDone {
            queries: interaction.queries(),
            sources: interaction.pages(),
            words: interaction.words(),
        });
        self.milestones.report_work(self.work_done())
    }

    fn work_done(&self) -> WorkDone {
        let steps = self.by_events.steps.values();
        let (queries, sources) = steps.fold((0, 0), |all, step| (all.0 + step.0, all.1 + step.1));
        self.by_checks.max(WorkDone { queries, sources, words: self.by_events.words })
    }
}

/// The first line of a thought's summary, which is its title, without its marks.
fn title(summary: &str) -> Option<String> {
    let mut lines = summary.lines().map(|line| line.trim_matches(['*', '#', ' ', '\t', '\r']));
    let line = lines.find(|line| !line.is_empty())?;
    let shown = line.chars().filter(|character| !character.is_control());
    let shown: String = shown.take(MAX_TITLE_CHARS).collect();
    (!shown.is_empty()).then_some(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemini::VENDOR;
    use crate::vendor::object;

    fn told(meter: &mut Meter, json: &str) -> Option<(u8, String)> {
        let event = Event::parse(&mut json.to_owned()).unwrap();
        let progress = meter.event(&event, event.kind())?;
        Some((progress.percent.unwrap(), progress.message))
    }

    const SEARCH: &str = r#"{"event_type":"step.start","index":1,
        "step":{"type":"google_search_call","arguments":{"queries":["a","b"]}}}"#;

    /// B6, G3: the named milestones, real signals between them, never down, nothing counted twice.
    #[test]
    fn g3_progress_follows_what_the_run_does() {
        let mut meter = Meter::default();
        assert_eq!(meter.milestones.start(&VENDOR).unwrap().message, "Querying Gemini...");
        let thought = r##"{"event_type":"step.delta","index":0,"delta":{"type":"thought_summary",
            "content":{"type":"text","text":"\n**Planning the searches**\n\nI plan."}}}"##;
        assert_eq!(
            told(&mut meter, thought),
            Some((26, "Researching: Planning the searches".to_owned()))
        );
        let asked = "Researching: 2 queries asked, 0 sources read";
        assert_eq!(told(&mut meter, SEARCH), Some((27, asked.to_owned())));
        assert_eq!(told(&mut meter, SEARCH), None, "the same step");
        let shown = br#"{"steps":[{"type":"google_search_call","arguments":{"queries":["a","b"]}},
            {"type":"url_context_result","result":[{"url":"u"}]}]}"#;
        let shown = object::<Interaction>(shown).unwrap();
        let said = meter.snapshot(&shown).map(|progress| progress.message);
        assert_eq!(said.as_deref(), Some("Researching: 2 queries asked, 1 source read"));
        assert_eq!(meter.snapshot(&shown), None);
        meter.stream_from_the_beginning();
        assert_eq!(told(&mut meter, SEARCH), None, "repeated by a stream from the beginning");
        let begins = r#"{"event_type":"step.start","index":2,"step":{"type":"model_output"}}"#;
        assert_eq!(told(&mut meter, begins), Some((50, "Processing response...".to_owned())));
        assert_eq!(told(&mut meter, thought).unwrap().0, 50, "never down");
        let text = format!(
            r#"{{"event_type":"step.delta","delta":{{"type":"text","text":"{}"}}}}"#,
            "w ".repeat(60)
        );
        assert_eq!(told(&mut meter, &text).unwrap().0, 51);
        assert_eq!(meter.milestones.report_finalizing().unwrap().percent, Some(75));
    }

    #[test]
    fn the_title_of_a_thought_is_one_short_line() {
        assert_eq!(title("## A *b* c \u{1b}[31m\nmore").as_deref(), Some("A *b* c [31m"));
        assert_eq!(title(" \n** **\n"), None);
        assert_eq!(title(&"x".repeat(1_000)).unwrap().len(), MAX_TITLE_CHARS);
    }
}
