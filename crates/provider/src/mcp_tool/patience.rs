//! The time limits of a tool, over as many connections and processes as it needs.

use std::time::Duration;

use outlast_client::CallOptions;

/// A task that is resumed after its time has run out gets this long for one look at it.
const LAST_LOOK: Duration = Duration::from_secs(20);

/// The limits of a tool.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// The time it may be silent.
    pub(super) idle: Duration,
    pub(super) reset_on_progress: bool,
    /// Its total time limit.
    pub(super) total: Option<Duration>,
}

impl Patience {
    /// The limits that are left this long after the call was made.
    pub(super) fn after(self, elapsed: Duration) -> CallOptions {
        // The job owns the task: a limit of the workflow ends it.
        let mut options = CallOptions::default().timeout(self.idle).cancel_on_give_up();
        if self.reset_on_progress {
            options = options.reset_timeout_on_progress();
        }
        match self.total {
            Some(total) if elapsed.is_zero() => options.max_total_timeout(total),
            Some(total) => {
                options.max_total_timeout(total.saturating_sub(elapsed).max(LAST_LOOK.min(total)))
            }
            None => options,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn d13_the_total_timeout_goes_on_from_where_the_call_was_made() {
        let seconds = Duration::from_secs;
        let patience =
            Patience { idle: seconds(60), reset_on_progress: true, total: Some(seconds(100)) };
        for (elapsed, left) in [(0, 100), (30, 70), (95, 20), (1_000, 20)] {
            let expected = CallOptions::default().timeout(seconds(60)).cancel_on_give_up();
            let expected = expected.reset_timeout_on_progress().max_total_timeout(seconds(left));
            let got = patience.after(seconds(elapsed));
            assert_eq!(format!("{got:?}"), format!("{expected:?}"), "after {elapsed} s");
        }
    }
}
