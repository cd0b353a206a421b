//! Follows changes. The session is notified of them; they are read by their numbers.

use std::time::Duration;

use outlast_core::{ChangeWait, Changes, Rev, StoreError, Timestamp};
use tokio::time::Instant;

use super::StoreShared;
use super::rows::get;
use super::session::WakeupMode;
use crate::columns::{self, Columns as _};

/// The maximum interval between looks while a caller waits, or if the session receives no notifications.
const NET: Duration = Duration::from_secs(2);
/// The interval while the session receives notifications and only workers wait. Such a look finds the changes of a process
/// that was killed between its commit and its notification.
const IDLE_NET: Duration = Duration::from_secs(30);
/// A caller that allows longer intervals than this is a worker, not a waiting user.
const WORKERS_LOOK: Duration = Duration::from_millis(250);

/// The first wait for a writer whose number is drawn and whose commit is not visible yet.
const SOON: Duration = Duration::from_millis(2);

/// The result of a look.
struct LookResult {
    changes: Changes,
    /// Some numbers are drawn whose changes cannot be read yet.
    more_to_come: bool,
}

impl StoreShared {
    /// Waits for changes after `after`.
    pub(super) async fn changes(
        &self,
        after: Rev,
        wait: ChangeWait,
    ) -> Result<Changes, StoreError> {
        let deadline = Instant::now() + wait.at_most.min(Duration::from_secs(86_400));
        let mut heard = self.wakeups.subscribe();
        let mut soon = SOON;
        loop {
            // Mark the current state as seen before reading, so that a commit during the read ends the wait below
            // immediately.
            heard.mark_unchanged();
            let LookResult { changes, more_to_come } = self.look(after).await?;
            let now = Instant::now();
            if !changes.jobs.is_empty() || now >= deadline {
                return Ok(changes);
            }
            let pause = if more_to_come {
                let pause = soon;
                soon = (soon * 2).min(Duration::from_millis(64));
                pause
            } else {
                soon = SOON;
                match (self.session.mode(), self.session.stands_since()) {
                    (WakeupMode::Sessions, Some(_)) if wait.look_every >= WORKERS_LOOK => {
                        IDLE_NET.max(wait.look_every)
                    }
                    (WakeupMode::Sessions, Some(_)) => NET,
                    (WakeupMode::Sessions, None) | (WakeupMode::Looking, _) => {
                        wait.look_every.clamp(WORKERS_LOOK, NET)
                    }
                }
            };
            // The wait ends at a notification or at its limit; the next look shows whether there is a change.
            let _ = tokio::time::timeout_at(deadline.min(now + pause), heard.changed()).await;
        }
    }

    /// Reads the changes, the next time at which a job becomes due or a lease expires, and the server's time, which updates
    /// ours. One query, because idle processes mostly send this one.
    async fn look(&self, after: Rev) -> Result<LookResult, StoreError> {
        const LOOK: &str = "with moment as materialized (
               select least((select min(run_at) from jobs where state = 'queued' and run_at > $2),
                 (select min(lease_until) from jobs where state = 'running')) as due,
               (extract(epoch from clock_timestamp()) * 1000)::bigint as now)
             select *, (select conversation from jobs where jobs.id = changes.id collate \"C\") as conversation
             from changes_after($1) as changes cross join moment";
        let asked = Instant::now();
        let rows =
            self.read(LOOK, &[&columns::to_signed(after.0), &self.now().as_millis()]).await?;
        let (mut safe, mut last, mut jobs, mut next_due) = (0, 0, Vec::new(), None);
        for row in &rows {
            (safe, last) = (get::<i64>(row, "safe")?, get::<i64>(row, "last")?);
            next_due = row.maybe_time("due")?;
            if get::<Option<String>>(row, "id")?.is_some() {
                jobs.push(row.change()?);
            }
        }
        if let Some(row) = rows.first() {
            self.time.learn(Timestamp::from_millis(get(row, "now")?), asked);
        }
        let rev = if columns::to_signed(after.0) > last {
            columns::rev(last)
        } else {
            after.max(columns::rev(safe))
        };
        Ok(LookResult { changes: Changes { rev, jobs, next_due }, more_to_come: last > safe })
    }
}
