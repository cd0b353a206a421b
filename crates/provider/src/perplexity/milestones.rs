//! The milestones of a run, and words between them (B6): from what is seen of it, never from the time.

use outlast_core::Progress;

pub(super) const QUERYING: (u8, &str) = (25, "Querying Perplexity API...");
pub(super) const PROCESSING: (u8, &str) = (50, "Processing response...");
pub(super) const FINALIZING: (u8, &str) = (75, "Finalizing research report...");

/// A step of progress for so many words, so that a long answer is not a thousand notes.
pub(super) const WORDS_A_STEP: usize = 50;

/// How far a run is that has written so many words, and how that is said.
pub(super) fn writing(words: usize) -> (u8, String) {
    let steps = u8::try_from(words / WORDS_A_STEP).unwrap_or(u8::MAX);
    let percent = PROCESSING.0 + steps.min(FINALIZING.0 - PROCESSING.0 - 1);
    match steps {
        0 => (percent, PROCESSING.1.to_owned()),
        _ => (percent, format!("{} {words} words so far", PROCESSING.1)),
    }
}

/// Tells each milestone once; never goes down.
#[derive(Debug, Default)]
pub(super) struct Milestones {
    percent: u8,
    written: usize,
}

impl Milestones {
    /// The first progress of a try; once.
    pub(super) fn start(&mut self) -> Option<Progress> {
        self.reach(QUERYING)
    }

    /// Output begins to arrive.
    pub(super) fn processing(&mut self) -> Option<Progress> {
        self.reach(PROCESSING)
    }

    /// So many words have arrived in all.
    pub(super) fn written(&mut self, words: usize) -> Option<Progress> {
        let steps = words / WORDS_A_STEP;
        if words == 0 || (self.percent >= PROCESSING.0 && steps <= self.written) {
            return None;
        }
        self.written = steps;
        let (percent, message) = writing(words);
        self.percent = self.percent.max(percent);
        Some(Progress { percent: Some(self.percent), message })
    }

    /// The end is near.
    pub(super) fn finalizing(&mut self) -> Option<Progress> {
        self.reach(FINALIZING)
    }

    fn reach(&mut self, (percent, message): (u8, &str)) -> Option<Progress> {
        if self.percent >= percent {
            return None;
        }
        self.percent = percent;
        Some(Progress { percent: Some(percent), message: message.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B6: the three named milestones, words between them, never down and nothing twice.
    #[test]
    fn progress_follows_what_is_seen() {
        let mut milestones = Milestones::default();
        let mut seen = vec![milestones.start(), milestones.start(), milestones.written(0)];
        seen.extend([1, 49, 50, 60, 100].map(|words| milestones.written(words)));
        seen.extend([milestones.processing(), milestones.written(1_000_000)]);
        seen.extend([milestones.finalizing(), milestones.finalizing(), milestones.written(1)]);
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
                Some((74, "Processing response... 1000000 words so far")),
                Some((75, "Finalizing research report...")),
                None,
                None,
            ]
        );
    }
}
