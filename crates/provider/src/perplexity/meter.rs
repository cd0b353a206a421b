//! How far a run has come, from what it really does: queries asked, sources read, words written (B6).

use outlast_core::Progress;

use super::milestones::{FINALIZING, HIGHEST, PROCESSING, QUERYING, WORDS_A_STEP, writing};
use super::wire::{Event, Response};

/// Counts what happened and turns it into percent; never goes down.
#[derive(Debug, Default)]
pub(super) struct Meter {
    percent: u8,
    /// By events, which come once each.
    heard: Work,
    /// By checks, which show all that was finished so far; never added to `heard`, for events may tell it again.
    looked: Work,
}

/// What was done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    queries: usize,
    sources: usize,
    words: usize,
}

impl Work {
    fn at_least(self, other: Self) -> Self {
        Self {
            queries: self.queries.max(other.queries),
            sources: self.sources.max(other.sources),
            words: self.words.max(other.words),
        }
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
        if event.opens_the_report() {
            return (self.percent < PROCESSING.0).then(|| self.writing());
        }
        match event.kind.as_str() {
            "response.output_text.delta" => {
                let before = self.known();
                self.heard.words +=
                    event.delta.as_deref().unwrap_or_default().split_whitespace().count();
                self.written(before)
            }
            "response.output_text.done" => {
                Some(self.at_least(FINALIZING.0, FINALIZING.1.to_owned()))
            }
            _ if event.closes_the_report() => Some(self.at_least(HIGHEST, FINALIZING.1.to_owned())),
            _ => None,
        }
    }

    /// The report is here, and nothing said before that its end was near; once.
    pub(super) fn finalizing(&mut self) -> Option<Progress> {
        (self.percent < FINALIZING.0).then(|| self.at_least(FINALIZING.0, FINALIZING.1.to_owned()))
    }

    /// What a check shows: the searches finished so far, and the text.
    pub(super) fn snapshot(&mut self, response: &Response) -> Option<Progress> {
        let before = self.known();
        self.looked = self.looked.at_least(Work {
            queries: response.queries().count(),
            sources: response.found().count() + response.read().count(),
            words: response.words(),
        });
        let searched = self.searched(before);
        let written = if self.known().words > 0 { self.written(before) } else { None };
        written.or(searched)
    }

    fn known(&self) -> Work {
        self.heard.at_least(self.looked)
    }

    fn searched(&mut self, before: Work) -> Option<Progress> {
        let Work { queries, sources, .. } = self.known();
        if (queries, sources) == (before.queries, before.sources) {
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

    fn written(&mut self, before: Work) -> Option<Progress> {
        let first = self.percent < PROCESSING.0;
        let further = self.known().words / WORDS_A_STEP > before.words / WORDS_A_STEP;
        (first || further).then(|| self.writing())
    }

    fn writing(&mut self) -> Progress {
        let (percent, message) = writing(self.known().words);
        self.at_least(percent, message)
    }

    fn at_least(&mut self, percent: u8, message: String) -> Progress {
        self.percent = self.percent.max(percent);
        Progress { percent: Some(self.percent), message }
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event {
        Event::parse(&mut json.to_owned()).unwrap()
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
            r#"{"type":"response.output_item.done","item":{"type":"search_results"}}"#.to_owned(),
            r#"{"type":"response.output_item.done","item":{"type":"message"}}"#.to_owned(),
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

    /// B6: the end of a long report is announced while it is being written.
    #[test]
    fn b6_a_long_text_is_near_its_end() {
        let mut meter = Meter::default();
        let delta = |words: usize| {
            let text = "w ".repeat(words);
            event(&format!(r#"{{"type":"response.output_text.delta","delta":"{text}"}}"#))
        };
        let mut said = |words| {
            let progress = meter.event(&delta(words)).unwrap();
            (progress.percent.unwrap(), progress.message)
        };
        assert_eq!(said(1_200), (74, "Processing response... 1200 words so far".to_owned()));
        assert_eq!(said(50), (75, "Finalizing research report...".to_owned()));
        assert_eq!(said(50_000), (95, "Finalizing research report...".to_owned()));
        assert_eq!(meter.finalizing(), None, "it was said");
        let mut meter = Meter::default();
        assert_eq!(meter.finalizing().unwrap().percent, Some(75));
        assert_eq!(meter.finalizing(), None);
    }

    /// B6: 50 when output begins to arrive; what was found on the way is none.
    #[test]
    fn only_a_message_is_output() {
        let added = |item: &str| {
            let json = format!(r#"{{"type":"response.output_item.added","item":{item}}}"#);
            Meter::default().event(&event(&json)).and_then(|progress| progress.percent)
        };
        assert_eq!(added(r#"{"type":"search_results"}"#), None);
        assert_eq!(added(r#"{"type":"fetch_url_results"}"#), None);
        assert_eq!(added(r#"{"type":"message"}"#), Some(50));
        assert_eq!(added("null"), Some(50));
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

    /// B6: a check of a run that writes shows how much there is.
    #[test]
    fn partial_output_is_progress() {
        let mut meter = Meter::default();
        let shown = |words: usize| {
            let text = "w ".repeat(words);
            let body = format!(
                r#"{{"status":"in_progress","output":[{{"type":"message","content":[{{"text":"{text}"}}]}}]}}"#
            );
            Response::parse(body.as_bytes()).unwrap()
        };
        let mut said = |words| {
            let progress = meter.snapshot(&shown(words))?;
            Some((progress.percent?, progress.message))
        };
        assert_eq!(said(0), None);
        assert_eq!(said(10), Some((50, "Processing response...".to_owned())));
        assert_eq!(said(20), None);
        assert_eq!(said(120), Some((52, "Processing response... 120 words so far".to_owned())));
        assert_eq!(said(40), None, "a check may lag behind; nothing goes down");
    }
}
