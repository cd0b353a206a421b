//! The timing of a run: realistic phases, then scaled.

use std::ops::Range;
use std::time::Duration;

use super::{Event, TimedEvent};
use crate::scenario::Ending;

const QUEUED_MS: f64 = 300.0;
const SEARCH_MS: f64 = 1_200.0;
const FETCH_MS: f64 = 600.0;
const WORDS_PER_SECOND: f64 = 60.0;

/// Events with realistic times in milliseconds, before they are scaled.
#[derive(Default)]
pub(super) struct Pace {
    now: f64,
    events: Vec<(f64, Event)>,
}

impl Pace {
    fn say(&mut self, event: Event) {
        self.events.push((self.now, event));
    }

    pub(super) fn research(&mut self, searches: usize, fetches: usize) {
        self.say(Event::Created);
        self.now += QUEUED_MS;
        self.say(Event::InProgress);
        self.say(Event::ReasoningStarted);
        for search in 0..searches {
            self.say(Event::SearchQueries(search));
            self.now += SEARCH_MS;
            self.say(Event::SearchResults(search));
        }
        for fetch in 0..fetches {
            self.say(Event::FetchQueries(fetch));
            self.now += FETCH_MS;
            self.say(Event::FetchResults(fetch));
        }
        self.say(Event::ReasoningStopped);
    }

    pub(super) fn writing(&mut self, deltas: Vec<Range<usize>>, text: &str, ending: &Ending) {
        self.say(Event::MessageAdded);
        for range in deltas {
            let words = text[range.clone()].split_whitespace().count();
            self.now += words as f64 * 1_000.0 / WORDS_PER_SECOND;
            self.say(Event::TextDelta(range));
        }
        self.say(Event::TextDone);
        self.say(Event::MessageDone);
        let incomplete = matches!(ending, Ending::Incomplete { .. });
        self.say(if incomplete { Event::Incomplete } else { Event::Completed });
    }

    pub(super) fn timed_events(self, delay_ms: Option<u64>, speed: f64) -> Vec<TimedEvent> {
        let stretch = delay_ms.map_or(1.0, |total| total as f64 / self.now) / speed;
        // A huge delay divided by a tiny speed overflows a Duration; a century is long enough.
        let due = |ms: f64| Duration::from_secs_f64((ms * stretch / 1_000.0).min(3e9));
        self.events.into_iter().map(|(ms, event)| TimedEvent { due: due(ms), event }).collect()
    }
}

/// Splits the text into pieces of a few words; joined they are the text again.
pub(super) fn deltas(text: &str, words_per_delta: usize) -> Vec<Range<usize>> {
    let mut deltas = Vec::new();
    let mut start = 0;
    let mut words = 0;
    let mut in_word = false;
    for (index, char) in text.char_indices() {
        if !char.is_whitespace() && !in_word {
            if words == words_per_delta {
                deltas.push(start..index);
                start = index;
                words = 0;
            }
            words += 1;
        }
        in_word = !char.is_whitespace();
    }
    if start < text.len() {
        deltas.push(start..text.len());
    }
    deltas
}
