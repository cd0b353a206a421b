//! The working side of a run: reports progress and notices that the run was cancelled.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outlast_core::{Progress, ProviderError, Step};
use tokio::sync::mpsc;

/// The run was cancelled, so the work must end.
#[derive(Debug)]
pub(super) struct ReporterGone;

/// Sends progress to the run and checks whether the run still exists.
pub(super) struct Reporter {
    steps: mpsc::UnboundedSender<Result<Step, ProviderError>>,
    stop: Arc<AtomicBool>,
    percent: u8,
}

impl Reporter {
    pub(super) fn new(
        steps: mpsc::UnboundedSender<Result<Step, ProviderError>>,
        stop: Arc<AtomicBool>,
    ) -> Self {
        Self { steps, stop, percent: 0 }
    }

    /// Creates a reporter for work without progress reports and without cancel.
    pub(super) fn unheard() -> Self {
        let (steps, _) = mpsc::unbounded_channel();
        Self::new(steps, Arc::default())
    }

    /// Fails once the run has been dropped.
    pub(super) fn check(&self) -> Result<(), ReporterGone> {
        if self.stop.load(Ordering::Relaxed) { Err(ReporterGone) } else { Ok(()) }
    }

    /// Reports progress. The percentage never goes down.
    pub(super) fn report(
        &mut self,
        percent: u8,
        message: impl Into<String>,
    ) -> Result<(), ReporterGone> {
        self.check()?;
        self.percent = self.percent.max(percent);
        let progress = Progress { percent: Some(self.percent), message: message.into() };
        self.steps.send(Ok(Step::Progress(progress))).map_err(|_| ReporterGone)
    }

    /// Like [`Self::report`], for `done` out of `all` items between two percentages; reports only if the
    /// percentage changes.
    pub(super) fn count(
        &mut self,
        (from, to): (u8, u8),
        (done, all): (usize, usize),
        message: impl FnOnce() -> String,
    ) -> Result<(), ReporterGone> {
        self.check()?;
        let share = done.saturating_mul(usize::from(to - from)) / all.max(1);
        let percent = from.saturating_add(u8::try_from(share).unwrap_or(u8::MAX)).min(to);
        if percent > self.percent || done == 1 { self.report(percent, message()) } else { Ok(()) }
    }

    /// Sends the result.
    pub(super) fn finish(self, end: Result<Step, ProviderError>) {
        // A run that was dropped at the last moment receives no result.
        drop(self.steps.send(end));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reporter() -> (Reporter, mpsc::UnboundedReceiver<Result<Step, ProviderError>>) {
        let (steps, receiver) = mpsc::unbounded_channel();
        (Reporter::new(steps, Arc::default()), receiver)
    }

    #[test]
    fn progress_never_goes_down_and_counts_report_only_changes() {
        let (mut reporter, mut said) = reporter();
        reporter.report(40, "a").unwrap();
        reporter.report(30, "b").unwrap();
        for done in 1..=1000 {
            reporter.count((40, 60), (done, 1000), || format!("{done}")).unwrap();
        }
        let mut percents = Vec::new();
        while let Ok(Ok(Step::Progress(progress))) = said.try_recv() {
            percents.push(progress.percent.unwrap());
        }
        assert!(percents.is_sorted(), "{percents:?}");
        assert_eq!((percents.len(), percents.last()), (23, Some(&60)));
    }

    #[test]
    fn a_raised_flag_ends_the_work_at_its_next_check() {
        let (mut reporter, _said) = reporter();
        reporter.stop.store(true, Ordering::Relaxed);
        assert!(reporter.check().is_err() && reporter.report(30, "x").is_err());
    }
}
