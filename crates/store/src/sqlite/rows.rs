//! Maps rows to records and back: the only file that knows which column holds what.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::rules::KeyRecord;
use outlast_core::{
    Change, Checkpoint, ConversationId, Fence, Holder, Job, JobId, JobState, NewJob, Output,
    OwnerId, Profile, Progress, Record, StateKind, StoreError, Summary, Timestamp, Uncarried,
    WorkerId, rules,
};
use rusqlite::{Connection, Row, ToSql, named_params};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::fault::Fault;
use super::sql::{self, json, millis, signed};
use super::writer::Tx;
use super::{bodies, keys};

/// A record and the row it came from.
pub(super) struct Stored {
    pub(super) seq: i64,
    pub(super) record: Record,
}

/// Selects all that [`whole_row`] needs, except for the text of a long report.
pub(super) const WHOLE: &str =
    "SELECT jobs.*, bodies.ask, bodies.output, bodies.text IS NOT NULL AS has_text
     FROM jobs JOIN bodies ON bodies.job = jobs.seq";

/// Loads a job with its request and result. `condition` has one parameter.
pub(super) fn whole(
    connection: &Connection,
    condition: &str,
    parameter: impl ToSql,
) -> Result<Option<Stored>, Fault> {
    let mut statement = connection.prepare_cached(&format!("{WHOLE} WHERE {condition}"))?;
    let mut rows = statement.query([parameter])?;
    rows.next()?.map(|row| whole_row(connection, row)).transpose()
}

/// A row of [`WHOLE`]: the job, its request and its result.
pub(super) fn whole_row(connection: &Connection, row: &Row<'_>) -> Result<Stored, Fault> {
    let id: String = row.get("id")?;
    let ask = parse(&id, "ask", &row.get::<_, String>("ask")?)?;
    // Borrowed from the row: it may be megabytes.
    let output = row.get_ref("output")?.as_str_or_null().map_err(|_| damaged(&id, "output"))?;
    let mut output = output.map(|text| parse(&id, "output", text)).transpose()?;
    if row.get("has_text")? {
        // In the same moment as the row, whose statement is still open.
        let without = output.ok_or_else(|| damaged(&id, "output"))?;
        let with = bodies::with_text(connection, row.get("seq")?, without)?;
        output = Some(with.ok_or_else(|| damaged(&id, "text"))?);
    }
    stored(row, ask, output)
}

/// Loads a job without its request, for writes that change neither request nor result. `condition` has one parameter
/// and must rule out jobs that succeeded, because those need their result.
pub(super) fn light(
    connection: &Connection,
    condition: &str,
    parameter: impl ToSql,
) -> Result<Option<Stored>, Fault> {
    let select = format!("SELECT * FROM jobs WHERE {condition}");
    let mut statement = connection.prepare_cached(&select)?;
    let mut rows = statement.query([parameter])?;
    rows.next()?.map(|row| stored(row, Value::Null, None)).transpose()
}

/// Writes back what may change about a job, under this commit's rev. Bodies are not touched.
pub(super) fn save(tx: &mut Tx<'_>, seq: i64, record: &mut Record) -> Result<(), Fault> {
    record.job.rev = tx.rev()?;
    let Record { job, holder, bytes } = &*record;
    let (run_at, since, remote) = match &job.state {
        JobState::Queued { run_at } => (Some(run_at.as_millis()), None, None),
        JobState::Running { since } => (None, Some(since.as_millis()), None),
        JobState::Succeeded { .. } | JobState::Failed { .. } => (None, None, None),
        JobState::Cancelled { remote, .. } => (None, None, Some(word(remote)?)),
    };
    let expires_at = rules::expires_at(job);
    // Only the end of a job depends on its key; the many writes before that do not look for one.
    let key = expires_at.and_then(|_| keys::of_job(tx.connection, seq).transpose()).transpose()?;
    tx.connection
        .prepare_cached(
            "UPDATE jobs SET state = :state, run_at = :run_at, since = :since, ended_at = :ended_at,
               remote = :remote, fence = :fence, worker = :worker, lease_until = :lease_until,
               checkpoint = :checkpoint, failures = :failures, percent = :percent, message = :message,
               updated_at = :updated_at, expires_at = :expires_at,
               removable_at = :removable_at, bytes = :bytes, rev = :rev
             WHERE seq = :seq",
        )?
        .execute(named_params! {
            ":state": job.state.kind().as_str(),
            ":run_at": run_at,
            ":since": since,
            ":ended_at": job.ended_at().map(Timestamp::as_millis),
            ":remote": remote,
            ":fence": signed(job.fence.0),
            ":worker": holder.as_ref().map(|holder| holder.worker.as_str()),
            ":lease_until": holder.as_ref().map(|holder| holder.until.as_millis()),
            ":checkpoint": json(&job.checkpoint)?,
            ":failures": json(&job.failures)?,
            ":percent": job.progress.as_ref().and_then(|progress| progress.percent),
            ":message": job.progress.as_ref().map(|progress| progress.message.as_str()),
            ":updated_at": job.updated_at.as_millis(),
            ":expires_at": expires_at.map(Timestamp::as_millis),
            ":removable_at": rules::removable_at(job, key.as_ref()).map(Timestamp::as_millis),
            ":bytes": signed(*bytes),
            ":rev": signed(job.rev.0),
            ":seq": seq,
        })?;
    Ok(())
}

/// Stores when a job can be removed, after its key changed or went to another job. Not a change: no rev.
pub(super) fn save_removable_at(
    connection: &Connection,
    stored: &Stored,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    let removable_at = rules::removable_at(&stored.record.job, key).map(Timestamp::as_millis);
    let update = "UPDATE jobs SET removable_at = ?2 WHERE seq = ?1";
    sql::execute(connection, update, (stored.seq, removable_at)).map(drop)
}

/// Adds a queued job and its request under this commit's rev.
pub(super) fn add(
    tx: &mut Tx<'_>,
    job: &mut Job,
    bytes: u64,
    run_at: Timestamp,
) -> Result<i64, Fault> {
    job.rev = tx.rev()?;
    let new = &job.new;
    tx.connection
        .prepare_cached(
            "INSERT INTO jobs (id, owner, conversation, turn, profile, workflow, title, title_folded,
               priority, visibility, max_failures, attempt_timeout, life, keep, state, run_at, fence,
               checkpoint, failures, created_at, updated_at, bytes, rev)
             VALUES (:id, :owner, :conversation, :turn, :profile, :workflow, :title, :title_folded,
               :priority, :visibility, :max_failures, :attempt_timeout, :life, :keep, 'queued', :run_at, 0,
               :checkpoint, '[]', :created_at, :created_at, :bytes, :rev)",
        )?
        .execute(named_params! {
            ":id": job.id.to_string(),
            ":owner": new.owner.as_str(),
            ":conversation": new.conversation.as_ref().map(ConversationId::as_str),
            ":turn": job.turn,
            ":profile": new.profile.as_str(),
            ":workflow": new.workflow,
            ":title": new.title,
            ":title_folded": new.title.to_lowercase(),
            ":priority": new.priority,
            ":visibility": word(&new.visibility)?,
            ":max_failures": new.max_failures,
            ":attempt_timeout": millis(new.attempt_timeout),
            ":life": new.life.map(millis),
            ":keep": new.keep.map(millis),
            ":run_at": run_at.as_millis(),
            ":checkpoint": json(&job.checkpoint)?,
            ":created_at": job.created_at.as_millis(),
            ":bytes": signed(bytes),
            ":rev": signed(job.rev.0),
        })?;
    let seq = tx.connection.last_insert_rowid();
    let insert = "INSERT INTO bodies (job, ask) VALUES (?1, ?2)";
    sql::execute(tx.connection, insert, (seq, json(&new.ask)?))?;
    Ok(seq)
}

/// A row of a list, with its number.
pub(super) fn summary(row: &Row<'_>) -> Result<(u64, Summary), Fault> {
    let id: String = row.get("id")?;
    let summary = Summary {
        owner: OwnerId::new(row.get::<_, String>("owner")?),
        conversation: row.get::<_, Option<String>>("conversation")?.map(ConversationId::new),
        workflow: row.get("workflow")?,
        title: row.get("title")?,
        visibility: unword(&id, "visibility", row)?,
        state: state_kind(&id, row)?,
        was_claimed: row.get("was_claimed")?,
        session: row.get("session")?,
        failures: row.get("failures")?,
        progress: progress(row)?,
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        ended_at: row.get::<_, Option<i64>>("ended_at")?.map(Timestamp::from_millis),
        id: job_id(&id)?,
    };
    Ok((seq(row)?, summary))
}

/// A row of what changed.
pub(super) fn change(row: &Row<'_>) -> Result<Change, Fault> {
    let id: String = row.get("id")?;
    let state = state_kind(&id, row)?;
    let visibility = unword(&id, "visibility", row)?;
    let uncarried = Uncarried::of(state, visibility, row.get("was_claimed")?);
    Ok(Change { id: job_id(&id)?, state, uncarried })
}

/// The id a row holds as text.
pub(super) fn job_id(text: &str) -> Result<JobId, Fault> {
    text.parse().map_err(|_| damaged(text, "id"))
}

/// The state a row holds as a word.
pub(super) fn state_kind(id: &str, row: &Row<'_>) -> Result<StateKind, Fault> {
    StateKind::parse(&row.get::<_, String>("state")?).ok_or_else(|| damaged(id, "state"))
}

/// The row's number in the order of arrival.
pub(super) fn seq(row: &Row<'_>) -> Result<u64, Fault> {
    Ok(row.get::<_, i64>("seq")?.unsigned_abs())
}

/// The checkpoint a row holds as JSON.
pub(super) fn checkpoint(id: &str, text: &str) -> Result<Checkpoint, Fault> {
    parse(id, "checkpoint", text)
}

fn stored(row: &Row<'_>, ask: Value, output: Option<Output>) -> Result<Stored, Fault> {
    let id: String = row.get("id")?;
    let new = NewJob {
        owner: OwnerId::new(row.get::<_, String>("owner")?),
        conversation: row.get::<_, Option<String>>("conversation")?.map(ConversationId::new),
        profile: Profile::new(row.get::<_, String>("profile")?),
        workflow: row.get("workflow")?,
        title: row.get("title")?,
        ask,
        priority: row.get("priority")?,
        visibility: unword(&id, "visibility", row)?,
        max_failures: row.get("max_failures")?,
        attempt_timeout: duration(row.get("attempt_timeout")?),
        life: row.get::<_, Option<i64>>("life")?.map(duration),
        keep: row.get::<_, Option<i64>>("keep")?.map(duration),
    };
    let job = Job {
        id: job_id(&id)?,
        new,
        turn: row.get("turn")?,
        state: state(&id, row, output)?,
        failures: parse(&id, "failures", &row.get::<_, String>("failures")?)?,
        checkpoint: checkpoint(&id, &row.get::<_, String>("checkpoint")?)?,
        progress: progress(row)?,
        fence: Fence(row.get::<_, i64>("fence")?.unsigned_abs()),
        created_at: time(row, "created_at")?,
        updated_at: time(row, "updated_at")?,
        rev: sql::rev(row.get("rev")?),
    };
    let worker = row.get::<_, Option<String>>("worker")?.map(WorkerId::new);
    let holder =
        worker.map(|worker| Ok::<_, Fault>(Holder { worker, until: time(row, "lease_until")? }));
    let bytes = row.get::<_, i64>("bytes")?.unsigned_abs();
    Ok(Stored { seq: row.get("seq")?, record: Record { job, holder: holder.transpose()?, bytes } })
}

fn state(id: &str, row: &Row<'_>, output: Option<Output>) -> Result<JobState, Fault> {
    Ok(match state_kind(id, row)? {
        StateKind::Queued => JobState::Queued { run_at: time(row, "run_at")? },
        StateKind::Running => JobState::Running { since: time(row, "since")? },
        StateKind::Succeeded => {
            let output = Arc::new(output.ok_or_else(|| damaged(id, "output"))?);
            JobState::Succeeded { at: time(row, "ended_at")?, output }
        }
        StateKind::Failed => JobState::Failed { at: time(row, "ended_at")? },
        StateKind::Cancelled => {
            JobState::Cancelled { at: time(row, "ended_at")?, remote: unword(id, "remote", row)? }
        }
    })
}

fn progress(row: &Row<'_>) -> Result<Option<Progress>, Fault> {
    let percent = row.get("percent")?;
    let message: Option<String> = row.get("message")?;
    Ok(message.map(|message| Progress { percent, message }))
}

fn time(row: &Row<'_>, column: &str) -> Result<Timestamp, Fault> {
    Ok(Timestamp::from_millis(row.get(column)?))
}

fn duration(millis: i64) -> Duration {
    Duration::from_millis(millis.unsigned_abs())
}

/// A unit variant by its name in JSON, so that SQL and JSON have one word for it.
fn word(value: &impl Serialize) -> Result<String, Fault> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

fn unword<T: DeserializeOwned>(id: &str, column: &str, row: &Row<'_>) -> Result<T, Fault> {
    let word = Value::String(row.get(column)?);
    serde_json::from_value(word).map_err(|_| damaged(id, column))
}

fn parse<T: DeserializeOwned>(id: &str, column: &str, text: &str) -> Result<T, Fault> {
    serde_json::from_str(text).map_err(|_| damaged(id, column))
}

fn damaged(id: &str, column: &str) -> Fault {
    StoreError::Corrupt { at: format!("{column} of job {id}") }.into()
}
