//! The journals of runs in memory, and the jobs about other jobs.

use outlast_core::rules::{JournalUsage, RunLeft, StoredStep};
use outlast_core::{
    Job, JobId, JournalStep, Lease, NewJob, NewStep, OwnerId, Page, Record, ResolveOutcome, Scope,
    StateKind, StepDecision, StepEnd, StepOutput, StepStart, StoreError, Takeover, Timestamp,
    rules,
};

use super::tables::{Tables, visible};

/// The run of an ended job that a new job takes over.
pub(super) struct TakenRun {
    /// The number of the ended job.
    seq: u64,
    /// That job without the run.
    record: Record,
    pub(super) left: RunLeft,
    takeover: Takeover,
}

impl Tables {
    pub(super) fn begin_step(
        &mut self,
        lease: &Lease,
        new: &NewStep,
        now: Timestamp,
    ) -> Result<StepStart, StoreError> {
        let (seq, mut record) = self.held(lease)?;
        let of_run = (seq, String::new())..(seq + 1, String::new());
        let usage = JournalUsage {
            steps: self.steps.range(of_run).count() as u64,
            owner_bytes: self.bytes_of(&record.job.new.owner),
        };
        let found = self.steps.get(&(seq, new.key.clone())).cloned();
        let (start, saved) = rules::begin_step(&mut record, lease, found, new, usage, now)?;
        if let Some(step) = saved {
            self.steps.insert((seq, new.key.clone()), StoredStep { step, output: None });
            self.records.insert(seq, record);
        }
        Ok(start)
    }

    pub(super) fn end_step(
        &mut self,
        lease: &Lease,
        key: &str,
        end: &StepEnd,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let (seq, mut record) = self.held(lease)?;
        let name = (seq, key.to_owned());
        let found = self.steps.get(&name).map(|stored| stored.step.clone());
        if let Some(ended) = rules::end_step(&mut record, lease, found, end, now)? {
            self.steps.insert(name, ended);
            self.records.insert(seq, record);
        }
        Ok(())
    }

    pub(super) fn resolve_step(
        &mut self,
        scope: &Scope,
        job: &JobId,
        key: &str,
        decision: StepDecision,
        now: Timestamp,
    ) -> Result<ResolveOutcome, StoreError> {
        let found = self.find(job).filter(|(_, record)| scope.sees(&record.job.new.owner));
        let (seq, record) = found.ok_or(StoreError::NotFound)?;
        let name = (seq, key.to_owned());
        let found = self.steps.get(&name).map(|stored| stored.step.clone());
        let (outcome, resolved) = rules::resolve_step(&record.job, found, decision, now);
        if let Some(resolved) = resolved {
            self.steps.insert(name, resolved);
        }
        Ok(outcome)
    }

    pub(super) fn save_page(
        &mut self,
        lease: &Lease,
        page: &Page,
        max_bytes: u64,
    ) -> Result<(), StoreError> {
        let (seq, mut record) = self.held(lease)?;
        let owner = record.job.new.owner.clone();
        let room = (self.bytes_of(&owner), max_bytes);
        let name = (owner, page.digest);
        let is_known = self.readers.get(&name).is_some_and(|readers| readers.contains(&seq));
        if let Some(page) = rules::save_page(&mut record, lease, page, is_known, room)? {
            self.readers.entry(name.clone()).or_default().insert(seq);
            self.pages.entry(name).or_insert(page);
            self.records.insert(seq, record);
        }
        Ok(())
    }

    pub(super) fn steps(&self, scope: &Scope, job: &JobId) -> Vec<JournalStep> {
        self.stored_steps(scope, job).into_iter().map(|stored| stored.step.clone()).collect()
    }

    pub(super) fn step_outputs(
        &self,
        scope: &Scope,
        job: &JobId,
        kinds: &[&str],
    ) -> Vec<StepOutput> {
        let steps = self.stored_steps(scope, job).into_iter();
        let output = |StoredStep { step, output }: &StoredStep| {
            let output = output.clone().filter(|_| kinds.contains(&&*step.kind))?;
            Some(StepOutput { key: step.key.clone(), kind: step.kind.clone(), output })
        };
        steps.filter_map(output).collect()
    }

    fn stored_steps(&self, scope: &Scope, job: &JobId) -> Vec<&StoredStep> {
        let found = self.find(job).filter(|(_, record)| scope.sees(&record.job.new.owner));
        let Some((seq, _)) = found else { return Vec::new() };
        let of_run = (seq, String::new())..(seq + 1, String::new());
        let mut steps: Vec<&StoredStep> =
            self.steps.range(of_run).map(|(_, stored)| stored).collect();
        steps.sort_by_key(|stored| stored.step.started_at);
        steps
    }

    /// Returns the steps of a job, in the order of their keys.
    pub(super) fn steps_of(&self, job: JobId) -> Vec<JournalStep> {
        let Some((seq, _)) = self.find(&job) else { return Vec::new() };
        let of_run = (seq, String::new())..(seq + 1, String::new());
        self.steps.range(of_run).map(|(_, stored)| stored.step.clone()).collect()
    }

    /// Returns the run that a new job may take over. Changes nothing.
    pub(super) fn run_left(&self, takeover: &Takeover, new: &NewJob) -> Option<TakenRun> {
        let (seq, mut record) = self.find(&takeover.job)?;
        let bytes = self.journal_bytes(seq);
        let checkpoint = rules::release_run(&mut record, new, bytes)?;
        let rows = self.ledger.iter().filter(|row| row.job == takeover.job);
        let row = rows.max_by_key(|row| row.run).cloned();
        Some(TakenRun {
            seq,
            record,
            left: RunLeft { checkpoint, bytes, row },
            takeover: *takeover,
        })
    }

    fn journal_bytes(&self, seq: u64) -> u64 {
        let of_run = (seq, String::new())..(seq + 1, String::new());
        let steps: u64 =
            self.steps.range(of_run).map(|(_, stored)| rules::step_bytes(stored)).sum();
        let is_read = |(name, _): &(&(OwnerId, [u8; 32]), &Page)| {
            self.readers.get(*name).is_some_and(|readers| readers.contains(&seq))
        };
        let pages: u64 =
            self.pages.iter().filter(is_read).map(|(_, page)| rules::page_bytes(page)).sum();
        steps + pages
    }

    /// Removes the journals of old runs, and returns their number.
    pub(super) fn forget_runs_of(&mut self, provider: &str, ended_before: Timestamp) -> u32 {
        let is_old = |record: &Record| rules::is_forgotten(&record.job, provider, ended_before);
        let old = self.records.iter().filter(|(_, record)| is_old(record)).map(|(seq, _)| *seq);
        let old: Vec<(u64, u64)> = old.map(|seq| (seq, self.journal_bytes(seq))).collect();
        let mut forgotten = 0;
        for (seq, bytes) in old.into_iter().filter(|(_, bytes)| *bytes > 0) {
            forgotten += 1;
            if let Some(record) = self.records.get_mut(&seq) {
                record.bytes = record.bytes.saturating_sub(bytes);
            }
            self.steps.retain(|(of, _), _| *of != seq);
            for readers in self.readers.values_mut() {
                readers.remove(&seq);
            }
        }
        self.forget_runs();
        forgotten
    }

    /// Moves the steps and pages of a run to a new job, and saves the job that had it.
    pub(super) fn move_journal(&mut self, taken: TakenRun, to: u64) {
        let from = taken.seq;
        let of_run = (from, String::new())..(from + 1, String::new());
        let keys: Vec<_> = self.steps.range(of_run).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(mut stored) = self.steps.remove(&key) else { continue };
            rules::take_over_step(&mut stored.step, taken.takeover.open_steps);
            self.steps.insert((to, key.1), stored);
        }
        for readers in self.readers.values_mut() {
            if readers.remove(&from) {
                readers.insert(to);
            }
        }
        self.save(from, taken.record);
    }

    pub(super) fn newest_about(
        &self,
        scope: &Scope,
        subject: &JobId,
        states: &[StateKind],
        now: Timestamp,
    ) -> Option<Job> {
        let is_wanted = |job: &&Job| {
            job.new.subject.as_ref() == Some(subject)
                && visible(job, scope, now)
                && (states.is_empty() || states.contains(&job.state.kind()))
        };
        self.jobs().filter(is_wanted).last().cloned()
    }

    /// Removes the steps of removed jobs, and the pages that no job is left for.
    pub(super) fn forget_runs(&mut self) {
        let Self { records, steps, pages, readers, .. } = self;
        steps.retain(|(seq, _), _| records.contains_key(seq));
        readers.retain(|_, jobs| {
            jobs.retain(|seq| records.contains_key(seq));
            !jobs.is_empty()
        });
        pages.retain(|name, _| readers.contains_key(name));
    }

    fn held(&self, lease: &Lease) -> Result<(u64, Record), StoreError> {
        self.find(&lease.job).ok_or(StoreError::LeaseLost)
    }

    fn bytes_of(&self, owner: &OwnerId) -> u64 {
        let own = self.records.values().filter(|record| record.job.new.owner == *owner);
        own.map(|record| record.bytes).sum()
    }
}
