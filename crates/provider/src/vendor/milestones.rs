//! The milestones of a run, and steps between them (B6): from what is seen of the run, never from the time.

use outlast_core::{Progress, Step};

use super::Vendor;

const QUERYING_PERCENT: u8 = 25;
const PROCESSING: (u8, &str) = (50, "Processing response...");
const FINALIZING: (u8, &str) = (75, "Finalizing research report...");

/// The highest percentage of a run that has not ended.
const HIGHEST_PERCENT: u8 = 95;

/// The number of words in one step of progress, so that a long answer is not a thousand notes.
const WORDS_PER_STEP: usize = 50;

/// A text of this many words is a report whose end is near: the searches are over, and most of it is there. One step of
/// progress to each step of words leads to it.
const LONG_REPORT_WORDS: usize = (FINALIZING.0 - PROCESSING.0) as usize * WORDS_PER_STEP;

/// The number of words in one step beyond that.
const WORDS_PER_LATE_STEP: usize = 250;

/// The percentage and the message of a run that has written this many words.
fn describe_writing(words: usize) -> (u8, String) {
    let further = |from: u8, steps| from.saturating_add(u8::try_from(steps).unwrap_or(u8::MAX));
    if words >= LONG_REPORT_WORDS {
        let percent = further(FINALIZING.0, (words - LONG_REPORT_WORDS) / WORDS_PER_LATE_STEP);
        return (percent.min(HIGHEST_PERCENT), FINALIZING.1.to_owned());
    }
    let steps = words / WORDS_PER_STEP;
    let message = match steps {
        0 => PROCESSING.1.to_owned(),
        _ => format!("{} {words} words so far", PROCESSING.1),
    };
    (further(PROCESSING.0, steps), message)
}

/// The work that a run has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct WorkDone {
    pub(crate) queries: usize,
    pub(crate) sources: usize,
    pub(crate) words: usize,
}

impl WorkDone {
    /// The more of both, of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            queries: self.queries.max(other.queries),
            sources: self.sources.max(other.sources),
            words: self.words.max(other.words),
        }
    }
}

/// Reports each milestone once; never goes down.
#[derive(Debug, Default)]
pub(crate) struct Milestones {
    percent: u8,
    /// Steps of words that were reported.
    written: usize,
    /// Queries and sources that were reported.
    searched: (usize, usize),
    /// The end of the run, once it is known and until it is returned.
    done: Option<Step>,
}

impl Milestones {
    /// The step to report before anything else happens: the first progress of a try, or an end that was held back.
    pub(crate) fn next(&mut self, vendor: &Vendor) -> Option<Step> {
        self.start(vendor).map(Step::Progress).or_else(|| self.done.take())
    }

    /// The step to report: an end is held back once if no earlier progress announced it.
    pub(crate) fn before(&mut self, step: Step) -> Step {
        if matches!(step, Step::Done { .. })
            && let Some(progress) = self.report_finalizing()
        {
            self.done = Some(step);
            return Step::Progress(progress);
        }
        step
    }

    /// The first progress of a try; once.
    pub(crate) fn start(&mut self, vendor: &Vendor) -> Option<Progress> {
        self.reach((QUERYING_PERCENT, vendor.querying))
    }

    /// Reports these totals of queries asked and sources read, unless both were reported before.
    pub(crate) fn report_search(&mut self, queries: usize, sources: usize) -> Option<Progress> {
        let searched = (self.searched.0.max(queries), self.searched.1.max(sources));
        if self.searched == searched {
            return None;
        }
        self.searched = searched;
        let steps = searched.0 + searched.1;
        let queries = count_noun(searched.0, "query", "queries");
        let sources = count_noun(searched.1, "source", "sources");
        Some(self.report_step(steps, format!("Researching: {queries} asked, {sources} read")))
    }

    /// Reports these totals of a run's work, unless all of it was reported before.
    pub(crate) fn report_work(&mut self, done: WorkDone) -> Option<Progress> {
        let searched = self.report_search(done.queries, done.sources);
        self.report_words(done.words).or(searched)
    }

    /// Reports this total of steps taken before output begins to arrive; `message` describes the last one.
    pub(crate) fn report_step(&mut self, steps: usize, message: String) -> Progress {
        let steps = u8::try_from(steps).unwrap_or(u8::MAX);
        let percent = QUERYING_PERCENT + steps.min(PROCESSING.0 - QUERYING_PERCENT - 1);
        self.at_least(percent, message)
    }

    /// Output begins to arrive.
    pub(crate) fn report_processing(&mut self) -> Option<Progress> {
        self.reach(PROCESSING)
    }

    /// This many words have arrived in all.
    pub(crate) fn report_words(&mut self, words: usize) -> Option<Progress> {
        let steps = words / WORDS_PER_STEP;
        if words == 0 || (self.percent >= PROCESSING.0 && steps <= self.written) {
            return None;
        }
        self.written = steps;
        let (percent, message) = describe_writing(words);
        Some(self.at_least(percent, message))
    }

    /// The whole text is here.
    pub(crate) fn text_is_complete(&mut self) -> Progress {
        self.at_least(FINALIZING.0, FINALIZING.1)
    }

    /// The report is complete; the run is not over yet.
    pub(crate) fn report_is_complete(&mut self) -> Progress {
        self.at_least(HIGHEST_PERCENT, FINALIZING.1)
    }

    /// Announces the end, once, unless earlier progress did.
    pub(crate) fn report_finalizing(&mut self) -> Option<Progress> {
        self.reach(FINALIZING)
    }

    fn reach(&mut self, (percent, message): (u8, &str)) -> Option<Progress> {
        (self.percent < percent).then(|| self.at_least(percent, message))
    }

    /// Progress with this message, and this percentage unless the run was further already.
    fn at_least(&mut self, percent: u8, message: impl Into<String>) -> Progress {
        self.percent = self.percent.max(percent);
        Progress { percent: Some(self.percent), message: message.into() }
    }
}

fn count_noun(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::perplexity::VENDOR;

    /// B6: the three named milestones, words between them, never down and nothing twice.
    #[test]
    fn progress_follows_what_is_seen() {
        let mut milestones = Milestones::default();
        let mut seen =
            vec![milestones.start(&VENDOR), milestones.start(&VENDOR), milestones.report_words(0)];
        seen.extend([1, 49, 50, 60, 100].map(|words| milestones.report_words(words)));
        seen.push(milestones.report_processing());
        let long = [1_249, 1_250, 2_000, 1_000_000];
        seen.extend(long.map(|words| milestones.report_words(words)));
        seen.extend([
            milestones.report_finalizing(),
            milestones.report_finalizing(),
            milestones.report_words(1),
        ]);
        let seen: Vec<_> = seen
            .iter()
            .map(|step| step.as_ref().map(|step| (step.percent.unwrap(), step.message.as_str())))
            .collect();
        assert_eq!(
            seen,
            [
                Some((25, "Querying Perplexity API...")),
                None,
                None,
                Some((50, "Processing response...")),
                None,
                Some((51, "Processing response... 50 words so far")),
                None,
                Some((52, "Processing response... 100 words so far")),
                None,
                Some((74, "Processing response... 1249 words so far")),
                Some((75, "Finalizing research report...")),
                Some((78, "Finalizing research report...")),
                Some((95, "Finalizing research report...")),
                None,
                None,
                None,
            ]
        );
    }
}
