//! A run before it starts: all its events with their times. Pure, so the response to a poll is a function of
//! the elapsed time.

mod pace;

use std::ops::Range;
use std::time::Duration;

use pace::{Pace, deltas};

use crate::ask::{Api, Ask};
use crate::scenario::{Ending, KeptOutput, Markers, Phase, Scenario};
use crate::sources::{self, Search, Source};
use crate::topic::Topic;
use crate::{hostile, prices::Used, report};

const SEARCHES: usize = 4;
const FETCHES: usize = 2;
const WORDS_PER_DELTA: usize = 5;
const MAX_CHUNKS: usize = 100;

/// The complete content and schedule of a run.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) searches: Vec<Search>,
    pub(crate) fetched: Vec<Source>,
    pub(crate) text: String,
    pub(crate) timed_events: Vec<TimedEvent>,
    /// Events from here on wait for a release.
    pub(crate) held_from: Option<usize>,
    /// The part of the output that an incomplete run still shows.
    pub(crate) kept: KeptOutput,
    pub(crate) used: Used,
}

/// One event and its time since the submit.
#[derive(Clone, Debug)]
pub(crate) struct TimedEvent {
    pub(crate) due: Duration,
    pub(crate) event: Event,
}

/// Numbers and ranges refer to the script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Created,
    InProgress,
    ReasoningStarted,
    SearchQueries(usize),
    SearchResults(usize),
    FetchQueries(usize),
    FetchResults(usize),
    ReasoningStopped,
    MessageAdded,
    TextDelta(Range<usize>),
    TextDone,
    MessageDone,
    Completed,
    Failed { code: String },
    RequiresAction,
    Incomplete,
    Cancelled,
}

impl Event {
    pub(crate) fn is_terminal(&self) -> bool {
        matches!(self, Self::Completed | Self::Failed { .. } | Self::Incomplete | Self::Cancelled)
    }
}

impl Script {
    pub(crate) fn write(ask: &Ask, scenario: &Scenario, seed: u64, speed: f64) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        let topic = Topic::of(&ask.question);
        let shape = &scenario.shape;
        let (words, sources, _) = ask.effort.scale();
        let words = shape.words.unwrap_or(words);
        let sources = shape.sources.unwrap_or(sources);
        let count = shape.searches.unwrap_or(SEARCHES);
        let hostile = scenario.inject;
        // Sonar numbers its sources without gaps.
        let gaps = if ask.sonar.is_none() { 1..=3 } else { 0..=0 };
        let mut searches = sources::search(&topic, count, sources, gaps, &mut rng);
        for source in searches.iter_mut().flat_map(|search| &mut search.results) {
            source.apply(shape, hostile);
        }
        let found: Vec<&Source> = searches.iter().flat_map(|search| &search.results).collect();
        let markers = match (ask.api, shape.markers) {
            (Api::OpenAi, Markers::Number) => Markers::Cited,
            // It has no numbers to cite by.
            (Api::Anthropic, Markers::Number) => Markers::Link,
            (_, markers) => markers,
        };
        let cited: Vec<String> = found.iter().map(|source| source.marker(markers)).collect();
        let fetched: Vec<Source> = found.into_iter().take(FETCHES).cloned().collect();
        let mut text = report::write(&topic, words, &cited, &mut rng);
        if shape.rich {
            text.push_str("\n\n");
            text.push_str(report::RICH);
        }
        if let Some(line) = hostile {
            text.push_str("\n\n");
            text.push_str(&hostile::text(line));
        }
        if shape.thinks || ask.sonar.as_ref().is_some_and(|sonar| sonar.model.thinks()) {
            text.insert_str(0, &thoughts(&topic, &searches));
        }
        // Sonar repeats the whole text so far in every chunk, so a long text must be sent in few chunks.
        let more_words = match shape.chunks {
            Some(chunks) => text.split_whitespace().count().div_ceil(chunks.max(1)),
            None if ask.sonar.is_some() => words / MAX_CHUNKS,
            None => 0,
        };
        let mut deltas = deltas(&text, WORDS_PER_DELTA.max(more_words));
        let mut kept = KeptOutput::Partial;
        if let Ending::Incomplete { output, .. } = &scenario.ending {
            kept = *output;
            deltas.truncate(deltas.len() / 2);
            text.truncate(deltas.last().map_or(0, |range| range.end));
        }
        let used = Used {
            model: ask.model,
            words_in: ask.question.split_whitespace().count(),
            words_out: text.split_whitespace().count(),
            sources,
            searches: searches.len(),
            fetches: fetched.len(),
        };
        let mut pace = Pace::default();
        pace.research(searches.len(), fetched.len());
        pace.writing(deltas, &text, &scenario.ending);
        let timed_events = pace.timed_events(shape.delay_ms, speed);
        let mut script =
            Self { searches, fetched, text, timed_events, held_from: None, kept, used };
        script.end_early(scenario);
        script
    }

    /// All sources in the order they were found.
    pub(crate) fn sources(&self) -> impl Iterator<Item = &Source> {
        self.searches.iter().flat_map(|search| &search.results)
    }

    /// The number of output items before the message.
    pub(crate) fn message_index(&self) -> usize {
        self.searches.len() + self.fetched.len()
    }

    /// Cuts or holds the finished script as the scenario requires.
    fn end_early(&mut self, scenario: &Scenario) {
        let first_search = self
            .timed_events
            .iter()
            .position(|timed| matches!(timed.event, Event::SearchResults(_)));
        let working = first_search.map_or(2, |index| index + 1);
        if scenario.shape.hold {
            self.held_from = Some(working);
        }
        let (cut, end) = match &scenario.ending {
            Ending::Completed | Ending::Incomplete { .. } => return,
            Ending::Stuck { .. } => (working, None),
            Ending::RequiresAction {} => (working, Some(Event::RequiresAction)),
            Ending::Fail { at, code, .. } => {
                let cut = match at {
                    Phase::Search => working,
                    Phase::Write => self.middle_of_the_text(),
                };
                (cut, Some(Event::Failed { code: code.clone() }))
            }
        };
        let due = self.timed_events.get(cut).map_or(Duration::ZERO, |timed| timed.due);
        self.timed_events.truncate(cut);
        self.timed_events.extend(end.map(|event| TimedEvent { due, event }));
    }

    fn middle_of_the_text(&self) -> usize {
        let added = self.timed_events.iter().position(|timed| timed.event == Event::MessageAdded);
        let done = self.timed_events.iter().position(|timed| timed.event == Event::TextDone);
        match (added, done) {
            (Some(added), Some(done)) => usize::midpoint(added + 1, done),
            _ => self.timed_events.len(),
        }
    }
}

/// The thoughts that a reasoning model writes before its report.
fn thoughts(topic: &Topic, searches: &[Search]) -> String {
    let mut thoughts = format!("<think>\nThe question is about {}.", topic.terms[0]);
    for search in searches {
        thoughts.push_str(&format!("\nI search for \"{}\" and read what comes up.", search.query));
    }
    thoughts.push_str("\nNow I can write the report.\n</think>\n\n");
    thoughts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effort::Effort;
    use crate::scenario::Shape;

    fn script(ending: &Ending, shape: &Shape, speed: f64) -> Script {
        let scenario =
            Scenario { ending: ending.clone(), shape: shape.clone(), ..Scenario::default() };
        Script::write(&Ask::to_agent("How do heat pumps age?", Effort::Medium), &scenario, 3, speed)
    }

    #[test]
    fn deltas_joined_are_the_text() {
        let script = script(&Ending::Completed, &Shape::default(), 1.0);
        let joined: String = script
            .timed_events
            .iter()
            .filter_map(|timed| match &timed.event {
                Event::TextDelta(range) => Some(&script.text[range.clone()]),
                _ => None,
            })
            .collect();
        assert_eq!(joined, script.text);
    }

    #[test]
    fn a_realistic_run_has_phases_that_speed_divides() {
        let shape = Shape { words: Some(60), ..Shape::default() };
        let end = |speed| {
            script(&Ending::Completed, &shape, speed)
                .timed_events
                .last()
                .map(|timed| timed.due.as_millis())
        };
        assert_eq!(end(1.0), Some(300 + 4 * 1_200 + 2 * 600 + 1_000));
        assert_eq!(end(100.0), Some(73));
    }

    #[test]
    fn delay_is_the_length_of_the_whole_run() {
        for delay in [0, 500] {
            let shape = Shape { delay_ms: Some(delay), ..Shape::default() };
            let script = script(&Ending::Completed, &shape, 1.0);
            assert_eq!(script.timed_events.last().unwrap().due.as_millis(), u128::from(delay));
            assert!(script.timed_events.is_sorted_by_key(|timed| timed.due));
        }
    }

    #[test]
    fn a_run_has_one_terminal_event_at_its_end_unless_it_is_stuck() {
        let fail = |at| Ending::Fail { at, code: "x".to_owned(), times: None };
        for (ending, terminals) in [
            (Ending::Completed, 1),
            (fail(Phase::Search), 1),
            (fail(Phase::Write), 1),
            (Ending::Incomplete { output: KeptOutput::Partial, reason: None }, 1),
            (Ending::Stuck { pings: false }, 0),
            (Ending::RequiresAction {}, 0),
        ] {
            for (words, searches) in [(0, 0), (1, 1), (50, 3)] {
                let shape = Shape {
                    words: Some(words),
                    searches: Some(searches),
                    sources: Some(searches),
                    ..Shape::default()
                };
                let script = script(&ending, &shape, 1.0);
                let found =
                    script.timed_events.iter().filter(|timed| timed.event.is_terminal()).count();
                assert_eq!(found, terminals, "{ending:?} {words}");
                let last = script.timed_events.last().unwrap();
                assert_eq!(last.event.is_terminal(), terminals == 1, "{ending:?} {words}");
            }
        }
    }
}
