//! Following a run: the next event, or the time to wait for it.

use std::time::Duration;

use tokio::sync::watch;

use super::Runs;
use crate::frame::Frame;
use crate::run::Run;
use crate::scenario::Ending;
use crate::timeline::Due;

const PING_MS: f64 = 1_000.0;

/// The next step of a stream.
pub(crate) enum Step {
    Frames(Vec<Frame>),
    Wait { until: Option<Duration>, ping: Option<Duration>, changed: watch::Receiver<()> },
    Over,
}

impl Runs {
    /// Returns the next step of a stream at event number `next`.
    pub(crate) fn step(&self, id: &str, next: usize) -> Step {
        let state = self.lock();
        let Some(run) = state.run(id) else { return Step::Over };
        let due = run.timeline.due(next);
        if let Due::At(at) = due
            && at <= run.age(self.clock.now())
        {
            let hidden = run.scenario.hides_terminal() && run.timeline.event(next).is_terminal();
            return if hidden { Step::Over } else { Step::Frames(run.frames(next)) };
        }
        self.wait(run, due)
    }

    /// Returns `Step::Over` if the run has ended, otherwise the wait for its end.
    pub(crate) fn end(&self, id: &str) -> Step {
        let state = self.lock();
        let Some(run) = state.run(id) else { return Step::Over };
        let seen = run.seen(self.clock.now());
        if run.last(seen).is_terminal() {
            Step::Over
        } else {
            self.wait(run, run.timeline.due(seen))
        }
    }

    fn wait(&self, run: &Run, due: Due) -> Step {
        let until = match due {
            Due::At(at) => Some(run.submitted_at + at),
            Due::Open => None,
            Due::Never => return Step::Over,
        };
        let pings = run.scenario.ending == Ending::Stuck { pings: true };
        let ping = pings.then(|| self.clock.scaled(PING_MS).max(Duration::from_millis(1)));
        Step::Wait { until, ping, changed: run.changed.subscribe() }
    }
}
