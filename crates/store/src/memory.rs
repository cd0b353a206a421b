//! The reference store: a mutex over a map. Nothing outlives the process, so nothing is ever proven about
//! another one; for tests, and for those who want no files.

mod shelf;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::rules::{KeyRecord, Turn};
use outlast_core::{
    Cancelled, ChangeWait, Changes, Checkpoint, Claimed, Clock, ConversationId, ConversationPage,
    ConversationQuery, Cursor, Dead, Insert, Inserted, Job, JobId, JobPage, JobQuery, JobState,
    Key, Lease, OwnerId, Profile, Progress, Prune, Pruned, Record, RemoteRun, RemoteStop, Rescued,
    Rev, Scope, Settlement, StateKind, Store, StoreError, Timestamp, WorkerId, rules,
};
use tokio::sync::watch;

use shelf::{HeldKey, Shelf, in_conversation, matches, same_conversation, summary, visible};

/// Keeps jobs in memory.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    shelf: Mutex<Shelf>,
    rev: watch::Sender<Rev>,
}

impl MemoryStore {
    /// Makes an empty store that dates things by `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, shelf: Mutex::default(), rev: watch::Sender::new(Rev::default()) }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // A record is replaced whole or not at all, so a panic elsewhere leaves nothing half done.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes who waits in `changes`; call it with the lock held, so that revs are announced in order.
    fn announce(&self, shelf: &Shelf) {
        self.rev.send_replace(shelf.rev);
    }

    /// Applies `rule` to the job a lease names, all or nothing.
    fn write(
        &self,
        lease: &Lease,
        rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
    ) -> Result<Job, StoreError> {
        let mut shelf = self.shelf();
        let (seq, mut record) = shelf.find(&lease.job).ok_or(StoreError::LeaseLost)?;
        rule(&mut record, self.clock.now())?;
        let job = shelf.save(seq, record);
        self.announce(&shelf);
        Ok(job)
    }

    /// Gives the job to the worker under a new fence.
    fn hand_over(
        &self,
        shelf: &mut Shelf,
        seq: u64,
        mut record: Record,
        worker: &WorkerId,
        lease: Duration,
    ) -> Claimed {
        let now = self.clock.now();
        let Claimed { lease, .. } = rules::claim(&mut record, worker, now.after(lease), now);
        if record.job.new.visibility.goes_through_queue() {
            shelf.serve(&record.job.new.owner);
        }
        let job = shelf.save(seq, record);
        self.announce(shelf);
        Claimed { job, lease }
    }

    /// Applies `rule` to a job without a lease, all or nothing.
    fn amend(
        &self,
        id: &JobId,
        rule: impl FnOnce(&mut Record, Timestamp) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut shelf = self.shelf();
        let (seq, mut record) = shelf.find(id).ok_or(StoreError::NotFound)?;
        rule(&mut record, self.clock.now())?;
        shelf.save(seq, record);
        self.announce(&shelf);
        Ok(())
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn now(&self) -> Timestamp {
        self.clock.now()
    }

    async fn rev(&self) -> Result<Rev, StoreError> {
        Ok(self.shelf().rev)
    }

    async fn insert(&self, insert: Insert) -> Result<Inserted, StoreError> {
        let Insert { job: new, key, max_unfinished, max_bytes, mut takes_up } = insert;
        let mut shelf = self.shelf();
        let now = self.clock.now();
        if let Some(key) = &key
            && let Some(held) = shelf.keys.get(&(new.owner.clone(), key.text.clone()))
            && let Some(Record { job, .. }) = shelf.records.get(&held.seq)
        {
            if !rules::key_is_valid(&held.record, job, now) {
                takes_up = takes_up.or_else(|| rules::run_taken_up(&held.record, job, &new));
            } else if held.record.input_hash == key.input_hash {
                return Ok(Inserted::Existing { job: job.clone(), key: held.record });
            } else {
                return Err(StoreError::KeyConflict(job.id));
            }
        }
        if let Some(busy) = shelf.unfinished(&new.owner).find(|job| same_conversation(job, &new)) {
            return Err(StoreError::ConversationBusy(busy.id));
        }
        if shelf.unfinished(&new.owner).count() >= max_unfinished as usize {
            return Err(StoreError::TooManyJobs);
        }
        if !rules::has_room(shelf.bytes(&new.owner), rules::ask_bytes(&new), max_bytes) {
            return Err(StoreError::TooManyBytes);
        }
        let (seq, job) = shelf.add(new, takes_up, now);
        if let Some(key) = key {
            let Key { text, input_hash, life } = key;
            let record = KeyRecord { input_hash, made_at: now, life, answered_at: None };
            shelf.keys.insert((job.new.owner.clone(), text), HeldKey { seq, record });
        }
        self.announce(&shelf);
        Ok(Inserted::New(job))
    }

    async fn claim(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut shelf = self.shelf();
        shelf.workers.entry(worker.clone()).or_default().extend(profiles.iter().cloned());
        let now = self.clock.now();
        let turns: HashMap<&OwnerId, Turn> =
            shelf.owners.keys().map(|owner| (owner, shelf.turn(owner))).collect();
        let best = shelf
            .records
            .iter()
            .filter(|(_, record)| rules::claimable(record, profiles, now))
            .min_by_key(|(seq, Record { job, .. })| {
                (turns.get(&job.new.owner), Reverse(job.new.priority), **seq)
            });
        let Some((&seq, record)) = best else { return Ok(None) };
        let record = record.clone();
        Ok(Some(self.hand_over(&mut shelf, seq, record, worker, lease)))
    }

    async fn take(
        &self,
        worker: &WorkerId,
        profiles: &[Profile],
        id: &JobId,
        lease: Duration,
    ) -> Result<Option<Claimed>, StoreError> {
        let mut shelf = self.shelf();
        shelf.workers.entry(worker.clone()).or_default();
        let now = self.clock.now();
        let found = shelf.find(id).filter(|(_, record)| rules::takeable(record, profiles, now));
        let Some((seq, record)) = found else { return Ok(None) };
        Ok(Some(self.hand_over(&mut shelf, seq, record, worker, lease)))
    }

    async fn orphans(&self, profiles: &[Profile]) -> Result<Vec<JobId>, StoreError> {
        let shelf = self.shelf();
        let orphans = shelf.records.values().map(|record| &record.job).filter(|job| {
            job.state.kind() == StateKind::Queued
                && !job.new.visibility.goes_through_queue()
                && profiles.contains(&job.new.profile)
        });
        Ok(orphans.map(|job| job.id).collect())
    }

    async fn renew(&self, leases: &[Lease], lease: Duration) -> Result<Vec<JobId>, StoreError> {
        let mut shelf = self.shelf();
        let until = self.clock.now().after(lease);
        let mut lost = Vec::new();
        for lease in leases {
            match shelf.record_mut(&lease.job) {
                Some(record) if rules::check_lease(record, lease).is_ok() => {
                    record.holder.iter_mut().for_each(|holder| holder.until = until);
                }
                Some(_) | None => lost.push(lease.job),
            }
        }
        Ok(lost)
    }

    async fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> Result<(), StoreError> {
        self.write(lease, |record, now| rules::checkpoint(record, lease, checkpoint, now))?;
        Ok(())
    }

    async fn note(&self, lease: &Lease, progress: &Progress) -> Result<(), StoreError> {
        self.write(lease, |record, now| rules::note(record, lease, progress, now))?;
        Ok(())
    }

    /// The provider's raw last word is not kept: it is for later versions, and this store has none.
    async fn settle(&self, lease: &Lease, settlement: Settlement) -> Result<Job, StoreError> {
        self.write(lease, |record, now| rules::settle(record, lease, &settlement, now))
    }

    async fn cancel(&self, scope: &Scope, id: &JobId) -> Result<Cancelled, StoreError> {
        let mut shelf = self.shelf();
        let now = self.clock.now();
        let found = shelf.find(id).filter(|(_, record)| visible(&record.job, scope, now));
        let (seq, mut record) = found.ok_or(StoreError::NotFound)?;
        match rules::cancel(&mut record, now) {
            Cancelled::Already(job) => Ok(Cancelled::Already(job)),
            Cancelled::Now(_) => {
                let job = shelf.save(seq, record);
                self.announce(&shelf);
                Ok(Cancelled::Now(job))
            }
        }
    }

    async fn rescue(&self, dead: &Dead) -> Result<Rescued, StoreError> {
        let mut shelf = self.shelf();
        let now = self.clock.now();
        // A worker is on the list from its first claim until it is dismissed: there is no other proof.
        let is_listed = |worker: &WorkerId| shelf.workers.contains_key(worker);
        let is_dead = |record: &Record| match dead {
            Dead::Proven => record.holder.as_ref().is_some_and(|holder| !is_listed(&holder.worker)),
            Dead::LeasesExpired => rules::lease_is_void(record, is_listed, now),
        };
        let seqs: Vec<u64> = shelf
            .records
            .iter()
            .filter_map(|(seq, record)| is_dead(record).then_some(*seq))
            .collect();
        let mut rescued = Rescued::default();
        for seq in seqs {
            let Some(mut record) = shelf.records.get(&seq).cloned() else { continue };
            rules::rescue(&mut record, now);
            shelf.save(seq, record);
            rescued.jobs += 1;
        }
        self.announce(&shelf);
        Ok(rescued)
    }

    async fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> Result<(), StoreError> {
        self.amend(id, |record, now| rules::record_late_run(record, run, now))
    }

    async fn owed_stops(
        &self,
        profiles: &[Profile],
        limit: usize,
    ) -> Result<Vec<(JobId, RemoteRun)>, StoreError> {
        let shelf = self.shelf();
        let owed = shelf.records.values().filter_map(|Record { job, .. }| {
            match (&job.state, &job.checkpoint) {
                (
                    JobState::Cancelled { remote: RemoteStop::Owed, .. },
                    Checkpoint::Running(run),
                ) if profiles.contains(&job.new.profile) => Some((job.id, run.clone())),
                _ => None,
            }
        });
        Ok(owed.take(limit).collect())
    }

    async fn record_stop(&self, id: &JobId, outcome: RemoteStop) -> Result<(), StoreError> {
        self.amend(id, |record, now| rules::record_stop(record, outcome, now))
    }

    async fn record_answer(&self, id: &JobId) -> Result<(), StoreError> {
        let mut shelf = self.shelf();
        let Some((seq, Record { job, .. })) = shelf.find(id) else { return Ok(()) };
        if let Some(key) = shelf.keys.values_mut().find(|key| key.seq == seq)
            && let Some(record) = rules::record_answer(&key.record, &job, self.clock.now())
        {
            key.record = record;
        }
        Ok(())
    }

    async fn has_worker(&self, profile: &Profile) -> Result<bool, StoreError> {
        Ok(self.shelf().workers.values().any(|profiles| profiles.contains(profile)))
    }

    async fn queued(&self, profiles: &[Profile]) -> Result<u64, StoreError> {
        let shelf = self.shelf();
        let waiting = shelf.records.values().map(|record| &record.job).filter(|job| {
            job.state.kind() == StateKind::Queued
                && job.new.visibility.goes_through_queue()
                && profiles.contains(&job.new.profile)
        });
        Ok(waiting.count() as u64)
    }

    async fn ahead(&self, id: &JobId) -> Result<u64, StoreError> {
        let shelf = self.shelf();
        let Some((seq, Record { job, .. })) = shelf.find(id) else { return Ok(0) };
        let in_queue = |other: &Job| {
            other.state.kind() == StateKind::Queued
                && other.new.visibility.goes_through_queue()
                && other.new.profile == job.new.profile
        };
        if !in_queue(&job) {
            return Ok(0);
        }
        let (mut before, mut others) = (0, HashMap::<&OwnerId, u64>::new());
        for (other, record) in shelf.records.iter().filter(|(_, record)| in_queue(&record.job)) {
            let place = (Reverse(record.job.new.priority), *other);
            if record.job.new.owner != job.new.owner {
                *others.entry(&record.job.new.owner).or_default() += 1;
            } else if place < (Reverse(job.new.priority), seq) {
                before += 1;
            }
        }
        let mine = shelf.turn(&job.new.owner);
        let others = others
            .into_iter()
            .map(|(owner, queued)| rules::ahead(&mine, before, &shelf.turn(owner), queued));
        Ok(before + others.sum::<u64>())
    }

    async fn dismiss(&self, worker: &WorkerId) -> Result<(), StoreError> {
        self.shelf().workers.remove(worker);
        Ok(())
    }

    async fn prune(&self, scope: &Scope, prune: &Prune) -> Result<Pruned, StoreError> {
        let now = self.clock.now();
        self.shelf().prune(scope, prune, now)
    }

    async fn job(&self, scope: &Scope, id: &JobId) -> Result<Option<Job>, StoreError> {
        let now = self.clock.now();
        let found = self.shelf().find(id).map(|(_, record)| record.job);
        Ok(found.filter(|job| visible(job, scope, now)))
    }

    async fn list(&self, scope: &Scope, query: &JobQuery) -> Result<JobPage, StoreError> {
        let shelf = self.shelf();
        let now = self.clock.now();
        let end = query.after.map_or(u64::MAX, |Cursor(seq)| seq);
        let mut matching =
            shelf.records.range(..end).rev().filter(|(_, record)| {
                visible(&record.job, scope, now) && matches(&record.job, query)
            });
        let mut page = JobPage { jobs: Vec::new(), next: None };
        let mut last = None;
        for (seq, record) in matching.by_ref().take(query.limit as usize) {
            page.jobs.push(summary(&record.job));
            last = Some(Cursor(*seq));
        }
        page.next = last.filter(|_| matching.next().is_some());
        Ok(page)
    }

    async fn turns(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<Vec<Job>, StoreError> {
        let now = self.clock.now();
        let shelf = self.shelf();
        let mut turns: Vec<Job> = shelf
            .turns(scope, now)
            .filter(|job| in_conversation(job, conversation))
            .cloned()
            .collect();
        turns.sort_by(|a, b| (&a.new.owner, a.turn).cmp(&(&b.new.owner, b.turn)));
        Ok(turns)
    }

    async fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
    ) -> Result<ConversationPage, StoreError> {
        let now = self.clock.now();
        Ok(self.shelf().conversations(owner, query, now))
    }

    async fn changes(&self, after: Rev, wait: ChangeWait) -> Result<Changes, StoreError> {
        let mut rev = self.rev.subscribe();
        // Whether a change came or the wait ended is read off the shelf; the sender lives as long as `self`.
        let _ = tokio::time::timeout(wait.at_most, rev.wait_for(|rev| *rev > after)).await;
        Ok(self.shelf().changes(after, self.clock.now()))
    }
}
