//! Reads on any connection of the pool, with a retry after a broken connection; also the queries for a page of jobs.

use std::time::Duration;

use deadpool_postgres::Object;
use outlast_core::{
    Cursor, Job, JobId, JobPage, JobQuery, OwnerId, Profile, Scope, StoreError, rules, search,
};
use tokio_postgres::Row;
use tokio_postgres::types::{ToSql, Type};

use super::StoreShared;
use super::fault::{Fault, within};
use super::rows;
use super::text::escape;
use super::tx::{InOrder, Param, Sent};
use crate::columns::{self, Columns};
use crate::ledger_columns::charge_columns;
use crate::titles::{TitleParts, TitleSpans, first_of, portions};
use crate::{count, listing, page};

/// The number of the latest jobs with the words of a query that are read for a page before all such jobs are. With this
/// number, PostgreSQL uses the index of words for rare words, and scans the latest jobs for words that most jobs have.
const LATEST: u32 = 1_000;

/// The code of the last failed attempt. A pattern, because PostgreSQL refuses JSON with a NUL in a message; within a message
/// the quotes are escaped.
const LAST_CODE: &str = r#"substring(failures from '.*"code":"([A-Z_]+)"')"#;

/// The source of a list.
const JOBS: &str = "jobs";

/// The time limit of a statement that reads whole tables, for `store check`.
const WHOLE_TABLES: Duration = Duration::from_secs(3600);

/// The number of an owner's newest jobs whose words are compared before the index of words is used. The index is slow for an
/// owner with few jobs and a word that most jobs have.
const NEWEST: i64 = 500;

/// The jobs with the words of a query that are read.
#[derive(Clone, Copy)]
enum CandidateJobs {
    Latest,
    All,
}

impl StoreShared {
    /// Runs a statement that only reads.
    pub(super) async fn read(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        try_again(|| self.read_once(sql, params, self.limits.statement)).await
    }

    /// Runs a statement that reads whole tables.
    pub(super) async fn read_all(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        try_again(|| self.read_once(sql, params, WHOLE_TABLES)).await
    }

    /// Runs a statement whose best plan depends on the values. It is planned for these values; all other statements have one
    /// plan for any values (`connect.rs`).
    pub(super) async fn read_planned(
        &self,
        sql: &str,
        values: &[(Param, Type)],
    ) -> Result<Vec<Row>, Fault> {
        let typed: Vec<(&(dyn ToSql + Sync), Type)> = values
            .iter()
            .map(|(value, of)| (&**value as &(dyn ToSql + Sync), of.clone()))
            .collect();
        try_again(|| self.read_planned_once(sql, &typed)).await
    }

    async fn read_planned_once(
        &self,
        sql: &str,
        typed: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, Fault> {
        const BEGIN: &str = "begin read only; set local plan_cache_mode = force_custom_plan";
        let client = self.pool.get().await?;
        let sent: Vec<Sent<'_, Vec<Row>>> = vec![
            Box::pin(async { client.batch_execute(BEGIN).await.map(|()| Vec::new()) }),
            Box::pin(client.query_typed(sql, typed)),
            Box::pin(async { client.batch_execute("commit").await.map(|()| Vec::new()) }),
        ];
        match within(self.limits.statement, InOrder::new(sent)).await {
            Ok(rows) => Ok(rows.into_iter().flatten().collect()),
            Err(fault) => {
                // Closed instead of returned to the pool: a response may still be on its way.
                drop(Object::take(client));
                Err(fault)
            }
        }
    }

    async fn read_once(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
        limit: Duration,
    ) -> Result<Vec<Row>, Fault> {
        let client = self.pool.get().await?;
        let read = async {
            let statement = client.prepare_cached(sql).await?;
            client.query(&statement, params).await
        };
        let read = within(limit, read).await;
        if matches!(read, Err(Fault::NoAnswer(_))) {
            // Closed instead of returned to the pool: a response may still be on its way.
            drop(Object::take(client));
        }
        read
    }

    /// Returns the job, if `scope` may see it.
    pub(super) async fn read_job(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<Job>, StoreError> {
        let select = format!("{} where jobs.id = $1", rows::WHOLE);
        let rows = self.read(&select, &[&id.to_string()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let job = rows::read_stored(row)?.record.job;
        let now = self.now();
        Ok(Some(job).filter(|job| scope.sees(&job.new.owner) && !rules::is_expired(job, now)))
    }

    /// Returns a page of the jobs that `scope` may see.
    pub(super) async fn list(
        &self,
        scope: &Scope,
        query: &JobQuery,
    ) -> Result<JobPage, StoreError> {
        let mut conditions = self.conditions(scope, query);
        if let Some(parts) = listing::title_parts(scope, query) {
            return self.list_titles(conditions, query, &parts).await;
        }
        let Some(expression) = words_expression(scope, query) else {
            return self.page_of(&conditions, query.limit).await;
        };
        self.put_words().await;
        let place = conditions.value(&expression);
        if let Scope::Owner(owner) = scope {
            let oldest = self.newest_jobs(owner, query.after).await?;
            conditions.texts.push(match_clause_of_each(&place, oldest));
            let page = self.page_of(&conditions, query.limit).await?;
            if page.next.is_some() || oldest.is_none() {
                return Ok(page);
            }
            conditions.texts.pop();
        }
        let found = |among| match_clause(&place, query.after, among);
        conditions.texts.push(found(CandidateJobs::Latest));
        let page = self.page_of(&conditions, query.limit).await?;
        if page.next.is_some() {
            return Ok(page);
        }
        conditions.texts.pop();
        conditions.texts.push(found(CandidateJobs::All));
        self.page_of(&conditions, query.limit).await
    }

    /// Returns the number of the last of the owner's [`NEWEST`] jobs from a cursor on; `None` if there are fewer.
    async fn newest_jobs(
        &self,
        owner: &OwnerId,
        after: Option<Cursor>,
    ) -> Result<Option<i64>, Fault> {
        let after = after.map_or(i64::MAX, |Cursor(seq)| columns::to_signed(seq));
        let select = sql!(postgres::reads::newest_jobs);
        let values: [(Param, Type); 3] = [
            (Box::new(escape(owner.as_str())), Type::TEXT),
            (Box::new(after), Type::INT8),
            (Box::new(NEWEST - 1), Type::INT8),
        ];
        let rows = self.read_planned(select, &values).await?;
        rows.first().map(|row| rows::get(row, "seq")).transpose()
    }

    /// Returns a page of the jobs whose titles contain a text: those after the indexed segments, then those with its parts.
    async fn list_titles(
        &self,
        mut conditions: Conditions,
        query: &JobQuery,
        parts: &TitleParts,
    ) -> Result<JobPage, StoreError> {
        let end = self.titles_end().await?;
        let newest = format!("seq >= {}", first_of(end));
        conditions.texts.push(newest);
        let mut rows = self.rows_of(JOBS, &conditions, query.limit).await?;
        conditions.texts.pop();
        let mut spans = TitleSpans::new(end, query.after);
        let limit = query.limit as usize;
        while rows.len() <= limit
            && let Some(segments) = spans.next()
        {
            let candidates = self.title_candidates(parts, segments, spans.before).await?;
            for some in portions(&candidates) {
                // Reads these jobs and no others, in whatever order the database expects to find more.
                let some: Vec<String> = some.iter().map(i64::to_string).collect();
                let from = format!(
                    "(select * from jobs where seq = any('{{{}}}') offset 0) as jobs",
                    some.join(",")
                );
                rows.extend(self.rows_of(&from, &conditions, count(limit - rows.len())).await?);
                if rows.len() > limit {
                    break;
                }
            }
        }
        let (jobs, next) = page(rows.iter().map(Columns::summary), query.limit)?;
        Ok(JobPage { jobs, next })
    }

    async fn page_of(&self, conditions: &Conditions, limit: u32) -> Result<JobPage, StoreError> {
        let rows = self.rows_of(JOBS, conditions, limit).await?;
        let (jobs, next) = page(rows.iter().map(Columns::summary), limit)?;
        Ok(JobPage { jobs, next })
    }

    /// Returns the rows of a page plus one row, which shows whether there is another page.
    async fn rows_of(
        &self,
        from: &str,
        conditions: &Conditions,
        limit: u32,
    ) -> Result<Vec<Row>, Fault> {
        let select = format!(
            "select jobs.*, {LAST_CODE} as code, {}, {} from {from} where {} order by seq desc limit {}",
            listing::waiting_column(JOBS),
            charge_columns(),
            conditions.texts.join(" and "),
            u64::from(limit) + 1
        );
        self.read_planned(&select, &conditions.values).await
    }

    /// Returns the conditions for a job of the list, except for its words.
    fn conditions(&self, scope: &Scope, query: &JobQuery) -> Conditions {
        let now = self.now().as_millis();
        let mut conditions = Conditions::default();
        conditions.texts.push(format!("(expires_at is null or expires_at > {now})"));
        if let Scope::Owner(owner) = scope {
            let place = conditions.value(owner.as_str());
            conditions.texts.push(format!("owner = {place}"));
        }
        if let Some(Cursor(seq)) = query.after {
            conditions.texts.push(format!("seq < {}", columns::to_signed(seq)));
        }
        conditions.texts.extend(listing::of_states(&query.states, JOBS));
        if let Some(provider) = &query.provider {
            let place = conditions.value(provider);
            conditions.texts.push(format!("provider = {place}"));
        }
        if let Some(code) = query.code {
            let place = conditions.value(code.as_str());
            conditions.texts.push(format!("{LAST_CODE} = {place}"));
        }
        if let Some(text) = &query.search {
            let place = conditions.value(&text.to_lowercase());
            conditions.texts.push(format!("strpos(title_folded, {place}) > 0"));
        }
        if let Some(prefix) = &query.id_prefix {
            // All hexadecimal continuations sort below "g".
            let place = conditions.value(prefix);
            conditions.texts.push(format!("id >= {place} and id < {place} || 'g'"));
        }
        conditions
    }
}

/// The conditions of a statement that is planned for its values, and the text values from callers.
#[derive(Default)]
struct Conditions {
    texts: Vec<String>,
    values: Vec<(Param, Type)>,
}

impl Conditions {
    /// Adds a value and returns its placeholder in the statement.
    fn value(&mut self, text: &str) -> String {
        self.values.push((Box::new(escape(text)), Type::TEXT));
        format!("${}", self.values.len())
    }
}

/// Returns the condition for jobs with the words at that placeholder. PostgreSQL expects few jobs in an array and reads them
/// one by one; otherwise it might scan all jobs in the order of the list.
fn match_clause(place: &str, after: Option<Cursor>, among: CandidateJobs) -> String {
    let after = after.map_or(i64::MAX, |Cursor(seq)| columns::to_signed(seq));
    let some = match among {
        CandidateJobs::Latest => format!("order by job desc limit {LATEST}"),
        CandidateJobs::All => String::new(),
    };
    format!(
        "seq = any(array(select job from search where words @@ {place}::tsquery and job < {after} {some}))"
    )
}

/// Returns the condition that compares the words of each job from a number on, without the index of words.
fn match_clause_of_each(place: &str, oldest: Option<i64>) -> String {
    let oldest = oldest.unwrap_or(0);
    format!(
        "seq >= {oldest} and (select words @@ {place}::tsquery from search where search.job = jobs.seq)"
    )
}

/// Repeats a read if its pooled connection has broken since the last use. After a restart of the database, all of them have.
async fn try_again<Fut>(read: impl Fn() -> Fut) -> Result<Vec<Row>, Fault>
where
    Fut: Future<Output = Result<Vec<Row>, Fault>>,
{
    let mut tries = 0;
    loop {
        match read().await {
            Err(fault) if fault.is_transient() && tries < 20 => tries += 1,
            done => return done,
        }
        tokio::time::sleep(std::time::Duration::from_millis(10 * tries)).await;
    }
}

/// Builds the expression that finds the jobs with the words of a query, and few others. Returns `None` if there is no word to
/// search for.
fn words_expression(scope: &Scope, query: &JobQuery) -> Option<String> {
    let words = search::words(query.words.as_deref()?);
    if words.is_empty() {
        return None;
    }
    // Quoted, so that no word is an operator. No word contains a quote.
    let wanted = words.iter().map(|word| match search::is_beginning(word) {
        true => format!("'{word}':*"),
        false => format!("'{word}'"),
    });
    let marks = search::query_marks(scope, query).into_iter().map(|mark| format!("'{mark}'"));
    let failed =
        search::is_without_success(query).then(|| format!("!'{}'", search::SUCCEEDED_MARK));
    Some(wanted.chain(marks).chain(failed).collect::<Vec<_>>().join(" & "))
}

/// The names of profiles in their stored form.
pub(super) fn names(profiles: &[Profile]) -> Vec<String> {
    profiles.iter().map(|profile| escape(profile.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_read_whose_connection_has_died_is_tried_again_and_not_for_ever() {
        for (dead, works, expected) in [(0, true, 1), (3, true, 4), (100, false, 21)] {
            let tries = Cell::new(0);
            let read = || async {
                tries.set(tries.get() + 1);
                if tries.get() > dead {
                    return Ok(Vec::new());
                }
                Err(Fault::NoConnection("it is gone".into()))
            };
            assert_eq!(try_again(read).await.is_ok(), works);
            assert_eq!(tries.get(), expected);
        }
    }
}
