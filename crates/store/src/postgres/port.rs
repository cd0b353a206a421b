//! The methods of the port. Single statements are in this file; steps and longer methods have separate files.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures_util::FutureExt as _;
use outlast_core::{
    AnswerOutcome, CancelOutcome, ChangeWait, Changes, Checkpoint, ClaimedJob, ClaimedNotice,
    CloseReason, ConversationId, ConversationPage, ConversationQuery, Cost, Cursor, Insert,
    InsertOutcome, Job, JobId, JobPage, JobQuery, JournalStep, Lease, LedgerRow, NewQuestion,
    NewStep, NoticeClaim, NoticeOutcome, OwnerId, Page, Profile, Progress, Prune, PruneOutcome,
    Question, Record, RemoteRun, RemoteStop, RescueBy, RescueOutcome, ResolveOutcome, Rev, Scope,
    Settlement, SpendQuery, SpendSum, StateCount, StateKind, StepDecision, StepEnd, StepOutput,
    StepStart, Store, StoreError, Timestamp, WorkerId, rules,
};
use tokio_postgres::types::{ToSql, Type};
use uuid::Uuid;

use super::claims::{ClaimRequest, take};
use super::fault::Fault;
use super::reads::names;
use super::rows::{self, get};
use super::step::Durability;
use super::text::{escape, escape_owner};
use super::tx::{Param, Tx};
use super::writes::{self, Effect, Reads, Write, amendment, explain_lost_commit, light};
use super::{PostgresStore, batch, identities, insert, journal, ledger, notices, partials};
use crate::columns::{self, Columns};
use crate::ledger_columns::{self, LedgerColumns as _};
use crate::{listing, page};

#[async_trait]
impl Store for PostgresStore {
    fn now(&self) -> Timestamp {
        self.shared.now()
    }

    async fn rev(&self) -> Result<Rev, StoreError> {
        let rows = self.shared.read(sql!(postgres::port::rev), &[]).await?;
        Ok(rows.first().map_or(Ok(Rev::default()), |row| get(row, "safe").map(columns::rev))?)
    }

    async fn insert(&self, insert: Insert) -> Result<InsertOutcome, StoreError> {
        drop(self.shared.answers.write().await);
        // Choose the id here: if the answer to the commit is lost, the job is found under this id, so that the caller does
        // not ask a second time and pay twice.
        let id = JobId::new(Uuid::new_v4());
        let inserted = batch::ask(&self.shared.inserts, (insert, id)).await;
        inserted.map_err(|error| match error {
            StoreError::Unconfirmed(source) => StoreError::InsertUnconfirmed { job: id, source },
            StoreError::Unavailable(source) => StoreError::NotInserted(source),
            other => other,
        })
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        self.shared.show_life(worker).await?;
        let (worker, profiles) = (worker.clone(), profiles.to_vec());
        batch::ask(&self.shared.claims, ClaimRequest { worker, profiles, lease }).await
    }

    async fn claim_by_id(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        self.shared.show_life(worker).await?;
        let claim = ClaimRequest { worker: worker.clone(), profiles: profiles.to_vec(), lease };
        let step = self
            .shared
            .step(Durability::Commit, (claim, *id), |(claim, id), tx| take(tx, claim, id).boxed());
        let (claimed, rev) = step.await?;
        Ok(claimed.map(|mut claimed| {
            claimed.job.rev = rev;
            claimed
        }))
    }

    async fn unclaimed_held_calls(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let select = sql!(postgres::port::unclaimed_held_calls);
        let rows = self.shared.read(select, &[&names(profiles)]).await?;
        Ok(rows.iter().map(Columns::job_id).collect::<Result<_, _>>()?)
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        let renewal = (leases.to_vec(), lease);
        let step = self.shared.step(Durability::Commit, renewal, |(leases, lease), tx| {
            renew(tx, leases, *lease).boxed()
        });
        Ok(step.await?.0)
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let (held, checkpoint) = (lease.clone(), checkpoint.clone());
        let write = light(&lease.job, move |record, now| {
            rules::checkpoint(record, &held, &checkpoint, now)
        });
        batch::ask(&self.shared.writes, write).await.map(drop).map_err(explain_lost_commit)
    }

    async fn show_progress(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        let (held, progress) = (lease.clone(), progress.clone());
        let write = light(&lease.job, move |record, now| {
            rules::show_progress(record, &held, &progress, now)
        });
        batch::ask(&self.shared.notes, write).await.map(drop).map_err(explain_lost_commit)
    }

    async fn show_text(&self, lease: &Lease, text: &str) -> Result<(), StoreError> {
        let shown = (lease.clone(), text.to_owned());
        let step = self.shared.step(Durability::Soon, shown, |(lease, text), tx| {
            partials::show(tx, lease, text).boxed()
        });
        step.await.map(drop)
    }

    async fn begin_step(&self, lease: &Lease, step: &NewStep) -> Result<StepStart, StoreError> {
        let begun = (lease.clone(), step.clone());
        let step = self.shared.step(Durability::Commit, begun, |(lease, step), tx| {
            journal::begin_step(tx, lease, step).boxed()
        });
        Ok(step.await?.0)
    }

    async fn end_step(&self, lease: &Lease, key: &str, end: &StepEnd) -> Result<(), StoreError> {
        let ended = (lease.clone(), key.to_owned(), end.clone());
        let step = self.shared.step(Durability::Commit, ended, |(lease, key, end), tx| {
            journal::end_step(tx, lease, key, end).boxed()
        });
        step.await.map(drop)
    }

    async fn resolve_step(
        &self,
        scope: &Scope,
        job: &JobId,
        key: &str,
        decision: StepDecision,
    ) -> Result<ResolveOutcome, StoreError> {
        let named = (scope.clone(), *job, key.to_owned(), decision);
        let step =
            self.shared.step(Durability::Commit, named, |(scope, job, key, decision), tx| {
                journal::resolve_step(tx, scope, job, key, *decision).boxed()
            });
        Ok(step.await?.0)
    }

    async fn save_page(
        &self,
        lease: &Lease,
        page: &Page,
        max_bytes: u64,
    ) -> Result<(), StoreError> {
        let read = (lease.clone(), page.clone(), max_bytes);
        let step = self.shared.step(Durability::Commit, read, |(lease, page, max_bytes), tx| {
            journal::save_page(tx, lease, page, *max_bytes).boxed()
        });
        step.await.map(drop)
    }

    async fn ask(&self, lease: &Lease, question: &NewQuestion) -> Result<Question, StoreError> {
        let (held, new) = (lease.clone(), question.clone());
        let write =
            light(&lease.job, move |record, now| rules::ask(record, &held, &new, now).map(drop));
        let asked = batch::ask(&self.shared.writes, write).await.map_err(explain_lost_commit);
        let (job, _) = asked?;
        // The rule has just put it there.
        job.questions.current.ok_or(StoreError::LeaseLost)
    }

    async fn close_question(
        &self,
        lease: &Lease,
        key: &str,
        reason: CloseReason,
    ) -> Result<(), StoreError> {
        let (held, key) = (lease.clone(), key.to_owned());
        let write = light(&lease.job, move |record, now| {
            rules::close_question(record, &held, &key, reason, now)
        });
        batch::ask(&self.shared.writes, write).await.map(drop).map_err(explain_lost_commit)
    }

    async fn answer(
        &self,
        scope: &Scope,
        id: &JobId,
        question: Option<&str>,
        text: &str,
    ) -> Result<AnswerOutcome, StoreError> {
        let (scope, refused) = (scope.clone(), Arc::new(Mutex::new(None)));
        let (question, text) = (question.map(str::to_owned), text.to_owned());
        let refusal = Arc::clone(&refused);
        let rule = move |record: &mut Record, now| {
            let job = &record.job;
            if !scope.sees(&job.new.owner) || rules::is_expired(job, now) {
                return Err(StoreError::NotFound);
            }
            let answered = rules::answer(record, question.as_deref(), &text, now);
            let effect = if answered.is_ok() { Effect::Changed } else { Effect::LeftAlone };
            // The rule runs again if the transaction is repeated: the last result counts.
            *refusal.lock().unwrap_or_else(PoisonError::into_inner) = answered.err();
            Ok(effect)
        };
        let write = Write { id: *id, reads: Reads::Whole, rule: Arc::new(rule), settlement: None };
        let (job, effect) = batch::ask(&self.shared.writes, write).await?;
        let refusal = refused.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(match (effect, refusal) {
            (Effect::LeftAlone, Some(refusal)) => AnswerOutcome::Refused(refusal),
            (Effect::Changed | Effect::LeftAlone, _) => AnswerOutcome::Accepted(Box::new(job)),
        })
    }

    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let (held, settlement) = (lease.clone(), Arc::new(settlement));
        let settled = Arc::clone(&settlement);
        let write = Write {
            reads: Reads::Whole,
            settlement: Some(settlement),
            ..light(&lease.job, move |record, now| rules::settle(record, &held, &settled, now))
        };
        batch::ask(&self.shared.writes, write)
            .await
            .map(|(job, _)| job)
            .map_err(explain_lost_commit)
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<CancelOutcome, StoreError> {
        let scope = scope.clone();
        let rule = move |record: &mut Record, now| {
            let job = &record.job;
            if !scope.sees(&job.new.owner) || rules::is_expired(job, now) {
                return Err(StoreError::NotFound);
            }
            Ok(match rules::cancel(record, now) {
                CancelOutcome::Now(_) => Effect::Changed,
                CancelOutcome::Already(_) => Effect::LeftAlone,
            })
        };
        let write = Write { id: *id, reads: Reads::Whole, rule: Arc::new(rule), settlement: None };
        Ok(match batch::ask(&self.shared.writes, write).await? {
            (job, Effect::Changed) => CancelOutcome::Now(job),
            (job, Effect::LeftAlone) => CancelOutcome::Already(job),
        })
    }

    async fn rescue(&self, dead: &RescueBy) -> Result<RescueOutcome, StoreError> {
        self.shared.rescue(dead).await
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        let run = run.clone();
        let write = amendment(id, move |record, now| rules::record_late_run(record, &run, now));
        batch::ask(&self.shared.writes, write).await.map(drop)
    }

    async fn pending_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let select = sql!(postgres::port::pending_stops);
        let rows = self
            .shared
            .read(select, &[&names(profiles), &columns::to_signed(limit as u64)])
            .await?;
        Ok(rows
            .iter()
            .filter_map(|row| row.read_owed_stop().transpose())
            .collect::<Result<_, _>>()?)
    }

    async fn record_stop(
        &self,
        id: &JobId,
        outcome: RemoteStop,
        cost: Cost,
    ) -> Result<(), StoreError> {
        let write =
            amendment(id, move |record, now| rules::record_stop(record, outcome, cost, now));
        batch::ask(&self.shared.writes, write).await.map(drop)
    }

    async fn claim_notice(&self, lease: Duration) -> Result<NoticeClaim, StoreError> {
        let step = self
            .shared
            .step(Durability::Commit, lease, |lease, tx| notices::claim(tx, *lease).boxed());
        Ok(step.await?.0)
    }

    async fn record_notice(
        &self,
        claimed: &ClaimedNotice,
        outcome: NoticeOutcome,
    ) -> Result<(), StoreError> {
        let recorded = (claimed.clone(), outcome);
        let step = self.shared.step(Durability::Commit, recorded, |(claimed, outcome), tx| {
            notices::record(tx, claimed, *outcome).boxed()
        });
        step.await.map(drop)
    }

    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        let _recording = self.shared.answers.read().await;
        let step =
            self.shared.step(Durability::Commit, *id, |id, tx| mark_answered(tx, id).boxed());
        step.await.map(drop)
    }

    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        self.shared.has_worker(profile).await
    }

    async fn count_queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        let select = sql!(postgres::port::count_queued);
        let rows = self.shared.read(select, &[&names(profiles)]).await?;
        Ok(rows.first().map_or(Ok(0), |row| get::<i64>(row, "jobs"))?.unsigned_abs())
    }

    async fn queue_position(&self, id: &JobId) -> Result<u64, StoreError> {
        const PLACES: &str = sql!(postgres::port::places);
        let rows = self.shared.read(PLACES, &[&id.to_string()]).await?;
        let mut places = Vec::new();
        for row in &rows {
            places.push((get::<bool>(row, "is_mine")?, row.turn()?, row.count("before")?));
        }
        let Some(&(_, mine, before)) = places.iter().find(|(is_mine, ..)| *is_mine) else {
            return Ok(0);
        };
        let others = places.iter().filter(|(is_mine, ..)| !is_mine);
        Ok(before
            + others
                .map(|(_, turn, queued)| rules::jobs_ahead(&mine, before, turn, *queued))
                .sum::<u64>())
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.shared.dismiss(worker).await
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<PruneOutcome, StoreError> {
        self.shared.prune(scope, prune).await
    }

    async fn forget_runs(
        &self,
        provider: &str,
        ended_before: Timestamp,
    ) -> Result<u32, StoreError> {
        self.shared.forget_runs(provider, ended_before).await
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        self.shared.read_job(scope, id).await
    }

    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        self.shared.list(scope, query).await
    }

    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        let owner = escape_owner(scope);
        let select = format!(
            "{} where conversation = $1 and ($2::text is null or jobs.owner = $2)
               and (expires_at is null or expires_at > $3) order by jobs.owner, turn",
            rows::WHOLE
        );
        let conversation = escape(conversation.as_str());
        let rows = self
            .shared
            .read(&select, &[&conversation, &owner, &self.shared.now().as_millis()])
            .await?;
        let turns = rows.iter().map(|row| rows::read_stored(row).map(|stored| stored.record.job));
        Ok(turns.collect::<Result<_, _>>()?)
    }

    async fn newest_about(
        &self,
        scope: &Scope,
        subject: &JobId,
        states: &[StateKind],
    ) -> Result<Option<Job>, StoreError> {
        self.shared.newest_about(scope, subject, states).await
    }

    async fn steps(&self, scope: &Scope, job: &JobId) -> Result<Vec<JournalStep>, StoreError> {
        self.shared.steps(scope, job).await
    }

    async fn step_outputs(
        &self,
        scope: &Scope,
        job: &JobId,
        kinds: &[&str],
    ) -> Result<Vec<StepOutput>, StoreError> {
        self.shared.step_outputs(scope, job, kinds).await
    }

    async fn page(&self, owner: &OwnerId, digest: &[u8; 32]) -> Result<Option<Page>, StoreError> {
        self.shared.page(owner, digest).await
    }

    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let after = query.after.map_or(i64::MAX, |Cursor(seq)| columns::to_signed(seq));
        let values: [(Param, Type); 3] = [
            (Box::new(escape(owner.as_str())), Type::TEXT),
            (Box::new(self.shared.now().as_millis()), Type::INT8),
            (Box::new(after), Type::INT8),
        ];
        let rows = self.shared.read_planned(&listing::conversations(query, ""), &values).await?;
        let (conversations, next) = page(rows.iter().map(Columns::conversation), query.limit)?;
        Ok(ConversationPage { conversations, next })
    }

    async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError> {
        let owner = escape_owner(scope);
        let owned = if owner.is_some() { "owner = $1" } else { "$1::text is null" };
        let counts = StateKind::ALL.map(|state| count_clause(owned, state)).join(", ");
        let params: [&(dyn ToSql + Sync); 3] =
            [&owner, &self.shared.now().as_millis(), &i64::from(at_most)];
        let rows = self.shared.read(&format!("select {counts}"), &params).await?;
        let count = |state: StateKind| {
            let jobs = rows.first().map_or(Ok(0), |row| get::<i64>(row, state.as_str()))?;
            Ok(StateCount { state, jobs: u32::try_from(jobs).unwrap_or(u32::MAX) })
        };
        Ok(StateKind::ALL.into_iter().map(count).collect::<Result<_, Fault>>()?)
    }

    async fn spend(&self, scope: &Scope, query: &SpendQuery) -> Result<Vec<SpendSum>, StoreError> {
        self.shared.fold_many_ledger_changes().await;
        let owner = escape_owner(scope);
        let select = ledger::sums_of(scope, query.by);
        let rows = self.shared.read(&select, &[&query.since.0, &owner]).await?;
        let sums = rows.iter().map(|row| row.spend_sum(query.by)).collect::<Result<_, Fault>>()?;
        Ok(ledger_columns::in_order(sums))
    }

    async fn ledger_rows(&self, scope: &Scope, job: &JobId) -> Result<Vec<LedgerRow>, StoreError> {
        let select = sql!(postgres::port::ledger_rows);
        let rows = self.shared.read(select, &[&job.to_string(), &escape_owner(scope)]).await?;
        Ok(rows.iter().map(|row| row.ledger_row()).collect::<Result<_, Fault>>()?)
    }

    async fn get_setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        let rows = self.shared.read(sql!(postgres::port::get_setting), &[&name]).await?;
        let value = rows.first().map(|row| row.try_get(0)).transpose();
        Ok(value.map_err(Fault::from)?)
    }

    async fn put_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        const REPLACE: &str = sql!(postgres::port::put_setting);
        let kept = (name.to_owned(), value.to_owned());
        let step = self.shared.step(Durability::Commit, kept, |(name, value), tx| {
            Box::pin(async move { tx.load([(REPLACE, &[name, value])]).await.map(drop) })
        });
        step.await.map(drop)
    }

    async fn create_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        const CREATE: &str = sql!(postgres::port::create_setting);
        let kept = (name.to_owned(), value.to_owned());
        let step = self.shared.step(Durability::Commit, kept, |(name, value), tx| {
            Box::pin(async move {
                let [rows] = tx.load([(CREATE, &[name, value])]).await?;
                let value = rows.first().map(|row| row.try_get(0)).transpose()?;
                Ok(value.unwrap_or_default())
            })
        });
        step.await.map(|(value, _)| value)
    }

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        self.shared.changes(after, wait).await
    }
}

/// Counts the jobs in a state, the oldest first: vacuum has seen them, so that the index alone answers.
fn count_clause(owned: &str, state: StateKind) -> String {
    let ended = if state.is_terminal() { "is not null" } else { "is null" };
    let of_state = listing::in_states(&[state], "jobs");
    let state = state.as_str();
    format!(
        "(select count(*) from (select 1 from jobs where {owned} and {of_state} and ended_at {ended}
           and (expires_at is null or expires_at > $2) order by seq limit $3) as counted) as {state}"
    )
}

/// Extends the valid leases and returns the jobs whose lease is lost. Not a change: no rev.
async fn renew(tx: &mut Tx, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, Fault> {
    // The same test as `rules::check_lease`. Locks jobs in the order of arrival, as every step does.
    const RENEW: &str = sql!(postgres::port::renew);
    let ids: Vec<String> = leases.iter().map(|lease| lease.job.to_string()).collect();
    let workers: Vec<String> = leases.iter().map(|lease| escape(lease.worker.as_str())).collect();
    let fences: Vec<i64> = leases.iter().map(|lease| columns::to_signed(lease.fence.0)).collect();
    let (given, millis) = (tx.given_seq(), columns::millis(lease));
    let [renewed] = tx.load([(RENEW, &[&ids, &workers, &fences, &given, &millis])]).await?;
    let renewed: HashSet<(String, i64)> = renewed
        .iter()
        .map(|row| Ok((get(row, "id")?, get(row, "fence")?)))
        .collect::<Result<_, Fault>>()?;
    let is_lost = |lease: &&Lease| {
        !renewed.contains(&(lease.job.to_string(), columns::to_signed(lease.fence.0)))
    };
    Ok(leases.iter().filter(is_lost).map(|lease| lease.job).collect())
}

/// Records that a call was answered with the outcome of the job. Not a change: no rev.
async fn mark_answered(tx: &mut Tx, id: &JobId) -> Result<(), Fault> {
    let ids = vec![id.to_string()];
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, loaded] = tx.load([(writes::LOCK, &[&ids]), (&select, &[&ids])]).await?;
    let Some(row) = loaded.first() else { return Ok(()) };
    let stored = rows::read_stored(row)?;
    let (seq, job, now) = (stored.seq, &stored.record.job, tx.now());
    if job.state.kind().is_terminal() {
        let answer = identities::RECORD_ANSWER;
        tx.write(answer, vec![Box::new(seq), Box::new(now.as_millis())]).await?;
    }
    let Some(key) = &stored.key else { return Ok(()) };
    let Some(key) = rules::record_answer(key, job, now) else { return Ok(()) };
    let answered_at = key.answered_at.map(Timestamp::as_millis);
    tx.write(sql!(postgres::port::record_answer), vec![Box::new(seq), Box::new(answered_at)])
        .await?;
    insert::keep_by_key(tx, job, seq, Some(&key)).await
}
