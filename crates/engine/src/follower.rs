//! The task, one per process, that follows the store's changes and passes them to the wake-ups. The task rests while
//! no caller waits and no worker runs.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{ChangeWait, Rev, Store, Timestamp};
use tokio::time::Instant;

use crate::shutdown::Shutdown;
use crate::wakeups::{Interest, Wakeups};

/// The interval between looks while a caller waits. It is short for the changes of other processes; this process
/// reports its own at once.
const WAITING: Duration = Duration::from_millis(25);
/// The interval between looks while only workers wait.
const WORKING: Duration = Duration::from_millis(250);
/// The longest look while something becomes due by the clock, so that a change of the clock is noticed.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// The longest look while nothing becomes due by the clock.
const IDLE_LOOK: Duration = Duration::from_secs(60);
/// The wait after an error, before the next look.
const AFTER_ERROR: Duration = Duration::from_millis(500);

/// Follows changes from `rev` on until asked to stop.
pub(crate) async fn follow(
    store: Arc<dyn Store>,
    wakeups: Arc<Wakeups>,
    mut rev: Rev,
    stop: Shutdown,
) {
    // A new worker must learn at once what is due; after that, only changes matter.
    let mut wait = Duration::ZERO;
    let mut next_due: Option<Timestamp> = None;
    let mut looked_at = store.now();
    loop {
        let (every, longest) = match wakeups.interest() {
            // Short, because a look does not end when its last caller leaves.
            Interest::Waiting => (WAITING, LONGEST_LOOK),
            Interest::Working => (WORKING, IDLE_LOOK),
            Interest::None => {
                tokio::select! {
                    () = wakeups.interest_grew() => {}
                    () = wakeups.look_wanted() => {}
                    () = stop.wait() => return,
                }
                wait = Duration::ZERO;
                continue;
            }
        };
        let at_most = wait.min(longest);
        let look_ends = Instant::now() + at_most;
        let looked = tokio::select! {
            looked = store.changes(rev, ChangeWait { at_most, look_every: every }) => looked,
            // The caller has read its job after it registered, so only the interval of looks may change. The look
            // ends when it would have ended anyway: a steady stream of callers must not delay what becomes due by the
            // clock.
            () = wakeups.interest_grew() => {
                wait = look_ends.saturating_duration_since(Instant::now());
                continue;
            }
            () = wakeups.look_wanted() => {
                wait = Duration::ZERO;
                continue;
            }
            () = stop.wait() => return,
        };
        match looked {
            Ok(changes) => {
                rev = changes.rev.max(rev);
                wakeups.publish(&changes);
                let now = store.now();
                // A clock that was set back makes jobs due that were queued ahead of it (`rules::claimable`).
                if next_due.is_some_and(|due| due <= now) || now < looked_at {
                    wakeups.publish_due();
                }
                looked_at = now;
                next_due = changes.next_due;
                wait = until_due(next_due, now);
            }
            Err(error) => {
                tracing::warn!(%error, "changes cannot be read, will look again");
                tokio::select! {
                    () = tokio::time::sleep(AFTER_ERROR) => {}
                    () = stop.wait() => return,
                }
            }
        }
    }
}

/// Returns the maximum duration of the next look: until something becomes due by the clock. What is due already has
/// been reported.
fn until_due(next_due: Option<Timestamp>, now: Timestamp) -> Duration {
    match next_due {
        None => IDLE_LOOK,
        Some(due) if due > now => due.since(now).min(LONGEST_LOOK),
        Some(_) => LONGEST_LOOK,
    }
}
