//! How far a run has come, from what it really does: queries asked, sources read, words written (B6).

use outlast_core::Progress;

use super::wire::{Event, Response};

const QUERYING: (u8, &str) = (25, "Querying Perplexity API...");
const PROCESSING: (u8, &str) = (50, "Processing response...");
const FINALIZING: (u8, &str) = (75, "Finalizing research report...");
const HIGHEST: u8 = 95;

/// Counts what happened and turns it into percent; never goes down.
#[derive(Debug, Default)]
pub(super) struct Meter {
    percent: u8,
    /// By events, which come once each.
    heard: Searches,
    /// By checks, which show all that was finished so far; never added to `heard`, for events may tell it again.
    looked: Searches,
    written: usize,
}

/// Searching so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Searches {
    queries: usize,
    sources: usize,
}

impl Searches {
    fn at_least(self, other: Self) -> Self {
        Self { queries: self.queries.max(other.queries), sources: self.sources.max(other.sources) }
    }
}

impl Meter {
    /// The first progress of a try; once.
    pub(super) fn start(&mut self) -> Option<Progress> {
        (self.percent == 0).then(|| self.at_least(QUERYING.0, QUERYING.1.to_owned()))
    }

    /// What an event adds, if it adds anything a person would notice.
    pub(super) fn event(&mut self, event: &Event) -> Option<Progress> {
        let queries = event.queries.as_ref().map_or(0, Vec::len);
        let sources = event.results.as_ref().map_or(0, Vec::len)
            + event.contents.as_ref().map_or(0, Vec::len);
        if queries + sources > 0 {
            let before = self.known();
            self.heard.queries += queries;
            self.heard.sources += sources;
            return self.searched(before);
        }
        match event.kind.as_str() {
            "response.output_item.added" => (self.percent < PROCESSING.0).then(|| self.writing()),
            "response.output_text.delta" => {
                let before = self.written / WORDS_A_STEP;
                self.written +=
                    event.delta.as_deref().unwrap_or_default().split_whitespace().count();
                let first = self.percent < PROCESSING.0;
                (first || self.written / WORDS_A_STEP > before).then(|| self.writing())
            }
            "response.output_text.done" => {
                Some(self.at_least(FINALIZING.0, FINALIZING.1.to_owned()))
            }
            "response.output_item.done" if self.percent >= FINALIZING.0 => {
                Some(self.at_least(HIGHEST, FINALIZING.1.to_owned()))
            }
            _ => None,
        }
    }

    /// What a check shows: the searches finished so far.
    pub(super) fn snapshot(&mut self, response: &Response) -> Option<Progress> {
        let before = self.known();
        let queries = response.queries().count();
        let sources = response.results().count() + response.pages();
        self.looked = self.looked.at_least(Searches { queries, sources });
        self.searched(before)
    }

    fn known(&self) -> Searches {
        self.heard.at_least(self.looked)
    }

    fn searched(&mut self, before: Searches) -> Option<Progress> {
        let Searches { queries, sources } = self.known();
        if self.known() == before {
            return None;
        }
        let steps = u8::try_from(queries + sources).unwrap_or(u8::MAX);
        let percent = QUERYING.0 + steps.min(PROCESSING.0 - QUERYING.0 - 1);
        let message = format!(
            "Researching: {} asked, {} read",
            counted(queries, "query", "queries"),
            counted(sources, "source", "sources")
        );
        Some(self.at_least(percent, message))
    }

    fn writing(&mut self) -> Progress {
        let steps = u8::try_from(self.written / WORDS_A_STEP).unwrap_or(u8::MAX);
        let percent = PROCESSING.0 + steps.min(FINALIZING.0 - PROCESSING.0 - 1);
        let message = match self.written {
            0..WORDS_A_STEP => PROCESSING.1.to_owned(),
            written => format!("{} {written} words so far", PROCESSING.1),
        };
        self.at_least(percent, message)
    }

    fn at_least(&mut self, percent: u8, message: String) -> Progress {
        self.percent = self.percent.max(percent);
        Progress { percent: Some(self.percent), message }
    }
}

/// A step of progress for so many words, so that a long report is not a thousand notes.
const WORDS_A_STEP: usize = 50;

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event {
        Event::parse(json.to_owned()).unwrap()
    }

    /// B6: the three named milestones, real signals between them, never down.
    #[test]
    fn progress_follows_what_the_run_does() {
        let mut meter = Meter::default();
        let mut seen = vec![meter.start().unwrap()];
        let words = "w ".repeat(WORDS_A_STEP);
        let events = [
            r#"{"type":"response.reasoning.search_queries","queries":["a","b"]}"#.to_owned(),
            r#"{"type":"response.reasoning.search_results","results":[{"id":1,"url":"u"}]}"#
                .to_owned(),
            r#"{"type":"response.output_item.added","item":{"type":"message"}}"#.to_owned(),
            format!(r#"{{"type":"response.output_text.delta","delta":"{words}"}}"#),
            r#"{"type":"response.reasoning.search_queries","queries":["late"]}"#.to_owned(),
            r#"{"type":"response.output_text.done","text":"x"}"#.to_owned(),
            r#"{"type":"response.output_item.done"}"#.to_owned(),
        ];
        seen.extend(events.iter().filter_map(|json| meter.event(&event(json))));
        let percents: Vec<_> = seen.iter().map(|progress| progress.percent.unwrap()).collect();
        assert_eq!(percents, [25, 27, 28, 50, 51, 51, 75, 95]);
        assert_eq!(seen[0].message, "Querying Perplexity API...");
        assert_eq!(seen[2].message, "Researching: 2 queries asked, 1 source read");
        assert_eq!(seen[3].message, "Processing response...");
        assert_eq!(seen[6].message, "Finalizing research report...");
        assert_eq!(meter.start(), None);
    }

    /// B6: after a broken stream a check shows what the events after it tell again.
    #[test]
    fn what_checks_and_events_both_show_counts_once() {
        let mut meter = Meter::default();
        let queries = r#"{"type":"response.reasoning.search_queries","queries":["a","b"]}"#;
        let pages = r#"{"type":"response.reasoning.fetch_url_results","contents":[{"url":"u"}]}"#;
        let shown = br#"{"status":"in_progress","output":[
            {"type":"search_results","queries":["a","b"],"results":[]},
            {"type":"fetch_url_results","contents":[{"url":"u"}]}]}"#;
        let shown = Response::parse(shown).unwrap();
        let message = |progress: Option<Progress>| progress.map(|progress| progress.message);
        let said = Some("Researching: 2 queries asked, 1 source read".to_owned());
        assert_eq!(message(meter.snapshot(&shown)), said);
        assert_eq!(message(meter.snapshot(&shown)), None);
        assert_eq!(message(meter.event(&event(queries))), None);
        assert_eq!(message(meter.event(&event(pages))), None);
        let said = Some("Researching: 4 queries asked, 1 source read".to_owned());
        assert_eq!(message(meter.event(&event(queries))), said);
    }
}
