//! What the memory store keeps and how it is looked through; all of it under the store's lock.

use std::collections::{BTreeMap, HashMap, HashSet};

use outlast_core::rules::{KeyRecord, Turn};
use outlast_core::{
    Change, Changes, ConversationId, ConversationPage, ConversationQuery, ConversationSummary,
    Cursor, Job, JobId, JobQuery, JobState, NewJob, OwnerId, Profile, Prune, Pruned, Record,
    RemoteRun, Rev, Scope, StateKind, StoreError, Summary, Timestamp, Uncarried, WorkerId, rules,
    session_of,
};
use uuid::Uuid;

/// Everything there is.
#[derive(Default)]
pub(super) struct Shelf {
    /// By number of arrival.
    pub(super) records: BTreeMap<u64, Record>,
    seqs: HashMap<JobId, u64>,
    pub(super) keys: HashMap<(OwnerId, String), HeldKey>,
    pub(super) owners: HashMap<OwnerId, Served>,
    /// Who has claimed, and for what, until dismissed or declared dead.
    pub(super) workers: HashMap<WorkerId, HashSet<Profile>>,
    pub(super) rev: Rev,
}

/// What is remembered of an owner who has ever had a job.
pub(super) struct Served {
    /// The number of the claim that served them last.
    last: u64,
    arrived: u64,
}

/// What an idempotency key stands for.
pub(super) struct HeldKey {
    pub(super) seq: u64,
    pub(super) record: KeyRecord,
}

impl Shelf {
    pub(super) fn find(&self, id: &JobId) -> Option<(u64, Record)> {
        let seq = self.seqs.get(id)?;
        Some((*seq, self.records.get(seq)?.clone()))
    }

    pub(super) fn record_mut(&mut self, id: &JobId) -> Option<&mut Record> {
        self.records.get_mut(self.seqs.get(id)?)
    }

    pub(super) fn unfinished(&self, owner: &OwnerId) -> impl Iterator<Item = &Job> {
        let jobs = self.records.values().map(|record| &record.job);
        jobs.filter(move |job| job.new.owner == *owner && !job.state.kind().is_terminal())
    }

    pub(super) fn add(
        &mut self,
        new: NewJob,
        takes_up: Option<RemoteRun>,
        now: Timestamp,
    ) -> (u64, Job) {
        let earlier = self.records.values().filter(|record| same_conversation(&record.job, &new));
        let turn = earlier.map(|record| record.job.turn).max().unwrap_or(0) + 1;
        let seq = self.records.last_key_value().map_or(1, |(seq, _)| seq + 1);
        let bytes = rules::ask_bytes(&new);
        let job = rules::accept(new, takes_up, JobId::new(Uuid::new_v4()), turn, now);
        self.seqs.insert(job.id, seq);
        let arrived = self.owners.len() as u64;
        self.owners.entry(job.new.owner.clone()).or_insert(Served { last: 0, arrived });
        (seq, self.save(seq, Record { job, holder: None, bytes }))
    }

    /// How much room the owner's jobs take.
    pub(super) fn bytes(&self, owner: &OwnerId) -> u64 {
        let own = self.records.values().filter(|record| record.job.new.owner == *owner);
        own.map(|record| record.bytes).sum()
    }

    /// When the owner is served.
    pub(super) fn turn(&self, owner: &OwnerId) -> Turn {
        let running = |job: &&Job| {
            job.new.owner == *owner
                && job.new.visibility.goes_through_queue()
                && job.state.kind() == StateKind::Running
        };
        let running = self.records.values().map(|record| &record.job).filter(running).count();
        let (served, arrived) =
            self.owners.get(owner).map_or((0, 0), |served| (served.last, served.arrived));
        Turn { running: running as u64, served, arrived }
    }

    /// Records that the owner was served from the queue.
    pub(super) fn serve(&mut self, owner: &OwnerId) {
        let next = self.owners.values().map(|served| served.last).max().unwrap_or(0) + 1;
        if let Some(served) = self.owners.get_mut(owner) {
            served.last = next;
        }
    }

    /// Puts the record in its place under a new rev.
    pub(super) fn save(&mut self, seq: u64, mut record: Record) -> Job {
        self.rev = Rev(self.rev.0 + 1);
        record.job.rev = self.rev;
        let job = record.job.clone();
        self.records.insert(seq, record);
        job
    }

    /// Removes what `prune` covers in this scope.
    pub(super) fn prune(
        &mut self,
        scope: &Scope,
        prune: &Prune,
        now: Timestamp,
    ) -> Result<Pruned, StoreError> {
        match prune {
            Prune::Expired | Prune::EndedBefore(_) => {}
            Prune::Conversation(conversation) => self.quiet(scope, conversation)?,
        }
        let keys: HashMap<u64, KeyRecord> =
            self.keys.values().map(|key| (key.seq, key.record)).collect();
        let Self { records, seqs, .. } = self;
        let before = records.len();
        records.retain(|seq, Record { job, .. }| {
            let goes = scope.sees(&job.new.owner)
                && rules::prunable(job, keys.get(seq), prune, now)
                && seqs.remove(&job.id).is_some();
            !goes
        });
        self.keys.retain(|_, key| records.contains_key(&key.seq));
        let left = records.iter().filter(|(_, record)| scope.sees(&record.job.new.owner));
        let next =
            left.filter_map(|(seq, Record { job, .. })| rules::removable_at(job, keys.get(seq)));
        let jobs = u32::try_from(before - records.len()).unwrap_or(u32::MAX);
        Ok(Pruned { jobs, next_expiry: next.min() })
    }

    /// Refuses a conversation that is busy or not there.
    fn quiet(&self, scope: &Scope, conversation: &ConversationId) -> Result<(), StoreError> {
        let turns = || {
            self.records.values().map(|record| &record.job).filter(|job| {
                scope.sees(&job.new.owner) && job.new.conversation.as_ref() == Some(conversation)
            })
        };
        if let Some(busy) = turns().find(|job| !job.state.kind().is_terminal()) {
            return Err(StoreError::ConversationBusy(busy.id));
        }
        turns().next().map(drop).ok_or(StoreError::NotFound)
    }

    /// Jobs that belong to conversations, that `scope` sees and that are still kept, in order of arrival.
    pub(super) fn turns(&self, scope: &Scope, now: Timestamp) -> impl Iterator<Item = &Job> {
        self.records.values().map(|record| &record.job).filter(move |job| {
            job.new.conversation.is_some()
                && scope.sees(&job.new.owner)
                && !rules::expired(job, now)
        })
    }

    pub(super) fn conversations(
        &self,
        owner: &OwnerId,
        query: &ConversationQuery,
        now: Timestamp,
    ) -> ConversationPage {
        let mut found: HashMap<&ConversationId, (u64, ConversationSummary)> = HashMap::new();
        let scope = Scope::Owner(owner.clone());
        let shown = self.turns(&scope, now).filter(|job| job.is_shown());
        let mut shown: Vec<&Job> = shown.collect();
        shown.sort_by_key(|job| job.turn);
        for job in shown {
            let Some(id) = &job.new.conversation else { continue };
            let seq = self.seqs.get(&job.id).copied().unwrap_or_default();
            let state = job.state.kind();
            let (last, summary) = found.entry(id).or_insert_with(|| {
                let summary = ConversationSummary {
                    id: id.clone(),
                    title: job.new.title.clone(),
                    state,
                    turns: 0,
                    reports: 0,
                    created_at: job.created_at,
                    updated_at: job.updated_at,
                };
                (seq, summary)
            });
            *last = seq;
            summary.state = state;
            summary.turns += 1;
            summary.reports += u32::from(state == StateKind::Succeeded);
            summary.updated_at = job.updated_at;
        }
        let end = query.after.map_or(u64::MAX, |Cursor(seq)| seq);
        let mut matching: Vec<_> = found
            .into_values()
            .filter(|(last, summary)| {
                *last < end && (query.states.is_empty() || query.states.contains(&summary.state))
            })
            .collect();
        matching.sort_by_key(|(last, _)| std::cmp::Reverse(*last));
        let more = matching.len() > query.limit as usize;
        matching.truncate(query.limit as usize);
        let next = matching.last().filter(|_| more).map(|(last, _)| Cursor(*last));
        ConversationPage {
            conversations: matching.into_iter().map(|(_, summary)| summary).collect(),
            next,
        }
    }

    pub(super) fn changes(&self, after: Rev, now: Timestamp) -> Changes {
        let mut changed: Vec<&Job> =
            self.records.values().map(|record| &record.job).filter(|job| job.rev > after).collect();
        changed.sort_by_key(|job| job.rev);
        let change = |job: &Job| {
            let state = job.state.kind();
            let uncarried = Uncarried::of(state, job.new.visibility, job.was_claimed());
            Change { id: job.id, state, uncarried }
        };
        let jobs = changed.into_iter().map(change).collect();
        let due = self.records.values().filter_map(|record| match &record.job.state {
            JobState::Queued { run_at } => Some(*run_at).filter(|run_at| *run_at > now),
            JobState::Running { .. } => record.holder.as_ref().map(|holder| holder.until),
            JobState::Succeeded { .. } | JobState::Failed { .. } | JobState::Cancelled { .. } => {
                None
            }
        });
        Changes { rev: self.rev, jobs, next_due: due.min() }
    }
}

/// Whether the job is an earlier turn of what is asked now.
pub(super) fn same_conversation(job: &Job, new: &NewJob) -> bool {
    new.conversation.is_some()
        && job.new.conversation == new.conversation
        && job.new.owner == new.owner
}

pub(super) fn in_conversation(job: &Job, conversation: &ConversationId) -> bool {
    job.new.conversation.as_ref() == Some(conversation)
}

pub(super) fn visible(job: &Job, scope: &Scope, now: Timestamp) -> bool {
    scope.sees(&job.new.owner) && !rules::expired(job, now)
}

pub(super) fn matches(job: &Job, query: &JobQuery) -> bool {
    let state = query.states.is_empty() || query.states.contains(&job.state.kind());
    let title = query
        .search
        .as_ref()
        .is_none_or(|text| job.new.title.to_lowercase().contains(&text.to_lowercase()));
    let id = query.id_prefix.as_ref().is_none_or(|prefix| job.id.to_string().starts_with(prefix));
    state && title && id
}

pub(super) fn summary(job: &Job) -> Summary {
    Summary {
        id: job.id,
        owner: job.new.owner.clone(),
        conversation: job.new.conversation.clone(),
        workflow: job.new.workflow.clone(),
        title: job.new.title.clone(),
        visibility: job.new.visibility,
        state: job.state.kind(),
        was_claimed: job.was_claimed(),
        session: session_of(&job.new.ask).map(str::to_owned),
        failures: u32::try_from(job.failures.len()).unwrap_or(u32::MAX),
        progress: job.progress.clone(),
        created_at: job.created_at,
        updated_at: job.updated_at,
        ended_at: job.ended_at(),
    }
}
