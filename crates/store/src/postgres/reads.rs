//! What readers ask: one statement each, on any connection of the pool.

use outlast_core::rules::{self, Turn};
use outlast_core::{
    Checkpoint, ConversationId, ConversationPage, ConversationQuery, Cursor, Job, JobId, JobPage,
    JobQuery, OwnerId, Profile, RemoteRun, Scope, StateCount, StateKind, StoreError, search,
};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Shared;
use super::fault::Fault;
use super::rows::{self, get};
use super::text::escaped;
use crate::columns::{self, Columns};
use crate::ledger_columns::charge_columns;
use crate::page;

/// What conversation tools show of a job: the same test as `Job::is_shown`.
const SHOWN: &str = "(visibility <> 'unpromised' or state = 'succeeded')";

impl Shared {
    /// Runs a statement that only reads.
    pub(super) async fn read(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let mut tries = 0;
        loop {
            match self.read_once(sql, params).await {
                // A connection of the pool may have died since it was last used; every one of them after a restart.
                Err(fault) if fault.is_transient() && tries < 20 => tries += 1,
                done => return done,
            }
            tokio::time::sleep(std::time::Duration::from_millis(10 * tries)).await;
        }
    }

    async fn read_once(
        &self,
        sql: &str,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Fault> {
        let client = self.pool.get().await?;
        let statement = client.prepare_cached(sql).await?;
        Ok(client.query(&statement, params).await?)
    }

    /// The job, if `scope` may see it.
    pub(super) async fn read_job(
        &self,
        scope: &Scope,
        id: &JobId,
    ) -> Result<Option<Job>, StoreError> {
        let select = format!("{} where jobs.id = $1", rows::WHOLE);
        let rows = self.read(&select, &[&id.to_string()]).await?;
        let Some(row) = rows.first() else { return Ok(None) };
        let job = rows::stored(row)?.record.job;
        let now = self.now();
        Ok(Some(job).filter(|job| scope.sees(&job.new.owner) && !rules::expired(job, now)))
    }

    /// A page of the jobs that `scope` may see.
    pub(super) async fn list(
        &self,
        scope: &Scope,
        query: &JobQuery,
    ) -> Result<JobPage, StoreError> {
        let expression = words_expression(scope, query);
        if expression.is_some() {
            self.put_words().await;
        }
        let mut conditions = vec!["(expires_at is null or expires_at > $1)".to_owned()];
        let mut params: Vec<Box<dyn ToSql + Sync + Send>> = vec![Box::new(self.now().as_millis())];
        let mut conditions_of_states = Vec::new();
        let mut push = |condition: &dyn Fn(usize) -> String,
                        param: Box<dyn ToSql + Sync + Send>| {
            params.push(param);
            conditions.push(condition(params.len()));
        };
        if let Scope::Owner(owner) = scope {
            push(&|n| format!("owner = ${n}"), Box::new(escaped(owner.as_str()).into_owned()));
        }
        if let Some(Cursor(seq)) = query.after {
            push(&|n| format!("seq < ${n}"), Box::new(columns::signed(seq)));
        }
        if !query.states.is_empty() {
            let states: Vec<&'static str> =
                query.states.iter().map(|state| state.as_str()).collect();
            match (states.as_slice(), query.states.iter().all(|state| !state.is_terminal())) {
                (_, true) => conditions_of_states.push("ended_at is null"),
                // The index of ends has the order of a list for one state alone.
                ([_], false) => conditions_of_states.push("ended_at is not null"),
                (_, false) => {}
            }
            match states.as_slice() {
                [state] => push(&|n| format!("state = ${n}"), Box::new(*state)),
                _ => push(&|n| format!("state = any(${n}::text[])"), Box::new(states)),
            }
        }
        if let Some(provider) = &query.provider {
            push(&|n| format!("provider = ${n}"), Box::new(escaped(provider).into_owned()));
        }
        if let Some(expression) = expression {
            let found = "seq in (select job from search where words @@ $";
            push(&|n| format!("{found}{n}::text::tsquery)"), Box::new(expression));
        }
        if let Some(text) = &query.search {
            let folded = escaped(&text.to_lowercase()).into_owned();
            push(&|n| format!("strpos(title_folded, ${n}) > 0"), Box::new(folded));
        }
        if let Some(prefix) = &query.id_prefix {
            // Everything that goes on in hexadecimal sorts below "g".
            let prefix = escaped(prefix).into_owned();
            push(&|n| format!("id >= ${n} and id < ${n} || 'g'"), Box::new(prefix));
        }
        conditions.extend(conditions_of_states.into_iter().map(str::to_owned));
        let select = format!(
            "select jobs.*, {} from jobs where {} order by seq desc limit {}",
            charge_columns(),
            conditions.join(" and "),
            u64::from(query.limit) + 1
        );
        let params: Vec<&(dyn ToSql + Sync)> =
            params.iter().map(|param| &**param as &(dyn ToSql + Sync)).collect();
        let rows = self.read(&select, &params).await?;
        let (jobs, next) = page(rows.iter().map(Columns::summary), query.limit)?;
        Ok(JobPage { jobs, next })
    }

    /// How many jobs are in each state, no further than `at_most`.
    pub(super) async fn counts(
        &self,
        scope: &Scope,
        at_most: u32,
    ) -> Result<Vec<StateCount>, StoreError> {
        let owner = match scope {
            Scope::Owner(owner) => Some(escaped(owner.as_str()).into_owned()),
            Scope::Operator => None,
        };
        let owned = if owner.is_some() { "owner = $1" } else { "$1::text is null" };
        let mut counts = Vec::new();
        for state in StateKind::ALL {
            let ended = if state.is_terminal() { "is not null" } else { "is null" };
            let select = format!(
                "select count(*) as jobs from (select 1 from jobs where {owned} and state = '{}' and ended_at {ended}
                   and (expires_at is null or expires_at > $2) limit $3) as counted",
                state.as_str()
            );
            let params: [&(dyn ToSql + Sync); 3] =
                [&owner, &self.now().as_millis(), &i64::from(at_most)];
            let rows = self.read(&select, &params).await?;
            let jobs = rows.first().map_or(Ok(0), |row| get::<i64>(row, "jobs"))?;
            counts.push(StateCount { state, jobs: u32::try_from(jobs).unwrap_or(u32::MAX) });
        }
        Ok(counts)
    }

    /// The turns of a conversation in order.
    pub(super) async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        let owner = match scope {
            Scope::Owner(owner) => Some(escaped(owner.as_str()).into_owned()),
            Scope::Operator => None,
        };
        let select = format!(
            "{} where conversation = $1 and ($2::text is null or jobs.owner = $2)
               and (expires_at is null or expires_at > $3) order by jobs.owner, turn",
            rows::WHOLE
        );
        let conversation = escaped(conversation.as_str()).into_owned();
        let rows = self.read(&select, &[&conversation, &owner, &self.now().as_millis()]).await?;
        let turns = rows.iter().map(|row| rows::stored(row).map(|stored| stored.record.job));
        Ok(turns.collect::<Result<_, _>>()?)
    }

    /// A page of the owner's conversations: each stands where its last shown turn does in the order of arrival.
    pub(super) async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        const KEPT: &str = "(expires_at is null or expires_at > $2)";
        let turns = "from jobs where owner = last.owner and conversation = last.conversation";
        let select = format!(
            "select seq, id, conversation, state, updated_at,
               (select count(*) {turns} and {SHOWN} and {KEPT}) as turns,
               (select count(*) {turns} and state = 'succeeded' and {KEPT}) as reports,
               (select title {turns} and {SHOWN} and {KEPT} order by turn limit 1) as title,
               (select created_at {turns} and {SHOWN} and {KEPT} order by turn limit 1) as created_at
             from jobs as last
             where owner = $1 and conversation is not null and {SHOWN} and {KEPT} and seq < $3
               and (cardinality($4::text[]) = 0 or state = any($4))
               and not exists (select 1 {turns} and turn > last.turn and {SHOWN} and {KEPT})
             order by seq desc limit {}",
            u64::from(query.limit) + 1
        );
        let states: Vec<&str> = query.states.iter().map(|state| state.as_str()).collect();
        let after = query.after.map_or(i64::MAX, |Cursor(seq)| columns::signed(seq));
        let owner = escaped(owner.as_str()).into_owned();
        let rows = self.read(&select, &[&owner, &self.now().as_millis(), &after, &states]).await?;
        let (conversations, next) = page(rows.iter().map(Columns::conversation), query.limit)?;
        Ok(ConversationPage { conversations, next })
    }

    /// Held calls of these profiles that no process carries.
    pub(super) async fn orphans(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let select = "select id from jobs where state = 'queued' and visibility <> 'promised'
             and profile = any($1::text[]) order by seq";
        let rows = self.read(select, &[&names(profiles)]).await?;
        Ok(rows.iter().map(Columns::job_id).collect::<Result<_, _>>()?)
    }

    /// Remote runs that a worker with one of these profiles should stop.
    pub(super) async fn owed_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let select =
            "select id, checkpoint from jobs where remote = 'owed' and profile = any($1::text[])
             order by seq limit $2";
        let rows = self.read(select, &[&names(profiles), &columns::signed(limit as u64)]).await?;
        let mut owed = Vec::new();
        for row in &rows {
            match row.checkpoint()? {
                Checkpoint::Running(run) => owed.push((row.job_id()?, run)),
                Checkpoint::NotBegun | Checkpoint::Beginning { .. } => {}
            }
        }
        Ok(owed)
    }

    /// How many jobs of these profiles wait in the queue.
    pub(super) async fn queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        let select =
            "select count(*) as jobs from jobs where state = 'queued' and visibility = 'promised'
             and profile = any($1::text[])";
        let rows = self.read(select, &[&names(profiles)]).await?;
        Ok(rows.first().map_or(Ok(0), |row| get::<i64>(row, "jobs"))?.unsigned_abs())
    }

    /// How many jobs in the queue are claimed before this one.
    pub(super) async fn ahead(&self, id: &JobId) -> Result<u64, StoreError> {
        const PLACES: &str = "with mine as (select seq, priority, profile, owner from jobs
               where id = $1 and state = 'queued' and visibility = 'promised')
             select jobs.owner = mine.owner as is_mine, arrived, coalesce(claim, 0) as served,
               (select count(*) from jobs as busy where busy.owner = jobs.owner and busy.state = 'running'
                  and busy.visibility = 'promised') as running,
               count(*) filter (where jobs.owner <> mine.owner or jobs.priority > mine.priority
                  or (jobs.priority = mine.priority and jobs.seq < mine.seq)) as before
             from mine join jobs using (profile) join owners on owners.owner = jobs.owner
               left join served on served.owner = jobs.owner
             where jobs.state = 'queued' and jobs.visibility = 'promised'
             group by jobs.owner, mine.owner, arrived, claim";
        let rows = self.read(PLACES, &[&id.to_string()]).await?;
        let mut places = Vec::new();
        for row in &rows {
            let count = |column| get::<i64>(row, column).map(i64::unsigned_abs);
            let turn = Turn {
                running: count("running")?,
                served: count("served")?,
                arrived: count("arrived")?,
            };
            places.push((get::<bool>(row, "is_mine")?, turn, count("before")?));
        }
        let Some(&(_, mine, before)) = places.iter().find(|(is_mine, ..)| *is_mine) else {
            return Ok(0);
        };
        let others = places.iter().filter(|(is_mine, ..)| !is_mine);
        Ok(before
            + others
                .map(|(_, turn, queued)| rules::ahead(&mine, before, turn, *queued))
                .sum::<u64>())
    }
}

/// What finds the jobs that have the words of a query, and few others; `None` where there is no word to look for.
fn words_expression(scope: &Scope, query: &JobQuery) -> Option<String> {
    let words = search::words(query.words.as_deref()?);
    if words.is_empty() {
        return None;
    }
    // Quoted, so that no word is an operator; no word has a quote in it.
    let wanted = words.iter().map(|word| match search::is_beginning(word) {
        true => format!("'{word}':*"),
        false => format!("'{word}'"),
    });
    let marks = search::wanted_marks(scope, query).into_iter().map(|mark| format!("'{mark}'"));
    let failed =
        search::is_without_success(query).then(|| format!("!'{}'", search::SUCCEEDED_MARK));
    Some(wanted.chain(marks).chain(failed).collect::<Vec<_>>().join(" & "))
}

/// The names of profiles as they are stored.
pub(super) fn names(profiles: &[Profile]) -> Vec<String> {
    profiles.iter().map(|profile| escaped(profile.as_str()).into_owned()).collect()
}
