//! Loads and saves jobs in PostgreSQL's tables.

use std::sync::{Arc, LazyLock};

use outlast_core::rules::KeyRecord;
use outlast_core::{Job, Output, Record, RequestNote, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use super::fault::Fault;
use super::text::{escape, unescape};
use super::tx::{Param, Tx};
use crate::columns::{
    Columns, StateColumns, allowance, join_text, json, notice, parse, questions_row, report_damage,
    split_text,
};
use crate::tables::{
    CHANGED_JOB, KEYS, NEW_JOB, Value, array_parameters, assignments, changed_job, column_list,
    insert, names, new_job,
};

impl Columns for Row {
    type Fault = Fault;

    fn maybe_text(&self, column: &str) -> Result<Option<String>, Fault> {
        Ok(get::<Option<String>>(self, column)?.map(unescape))
    }

    fn maybe_number(&self, column: &str) -> Result<Option<i64>, Fault> {
        get(self, column)
    }

    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Fault> {
        get(self, column)
    }
}

/// A record, the number of its row, and the key that names it.
pub(super) struct StoredRow {
    pub(super) seq: i64,
    pub(super) record: Record,
    pub(super) key: Option<KeyRecord>,
}

/// Selects all columns that [`read_stored`] needs, including the request and the result. Append a condition.
pub(super) const WHOLE: &str = sql!(postgres::rows::whole);

/// Selects the same columns without the request and the result. Only for jobs that have not succeeded; a succeeded job needs
/// its result.
pub(super) const LIGHT: &str = sql!(postgres::rows::light);

/// Reads a row of [`WHOLE`] or [`LIGHT`].
pub(super) fn read_stored(row: &Row) -> Result<StoredRow, Fault> {
    let id: String = get(row, "id")?;
    // Parsed without another copy, because it may be long.
    let ask: Option<String> = get(row, "ask")?;
    let ask = ask.map_or(Ok(serde_json::Value::Null), |ask| parse(&id, "ask", &ask))?;
    let output: Option<String> = get(row, "output")?;
    let mut output = output.map(|output| parse(&id, "output", &output)).transpose()?;
    if let Some(text) = row.maybe_bytes("text")? {
        let without = output.ok_or_else(|| report_damage(&id, "output"))?;
        output = Some(join_text(without, text).ok_or_else(|| report_damage(&id, "text"))?);
    }
    let mut record = row.record(ask, output)?;
    record.job.partial = row.maybe_text("partial")?.map(Arc::from);
    Ok(StoredRow { seq: row.number("seq")?, record, key: row.key()? })
}

/// Saves the fields of a job that may change, with the transaction's commit. Bodies are not touched.
pub(super) async fn save(
    tx: &mut Tx,
    seq: i64,
    record: &Record,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    tx.write_row(&SAVE, update_params(seq, record, key)?).await?;
    if let Some(questions) = questions_params(seq, &record.job)? {
        tx.write(SAVE_QUESTIONS, questions).await?;
    }
    tx.record_change(seq);
    Ok(())
}

/// Takes rows of [`update_params`], each column as an array.
pub(super) static SAVE: LazyLock<String> = LazyLock::new(|| {
    let (columns, n) = (CHANGED_JOB, CHANGED_JOB.len());
    format!(
        "with saved as (
           select * from unnest({arrays}, ${}::bigint[], ${}::bigint[]) as saved ({}, failed, seq)),
         ended as (delete from partials using saved where job = saved.seq and saved.state <> 'running')
         update jobs set {}, failed = saved.failed from saved where jobs.seq = saved.seq",
        n + 1,
        n + 2,
        column_list(columns),
        assignments(columns, "saved"),
        arrays = array_parameters(columns),
    )
});

pub(super) fn update_params(
    seq: i64,
    record: &Record,
    key: Option<&KeyRecord>,
) -> Result<Vec<Param>, StoreError> {
    let mut values = changed_job(record, StateColumns::of(&record.job.state)?, key)?;
    values.extend([Value::from(record.job.failures.len() as u64), Value::from(seq)]);
    Ok(params(values))
}

/// Takes the parameters of [`questions_params`].
pub(super) const SAVE_QUESTIONS: &str = sql!(postgres::questions::save);

/// Returns the row of a job's questions, if it has asked any.
pub(super) fn questions_params(seq: i64, job: &Job) -> Result<Option<Vec<Param>>, StoreError> {
    let row = questions_row(job)?;
    // Not escaped: no JSON contains U+0000.
    Ok(row.map(|(is_open, questions)| -> Vec<Param> {
        vec![Box::new(seq), Box::new(is_open), Box::new(questions)]
    }))
}

/// Converts values to parameters, in the form in which PostgreSQL stores them.
pub(super) fn params(values: Vec<Value<'_>>) -> Vec<Param> {
    let param = |value| -> Param {
        match value {
            Value::Number(number) => Box::new(number),
            Value::Flag(flag) => Box::new(flag),
            Value::Text(text) => Box::new(text.map(|text| escape(&text))),
            Value::Bytes(bytes) => Box::new(bytes.to_vec()),
        }
    };
    values.into_iter().map(param).collect()
}

/// Adds a queued job and its request with the transaction's commit.
pub(super) async fn add(tx: &mut Tx, seq: i64, record: &Record) -> Result<(), Fault> {
    tx.write(&ADD, insert_params(seq, record)?).await?;
    tx.record_change(seq);
    Ok(())
}

/// Takes the parameters of [`insert_params`].
pub(super) static ADD: LazyLock<String> = LazyLock::new(|| {
    let names = [&["seq"][..], &names(NEW_JOB), &["session", "failed"]].concat();
    let n = names.len();
    let (ask, allowance, notice, subject) = (n + 1, n + 2, n + 3, n + 4);
    format!(
        "with job as ({}),
           owed as (insert into unindexed (job) values ($1)),
           terms as (insert into job_terms (job, allowance, notice, subject)
             select $1::bigint, ${allowance}::text, ${notice}::bigint, ${subject}::text
             where ${allowance}::text is not null or ${notice}::bigint <> 0 or ${subject}::text is not null)
         insert into bodies (job, ask) values ($1, ${ask})",
        insert("insert into jobs", &names),
    )
});

pub(super) fn insert_params(seq: i64, record: &Record) -> Result<Vec<Param>, StoreError> {
    let job = &record.job;
    let mut values = vec![Value::from(seq)];
    values.extend(new_job(record)?);
    let session = job.new.request.note(RequestNote::SessionId);
    values.extend([Value::from(session), Value::from(0_i64)]);
    let mut params = params(values);
    // Not escaped: no JSON contains U+0000, and a request may be long.
    params.push(Box::new(json(&job.new.request)?));
    params.push(Box::new(allowance(job)?));
    params.push(Box::new(notice(record.notice)));
    params.push(Box::new(job.new.subject.map(|subject| subject.to_string())));
    Ok(params)
}

/// Stores the limit for the cost of the job's next run, with the transaction's commit.
pub(super) async fn save_allowance(tx: &mut Tx, seq: i64, job: &Job) -> Result<(), Fault> {
    let update = sql!(postgres::rows::save_allowance);
    tx.write(update, vec![Box::new(seq), Box::new(allowance(job)?)]).await
}

/// Writes the result and the provider's last response with the transaction's commit.
pub(super) async fn write_bodies(
    tx: &mut Tx,
    seq: i64,
    output: Option<&Output>,
    raw: Option<&[u8]>,
) -> Result<(), Fault> {
    tx.write(FILL, output_params(seq, output, raw)?).await
}

/// Takes the parameters of [`output_params`].
pub(super) const FILL: &str = sql!(postgres::rows::fill);

pub(super) fn output_params(
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

/// Makes a key name a job, replacing a key that has expired. Takes the values of [`crate::tables::key`].
pub(super) static TAKE_KEY: LazyLock<String> = LazyLock::new(|| {
    let insert = insert("insert into keys", &names(KEYS));
    format!("{insert} on conflict (owner, text) do update set {}", assignments(KEYS, "excluded"))
});

/// Reads a column of any type.
pub(super) fn get<T: FromSqlOwned>(row: &Row, column: &str) -> Result<T, Fault> {
    Ok(row.try_get(column)?)
}
