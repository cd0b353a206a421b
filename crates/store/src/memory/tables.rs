//! The data of the memory store and its queries, all under the store's lock.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use outlast_core::rules::{
    AdmittedRows, EarlierCall, FirstCharge, IdentityRecord, KeyRecord, OwnerUsage, StoredStep, Turn,
};
use outlast_core::{
    ChargeState, Checkpoint, ClaimedNotice, ConversationId, ConversationSummary, CountedSpend, Day,
    InitialWorker, Job, JobId, JobQuery, Key, LedgerRow, NanoUsd, NewJob, Notice, OwnerId, Page,
    Profile, Prune, Record, RemoteRun, RequestNote, Rev, Scope, SpendBy, SpendSum, StateKind,
    StepCosts, StoreError, Summary, SummaryCharge, Timestamp, WorkerId, rules, search,
};
use tokio::sync::watch;

use super::journal::TakenRun;
use crate::count;

/// Jobs, keys, owners and workers.
#[derive(Default)]
pub(super) struct Tables {
    /// Ordered by number of arrival.
    pub(super) records: BTreeMap<u64, Record>,
    seqs: HashMap<JobId, u64>,
    pub(super) keys: HashMap<(OwnerId, String), StoredKey>,
    /// The identities of calls, by the number of their job.
    pub(super) identities: BTreeMap<u64, IdentityRecord>,
    pub(super) owners: HashMap<OwnerId, OwnerTurns>,
    /// The steps of runs, by the number of their job and their key.
    pub(super) steps: BTreeMap<(u64, String), StoredStep>,
    pub(super) pages: HashMap<(OwnerId, [u8; 32]), Page>,
    /// The jobs that have read each page.
    pub(super) readers: HashMap<(OwnerId, [u8; 32]), BTreeSet<u64>>,
    /// A row for each paid run. Rows stay when their jobs are removed.
    pub(super) ledger: Vec<LedgerRow>,
    /// The days on which a sweep found old rows in the ledger.
    ledger_sweeps: Vec<Day>,
    /// The workers that have claimed, and their profiles, until they are deregistered or declared dead.
    pub(super) workers: HashMap<WorkerId, HashSet<Profile>>,
    /// Pending notices, in the order of the ends.
    pub(super) notices: Vec<StoredNotice>,
    /// The values given to [`outlast_core::Store::put_setting`], by name.
    pub(super) kept: HashMap<String, String>,
    /// The number of the latest change. Each change wakes the receivers.
    pub(super) rev: watch::Sender<Rev>,
}

/// The time of an owner's arrival and of the latest claim of one of the owner's jobs.
pub(super) struct OwnerTurns {
    /// The number of the owner's latest claim.
    served: u64,
    arrived: u64,
}

/// A notice and the time at which it is due.
pub(super) struct StoredNotice {
    pub(super) claimed: ClaimedNotice,
    pub(super) due_at: Timestamp,
}

/// The job that an idempotency key names.
pub(super) struct StoredKey {
    pub(super) seq: u64,
    pub(super) record: KeyRecord,
}

impl Tables {
    pub(super) fn find(&self, id: &JobId) -> Option<(u64, Record)> {
        let seq = self.seqs.get(id)?;
        Some((*seq, self.records.get(seq)?.clone()))
    }

    pub(super) fn record_mut(&mut self, id: &JobId) -> Option<&mut Record> {
        self.records.get_mut(self.seqs.get(id)?)
    }

    /// Adds a notice, which replaces an earlier one of its job. An outcome of the earlier one is ignored.
    pub(super) fn add_notice(&mut self, notice: Notice, due_at: Timestamp) {
        let of_job = |stored: &StoredNotice| stored.claimed.notice.job == notice.job;
        let earlier = self.notices.iter().position(of_job).map(|at| self.notices.remove(at));
        let tries = earlier.map_or(0, |earlier| earlier.claimed.tries + 1);
        self.notices.push(StoredNotice { claimed: ClaimedNotice { notice, tries }, due_at });
    }

    /// All jobs, in order of arrival.
    pub(super) fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.records.values().map(|record| &record.job)
    }

    /// The keys that name jobs, by the number of the job.
    pub(super) fn keys_by_job(&self) -> HashMap<u64, KeyRecord> {
        self.keys.values().map(|key| (key.seq, key.record)).collect()
    }

    /// Returns the job that the call's key names, or else the newest job of the same call.
    pub(super) fn earlier_call(&self, new: &NewJob, key: &Key) -> Option<EarlierCall<u64>> {
        let named = || {
            let held = self.keys.get(&(new.owner.clone(), key.text.clone()))?;
            let job = self.records.get(&held.seq)?.job.clone();
            Some(EarlierCall { seq: held.seq, job, key: held.record })
        };
        let Some(call) = key.deciding_identity() else { return named() };
        let same = self.identities.iter().filter_map(|(seq, identity)| {
            let job = &self.records.get(seq)?.job;
            let state = job.state.kind();
            let is_same = job.new.owner == new.owner && identity.matches(call, new, state);
            is_same.then(|| ((!state.is_terminal(), *seq), job, identity.key(call)))
        });
        let identified = same
            .max_by_key(|(rank, ..)| *rank)
            .map(|((_, seq), job, key)| EarlierCall { seq, job: job.clone(), key });
        let previous = key.looks_up_previous_form().then(named).flatten();
        let previous = previous.filter(|call| !self.identities.contains_key(&call.seq));
        rules::newest_call(identified, previous, new)
    }

    /// Turns a held job into a promised one if a call that attaches to it returns its id. Returns the changed job.
    pub(super) fn promise(&mut self, seq: u64, new: &NewJob, now: Timestamp) -> Option<Job> {
        let mut record = self.records.get(&seq)?.clone();
        rules::promise(&mut record, new, now).then(|| self.save(seq, record))
    }

    /// Reads what decides about a new job.
    pub(super) fn usage(&self, new: &NewJob, today: Day) -> OwnerUsage {
        let turns = || self.jobs().filter(|job| same_conversation(job, new));
        let unfinished = |job: &&Job| !job.state.kind().is_terminal();
        let own = || self.records.values().filter(|record| record.job.new.owner == new.owner);
        let has_subject = |subject: &JobId| own().any(|record| record.job.id == *subject);
        OwnerUsage {
            lacks_subject: new.subject.is_some_and(|subject| !has_subject(&subject)),
            busy: turns().find(unfinished).map(|job| job.id),
            last_turn: turns().map(|job| job.turn).max().unwrap_or(0),
            unfinished: own().map(|record| &record.job).filter(unfinished).count() as u64,
            bytes: own().map(|record| record.bytes).sum(),
            spent_today: self.sum_of_day(&new.owner, today),
            run_left: None,
        }
    }

    /// Adds a job, which a worker may own from the start.
    pub(super) fn add(
        &mut self,
        AdmittedRows { mut record, charge, key, identity }: AdmittedRows,
        taken: Option<TakenRun>,
        initial_worker: Option<&InitialWorker>,
        now: Timestamp,
    ) -> Job {
        let seq = self.records.last_key_value().map_or(1, |(seq, _)| seq + 1);
        let job = &record.job;
        match charge {
            FirstCharge::None => {}
            FirstCharge::Reserve(row) => self.ledger.push(row),
            FirstCharge::Move(run) => self.move_row(&run, job),
            FirstCharge::Replace(row) => {
                if let Some(before) = taken.as_ref().and_then(|taken| taken.left.row.as_ref()) {
                    let key = (before.job, before.run);
                    self.ledger.retain(|row| (row.job, row.run) != key);
                }
                self.ledger.push(row);
            }
        }
        if let Some(taken) = taken {
            self.move_journal(taken, seq);
        }
        let job = &record.job;
        self.seqs.insert(job.id, seq);
        let owner = &job.new.owner;
        let arrived = self.owners.len() as u64;
        self.owners.entry(owner.clone()).or_insert(OwnerTurns { served: 0, arrived });
        if let Some((text, record)) = key {
            self.keys.insert((owner.clone(), text), StoredKey { seq, record });
        }
        self.identities.extend(identity.map(|identity| (seq, identity)));
        if let Some(initial_worker) = initial_worker {
            rules::claim_on_insert(&mut record, initial_worker, now);
        }
        self.save(seq, record)
    }

    /// The amount that the owner's runs of this day count for.
    fn sum_of_day(&self, owner: &OwnerId, day: Day) -> NanoUsd {
        let of_day = |row: &&LedgerRow| row.owner == *owner && row.at.day() == day;
        self.ledger.iter().filter(of_day).map(LedgerRow::counts).sum()
    }

    /// The amount that the job's runs count for.
    fn sum_of_job(&self, job: JobId) -> NanoUsd {
        self.ledger.iter().filter(|row| row.job == job).map(LedgerRow::counts).sum()
    }

    /// Limits the cost of another run of the job, if the step before queued one.
    pub(super) fn bind_another_run(
        &self,
        before: &Checkpoint,
        record: &mut Record,
        now: Timestamp,
    ) {
        if rules::begins_another_run(before, &record.job) {
            let day = self.sum_of_day(&record.job.new.owner, now.day());
            let job = self.sum_of_job(record.job.id);
            rules::reserve_another_run(record, CountedSpend { day, job }, now);
        }
    }

    /// Removes expired rows of the ledger.
    pub(super) fn shorten_ledger(&mut self, scope: &Scope, today: Day) {
        let old = rules::ledger_old_until(today);
        let is_old = |row: &LedgerRow| scope.sees(&row.owner) && row.at.day() <= old;
        if !self.ledger.iter().any(is_old) {
            return;
        }
        self.ledger_sweeps.retain(|day| *day != today && *day >= rules::sweeps_needed_from(today));
        self.ledger_sweeps.push(today);
        if let Some(until) = rules::ledger_removable_until(&self.ledger_sweeps, today) {
            self.ledger.retain(|row| !scope.sees(&row.owner) || row.at.day() > until);
        }
    }

    /// Moves the row of a run to the job that resumes the run.
    fn move_row(&mut self, run: &RemoteRun, job: &Job) {
        let is_left = |row: &&mut LedgerRow| {
            matches!(row.state, ChargeState::Maybe | ChargeState::Spent)
                && row.owner == job.new.owner
                && row.remote.as_ref() == Some(&run.id)
        };
        let newest = |row: &&mut LedgerRow| (row.state == ChargeState::Maybe, row.at);
        if let Some(row) = self.ledger.iter_mut().filter(is_left).max_by_key(newest) {
            (row.job, row.run) = (job.id, 1);
            if row.state == ChargeState::Maybe {
                row.state = ChargeState::Reserved;
            }
        }
    }

    /// Updates the charge for the job's latest run after a step of the job.
    fn charge(&mut self, before: &Checkpoint, job: &Job) {
        let steps =
            rules::is_charged_by_steps(before, job).then(|| StepCosts::sum(&self.steps_of(job.id)));
        let Some(charge) = rules::charge(before, job, steps) else { return };
        let of_job = |row: &&mut LedgerRow| row.job == job.id;
        let Some(row) = self.ledger.iter_mut().filter(of_job).max_by_key(|row| row.run) else {
            return;
        };
        let (ended, next) = charge.apply(row, job.allowance.as_ref(), job.updated_at);
        *row = ended;
        self.ledger.extend(next);
    }

    /// The owner's position in the queue.
    pub(super) fn turn(&self, owner: &OwnerId) -> Turn {
        let running = |job: &&Job| {
            job.new.owner == *owner
                && job.new.visibility.goes_through_queue()
                && job.state.kind() == StateKind::Running
        };
        let running = self.jobs().filter(running).count() as u64;
        let turns = self.owners.get(owner);
        let (served, arrived) = turns.map_or((0, 0), |turns| (turns.served, turns.arrived));
        Turn { running, served, arrived }
    }

    /// Records that a job of the owner was claimed from the queue.
    pub(super) fn serve(&mut self, owner: &OwnerId) {
        let next = self.owners.values().map(|turns| turns.served).max().unwrap_or(0) + 1;
        if let Some(turns) = self.owners.get_mut(owner) {
            turns.served = next;
        }
    }

    /// Stores the record under a new rev and wakes the callers that wait for changes.
    pub(super) fn save(&mut self, seq: u64, mut record: Record) -> Job {
        record.job.rev = Rev(self.rev.borrow().0 + 1);
        let job = record.job.clone();
        if let Some(before) = self.records.insert(seq, record) {
            self.charge(&before.job.checkpoint, &job);
        }
        self.rev.send_replace(job.rev);
        job
    }

    /// Removes the jobs that `prune` covers in this scope, and returns their number.
    pub(super) fn remove(&mut self, scope: &Scope, prune: &Prune, now: Timestamp) -> u32 {
        let keys = self.keys_by_job();
        let goes = |(seq, Record { job, .. }): &(&u64, &Record)| {
            scope.sees(&job.new.owner) && rules::is_prunable(job, keys.get(seq), prune, now)
        };
        let mut gone: BTreeMap<u64, JobId> =
            self.records.iter().filter(goes).map(|(seq, record)| (*seq, record.job.id)).collect();
        let subjects: HashSet<JobId> = gone.values().copied().collect();
        let is_about =
            |job: &Job| job.new.subject.is_some_and(|subject| subjects.contains(&subject));
        let about = self.records.iter().filter(|(_, record)| is_about(&record.job));
        gone.extend(about.map(|(seq, record)| (*seq, record.job.id)));
        for seq in gone.keys() {
            self.records.remove(seq);
        }
        let Self { records, seqs, keys, identities, .. } = self;
        seqs.retain(|_, seq| records.contains_key(seq));
        keys.retain(|_, key| records.contains_key(&key.seq));
        identities.retain(|seq, _| records.contains_key(seq));
        self.forget_runs();
        count(gone.len())
    }

    /// Refuses a conversation that does not exist or has an unfinished turn.
    pub(super) fn refuse_unfinished(
        &self,
        scope: &Scope,
        conversation: &ConversationId,
    ) -> Result<(), StoreError> {
        let mut turns = self
            .jobs()
            .filter(|job| {
                scope.sees(&job.new.owner) && job.new.conversation.as_ref() == Some(conversation)
            })
            .peekable();
        turns.peek().ok_or(StoreError::NotFound)?;
        match turns.find(|job| !job.state.kind().is_terminal()) {
            Some(busy) => Err(StoreError::ConversationBusy(busy.id)),
            None => Ok(()),
        }
    }

    /// The owner's conversations, each with the number of its last shown turn.
    pub(super) fn conversations(
        &self,
        owner: &OwnerId,
        now: Timestamp,
    ) -> Vec<(u64, ConversationSummary)> {
        let mut turns: HashMap<&ConversationId, Vec<(u64, &Job)>> = HashMap::new();
        for (seq, Record { job, .. }) in &self.records {
            if let Some(id) = &job.new.conversation
                && job.new.owner == *owner
                && job.is_shown()
                && !rules::is_expired(job, now)
            {
                turns.entry(id).or_default().push((*seq, job));
            }
        }
        let summary = |(id, turns): (&ConversationId, Vec<(u64, &Job)>)| {
            let (&(_, first), &(seq, last)) = (turns.first()?, turns.last()?);
            let succeeded = |job: &Job| job.state.kind() == StateKind::Succeeded;
            let summary = ConversationSummary {
                id: id.clone(),
                title: first.new.title.clone(),
                state: last.kind(),
                turns: count(turns.len()),
                reports: count(turns.iter().filter(|(_, job)| succeeded(job)).count()),
                created_at: first.created_at,
                updated_at: last.updated_at,
            };
            Some((seq, summary))
        };
        turns.into_iter().filter_map(summary).collect()
    }
}

/// Sums these rows, in the order of their keys.
pub(super) fn sums<'a>(rows: impl Iterator<Item = &'a LedgerRow>, by: SpendBy) -> Vec<SpendSum> {
    let mut sums: BTreeMap<String, SpendSum> = BTreeMap::new();
    for row in rows.filter(|row| row.state != ChargeState::Released) {
        let key = match by {
            SpendBy::Day => row.at.day().to_string(),
            SpendBy::Provider => row.provider.clone(),
            SpendBy::Model => row.model.clone().unwrap_or(SpendSum::UNKNOWN_MODEL.to_owned()),
            SpendBy::Owner => row.owner.to_string(),
        };
        let sum =
            sums.entry(key.clone()).or_insert_with(|| SpendSum { key, ..SpendSum::default() });
        let part = match row.state {
            ChargeState::Spent => &mut sum.spent,
            ChargeState::Reserved => &mut sum.reserved,
            ChargeState::Maybe | ChargeState::Released => &mut sum.maybe,
        };
        *part = [*part, row.counts()].into_iter().sum();
        sum.runs += 1;
    }
    sums.into_values().collect()
}

/// Returns true if the job is an earlier turn of the conversation of `new`.
fn same_conversation(job: &Job, new: &NewJob) -> bool {
    new.conversation.is_some()
        && job.new.conversation == new.conversation
        && job.new.owner == new.owner
}

/// Returns true if the job waits for a worker with one of these profiles.
pub(super) fn waits(job: &Job, profiles: &[Profile]) -> bool {
    job.state.kind() == StateKind::Queued && profiles.contains(&job.new.profile)
}

pub(super) fn visible(job: &Job, scope: &Scope, now: Timestamp) -> bool {
    scope.sees(&job.new.owner) && !rules::is_expired(job, now)
}

pub(super) fn matches(job: &Job, query: &JobQuery) -> bool {
    let state = query.states.is_empty() || query.states.contains(&job.kind());
    let title = query
        .search
        .as_ref()
        .is_none_or(|text| job.new.title.to_lowercase().contains(&text.to_lowercase()));
    let words = query.words.as_ref().is_none_or(|text| contains_text(job, text));
    let provider =
        query.provider.as_ref().is_none_or(|provider| job.new.profile.provider() == provider);
    let id = query.id_prefix.as_ref().is_none_or(|prefix| job.id.to_string().starts_with(prefix));
    let last = job.failures.last().map(|failure| failure.code);
    let code = query.code.is_none_or(|code| last == Some(code));
    state && title && words && provider && code && id
}

fn contains_text(job: &Job, text: &str) -> bool {
    search::finds(&search::words(text), &search::words_of_job(job))
}

pub(super) fn summary(job: &Job, ledger: &[LedgerRow]) -> Summary {
    let runs = || ledger.iter().filter(|row| row.job == job.id);
    let charged = || runs().filter(|row| row.state != ChargeState::Released);
    Summary {
        id: job.id,
        owner: job.new.owner.clone(),
        conversation: job.new.conversation.clone(),
        workflow: job.new.workflow.clone(),
        provider: job.new.profile.provider().to_owned(),
        model: runs().max_by_key(|row| row.run).and_then(|row| row.model.clone()),
        charge: charged().next().map(|_| SummaryCharge {
            amount: charged().map(LedgerRow::counts).sum(),
            is_final: charged().all(|row| row.state == ChargeState::Spent),
        }),
        title: job.new.title.clone(),
        visibility: job.new.visibility,
        state: job.kind(),
        was_claimed: job.was_claimed(),
        session: job.new.request.note(RequestNote::SessionId).map(str::to_owned),
        failures: count(job.failures.len()),
        code: job.failures.last().map(|failure| failure.code),
        progress: job.progress.clone(),
        created_at: job.created_at,
        updated_at: job.updated_at,
        ended_at: job.ended_at(),
    }
}
