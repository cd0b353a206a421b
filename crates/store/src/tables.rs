//! The columns of the tables that both databases have, each with its value. The statements of both databases that write
//! whole rows are made from these lists.

use std::borrow::Cow;

use outlast_core::rules::{IdentityRecord, KeyRecord};
use outlast_core::{
    CallMode, Job, JournalStep, LedgerRow, OwnerId, Page, Record, StoreError, Timestamp, rules,
};

use crate::columns::{
    StateColumns, checkpoint_column, identity_life, json, key_life, millis, to_signed, word,
};

/// A column and its type in PostgreSQL.
#[derive(Clone, Copy)]
pub(crate) struct Column {
    name: &'static str,
    sql: &'static str,
}

/// The value of a column.
pub(crate) enum Value<'a> {
    Number(Option<i64>),
    Flag(bool),
    Text(Option<Cow<'a, str>>),
    Bytes(&'a [u8]),
}

/// The names of these columns.
pub(crate) fn names(columns: &[Column]) -> Vec<&'static str> {
    columns.iter().map(|column| column.name).collect()
}

/// The names of these columns, as SQL lists them.
pub(crate) fn column_list(columns: &[Column]) -> String {
    names(columns).join(", ")
}

/// The parameters `$1` and so on for a row of these columns, each as an array.
pub(crate) fn array_parameters(columns: &[Column]) -> String {
    let numbered = columns.iter().zip(1..);
    let arrays: Vec<_> = numbered.map(|(column, n)| format!("${n}::{}[]", column.sql)).collect();
    arrays.join(", ")
}

/// Assigns each of these columns its value in the row `source`.
pub(crate) fn assignments(columns: &[Column], source: &str) -> String {
    let assigned = names(columns).into_iter().map(|name| format!("{name} = {source}.{name}"));
    assigned.collect::<Vec<_>>().join(", ")
}

/// Builds a statement that adds a row. The parameters `$1` and so on are its values.
pub(crate) fn insert(into: &str, names: &[&str]) -> String {
    format!("{into} ({}) values ({})", names.join(", "), places(names))
}

/// Builds a statement that changes these columns of a row. The parameters `$1` and so on are their values.
pub(crate) fn update(table: &str, names: &[&str], condition: &str) -> String {
    let set: Vec<_> = names.iter().zip(1..).map(|(name, n)| format!("{name} = ${n}")).collect();
    format!("update {table} set {} where {condition}", set.join(", "))
}

fn places(names: &[&str]) -> String {
    let places: Vec<_> = (1..=names.len()).map(|n| format!("${n}")).collect();
    places.join(", ")
}

/// Converts these types to values.
macro_rules! values {
    ($($from:ty, $value:ident => $to:expr;)*) => {
        $(impl From<$from> for Value<'_> {
            fn from($value: $from) -> Self {
                $to
            }
        })*
    };
}

values! {
    i64, number => Self::Number(Some(number));
    u32, number => Self::Number(Some(number.into()));
    u64, number => Self::Number(Some(to_signed(number)));
    Option<i64>, number => Self::Number(number);
    bool, flag => Self::Flag(flag);
    Timestamp, time => Self::Number(Some(time.as_millis()));
    Option<Timestamp>, time => Self::Number(time.map(Timestamp::as_millis));
    String, text => Self::Text(Some(text.into()));
    Option<String>, text => Self::Text(text.map(Cow::Owned));
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(Some(text.into()))
    }
}

impl<'a> From<Option<&'a str>> for Value<'a> {
    fn from(text: Option<&'a str>) -> Self {
        Self::Text(text.map(Cow::Borrowed))
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

/// Declares the columns of a table, and the function that returns their values in the same order.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $columns:ident, $values:ident$(<$generic:lifetime>)?($($argument:ident: $type:ty),*) -> $life:lifetime {
            $($column:ident: $sql:ident = $value:expr,)*
        }
    ) => {
        $(#[$doc])*
        pub(crate) const $columns: &[Column] =
            &[$(Column { name: stringify!($column), sql: stringify!($sql) }),*];

        pub(crate) fn $values$(<$generic>)?(
            $($argument: $type),*
        ) -> Result<Vec<Value<$life>>, StoreError> {
            Ok(vec![$(Value::from($value)),*])
        }
    };
}

table! {
    /// A new job, which is queued.
    NEW_JOB, new_job(record: &Record) -> '_ {
        id: text = record.job.id.to_string(),
        owner: text = record.job.new.owner.as_str(),
        conversation: text = record.job.new.conversation_id(),
        turn: bigint = record.job.turn,
        profile: text = record.job.new.profile.as_str(),
        workflow: text = &*record.job.new.workflow,
        title: text = &*record.job.new.title,
        title_folded: text = record.job.new.title.to_lowercase(),
        priority: bigint = i64::from(record.job.new.priority),
        visibility: text = word(&record.job.new.visibility)?,
        max_failures: bigint = record.job.new.max_failures,
        attempt_timeout: bigint = millis(record.job.new.attempt_timeout),
        life: bigint = record.job.new.life.map(millis),
        keep: bigint = record.job.new.keep.map(millis),
        state: text = "queued",
        run_at: bigint = record.job.created_at,
        fence: bigint = 0_i64,
        checkpoint: text = json(&record.job.checkpoint)?,
        failures: text = "[]",
        created_at: bigint = record.job.created_at,
        updated_at: bigint = record.job.created_at,
        bytes: bigint = record.bytes,
    }
}

table! {
    /// The part of a job that may change. `key` is the key that names the job.
    CHANGED_JOB, changed_job<'a>(record: &'a Record, state: StateColumns, key: Option<&KeyRecord>) -> 'a {
        state: text = record.job.state.kind().as_str(),
        run_at: bigint = state.run_at,
        since: bigint = state.since,
        ended_at: bigint = record.job.ended_at(),
        remote: text = state.remote,
        fence: bigint = record.job.fence.0,
        worker: text = record.holder.as_ref().map(|holder| holder.worker.as_str()),
        lease_until: bigint = record.holder.as_ref().map(|holder| holder.until),
        checkpoint: text = checkpoint_column(&record.job)?,
        failures: text = json(&record.job.failures)?,
        percent: bigint = percent(&record.job),
        message: text = record.job.progress.as_ref().map(|progress| &*progress.message),
        updated_at: bigint = record.job.updated_at,
        expires_at: bigint = rules::expires_at(&record.job),
        removable_at: bigint = rules::removable_at(&record.job, key),
        bytes: bigint = record.bytes,
    }
}

fn percent(job: &Job) -> Option<i64> {
    job.progress.as_ref().and_then(|progress| progress.percent).map(i64::from)
}

table! {
    /// A row of the ledger.
    LEDGER, ledger(row: &LedgerRow) -> '_ {
        job: text = row.job.to_string(),
        run: bigint = row.run,
        owner: text = row.owner.as_str(),
        provider: text = &*row.provider,
        model: text = row.model.as_deref(),
        at: bigint = row.at,
        day: bigint = row.at.day().0,
        reserved: bigint = row.reserved.map(|nanos| to_signed(nanos.0)),
        amount: bigint = row.cost.amount().map(|nanos| to_signed(nanos.0)),
        kind: text = row.cost.kind(),
        state: text = row.state.as_str(),
        remote: text = row.remote.as_deref(),
        run_id: text = row.run_id.as_deref(),
    }
}

table! {
    /// An idempotency key.
    KEYS, key<'a>(owner: &'a OwnerId, text: &'a str, key: &'a KeyRecord, seq: i64) -> 'a {
        owner: text = owner.as_str(),
        text: text = text,
        job: bigint = seq,
        input_hash: bytea = &key.input_hash[..],
        made_at: bigint = key.made_at,
        holds: text = key_life(key.life).0,
        span: bigint = key_life(key.life).1,
        span_answered: bigint = key_life(key.life).2,
        answered_at: bigint = key.answered_at,
    }
}

table! {
    /// The identity of a call.
    CALL_IDENTITIES, identity<'a>(owner: &'a OwnerId, identity: &'a IdentityRecord, seq: i64) -> 'a {
        job: bigint = seq,
        owner: text = owner.as_str(),
        question: bytea = &identity.question[..],
        provider: text = &*identity.provider,
        model: text = identity.model.as_deref(),
        fresh: boolean = identity.mode == CallMode::Fresh,
        made_at: bigint = identity.made_at,
        span: bigint = identity_life(identity.life).0,
        span_answered: bigint = identity_life(identity.life).1,
        answered_at: bigint = identity.answered_at,
    }
}

table! {
    /// A step of a run.
    STEPS, step(step: &JournalStep, seq: i64) -> '_ {
        job: bigint = seq,
        key: text = &*step.key,
        kind: text = &*step.kind,
        input_digest: bytea = &step.input_digest[..],
        state: text = step.state.as_str(),
        fence: bigint = step.fence.0,
        bound_nano: bigint = step.bound.0,
        spent_nano: bigint = step.spent.0,
        tokens_in: bigint = step.tokens_in,
        tokens_out: bigint = step.tokens_out,
        resent: bigint = step.resent,
        started_at: bigint = step.started_at,
        ended_at: bigint = step.ended_at,
    }
}

table! {
    /// A page that a run has read.
    PAGES, page<'a>(owner: &'a OwnerId, page: &'a Page) -> 'a {
        owner: text = owner.as_str(),
        digest: bytea = &page.digest[..],
        url: text = &*page.url,
        final_url: text = &*page.final_url,
        status: bigint = i64::from(page.status),
        media_type: text = page.media_type.as_deref(),
        fetched_at: bigint = page.fetched_at,
        truncated: bigint = i64::from(page.truncated),
        text: text = &*page.text,
    }
}
