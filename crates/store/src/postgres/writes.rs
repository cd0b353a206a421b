//! Collects writes to single jobs: lock, load, ask the rules, save.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::FutureExt as _;
use outlast_core::{EndNotices, Job, JobId, LedgerRow, Record, Settlement, StoreError, Timestamp};

use super::batch::{self, Call};
use super::fault::Fault;
use super::rows::{self, StoredRow};
use super::step::Durability;
use super::tx::Tx;
use super::{StoreShared, journal, ledger, notices, room};
use crate::ledger_columns::LedgerColumns as _;

/// The effect of a rule on a record.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    Changed,
    LeftAlone,
}

/// The parts of a job that its rule needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Reads {
    /// Everything except the request and the result; a job that has succeeded is not found.
    Light,
    /// The same, and the row of its latest run in the ledger.
    LightAndCharge,
    /// Everything.
    Whole,
}

type Rule = dyn Fn(&mut Record, Timestamp) -> Result<Effect, StoreError> + Send + Sync;

/// A write to one job.
#[derive(Clone)]
pub(super) struct Write {
    pub(super) id: JobId,
    pub(super) reads: Reads,
    pub(super) rule: Arc<Rule>,
    /// The results of the attempt that this write ends.
    pub(super) settlement: Option<Arc<Settlement>>,
}

/// A write of the worker that holds the job.
pub(super) fn light(
    id: &JobId,
    rule: impl Fn(&mut Record, Timestamp) -> Result<(), StoreError> + Send + Sync + 'static,
) -> Write {
    let rule = move |record: &mut Record, now| rule(record, now).map(|()| Effect::Changed);
    Write { id: *id, reads: Reads::Light, rule: Arc::new(rule), settlement: None }
}

/// A write to a cancelled job.
pub(super) fn amendment(
    id: &JobId,
    rule: impl Fn(&mut Record, Timestamp) -> Result<(), StoreError> + Send + Sync + 'static,
) -> Write {
    Write { reads: Reads::LightAndCharge, ..light(id, rule) }
}

/// Reports a lost lease for a job that does not exist.
pub(super) fn explain_lost_commit(error: StoreError) -> StoreError {
    match error {
        StoreError::NotFound => StoreError::LeaseLost,
        other => other,
    }
}

/// Writes and the channels for their answers.
type WriteCalls = Vec<Call<Write, (Job, Effect)>>;

type WriteResults = Vec<Result<(Job, Effect), StoreError>>;

impl StoreShared {
    /// Runs the collected writes in one transaction.
    pub(super) async fn write_together(self: Arc<Self>, durability: Durability, calls: WriteCalls) {
        batch::carry_out(calls, |writes| self.write_all(durability, writes)).await;
    }

    async fn write_all(
        &self,
        durability: Durability,
        writes: Arc<[Write]>,
    ) -> Result<WriteResults, Fault> {
        let settles = writes.iter().any(|write| write.settlement.is_some());
        let together = (writes, self.notices);
        let step = self.try_step(durability, &together, |(writes, notices), tx| {
            apply(tx, writes, *notices).boxed()
        });
        let (mut written, rev) = step.await?;
        if settles {
            self.owed_words.notify_one();
        }
        for (job, effect) in written.iter_mut().flatten() {
            if *effect == Effect::Changed {
                job.rev = rev;
            }
        }
        Ok(written)
    }
}

/// A job as it was loaded, and its new state.
struct LoadedJob {
    stored: StoredRow,
    effect: Effect,
    /// The row of its latest run in the ledger, if the writes need it.
    charge: Option<LedgerRow>,
    /// The number of bytes that it took.
    bytes: u64,
    had_ended: bool,
    /// The number of questions that it had asked.
    asked: u32,
}

/// Locks the jobs in the order of arrival, as every step does.
pub(super) const LOCK: &str = sql!(postgres::writes::lock);

async fn apply(tx: &mut Tx, writes: &[Write], notices: EndNotices) -> Result<WriteResults, Fault> {
    let ids: Vec<String> = writes.iter().map(|write| write.id.to_string()).collect();
    let reads = |reads| writes.iter().any(|write| write.reads == reads);
    let select = if reads(Reads::Whole) {
        format!("{} where jobs.id = any($1::text[])", rows::WHOLE)
    } else {
        format!("{} where jobs.id = any($1::text[]) and state <> 'succeeded'", rows::LIGHT)
    };
    let (loaded, runs) = if reads(Reads::Whole) || reads(Reads::LightAndCharge) {
        let runs = ledger::OF_JOBS;
        let [_, loaded, runs] =
            tx.load([(LOCK, &[&ids]), (&select, &[&ids]), (runs, &[&ids])]).await?;
        (loaded, runs)
    } else {
        let [_, loaded] = tx.load([(LOCK, &[&ids]), (&select, &[&ids])]).await?;
        (loaded, Vec::new())
    };
    let mut found: BTreeMap<JobId, LoadedJob> = BTreeMap::new();
    for row in &loaded {
        let stored = rows::read_stored(row)?;
        let bytes = stored.record.bytes;
        let had_ended = stored.record.job.ended_at().is_some();
        let id = stored.record.job.id;
        let (effect, asked) = (Effect::LeftAlone, stored.record.job.questions.asked);
        found.insert(id, LoadedJob { stored, effect, charge: None, bytes, had_ended, asked });
    }
    for row in &runs {
        let row = row.ledger_row()?;
        if let Some(LoadedJob { charge, .. }) = found.get_mut(&row.job) {
            *charge = Some(row);
        }
    }
    let mut written = Vec::with_capacity(writes.len());
    for write in writes {
        let Some(LoadedJob { stored, effect, charge, .. }) = found.get_mut(&write.id) else {
            written.push(Err(StoreError::NotFound));
            continue;
        };
        let mut record = stored.record.clone();
        match (write.rule)(&mut record, tx.now()) {
            Ok(Effect::Changed) => {
                let before = &stored.record.job.checkpoint;
                ledger::bind_another_run(tx, before, &mut record).await?;
                let (job, now) = (&record.job, tx.now());
                let steps = journal::costs(tx, before, job).await?;
                for (sql, params) in ledger::charge_params(before, job, steps, charge, now)? {
                    tx.write(sql, params).await?;
                }
                if record.job.allowance != stored.record.job.allowance {
                    rows::save_allowance(tx, stored.seq, &record.job).await?;
                }
                stored.record = record;
                *effect = Effect::Changed;
                bodies(tx, stored.seq, write.settlement.as_deref()).await?;
                written.push(Ok((stored.record.job.clone(), Effect::Changed)));
            }
            Ok(Effect::LeftAlone) => {
                written.push(Ok((stored.record.job.clone(), Effect::LeftAlone)));
            }
            Err(error) => written.push(Err(error)),
        }
    }
    let now = tx.now();
    for LoadedJob { stored, effect, bytes, had_ended, asked, .. } in found.values() {
        if *effect == Effect::Changed {
            rows::save(tx, stored.seq, &stored.record, stored.key.as_ref()).await?;
            room::move_bytes(tx, &stored.record.job.new.owner, *bytes, stored.record.bytes).await?;
            let job = &stored.record.job;
            let notice = match job.questions.asked > *asked {
                true => notices::question_params(job, now),
                false => notices::insert_params(job, now),
            };
            if notices.max(stored.record.notice) == EndNotices::Kept
                && !had_ended
                && let Some(notice) = notice
            {
                tx.write(notices::ADD, notice).await?;
            }
        }
    }
    Ok(written)
}

async fn bodies(tx: &mut Tx, seq: i64, settlement: Option<&Settlement>) -> Result<(), Fault> {
    match settlement {
        Some(Settlement::Succeed { output, raw }) => {
            rows::write_bodies(tx, seq, Some(output), raw.as_deref().map(Vec::as_slice)).await
        }
        Some(Settlement::Fail { failure: _, raw }) => {
            rows::write_bodies(tx, seq, None, raw.as_deref().map(Vec::as_slice)).await
        }
        Some(Settlement::Retry { .. } | Settlement::Release | Settlement::Wait) | None => Ok(()),
    }
}
