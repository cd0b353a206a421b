//! A run: the worker on a thread that may block, and the one who waits for it.
//!
//! The worker looks at a shared flag between files and passages; dropping the run raises it, and that is how a cancel
//! ends the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use outlast_core::{Progress, ProviderError, RemoteRun, Run, Step, Trouble};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::research::Research;

/// The work was told to end.
#[derive(Debug)]
pub(super) struct Stopped;

/// The worker's end: where it says how far it has come, and learns that nobody wants to know any more.
pub(super) struct Reporter {
    steps: mpsc::UnboundedSender<Result<Step, ProviderError>>,
    stop: Arc<AtomicBool>,
    percent: u8,
}

impl Reporter {
    /// Fails once the run has been dropped.
    pub(super) fn go_on(&self) -> Result<(), Stopped> {
        if self.stop.load(Ordering::Relaxed) { Err(Stopped) } else { Ok(()) }
    }

    /// Says how far the work has come; a percent below an earlier one counts as that one.
    pub(super) fn say(&mut self, percent: u8, message: impl Into<String>) -> Result<(), Stopped> {
        self.go_on()?;
        self.percent = self.percent.max(percent);
        let progress = Progress { percent: Some(self.percent), message: message.into() };
        self.steps.send(Ok(Step::Progress(progress))).map_err(|_| Stopped)
    }

    /// As [`Self::say`], for the `done`th of `all` things between two percents; says only what moves the percent.
    pub(super) fn count(
        &mut self,
        (from, to): (u8, u8),
        (done, all): (usize, usize),
        message: impl FnOnce() -> String,
    ) -> Result<(), Stopped> {
        self.go_on()?;
        let share = done.saturating_mul(usize::from(to - from)) / all.max(1);
        let percent = from.saturating_add(u8::try_from(share).unwrap_or(u8::MAX)).min(to);
        if percent > self.percent || done == 1 { self.say(percent, message()) } else { Ok(()) }
    }
}

/// A search of the library that is under way.
pub(super) struct LibraryRun {
    remote: RemoteRun,
    steps: mpsc::UnboundedReceiver<Result<Step, ProviderError>>,
    stop: Arc<AtomicBool>,
    /// Kept so that the worker has an owner; it is never waited for.
    _worker: JoinHandle<()>,
}

impl LibraryRun {
    /// Starts the work and returns at once.
    pub(super) fn start(remote: RemoteRun, research: Research) -> Self {
        let (sender, steps) = mpsc::unbounded_channel();
        let stop = Arc::new(AtomicBool::new(false));
        let reporter = Reporter { steps: sender, stop: Arc::clone(&stop), percent: 0 };
        let worker = tokio::task::spawn_blocking(move || work(research, reporter));
        Self { remote, steps, stop, _worker: worker }
    }
}

impl Drop for LibraryRun {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn work(research: Research, mut reporter: Reporter) {
    let end = match research.run(&mut reporter) {
        Ok(Ok(output)) => Ok(Step::Done { output: Box::new(output), raw: None }),
        Ok(Err(error)) => Err(error),
        Err(Stopped) => return tracing::debug!("a search of the library was stopped"),
    };
    // Nobody listens when the run was dropped in the last moment, and then nobody misses it.
    drop(reporter.steps.send(end));
}

#[async_trait]
impl Run for LibraryRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        self.steps.recv().await.unwrap_or_else(|| {
            Err(ProviderError {
                trouble: Trouble::RunFailed,
                sentence:
                    "the search of the library broke off; the log of the server has the details"
                        .to_owned(),
                detail: None,
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reporter() -> (Reporter, mpsc::UnboundedReceiver<Result<Step, ProviderError>>) {
        let (steps, receiver) = mpsc::unbounded_channel();
        (Reporter { steps, stop: Arc::default(), percent: 0 }, receiver)
    }

    #[test]
    fn progress_never_goes_down_and_counts_speak_only_when_they_move() {
        let (mut reporter, mut said) = reporter();
        reporter.say(40, "a").unwrap();
        reporter.say(30, "b").unwrap();
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
    fn a_raised_flag_ends_the_work_at_its_next_look() {
        let (mut reporter, _said) = reporter();
        reporter.stop.store(true, Ordering::Relaxed);
        assert!(reporter.go_on().is_err() && reporter.say(30, "x").is_err());
    }
}
