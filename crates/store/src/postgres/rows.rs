//! Between rows and records: the only file that knows which column holds what.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::rules::KeyRecord;
use outlast_core::{
    Body, Change, Checkpoint, ConversationId, Fence, Holder, Job, JobId, JobState, KeyLife, NewJob,
    Output, OwnerId, Profile, Progress, Record, RemoteStop, Rev, StateKind, StoreError, Summary,
    Timestamp, Uncarried, WorkerId, rules, session_of,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio_postgres::Row;
use tokio_postgres::types::FromSqlOwned;

use super::fault::{Fault, unavailable};
use super::text::{escaped, unescaped};
use super::tx::{Param, Tx};

/// A record, the row it came from and the key that names it.
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) record: Record,
    pub(super) key: Option<KeyRecord>,
}

/// Selects all that [`stored`] needs, the request and the result included. A condition follows.
pub(super) const WHOLE: &str = "select jobs.*, revs.rev, bodies.ask, bodies.output, bodies.text,
       keys.input_hash, keys.made_at, keys.holds, keys.span, keys.span_answered, keys.answered_at
     from jobs join revs on revs.job = jobs.seq join bodies on bodies.job = jobs.seq
       left join keys on keys.job = jobs.seq";

/// The same without the request and the result. For jobs that have not succeeded: the others are not whole without.
pub(super) const LIGHT: &str =
    "select jobs.*, revs.rev, null::text as ask, null::text as output, null::bytea as text,
       keys.input_hash, keys.made_at, keys.holds, keys.span, keys.span_answered, keys.answered_at
     from jobs join revs on revs.job = jobs.seq left join keys on keys.job = jobs.seq";

/// A row of [`WHOLE`] or [`LIGHT`].
pub(super) fn stored(row: &Row) -> Result<Stored, Fault> {
    let id: String = get(row, "id")?;
    let ask: Option<String> = get(row, "ask")?;
    let new = NewJob {
        owner: OwnerId::new(text(row, "owner")?),
        conversation: maybe_text(row, "conversation")?.map(ConversationId::new),
        profile: Profile::new(text(row, "profile")?),
        workflow: text(row, "workflow")?,
        title: text(row, "title")?,
        ask: ask.map_or(Ok(Value::Null), |ask| parse(&id, "ask", &ask))?,
        priority: get(row, "priority")?,
        visibility: unword(&id, "visibility", get(row, "visibility")?)?,
        max_failures: small(get(row, "max_failures")?),
        attempt_timeout: duration(get(row, "attempt_timeout")?),
        life: get::<Option<i64>>(row, "life")?.map(duration),
        keep: get::<Option<i64>>(row, "keep")?.map(duration),
    };
    let job = Job {
        id: job_id(&id)?,
        new,
        turn: small(get(row, "turn")?),
        state: state(&id, row)?,
        failures: parse(&id, "failures", &get::<String>(row, "failures")?)?,
        checkpoint: checkpoint(&id, &get::<String>(row, "checkpoint")?)?,
        progress: progress(row)?,
        fence: Fence(get::<i64>(row, "fence")?.unsigned_abs()),
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        rev: rev(get(row, "rev")?),
    };
    let holder = match maybe_text(row, "worker")? {
        Some(worker) => {
            Some(Holder { worker: WorkerId::new(worker), until: time(row, "lease_until")? })
        }
        None => None,
    };
    let bytes = get::<i64>(row, "bytes")?.unsigned_abs();
    let record = Record { job, holder, bytes };
    Ok(Stored { seq: get(row, "seq")?, record, key: key(row)? })
}

/// The key in a row, if one names the job.
pub(super) fn key(row: &Row) -> Result<Option<KeyRecord>, Fault> {
    let Some(input_hash) = get::<Option<Vec<u8>>>(row, "input_hash")? else { return Ok(None) };
    let damaged =
        |column: &str| -> Fault { StoreError::Corrupt { at: format!("{column} of a key") }.into() };
    let after_end = duration(get(row, "span")?);
    let answered = get::<Option<i64>>(row, "span_answered")?.map(duration);
    Ok(Some(KeyRecord {
        input_hash: input_hash.try_into().map_err(|_| damaged("input_hash"))?,
        made_at: time(row, "made_at")?,
        life: match get::<String>(row, "holds")?.as_str() {
            "for" => KeyLife::For(after_end),
            "until_answered" => match answered {
                None => KeyLife::UntilAnswered { after_end },
                Some(answered) => KeyLife::Replays { unanswered: after_end, answered },
            },
            _ => return Err(damaged("holds")),
        },
        answered_at: maybe_time(row, "answered_at")?,
    }))
}

/// Writes back what may change about a job with the transaction's commit. Bodies are not touched.
pub(super) async fn save(
    tx: &mut Tx,
    seq: i64,
    record: &Record,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    let Record { job, holder, bytes } = record;
    let (mut run_at, mut since, mut remote_stop) = (None, None, None);
    match &job.state {
        JobState::Queued { run_at: at } => run_at = Some(at.as_millis()),
        JobState::Running { since: at } => since = Some(at.as_millis()),
        JobState::Cancelled { remote, .. } => remote_stop = Some(word(remote)?),
        JobState::Succeeded { .. } | JobState::Failed { .. } => {}
    }
    let params: Vec<Param> = vec![
        Box::new(seq),
        Box::new(job.state.kind().as_str()),
        Box::new(run_at),
        Box::new(since),
        Box::new(job.ended_at().map(Timestamp::as_millis)),
        Box::new(remote_stop),
        Box::new(signed(job.fence.0)),
        Box::new(holder.as_ref().map(|holder| escaped(holder.worker.as_str()).into_owned())),
        Box::new(holder.as_ref().map(|holder| holder.until.as_millis())),
        Box::new(json(&job.checkpoint)?),
        Box::new(json(&job.failures)?),
        Box::new(signed(job.failures.len() as u64)),
        Box::new(job.progress.as_ref().and_then(|progress| progress.percent).map(i16::from)),
        Box::new(job.progress.as_ref().map(|progress| escaped(&progress.message).into_owned())),
        Box::new(job.updated_at.as_millis()),
        Box::new(rules::expires_at(job).map(Timestamp::as_millis)),
        Box::new(rules::removable_at(job, key).map(Timestamp::as_millis)),
        Box::new(signed(*bytes)),
    ];
    tx.write(
        "update jobs set state = $2, run_at = $3, since = $4, ended_at = $5, remote = $6, fence = $7, worker = $8,
           lease_until = $9, checkpoint = $10, failures = $11, failed = $12, percent = $13, message = $14,
           updated_at = $15, expires_at = $16, removable_at = $17, bytes = $18
         where seq = $1",
        params,
    )
    .await?;
    tx.changed(seq);
    Ok(())
}

/// Adds a queued job and its request with the transaction's commit.
pub(super) async fn add(tx: &mut Tx, seq: i64, job: &Job, bytes: u64) -> Result<(), Fault> {
    let new = &job.new;
    let params: Vec<Param> = vec![
        Box::new(seq),
        Box::new(job.id.to_string()),
        Box::new(escaped(new.owner.as_str()).into_owned()),
        Box::new(new.conversation_id().map(|id| escaped(id).into_owned())),
        Box::new(i64::from(job.turn)),
        Box::new(escaped(new.profile.as_str()).into_owned()),
        Box::new(escaped(&new.workflow).into_owned()),
        Box::new(escaped(&new.title).into_owned()),
        Box::new(escaped(&new.title.to_lowercase()).into_owned()),
        Box::new(session_of(&new.ask).map(|session| escaped(session).into_owned())),
        Box::new(new.priority),
        Box::new(word(&new.visibility)?),
        Box::new(i64::from(new.max_failures)),
        Box::new(millis(new.attempt_timeout)),
        Box::new(new.life.map(millis)),
        Box::new(new.keep.map(millis)),
        Box::new(json(&job.checkpoint)?),
        Box::new(job.created_at.as_millis()),
        Box::new(signed(bytes)),
        Box::new(json(&new.ask)?),
    ];
    tx.write(
        "with job as (
           insert into jobs (seq, id, owner, conversation, turn, profile, workflow, title, title_folded, session, priority,
             visibility, max_failures, attempt_timeout, life, keep, checkpoint, created_at, updated_at, run_at, bytes,
             state, fence, failures, failed)
           values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $18, $18, $19,
             'queued', 0, '[]', 0))
         insert into bodies (job, ask) values ($1, $20)",
        params,
    )
    .await?;
    tx.changed(seq);
    Ok(())
}

/// The text of a report is kept apart from so many bytes on.
const LONG_TEXT: usize = 64 * 1024;

/// Writes the result and the provider's last word with the transaction's commit.
pub(super) async fn write_bodies(
    tx: &mut Tx,
    seq: i64,
    output: Option<&Output>,
    raw: Option<&[u8]>,
) -> Result<(), Fault> {
    let (mut long_text, mut stored) = (None, None);
    if let Some(output) = output {
        let mut without = None;
        if let Body::Report { text, .. } = &output.body
            && text.len() >= LONG_TEXT
        {
            long_text = Some(text.clone().into_bytes());
            let mut short = output.clone();
            if let Body::Report { text, .. } = &mut short.body {
                text.clear();
            }
            without = Some(short);
        }
        stored = Some(json(without.as_ref().unwrap_or(output))?);
    }
    let params: Vec<Param> = vec![
        Box::new(seq),
        Box::new(stored),
        Box::new(long_text),
        Box::new(raw.map(<[u8]>::to_vec)),
    ];
    tx.write("update bodies set output = $2, text = $3, raw = $4 where job = $1", params).await
}

/// A row of a list.
pub(super) fn summary(row: &Row) -> Result<Summary, Fault> {
    let id: String = get(row, "id")?;
    Ok(Summary {
        owner: OwnerId::new(text(row, "owner")?),
        conversation: maybe_text(row, "conversation")?.map(ConversationId::new),
        workflow: text(row, "workflow")?,
        title: text(row, "title")?,
        visibility: unword(&id, "visibility", get(row, "visibility")?)?,
        state: kind(&id, &get::<String>(row, "state")?)?,
        was_claimed: get::<i64>(row, "fence")? > 0,
        session: maybe_text(row, "session")?,
        failures: small(get(row, "failed")?),
        progress: progress(row)?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        ended_at: maybe_time(row, "ended_at")?,
        id: job_id(&id)?,
    })
}

/// A row of what changed.
pub(super) fn change(row: &Row) -> Result<Change, Fault> {
    let id: String = get(row, "id")?;
    let state = kind(&id, &get::<String>(row, "state")?)?;
    let visibility = unword(&id, "visibility", get(row, "visibility")?)?;
    let uncarried = Uncarried::of(state, visibility, get::<i64>(row, "fence")? > 0);
    Ok(Change { id: job_id(&id)?, state, uncarried })
}

/// A column of any type.
pub(super) fn get<T: FromSqlOwned>(row: &Row, column: &str) -> Result<T, Fault> {
    Ok(row.try_get(column)?)
}

/// A column of text as it was before it was escaped.
pub(super) fn text(row: &Row, column: &str) -> Result<String, Fault> {
    get(row, column).map(unescaped)
}

fn maybe_text(row: &Row, column: &str) -> Result<Option<String>, Fault> {
    Ok(get::<Option<String>>(row, column)?.map(unescaped))
}

/// A column of time.
pub(super) fn time(row: &Row, column: &str) -> Result<Timestamp, Fault> {
    get(row, column).map(Timestamp::from_millis)
}

/// A column of time that may be empty.
pub(super) fn maybe_time(row: &Row, column: &str) -> Result<Option<Timestamp>, Fault> {
    Ok(get::<Option<i64>>(row, column)?.map(Timestamp::from_millis))
}

/// The id a row holds as text.
pub(super) fn job_id(text: &str) -> Result<JobId, Fault> {
    text.parse().map_err(|_| damaged(text, "id"))
}

/// The state a row holds as a word.
pub(super) fn kind(id: &str, word: &str) -> Result<StateKind, Fault> {
    StateKind::parse(word).ok_or_else(|| damaged(id, "state"))
}

/// The checkpoint a row holds as JSON.
pub(super) fn checkpoint(id: &str, text: &str) -> Result<Checkpoint, Fault> {
    parse(id, "checkpoint", text)
}

/// Numbers we count up from zero, as the database keeps them.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count that is small by its meaning.
pub(super) fn small(number: i64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The change number a row holds.
pub(super) fn rev(value: i64) -> Rev {
    Rev(value.unsigned_abs())
}

/// A duration as the database keeps it.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

fn state(id: &str, row: &Row) -> Result<JobState, Fault> {
    Ok(match kind(id, &get::<String>(row, "state")?)? {
        StateKind::Queued => JobState::Queued { run_at: time(row, "run_at")? },
        StateKind::Running => JobState::Running { since: time(row, "since")? },
        StateKind::Succeeded => {
            JobState::Succeeded { at: time(row, "ended_at")?, output: Arc::new(output(id, row)?) }
        }
        StateKind::Failed => JobState::Failed { at: time(row, "ended_at")? },
        StateKind::Cancelled => {
            let remote: RemoteStop = unword(id, "remote", get(row, "remote")?)?;
            JobState::Cancelled { at: time(row, "ended_at")?, remote }
        }
    })
}

fn output(id: &str, row: &Row) -> Result<Output, Fault> {
    let stored: Option<String> = get(row, "output")?;
    let mut output: Output = parse(id, "output", &stored.ok_or_else(|| damaged(id, "output"))?)?;
    if let Some(bytes) = get::<Option<Vec<u8>>>(row, "text")? {
        let read = String::from_utf8(bytes).map_err(|_| damaged(id, "text"))?;
        match &mut output.body {
            Body::Report { text, .. } => *text = read,
            Body::Tool { .. } => return Err(damaged(id, "text")),
        }
    }
    Ok(output)
}

fn progress(row: &Row) -> Result<Option<Progress>, Fault> {
    let percent =
        get::<Option<i16>>(row, "percent")?.and_then(|percent| u8::try_from(percent).ok());
    Ok(maybe_text(row, "message")?.map(|message| Progress { percent, message }))
}

/// A value as JSON text.
pub(super) fn json(value: &impl Serialize) -> Result<String, Fault> {
    serde_json::to_string(value).map_err(|error| unavailable(error).into())
}

/// A unit variant by its name in JSON, so that SQL and JSON have one word for it.
fn word(value: &impl Serialize) -> Result<String, Fault> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

fn unword<T: DeserializeOwned>(id: &str, column: &str, word: String) -> Result<T, Fault> {
    serde_json::from_value(Value::String(word)).map_err(|_| damaged(id, column))
}

fn parse<T: DeserializeOwned>(id: &str, column: &str, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|_| damaged(id, column))
}

fn damaged(id: &str, column: &str) -> Fault {
    StoreError::Corrupt { at: format!("{column} of job {id}") }.into()
}
