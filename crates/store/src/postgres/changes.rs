//! Following changes: heard of by the session, read by their numbers.

use std::time::Duration;

use outlast_core::{ChangeWait, Changes, Rev, StoreError, Timestamp};
use tokio::time::Instant;

use super::Shared;
use super::rows::get;
use super::session::WakeupMode;
use crate::columns::{self, Columns as _};

/// How often changes are looked for at least while a caller waits, or if the session hears of none.
const NET: Duration = Duration::from_secs(2);
/// The same while the session hears of changes and only workers wait: what a process that was killed before it told of its commit
/// has changed is seen then.
const IDLE_NET: Duration = Duration::from_secs(10);
/// Who wants less frequent looks than this is no caller that waits.
const WORKERS_LOOK: Duration = Duration::from_millis(250);

/// The first wait for a writer whose number is drawn and whose commit cannot be seen yet.
const SOON: Duration = Duration::from_millis(2);

/// What a look found.
struct Looked {
    changes: Changes,
    /// Numbers are drawn that cannot be read yet.
    more_to_come: bool,
}

impl Shared {
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
            // Marked as known before the look, so that a commit during it ends the wait below at once.
            heard.mark_unchanged();
            let Looked { changes, more_to_come } = self.look(after).await?;
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
            // Whether it ends by what was heard or by the time, the next look tells.
            let _ = tokio::time::timeout_at(deadline.min(now + pause), heard.changed()).await;
        }
    }

    /// What changed, when the next job becomes due or a lease ends, and the server's time, which keeps ours fresh: one query, because
    /// this is most of what idle processes ask.
    async fn look(&self, after: Rev) -> Result<Looked, StoreError> {
        const LOOK: &str = "with moment as materialized (
               select least((select min(run_at) from jobs where state = 'queued' and run_at > $2),
                 (select min(lease_until) from jobs where state = 'running')) as due,
               (extract(epoch from clock_timestamp()) * 1000)::bigint as now)
             select *, (select conversation from jobs where jobs.id = changes.id collate \"C\") as conversation
             from changes_after($1) as changes cross join moment";
        let asked = Instant::now();
        let rows = self.read(LOOK, &[&columns::signed(after.0), &self.now().as_millis()]).await?;
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
        let rev = if columns::signed(after.0) > last {
            columns::rev(last)
        } else {
            after.max(columns::rev(safe))
        };
        Ok(Looked { changes: Changes { rev, jobs, next_due }, more_to_come: last > safe })
    }
}
