//! Removes finished jobs: a reader finds them, and small commands remove them and free their pages.

use outlast_core::{ConversationId, Prune, PruneOutcome, Scope, StoreError, Timestamp};
use rusqlite::{Connection, Params};

use super::fault::Fault;
use super::tx::Tx;
use super::{SqliteStore, journal, ledger, sql};
use crate::{columns, count};

/// The maximum number of jobs that one command removes: a fraction of a second even if each has a long report.
const MAX_TOGETHER: usize = 100;

/// The maximum number of journals that one command removes: each has at most 4,000 steps.
const RUNS_TOGETHER: usize = 10;

/// The number of pages that one command frees, and the number of free pages that are kept for new jobs.
const PAGES: i64 = 1024;

/// `rules::is_prunable` for jobs that expire by age; `?1` is the time. The column contains the rest of the rule.
const EXPIRED: &str = "removable_at <= ?1";

/// The same rule for jobs that a person wants to remove.
const ENDED: &str = "ended_at < ?1 AND conversation IS NULL AND remote IS NOT 'owed'
    AND NOT EXISTS (SELECT 1 FROM jobs AS report WHERE report.id = jobs.subject)";

impl SqliteStore {
    /// Removes the jobs that `prune` names.
    pub(super) async fn remove(
        &self,
        scope: &Scope,
        prune: &Prune,
    ) -> Result<PruneOutcome, StoreError> {
        let owner = scope.owner().map(|owner| owner.as_str().to_owned());
        let jobs = match prune {
            Prune::Expired => {
                self.shorten_ledger(scope).await?;
                self.remove_those(EXPIRED, self.clock.now(), owner.clone()).await?
            }
            Prune::EndedBefore(moment) => self.remove_those(ENDED, *moment, owner.clone()).await?,
            Prune::Conversation(conversation) => {
                let (owner, conversation) = (owner.clone(), conversation.clone());
                self.writer()?
                    .run(move |tx| remove_conversation(tx, owner.as_deref(), &conversation))
                    .await?
            }
        };
        if jobs > 0 {
            self.give_pages_back().await?;
        }
        let next = move |connection: &Connection| next_expiry(connection, owner.as_deref());
        Ok(PruneOutcome { jobs, next_expiry: self.readers.run(next).await? })
    }

    /// Removes the journals of expired runs.
    pub(super) async fn forget_old_runs(
        &self,
        provider: &str,
        ended_before: Timestamp,
    ) -> Result<u32, StoreError> {
        let named = provider.to_owned();
        let find =
            move |connection: &Connection| journal::ended_before(connection, &named, ended_before);
        let found = self.readers.run(find).await?;
        let mut forgotten = 0;
        for some in found.chunks(RUNS_TOGETHER) {
            let (some, provider) = (some.to_vec(), provider.to_owned());
            let forget = move |tx: &mut Tx<'_>| {
                let mut forgotten = 0;
                for seq in &some {
                    forgotten += u32::from(journal::forget(tx, *seq, &provider, ended_before)?);
                }
                Ok(forgotten)
            };
            forgotten += self.writer()?.run(forget).await?;
        }
        if forgotten > 0 {
            self.give_pages_back().await?;
        }
        Ok(forgotten)
    }

    /// Removes expired rows of the ledger.
    async fn shorten_ledger(&self, scope: &Scope) -> Result<(), StoreError> {
        let (looked_at, now) = (scope.clone(), self.clock.now());
        let find = move |connection: &Connection| ledger::has_old(connection, &looked_at, now);
        if !self.readers.run(find).await? {
            return Ok(());
        }
        let scope = scope.clone();
        self.writer()?.run(move |tx| ledger::remove_old(tx, &scope)).await
    }

    async fn remove_those(
        &self,
        condition: &'static str,
        moment: Timestamp,
        owner: Option<String>,
    ) -> Result<u32, StoreError> {
        let find = move |connection: &Connection| find(connection, condition, moment, owner);
        let found = self.readers.run(find).await?;
        let mut removed = 0;
        for some in found.chunks(MAX_TOGETHER) {
            let some = some.to_vec();
            removed += self.writer()?.run(move |tx| delete(tx, condition, moment, &some)).await?;
        }
        Ok(removed)
    }

    /// Shrinks the file when a quarter of it is free. A database created before schema 2 cannot shrink: new jobs use its free
    /// pages, because the rebuild that would change this locks out every process.
    async fn give_pages_back(&self) -> Result<(), StoreError> {
        let mut before = i64::MAX;
        loop {
            let (free, all) = self.readers.run(pages).await?;
            if free <= PAGES || free < all / 4 || free >= before {
                return Ok(());
            }
            before = free;
            self.writer()?
                .run(|tx| {
                    let vacuum = format!("PRAGMA incremental_vacuum({PAGES})");
                    let mut statement = tx.connection.prepare_cached(&vacuum)?;
                    let mut rows = statement.query([])?;
                    while rows.next()?.is_some() {}
                    Ok(())
                })
                .await?;
        }
    }
}

/// Finds all jobs at once, by number. The numbers take little memory, and the snapshot is released before the jobs are
/// removed.
fn find(
    connection: &Connection,
    condition: &str,
    moment: Timestamp,
    owner: Option<String>,
) -> Result<Vec<i64>, Fault> {
    let select = format!("SELECT seq FROM jobs WHERE {condition} AND (?2 IS NULL OR owner = ?2)");
    sql::column(connection, &select, (moment.as_millis(), owner))
}

/// Tests the condition again: a number may now belong to another job.
fn delete(tx: &Tx<'_>, condition: &str, moment: Timestamp, seqs: &[i64]) -> Result<u32, Fault> {
    let condition = format!("{condition} AND seq = ?2");
    let mut removed = 0;
    for seq in seqs {
        removed += delete_jobs(tx, &condition, (moment.as_millis(), seq))?;
    }
    Ok(removed)
}

/// Deletes jobs, and the jobs about them in any state. Bodies, keys and journals are deleted with their job.
fn delete_jobs(tx: &Tx<'_>, condition: &str, named: impl Params + Clone) -> Result<u32, Fault> {
    let delete = format!("DELETE FROM jobs WHERE {condition}");
    let about = sql::execute(tx.connection, &delete_about(condition), named.clone())?;
    Ok(count(about + sql::execute(tx.connection, &delete, named)?))
}

fn delete_about(condition: &str) -> String {
    format!("DELETE FROM jobs WHERE subject IN (SELECT id FROM jobs WHERE {condition})")
}

fn remove_conversation(
    tx: &Tx<'_>,
    owner: Option<&str>,
    conversation: &ConversationId,
) -> Result<u32, Fault> {
    const TURNS: &str = "conversation = ?1 AND (?2 IS NULL OR owner = ?2)";
    let named = (conversation.as_str(), owner);
    let busy =
        format!("SELECT id FROM jobs WHERE {TURNS} AND ended_at IS NULL ORDER BY seq LIMIT 1");
    if let Some(id) = sql::optional::<String>(tx.connection, &busy, named)? {
        return Err(StoreError::ConversationBusy(columns::job_id(&id)?).into());
    }
    let any = format!("SELECT EXISTS (SELECT 1 FROM jobs WHERE {TURNS})");
    if !sql::value::<bool>(tx.connection, &any, named)? {
        return Err(StoreError::NotFound.into());
    }
    let ended = format!("{TURNS} AND ended_at IS NOT NULL AND remote IS NOT 'owed'");
    delete_jobs(tx, &ended, named)
}

fn next_expiry(connection: &Connection, owner: Option<&str>) -> Result<Option<Timestamp>, Fault> {
    let select = sql!(sqlite::prune::next_expiry);
    let next = sql::optional(connection, select, [owner])?;
    Ok(next.map(Timestamp::from_millis))
}

/// The number of free pages and of all pages. Zero are free if the file cannot shrink.
fn pages(connection: &Connection) -> Result<(i64, i64), Fault> {
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get(0));
    const INCREMENTAL: i64 = 2;
    let all = number("PRAGMA page_count")?;
    if number("PRAGMA auto_vacuum")? != INCREMENTAL {
        return Ok((0, all));
    }
    Ok((number("PRAGMA freelist_count")?, all))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::open;

    #[test]
    fn jobs_about_removed_ones_are_found_in_an_index() {
        let dir = tempfile::TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        for condition in [EXPIRED, ENDED] {
            let delete = delete_about(&format!("{condition} AND seq = ?2"));
            let plan = sql::plan(&connection, &delete);
            assert!(plan[0].contains("INDEX jobs_subject (subject=?)"), "{plan:?}");
            assert!(!plan.iter().any(|line| line.starts_with("SCAN")), "{plan:?}");
        }
    }
}
