//! The progress of a run, by its actual work: queries asked, sources read, words written (B6).

use outlast_core::Progress;

use super::wire::{Event, Response, TEXT_DELTA};
use crate::vendor::{Milestones, WorkDone};

/// Counts what happened and turns it into percent; never goes down.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    pub(crate) milestones: Milestones,
    /// Counted by events, which come once each.
    by_events: WorkDone,
    /// Counted by checks, which show all that was finished so far; never added to `by_events`, for events may repeat it.
    by_checks: WorkDone,
}

impl Meter {
    /// Counts an event; returns progress if it adds anything a person would notice.
    pub(crate) fn event(&mut self, event: &Event) -> Option<Progress> {
        let (queries, sources) = event.count_searches();
        if queries + sources > 0 {
            self.by_events.queries += queries;
            self.by_events.sources += sources;
            let done = self.work_done();
            return self.milestones.report_search(done.queries, done.sources);
        }
        if event.opens_the_report() {
            return self.milestones.report_processing();
        }
        match event.kind.as_str() {
            TEXT_DELTA => {
                let delta = event.delta.as_deref().unwrap_or_default();
                self.by_events.words += delta.split_whitespace().count();
                self.milestones.report_words(self.work_done().words)
            }
            "response.output_text.done" => Some(self.milestones.text_is_complete()),
            _ if event.closes_the_report() => Some(self.milestones.report_is_complete()),
            _ => None,
        }
    }

    /// Counts the finished searches and the text that a check shows.
    pub(crate) fn snapshot(&mut self, response: &Response) -> Option<Progress> {
        self.by_checks = self.by_checks.max(WorkDone {
            queries: response.queries(),
            sources: response.search_results().count()
                + response.read().count()
                + response.opened_pages().count(),
            words: response.words(),
        });
        self.milestones.report_work(self.work_done())
    }

    fn work_done(&self) -> WorkDone {
        self.by_events.max(self.by_checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perplexity::VENDOR;
    use crate::vendor::object;

    fn event(json: &str) -> Event {
        Event::parse(&mut json.to_owned()).unwrap()
    }

    /// B6: the three named milestones, real signals between them, never down.
    #[test]
    fn progress_follows_what_the_run_does() {
        let mut meter = Meter::default();
        let mut seen = vec![meter.milestones.start(&VENDOR).unwrap()];
        let words = "w ".repeat(50);
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
        assert_eq!(meter.milestones.start(&VENDOR), None);
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
        assert_eq!(meter.milestones.report_finalizing(), None, "it was said");
        let mut meter = Meter::default();
        assert_eq!(meter.milestones.report_finalizing().unwrap().percent, Some(75));
        assert_eq!(meter.milestones.report_finalizing(), None);
    }

    /// B6: 50 when output begins to arrive; search results are not.
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

    /// B6: after a broken stream a check shows what the events after it repeat.
    #[test]
    fn work_shown_by_checks_and_events_counts_once() {
        let mut meter = Meter::default();
        let queries = r#"{"type":"response.reasoning.search_queries","queries":["a","b"]}"#;
        let pages = r#"{"type":"response.reasoning.fetch_url_results","contents":[{"url":"u"}]}"#;
        let shown = br#"{"status":"in_progress","output":[
            {"type":"search_results","queries":["a","b"],"results":[]},
            {"type":"fetch_url_results","contents":[{"url":"u"}]}]}"#;
        let shown = object::<Response>(shown).unwrap();
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
            object::<Response>(body.as_bytes()).unwrap()
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
