//! Loads and saves jobs in PostgreSQL's tables.

use std::sync::Arc;

use outlast_core::rules::KeyRecord;
use outlast_core::{Job, Output, OwnerId, Record, RequestNote, StoreError, Timestamp, rules};
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use super::fault::Fault;
use super::text::{escaped, unescaped};
use super::tx::{Param, Tx};
use crate::columns::{
    Columns, StateColumns, allowance, checkpoint_column, damaged, join_text, json, key_life,
    millis, notice, parse, signed, split_text, word,
};

impl Columns for Row {
    type Fault = Fault;

    fn maybe_text(&self, column: &str) -> Result<Option<String>, Fault> {
        Ok(get::<Option<String>>(self, column)?.map(unescaped))
    }

    fn maybe_number(&self, column: &str) -> Result<Option<i64>, Fault> {
        get(self, column)
    }

    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Fault> {
        get(self, column)
    }
}

/// A record, the number of its row, and the key that names it.
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) record: Record,
    pub(super) key: Option<KeyRecord>,
}

/// Selects all columns that [`stored`] needs, including the request and the result. Append a condition.
pub(super) const WHOLE: &str =
    "select jobs.*, revs.rev, bodies.ask, bodies.output, bodies.text, partials.text as partial,
       keys.input_hash, keys.made_at, keys.holds, keys.span, keys.span_answered, keys.answered_at,
       job_terms.allowance, job_terms.notice
     from jobs join revs on revs.job = jobs.seq join bodies on bodies.job = jobs.seq
       left join keys on keys.job = jobs.seq
       left join job_terms on job_terms.job = jobs.seq
       left join partials on partials.job = jobs.seq and jobs.state = 'running'";

/// Selects the same columns without the request and the result. Only for jobs that have not succeeded; a succeeded job needs
/// its result.
pub(super) const LIGHT: &str =
    "select jobs.*, revs.rev, null::text as ask, null::text as output, null::bytea as text, null::text as partial,
       keys.input_hash, keys.made_at, keys.holds, keys.span, keys.span_answered, keys.answered_at,
       job_terms.allowance, job_terms.notice
     from jobs join revs on revs.job = jobs.seq left join keys on keys.job = jobs.seq
       left join job_terms on job_terms.job = jobs.seq";

/// Reads a row of [`WHOLE`] or [`LIGHT`].
pub(super) fn stored(row: &Row) -> Result<Stored, Fault> {
    let id: String = get(row, "id")?;
    // Parsed without another copy, because it may be long.
    let ask: Option<String> = get(row, "ask")?;
    let ask = ask.map_or(Ok(Value::Null), |ask| parse(&id, "ask", &ask))?;
    let output: Option<String> = get(row, "output")?;
    let mut output = output.map(|output| parse(&id, "output", &output)).transpose()?;
    if let Some(text) = row.maybe_bytes("text")? {
        let without = output.ok_or_else(|| damaged(&id, "output"))?;
        output = Some(join_text(without, text).ok_or_else(|| damaged(&id, "text"))?);
    }
    let mut record = row.record(ask, output)?;
    record.job.partial = row.maybe_text("partial")?.map(Arc::from);
    Ok(Stored { seq: row.number("seq")?, record, key: row.key()? })
}

/// Saves the fields of a job that may change, with the transaction's commit. Bodies are not touched.
pub(super) async fn save(
    tx: &mut Tx,
    seq: i64,
    record: &Record,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    tx.write_row(SAVE, saved(seq, record, key)?).await?;
    tx.changed(seq);
    Ok(())
}

/// Takes rows of [`saved`], each column as an array.
pub(super) const SAVE: &str = "with saved as (
       select * from unnest($1::bigint[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::text[], $7::bigint[],
         $8::text[], $9::bigint[], $10::text[], $11::text[], $12::bigint[], $13::bigint[], $14::text[], $15::bigint[],
         $16::bigint[], $17::bigint[], $18::bigint[])
       as saved (seq, state, run_at, since, ended_at, remote, fence, worker, lease_until, checkpoint, failures, failed,
         percent, message, updated_at, expires_at, removable_at, bytes)),
     ended as (delete from partials using saved where job = saved.seq and saved.state <> 'running')
     update jobs set state = saved.state, run_at = saved.run_at, since = saved.since, ended_at = saved.ended_at,
       remote = saved.remote, fence = saved.fence, worker = saved.worker, lease_until = saved.lease_until,
       checkpoint = saved.checkpoint, failures = saved.failures, failed = saved.failed, percent = saved.percent,
       message = saved.message, updated_at = saved.updated_at, expires_at = saved.expires_at,
       removable_at = saved.removable_at, bytes = saved.bytes
     from saved where jobs.seq = saved.seq";

pub(super) fn saved(
    seq: i64,
    record: &Record,
    key: Option<&KeyRecord>,
) -> Result<Vec<Param>, StoreError> {
    let Record { job, holder, bytes, notice: _ } = record;
    let StateColumns { run_at, since, remote } = StateColumns::of(&job.state)?;
    Ok(vec![
        Box::new(seq),
        Box::new(job.state.kind().as_str()),
        Box::new(run_at),
        Box::new(since),
        Box::new(job.ended_at().map(Timestamp::as_millis)),
        Box::new(remote),
        Box::new(signed(job.fence.0)),
        Box::new(holder.as_ref().map(|holder| escaped(holder.worker.as_str()))),
        Box::new(holder.as_ref().map(|holder| holder.until.as_millis())),
        Box::new(escaped(&checkpoint_column(job)?)),
        Box::new(escaped(&json(&job.failures)?)),
        Box::new(signed(job.failures.len() as u64)),
        Box::new(job.progress.as_ref().and_then(|progress| progress.percent).map(i64::from)),
        Box::new(job.progress.as_ref().map(|progress| escaped(&progress.message))),
        Box::new(job.updated_at.as_millis()),
        Box::new(rules::expires_at(job).map(Timestamp::as_millis)),
        Box::new(rules::removable_at(job, key).map(Timestamp::as_millis)),
        Box::new(signed(*bytes)),
    ])
}

/// Adds a queued job and its request with the transaction's commit.
pub(super) async fn add(tx: &mut Tx, seq: i64, record: &Record) -> Result<(), Fault> {
    tx.write(ADD, added(seq, record)?).await?;
    tx.changed(seq);
    Ok(())
}

/// Takes the parameters of [`added`].
pub(super) const ADD: &str = "with job as (
       insert into jobs (seq, id, owner, conversation, turn, profile, workflow, title, title_folded, session, priority,
         visibility, max_failures, attempt_timeout, life, keep, checkpoint, created_at, updated_at, run_at, bytes,
         state, fence, failures, failed)
       values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $18, $19,
         'queued', 0, '[]', 0)),
       owed as (insert into unindexed (job) values ($1)),
       terms as (insert into job_terms (job, allowance, notice)
         select $1::bigint, $21::text, $22::bigint where $21::text is not null or $22::bigint <> 0)
     insert into bodies (job, ask) values ($1, $20)";

pub(super) fn added(seq: i64, record: &Record) -> Result<Vec<Param>, StoreError> {
    let Record { job, holder: _, bytes, notice: wanted } = record;
    let new = &job.new;
    Ok(vec![
        Box::new(seq),
        Box::new(job.id.to_string()),
        Box::new(escaped(new.owner.as_str())),
        Box::new(new.conversation_id().map(escaped)),
        Box::new(i64::from(job.turn)),
        Box::new(escaped(new.profile.as_str())),
        Box::new(escaped(&new.workflow)),
        Box::new(escaped(&new.title)),
        Box::new(escaped(&new.title.to_lowercase())),
        Box::new(new.request.note(RequestNote::SessionId).map(escaped)),
        Box::new(i64::from(new.priority)),
        Box::new(word(&new.visibility)?),
        Box::new(i64::from(new.max_failures)),
        Box::new(millis(new.attempt_timeout)),
        Box::new(new.life.map(millis)),
        Box::new(new.keep.map(millis)),
        Box::new(escaped(&json(&job.checkpoint)?)),
        Box::new(job.created_at.as_millis()),
        Box::new(signed(*bytes)),
        Box::new(json(&new.request)?),
        Box::new(allowance(job)?),
        Box::new(notice(*wanted)),
    ])
}

/// Stores the limit for the cost of the job's next run, with the transaction's commit.
pub(super) async fn save_allowance(tx: &mut Tx, seq: i64, job: &Job) -> Result<(), Fault> {
    let update = "update job_terms set allowance = $2 where job = $1";
    tx.write(update, vec![Box::new(seq), Box::new(allowance(job)?)]).await
}

/// Writes the result and the provider's last response with the transaction's commit.
pub(super) async fn write_bodies(
    tx: &mut Tx,
    seq: i64,
    output: Option<&Output>,
    raw: Option<&[u8]>,
) -> Result<(), Fault> {
    tx.write(FILL, filled(seq, output, raw)?).await
}

/// Takes the parameters of [`filled`].
pub(super) const FILL: &str =
    "with owed as (insert into unindexed (job) select $1 where $2::text is not null)
     update bodies set output = $2, text = $3, raw = $4 where job = $1";

pub(super) fn filled(
    seq: i64,
    output: Option<&Output>,
    raw: Option<&[u8]>,
) -> Result<Vec<Param>, StoreError> {
    let (output, text) = output.map(split_text).unzip();
    Ok(vec![
        Box::new(seq),
        Box::new(output.map(|output| json(&*output)).transpose()?),
        Box::new(text.flatten().map(|text| text.as_bytes().to_vec())),
        Box::new(raw.map(<[u8]>::to_vec)),
    ])
}

/// Makes a key name a job, replacing a key that has expired. Takes the parameters of [`taken_key`].
pub(super) const TAKE_KEY: &str =
    "insert into keys (owner, text, job, input_hash, made_at, holds, span, span_answered, answered_at)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9)
     on conflict (owner, text) do update set job = excluded.job, input_hash = excluded.input_hash,
       made_at = excluded.made_at, holds = excluded.holds, span = excluded.span,
       span_answered = excluded.span_answered, answered_at = excluded.answered_at";

pub(super) fn taken_key(owner: &OwnerId, text: &str, key: &KeyRecord, seq: i64) -> Vec<Param> {
    let (holds, span, span_answered) = key_life(key.life);
    vec![
        Box::new(escaped(owner.as_str())),
        Box::new(escaped(text)),
        Box::new(seq),
        Box::new(key.input_hash.to_vec()),
        Box::new(key.made_at.as_millis()),
        Box::new(holds),
        Box::new(span),
        Box::new(span_answered),
        Box::new(key.answered_at.map(Timestamp::as_millis)),
    ]
}

/// Reads a column of any type.
pub(super) fn get<T: FromSqlOwned>(row: &Row, column: &str) -> Result<T, Fault> {
    Ok(row.try_get(column)?)
}
