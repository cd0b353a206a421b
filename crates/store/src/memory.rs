//! The reference store: maps behind a mutex. Its jobs are lost when the process exits. For tests, and for users who want no
//! files.

mod journal;
mod tables;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::rules::{EarlierCall, OwnerUsage, Turn};
use outlast_core::{
    AnswerOutcome, CancelOutcome, Change, ChangeWait, Changes, Checkpoint, ClaimedJob,
    ClaimedNotice, Clock, CloseReason, ConversationId, ConversationPage, ConversationQuery, Cost,
    Cursor, EndNotices, InitialWorker, Insert, InsertOutcome, Job, JobId, JobPage, JobQuery,
    JobState, JournalStep, Lease, LedgerRow, NewQuestion, NewStep, NoticeClaim, NoticeOutcome,
    OwnerId, Page, Profile, Progress, Prune, PruneOutcome, Question, Record, RemoteRun, RemoteStop,
    RescueBy, RescueOutcome, ResolveOutcome, Rev, Scope, Settlement, SpendQuery, SpendSum,
    StateCount, StateKind, StepDecision, StepEnd, StepOutput, StepStart, Store, StoreError,
    Timestamp, WorkerId, rules,
};
use uuid::Uuid;

use crate::{count, page};
use tables::{Tables, matches, summary, visible, waits};

/// A store that keeps jobs in memory.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    notices: EndNotices,
    tables: Mutex<Tables>,
}

impl MemoryStore {
    /// Creates an empty store that takes times from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, notices: EndNotices::Off, tables: Mutex::default() }
    }

    /// Sets whether this store keeps a notice of every end.
    pub fn with_notices(self, notices: EndNotices) -> Self {
        Self { notices, ..self }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        // A record is replaced completely or not at all, so a panic elsewhere leaves nothing half done.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a notice of the job's end, if this process keeps notices or the insert asked for one.
    fn announce(&self, tables: &mut Tables, record: &Record) {
        let notice = match self.notices.max(record.notice) {
            EndNotices::Off => None,
            EndNotices::Kept => rules::notice(&record.job),
        };
        if let Some(notice) = notice {
            tables.add_notice(notice, self.clock.now());
        }
    }

    /// Applies `rule` to a job, all or nothing. `missing` is the error if the job does not exist.
    fn change(
        &self,
        id: &JobId,
        missing: StoreError,
        rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
    ) -> Result<Job, StoreError> {
        let mut tables = self.tables();
        let (seq, mut record) = tables.find(id).ok_or(missing)?;
        rule(&mut record, self.clock.now())?;
        Ok(tables.save(seq, record))
    }

    /// Assigns the job to the worker under a new fence.
    fn hand_over(
        &self,
        tables: &mut Tables,
        (seq, mut record): (u64, Record),
        worker: &WorkerId,
        lease: Duration,
    ) -> ClaimedJob {
        let now = self.clock.now();
        let lease = rules::claim(&mut record, worker, now.after(lease), now);
        if record.job.new.visibility.goes_through_queue() {
            tables.serve(&record.job.new.owner);
        }
        ClaimedJob { job: tables.save(seq, record), lease }
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn rev(&self) -> Result<Rev, StoreError> {
        Ok(*self.tables().rev.borrow())
    }

    async fn insert(&self, insert: Insert) -> Result<InsertOutcome, StoreError> {
        let mut insert = insert;
        let mut tables = self.tables();
        let now = self.clock.now();
        // This comes before the decision, as with a claim: the worker is running even if its call is refused.
        let initial_worker = insert.initial_worker.clone();
        if let Some(InitialWorker { worker, .. }) = &initial_worker {
            tables.workers.entry(worker.clone()).or_default();
        }
        if let Some(key) = &insert.key
            && let Some(found) = tables.earlier_call(&insert.job, key)
            && let Some(EarlierCall { seq, job, key }) = rules::attach(&mut insert, found, now)?
        {
            let job = tables.promise(seq, &insert.job, now).unwrap_or(job);
            return Ok(InsertOutcome::Existing { job, key });
        }
        let taken = insert.takeover.and_then(|takeover| tables.run_left(&takeover, &insert.job));
        let run_left = taken.as_ref().map(|taken| taken.left.clone());
        let usage = OwnerUsage { run_left, ..tables.usage(&insert.job, now.day()) };
        let id = JobId::new(Uuid::new_v4());
        let admitted = rules::admit(insert, &usage, id, self.notices, now)?;
        Ok(InsertOutcome::New(tables.add(admitted, taken, initial_worker.as_ref(), now)))
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let mut tables = self.tables();
        tables.workers.entry(worker.clone()).or_default().extend(profiles.iter().cloned());
        let now = self.clock.now();
        let turns: HashMap<&OwnerId, Turn> =
            tables.owners.keys().map(|owner| (owner, tables.turn(owner))).collect();
        let best = tables
            .records
            .iter()
            .filter(|(_, record)| rules::is_claimable(record, profiles, now))
            .min_by_key(|(seq, Record { job, .. })| {
                (turns.get(&job.new.owner), Reverse(job.new.priority), **seq)
            });
        let Some((&seq, record)) = best else { return Ok(None) };
        let found = (seq, record.clone());
        Ok(Some(self.hand_over(&mut tables, found, worker, lease)))
    }

    async fn claim_by_id(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<ClaimedJob>, StoreError> {
        let mut tables = self.tables();
        tables.workers.entry(worker.clone()).or_default();
        let now = self.clock.now();
        let found =
            tables.find(id).filter(|(_, record)| rules::is_claimable_by_id(record, profiles, now));
        Ok(found.map(|found| self.hand_over(&mut tables, found, worker, lease)))
    }

    async fn unclaimed_held_calls(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let tables = self.tables();
        let orphans = tables
            .jobs()
            .filter(|job| waits(job, profiles) && !job.new.visibility.goes_through_queue());
        Ok(orphans.map(|job| job.id).collect())
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        let mut tables = self.tables();
        let until = self.clock.now().after(lease);
        let mut lost = Vec::new();
        for lease in leases {
            match tables.record_mut(&lease.job) {
                Some(record) if rules::check_lease(record, lease).is_ok() => {
                    record.holder.iter_mut().for_each(|holder| holder.until = until);
                }
                Some(_) | None => lost.push(lease.job),
            }
        }
        Ok(lost)
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        let rule = |record: &mut _, now| rules::checkpoint(record, lease, checkpoint, now);
        self.change(&lease.job, StoreError::LeaseLost, rule).map(drop)
    }

    async fn show_progress(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        let rule = |record: &mut _, now| rules::show_progress(record, lease, progress, now);
        self.change(&lease.job, StoreError::LeaseLost, rule).map(drop)
    }

    async fn show_text(&self, lease: &Lease, text: &str) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let record = tables.record_mut(&lease.job).ok_or(StoreError::LeaseLost)?;
        rules::show_text(record, lease, text)
    }

    async fn begin_step(&self, lease: &Lease, step: &NewStep) -> Result<StepStart, StoreError> {
        self.tables().begin_step(lease, step, self.clock.now())
    }

    async fn end_step(&self, lease: &Lease, key: &str, end: &StepEnd) -> Result<(), StoreError> {
        self.tables().end_step(lease, key, end, self.clock.now())
    }

    async fn resolve_step(
        &self,
        scope: &Scope,
        job: &JobId,
        key: &str,
        decision: StepDecision,
    ) -> Result<ResolveOutcome, StoreError> {
        self.tables().resolve_step(scope, job, key, decision, self.clock.now())
    }

    async fn save_page(
        &self,
        lease: &Lease,
        page: &Page,
        max_bytes: u64,
    ) -> Result<(), StoreError> {
        self.tables().save_page(lease, page, max_bytes)
    }

    async fn ask(&self, lease: &Lease, question: &NewQuestion) -> Result<Question, StoreError> {
        let mut tables = self.tables();
        let (seq, mut record) = tables.find(&lease.job).ok_or(StoreError::LeaseLost)?;
        let (before, now) = (record.job.questions.asked, self.clock.now());
        let asked = rules::ask(&mut record, lease, question, now)?;
        let is_new = record.job.questions.asked > before;
        if self.notices.max(record.notice) == EndNotices::Kept
            && let Some(notice) = rules::question_notice(&record.job).filter(|_| is_new)
        {
            tables.add_notice(notice, now);
        }
        tables.save(seq, record);
        Ok(asked)
    }

    async fn close_question(
        &self,
        lease: &Lease,
        key: &str,
        reason: CloseReason,
    ) -> Result<(), StoreError> {
        let rule = |record: &mut _, now| rules::close_question(record, lease, key, reason, now);
        self.change(&lease.job, StoreError::LeaseLost, rule).map(drop)
    }

    async fn answer(
        &self,
        scope: &Scope,
        id: &JobId,
        question: Option<&str>,
        text: &str,
    ) -> Result<AnswerOutcome, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let found = tables.find(id).filter(|(_, record)| visible(&record.job, scope, now));
        let (seq, mut record) = found.ok_or(StoreError::NotFound)?;
        Ok(match rules::answer(&mut record, question, text, now) {
            Ok(()) => AnswerOutcome::Accepted(Box::new(tables.save(seq, record))),
            Err(refusal) => AnswerOutcome::Refused(refusal),
        })
    }

    /// The provider's raw response is not stored: it exists for later versions, and this store ends with its process.
    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        let mut tables = self.tables();
        let (seq, mut record) = tables.find(&lease.job).ok_or(StoreError::LeaseLost)?;
        let before = record.job.checkpoint.clone();
        let now = self.clock.now();
        rules::settle(&mut record, lease, &settlement, now)?;
        tables.bind_another_run(&before, &mut record, now);
        self.announce(&mut tables, &record);
        Ok(tables.save(seq, record))
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<CancelOutcome, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        let found = tables.find(id).filter(|(_, record)| visible(&record.job, scope, now));
        let (seq, mut record) = found.ok_or(StoreError::NotFound)?;
        match rules::cancel(&mut record, now) {
            CancelOutcome::Already(job) => Ok(CancelOutcome::Already(job)),
            CancelOutcome::Now(_) => {
                self.announce(&mut tables, &record);
                Ok(CancelOutcome::Now(tables.save(seq, record)))
            }
        }
    }

    async fn rescue(&self, dead: &RescueBy) -> Result<RescueOutcome, StoreError> {
        let mut tables = self.tables();
        let now = self.clock.now();
        // A worker is on the list from its first claim until it is deregistered. There is no other proof.
        let is_listed = |worker: &WorkerId| tables.workers.contains_key(worker);
        let is_dead = |record: &Record| match dead {
            RescueBy::DeadProcess => {
                record.holder.as_ref().is_some_and(|holder| !is_listed(&holder.worker))
            }
            RescueBy::ExpiredLease => rules::lease_is_void(record, is_listed, now),
            RescueBy::UnheldByWorker { worker, held } => {
                rules::is_unheld(record, worker, held, now)
            }
        };
        let seqs: Vec<u64> = tables
            .records
            .iter()
            .filter_map(|(seq, record)| is_dead(record).then_some(*seq))
            .collect();
        let mut rescued = RescueOutcome::default();
        for seq in seqs {
            let Some(mut record) = tables.records.get(&seq).cloned() else { continue };
            rules::rescue(&mut record, now);
            tables.save(seq, record);
            rescued.jobs += 1;
        }
        Ok(rescued)
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        let rule = |record: &mut _, now| rules::record_late_run(record, run, now);
        self.change(id, StoreError::NotFound, rule).map(drop)
    }

    async fn pending_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let tables = self.tables();
        let owed = tables.jobs().filter_map(|job| match (&job.state, &job.checkpoint) {
            (JobState::Cancelled { remote: RemoteStop::Owed, .. }, Checkpoint::Running(run))
                if profiles.contains(&job.new.profile) =>
            {
                Some((job.id, run.clone()))
            }
            _ => None,
        });
        Ok(owed.take(limit).collect())
    }

    async fn record_stop(
        &self,
        id: &JobId,
        outcome: RemoteStop,
        cost: Cost,
    ) -> Result<(), StoreError> {
        let rule = |record: &mut _, now| rules::record_stop(record, outcome, cost, now);
        self.change(id, StoreError::NotFound, rule).map(drop)
    }

    async fn claim_notice(&self, lease: Duration) -> Result<NoticeClaim, StoreError> {
        let (mut tables, now) = (self.tables(), self.clock.now());
        // If several are due at the same time, the first is claimed.
        Ok(match tables.notices.iter_mut().min_by_key(|notice| notice.due_at) {
            Some(notice) if notice.due_at <= now => {
                notice.due_at = now.after(lease);
                notice.claimed.tries += 1;
                NoticeClaim::Claimed(notice.claimed.clone())
            }
            next => NoticeClaim::NoneDue { next: next.map(|notice| notice.due_at) },
        })
    }

    async fn record_notice(
        &self,
        claimed: &ClaimedNotice,
        outcome: NoticeOutcome,
    ) -> Result<(), StoreError> {
        let (mut tables, now) = (self.tables(), self.clock.now());
        match outcome {
            NoticeOutcome::Over => tables.notices.retain(|notice| notice.claimed != *claimed),
            NoticeOutcome::Again(wait) => {
                let own = tables.notices.iter_mut().filter(|notice| notice.claimed == *claimed);
                own.for_each(|notice| notice.due_at = now.after(wait));
            }
        }
        Ok(())
    }

    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        let mut tables = self.tables();
        let Some((seq, Record { job, .. })) = tables.find(id) else { return Ok(()) };
        let now = self.clock.now();
        if let Some(key) = tables.keys.values_mut().find(|key| key.seq == seq)
            && let Some(record) = rules::record_answer(&key.record, &job, now)
        {
            key.record = record;
        }
        if let Some(identity) = tables.identities.get_mut(&seq)
            && job.state.kind().is_terminal()
        {
            identity.answered_at.get_or_insert(now);
        }
        Ok(())
    }

    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        Ok(self.tables().workers.values().any(|profiles| profiles.contains(profile)))
    }

    async fn count_queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        let tables = self.tables();
        let queued = tables
            .jobs()
            .filter(|job| waits(job, profiles) && job.new.visibility.goes_through_queue());
        Ok(queued.count() as u64)
    }

    async fn queue_position(&self, id: &JobId) -> Result<u64, StoreError> {
        let tables = self.tables();
        let Some((seq, Record { job, .. })) = tables.find(id) else { return Ok(0) };
        let profile = std::slice::from_ref(&job.new.profile);
        let in_queue =
            |other: &Job| waits(other, profile) && other.new.visibility.goes_through_queue();
        if !in_queue(&job) {
            return Ok(0);
        }
        let (mut before, mut others) = (0, HashMap::<&OwnerId, u64>::new());
        for (other_seq, Record { job: other, .. }) in &tables.records {
            if !in_queue(other) {
                continue;
            }
            if other.new.owner != job.new.owner {
                *others.entry(&other.new.owner).or_default() += 1;
            } else if (Reverse(other.new.priority), *other_seq) < (Reverse(job.new.priority), seq) {
                before += 1;
            }
        }
        let mine = tables.turn(&job.new.owner);
        let others = others
            .into_iter()
            .map(|(owner, queued)| rules::jobs_ahead(&mine, before, &tables.turn(owner), queued));
        Ok(before + others.sum::<u64>())
    }

    async fn deregister_worker(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.tables().workers.remove(worker);
        Ok(())
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<PruneOutcome, StoreError> {
        let mut tables = self.tables();
        match prune {
            Prune::Expired | Prune::EndedBefore(_) => {}
            Prune::Conversation(conversation) => tables.refuse_unfinished(scope, conversation)?,
        }
        let jobs = tables.remove(scope, prune, self.clock.now());
        if *prune == Prune::Expired {
            tables.shorten_ledger(scope, self.clock.now().day());
        }
        let keys = tables.keys_by_job();
        let left = tables.records.iter().filter(|(_, record)| scope.sees(&record.job.new.owner));
        let next = left.filter_map(|(seq, record)| rules::removable_at(&record.job, keys.get(seq)));
        Ok(PruneOutcome { jobs, next_expiry: next.min() })
    }

    async fn forget_runs(
        &self,
        provider: &str,
        ended_before: Timestamp,
    ) -> Result<u32, StoreError> {
        Ok(self.tables().forget_runs_of(provider, ended_before))
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        let now = self.clock.now();
        let found = self.tables().find(id).map(|(_, record)| record.job);
        Ok(found.filter(|job| visible(job, scope, now)))
    }

    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        let tables = self.tables();
        let now = self.clock.now();
        let end = query.after.map_or(u64::MAX, |Cursor(seq)| seq);
        let matching =
            tables.records.range(..end).rev().filter(|(_, record)| {
                visible(&record.job, scope, now) && matches(&record.job, query)
            });
        let rows = matching
            .map(|(seq, record)| Ok::<_, StoreError>((*seq, summary(&record.job, &tables.ledger))));
        let (jobs, next) = page(rows, query.limit)?;
        Ok(JobPage { jobs, next })
    }

    async fn counts(&self, scope: &Scope, at_most: u32) -> Result<Vec<StateCount>, StoreError> {
        let (tables, now) = (self.tables(), self.clock.now());
        let count_of = |state| {
            let jobs = tables.jobs().filter(|job| visible(job, scope, now));
            let jobs = jobs.filter(|job| job.kind() == state).count();
            StateCount { state, jobs: count(jobs).min(at_most) }
        };
        Ok(StateKind::ALL.into_iter().map(count_of).collect())
    }

    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        let tables = self.tables();
        let of_conversation = |job: &&Job| {
            visible(job, scope, now) && job.new.conversation.as_ref() == Some(conversation)
        };
        let mut turns: Vec<Job> = tables.jobs().filter(of_conversation).cloned().collect();
        turns.sort_by(|a, b| (&a.new.owner, a.turn).cmp(&(&b.new.owner, b.turn)));
        Ok(turns)
    }

    async fn newest_about(
        &self,
        scope: &Scope,
        subject: &JobId,
        states: &[StateKind],
    ) -> Result<Option<Job>, StoreError> {
        Ok(self.tables().newest_about(scope, subject, states, self.clock.now()))
    }

    async fn steps(&self, scope: &Scope, job: &JobId) -> Result<Vec<JournalStep>, StoreError> {
        Ok(self.tables().steps(scope, job))
    }

    async fn step_outputs(
        &self,
        scope: &Scope,
        job: &JobId,
        kinds: &[&str],
    ) -> Result<Vec<StepOutput>, StoreError> {
        Ok(self.tables().step_outputs(scope, job, kinds))
    }

    async fn page(&self, owner: &OwnerId, digest: &[u8; 32]) -> Result<Option<Page>, StoreError> {
        Ok(self.tables().pages.get(&(owner.clone(), *digest)).cloned())
    }

    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let tables = self.tables();
        let end = query.after.map_or(u64::MAX, |Cursor(seq)| seq);
        let mut found = tables.conversations(owner, self.clock.now());
        found.retain(|(last, summary)| {
            *last < end && (query.states.is_empty() || query.states.contains(&summary.state))
        });
        found.sort_by_key(|(last, _)| Reverse(*last));
        let (conversations, next) = page(found.into_iter().map(Ok::<_, StoreError>), query.limit)?;
        Ok(ConversationPage { conversations, next })
    }

    async fn spend(&self, scope: &Scope, query: &SpendQuery) -> Result<Vec<SpendSum>, StoreError> {
        let tables = self.tables();
        let rows = tables.ledger.iter();
        let seen = rows.filter(|row| scope.sees(&row.owner) && row.at.day() >= query.since);
        Ok(tables::sums(seen, query.by))
    }

    async fn ledger_rows(&self, scope: &Scope, job: &JobId) -> Result<Vec<LedgerRow>, StoreError> {
        let tables = self.tables();
        let own = tables.ledger.iter().filter(|row| row.job == *job && scope.sees(&row.owner));
        let mut rows: Vec<LedgerRow> = own.cloned().collect();
        rows.sort_by_key(|row| row.run);
        Ok(rows)
    }

    async fn get_setting(&self, name: &str) -> Result<Option<String>, StoreError> {
        Ok(self.tables().kept.get(name).cloned())
    }

    async fn put_setting(&self, name: &str, value: &str) -> Result<(), StoreError> {
        self.tables().kept.insert(name.to_owned(), value.to_owned());
        Ok(())
    }

    async fn create_setting(&self, name: &str, value: &str) -> Result<String, StoreError> {
        let mut tables = self.tables();
        Ok(tables.kept.entry(name.to_owned()).or_insert_with(|| value.to_owned()).clone())
    }

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        let mut rev = self.tables().rev.subscribe();
        // The tables below show whether a change came or the time ran out.
        let _ = tokio::time::timeout(wait.at_most, rev.wait_for(|rev| *rev > after)).await;
        let (tables, now) = (self.tables(), self.clock.now());
        let mut changed: Vec<&Job> = tables.jobs().filter(|job| job.rev > after).collect();
        changed.sort_by_key(|job| job.rev);
        let due = tables.records.values().filter_map(|record| match &record.job.state {
            JobState::Queued { run_at } => Some(*run_at).filter(|run_at| *run_at > now),
            JobState::Running { .. } => record.holder.as_ref().map(|holder| holder.until),
            JobState::Succeeded { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                None
            }
        });
        let rev = *tables.rev.borrow();
        Ok(Changes {
            rev,
            jobs: changed.into_iter().map(Change::from_job).collect(),
            next_due: due.min(),
        })
    }
}
