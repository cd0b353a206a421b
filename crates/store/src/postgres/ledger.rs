//! The ledger: what each paid run cost. The only file that knows its columns.

use std::sync::Arc;

use outlast_core::rules::RunCharge;
use outlast_core::{
    Checkpoint, Day, Job, LedgerRow, NanoUsd, RemoteRun, Scope, StoreError, Timestamp, rules,
};

use super::Shared;
use super::fault::Fault;
use super::step::Durability;
use super::text::{escaped, escaped_owner};
use super::tx::{Param, Tx};
use crate::columns::{Columns as _, signed};
use crate::ledger_columns::COUNTED;

/// Adds a row.
pub(super) const ADD: &str =
    "insert into ledger (job, run, owner, provider, model, at, day, reserved, amount, kind, state, remote)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// The next rows after this one.
pub(super) const AFTER: &str =
    "select * from ledger where (job, run) > ($1::text, $2::bigint) order by job, run limit $3";

/// Ends the latest run of a job: `RunCharge::applied`.
const END: &str =
    "update ledger set state = $2, amount = $3, kind = $4, model = coalesce($5, model), remote = $6
     where job = $1 and run = (select max(run) from ledger where job = $1)";

/// Adds the run that follows the latest one of a job.
const FOLLOW: &str =
    "insert into ledger (job, run, owner, provider, model, at, day, reserved, kind, state)
     select job, run + 1, owner, provider, model, $2, $3, reserved, 'unknown', 'reserved'
     from ledger where job = $1 order by run desc limit 1";

/// What [`ADD`] is given.
pub(super) fn added(row: &LedgerRow) -> Vec<Param> {
    vec![
        Box::new(row.job.to_string()),
        Box::new(i64::from(row.run)),
        Box::new(escaped(row.owner.as_str())),
        Box::new(escaped(&row.provider)),
        Box::new(row.model.as_deref().map(escaped)),
        Box::new(row.at.as_millis()),
        Box::new(row.at.day().0),
        Box::new(nanos(row.reserved)),
        Box::new(nanos(row.cost.amount())),
        Box::new(row.cost.kind()),
        Box::new(row.state.as_str()),
        Box::new(row.remote.as_deref().map(escaped)),
    ]
}

/// What the owner's runs of this day count for. The caller has locked the owner's row.
pub(super) async fn counted(tx: &mut Tx, owner: &str, day: Day) -> Result<NanoUsd, Fault> {
    let select = format!(
        "select coalesce(sum({COUNTED}), 0)::bigint as counted from ledger where owner = $1 and day = $2"
    );
    let [rows] = tx.load([(&select, &[&owner, &day.0])]).await?;
    rows.first().map_or(Ok(NanoUsd(0)), |row| Ok(NanoUsd(row.count("counted")?)))
}

/// Gives the row of a run to the job that takes it up.
pub(super) async fn move_row(tx: &mut Tx, run: &RemoteRun, job: &Job) -> Result<(), Fault> {
    const MOVE: &str =
        "update ledger set job = $1, run = 1, state = 'reserved' where (job, run) in (
           select job, run from ledger where remote = $2 and owner = $3 and state = 'maybe'
           order by at desc limit 1)";
    let params: Vec<Param> = vec![
        Box::new(job.id.to_string()),
        Box::new(escaped(&run.id)),
        Box::new(escaped(job.new.owner.as_str())),
    ];
    tx.write(MOVE, params).await
}

/// What a step of the job writes: what became of its latest run, and the run that follows it.
pub(super) fn charged(
    before: &Checkpoint,
    job: &Job,
    now: Timestamp,
) -> Vec<(&'static str, Vec<Param>)> {
    let Some(charge) = rules::charge(before, job) else { return Vec::new() };
    let RunCharge { state, cost, model, remote, another_follows } = charge;
    let id = job.id.to_string();
    let ended: Vec<Param> = vec![
        Box::new(id.clone()),
        Box::new(state.as_str()),
        Box::new(nanos(cost.amount())),
        Box::new(cost.kind()),
        Box::new(model.as_deref().map(escaped)),
        Box::new(remote.as_deref().map(escaped)),
    ];
    let mut writes = vec![(END, ended)];
    if another_follows {
        let next: Vec<Param> = vec![Box::new(id), Box::new(now.as_millis()), Box::new(now.day().0)];
        writes.push((FOLLOW, next));
    }
    writes
}

impl Shared {
    /// Removes rows that are kept no longer.
    pub(super) async fn shorten_ledger(self: &Arc<Self>, scope: &Scope) -> Result<(), StoreError> {
        const OLD: &str =
            "select 1 from ledger where day < $1 and ($2::text is null or owner = $2) limit 1";
        const DELETE: &str =
            "delete from ledger where day < $1 and ($2::text is null or owner = $2)";
        let (begins, owner) = (rules::ledger_begins(self.now()), escaped_owner(scope));
        if self.read(OLD, &[&begins.0, &owner]).await?.is_empty() {
            return Ok(());
        }
        let step = self.step(Durability::Commit, (begins, owner), |(begins, owner), tx| {
            Box::pin(async move { tx.load([(DELETE, &[&begins.0, owner])]).await.map(drop) })
        });
        step.await.map(drop)
    }
}

fn nanos(amount: Option<NanoUsd>) -> Option<i64> {
    amount.map(|nanos| signed(nanos.0))
}
