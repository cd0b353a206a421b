//! The times of a script's events, including releases and cancels. Pure: the time is an argument.

use std::time::Duration;

use crate::script::{Event, Script};

/// A script and the releases and cancels applied to it; all times count from the submit.
#[derive(Debug)]
pub(crate) struct Timeline {
    pub(crate) script: Script,
    released: Option<Duration>,
    cancelled: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Due {
    At(Duration),
    /// Held or stuck until a release or a cancel.
    Open,
    /// Nothing follows the terminal event.
    Never,
}

impl Timeline {
    pub(crate) fn new(script: Script) -> Self {
        Self { script, released: None, cancelled: None }
    }

    /// Releases the held events at `at`; only the first release counts.
    pub(crate) fn release(&mut self, at: Duration) {
        self.released.get_or_insert(at);
    }

    /// Cancels the run at `at`, unless it ends before; only the first cancel counts.
    pub(crate) fn cancel(&mut self, at: Duration) {
        self.cancelled.get_or_insert(at);
    }

    /// Returns the time of event number `index`.
    pub(crate) fn due(&self, index: usize) -> Due {
        let Some((at, count)) = self.cancellation() else { return self.scripted(index) };
        match index {
            index if index < count => self.scripted(index),
            index if index == count => Due::At(at),
            _ => Due::Never,
        }
    }

    /// Returns event number `index`, which must be due.
    pub(crate) fn event(&self, index: usize) -> &Event {
        match self.cancellation() {
            Some((_, count)) if index >= count => &Event::Cancelled,
            _ => {
                self.script.timed_events.get(index).map_or(&Event::Cancelled, |timed| &timed.event)
            }
        }
    }

    /// Returns the time at which event number `index` happened or will happen, if it is known.
    pub(crate) fn happened(&self, index: usize) -> Option<Duration> {
        match self.due(index) {
            Due::At(at) => Some(at),
            Due::Open | Due::Never => None,
        }
    }

    /// Returns the number of events that have happened after `elapsed`.
    pub(crate) fn seen(&self, elapsed: Duration) -> usize {
        let scripted = self.scripted_until(elapsed);
        match self.cancellation() {
            Some((at, count)) if at <= elapsed => count + 1,
            _ => scripted,
        }
    }

    /// Returns the time of the cancel and the number of events before it; `None` if the run ended first.
    fn cancellation(&self) -> Option<(Duration, usize)> {
        let at = self.cancelled?;
        let count = self.scripted_until(at);
        let ended = count
            .checked_sub(1)
            .is_some_and(|last| self.script.timed_events[last].event.is_terminal());
        (!ended).then_some((at, count))
    }

    fn scripted_until(&self, elapsed: Duration) -> usize {
        let happened =
            |index: &usize| matches!(self.scripted(*index), Due::At(at) if at <= elapsed);
        (0..self.script.timed_events.len()).take_while(happened).count()
    }

    fn scripted(&self, index: usize) -> Due {
        let Some(timed) = self.script.timed_events.get(index) else {
            let ended =
                self.script.timed_events.last().is_some_and(|timed| timed.event.is_terminal());
            return if ended { Due::Never } else { Due::Open };
        };
        if self.script.held_from.is_none_or(|held_from| index < held_from) {
            return Due::At(timed.due);
        }
        self.waited().map_or(Due::Open, |waited| Due::At(timed.due + waited))
    }

    /// Returns the time for which the held events were delayed.
    fn waited(&self) -> Option<Duration> {
        let held_from = self.script.held_from?;
        let reached = self.script.timed_events.get(held_from.checked_sub(1)?)?.due;
        Some(self.released?.saturating_sub(reached))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::Ask;
    use crate::effort::Effort;
    use crate::scenario::Scenario;

    fn timeline(scenario: &str) -> Timeline {
        let scenario = Scenario::parse(scenario).unwrap();
        Timeline::new(Script::write(&Ask::to_agent("wind", Effort::Low), &scenario, 0, 1.0))
    }

    const LATE: Duration = Duration::from_secs(1_000_000);

    fn status_after(timeline: &Timeline, elapsed: Duration) -> Event {
        timeline.event(timeline.seen(elapsed) - 1).clone()
    }

    #[test]
    fn a_held_run_waits_after_its_first_search_until_released() {
        let mut timeline = timeline("ok;hold;delay_ms=0");
        let held = timeline.seen(LATE);
        assert_eq!(status_after(&timeline, LATE), Event::SearchResults(0));
        assert_eq!(timeline.due(held), Due::Open);
        timeline.release(LATE);
        assert_eq!(timeline.seen(LATE - Duration::from_nanos(1)), held);
        assert_eq!(timeline.due(held), Due::At(LATE));
        assert_eq!(status_after(&timeline, LATE), Event::Completed);
    }

    #[test]
    fn an_early_release_does_not_hurry_the_run() {
        let mut timeline = timeline("ok;hold;delay_ms=1000");
        timeline.release(Duration::ZERO);
        assert_eq!(status_after(&timeline, Duration::from_millis(1_001)), Event::Completed);
        assert_ne!(status_after(&timeline, Duration::from_millis(900)), Event::Completed);
    }

    #[test]
    fn seen_events_and_due_times_agree() {
        for scenario in ["ok;delay_ms=1000", "ok;hold;delay_ms=1000", "fail;delay_ms=1000", "stuck"]
        {
            let mut timeline = timeline(scenario);
            timeline.release(Duration::from_millis(700));
            timeline.cancel(Duration::from_millis(1_500));
            for ms in 0..2_000 {
                let elapsed = Duration::from_millis(ms);
                let due = (0..timeline.script.timed_events.len() + 1)
                    .take_while(
                        |index| matches!(timeline.due(*index), Due::At(at) if at <= elapsed),
                    )
                    .count();
                assert_eq!(timeline.seen(elapsed), due, "{scenario} at {ms}");
            }
        }
    }

    #[test]
    fn a_cancel_ends_a_run_once_and_keeps_earlier_events() {
        let mut timeline = timeline("ok;delay_ms=1000");
        timeline.cancel(Duration::from_millis(500));
        timeline.cancel(Duration::from_millis(1));
        let seen = timeline.seen(LATE);
        assert_eq!(status_after(&timeline, LATE), Event::Cancelled);
        assert_eq!(timeline.due(seen), Due::Never);
        assert_eq!(timeline.seen(Duration::from_millis(499)), seen - 1);
    }

    #[test]
    fn a_cancel_after_the_end_changes_nothing() {
        let mut timeline = timeline("ok;delay_ms=0");
        timeline.cancel(Duration::from_millis(1));
        assert_eq!(status_after(&timeline, LATE), Event::Completed);
    }

    #[test]
    fn a_stuck_run_ends_only_by_cancel() {
        let mut timeline = timeline("stuck");
        let seen = timeline.seen(LATE);
        assert_eq!(timeline.due(seen), Due::Open);
        timeline.cancel(LATE);
        assert_eq!(timeline.due(seen), Due::At(LATE));
    }
}
