//! Converts between records and the columns of a database. SQLite and PostgreSQL hold the same words, numbers and JSON.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::rules::{IdentityRecord, KeyRecord, Turn};
use outlast_core::{
    Body, CallMode, Change, Checkpoint, Code, ConversationId, ConversationSummary, Cost,
    EndNotices, Fence, HeldCallState, Holder, Job, JobId, JobState, KeyLife, NanoUsd, NewJob,
    Output, OwnerId, Profile, Progress, Questions, Record, RemoteRun, RemoteStop, Rev, StateKind,
    StoreError, Summary, SummaryCharge, Timestamp, WorkerId,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// A row with named columns.
pub(crate) trait Columns {
    /// The error for a column that cannot be read.
    type Fault: From<StoreError>;

    /// Text exactly as the caller passed it.
    fn maybe_text(&self, column: &str) -> Result<Option<String>, Self::Fault>;
    fn maybe_number(&self, column: &str) -> Result<Option<i64>, Self::Fault>;
    fn maybe_bytes(&self, column: &str) -> Result<Option<Vec<u8>>, Self::Fault>;

    fn text(&self, column: &str) -> Result<String, Self::Fault> {
        self.maybe_text(column)?.ok_or_else(|| empty(column))
    }

    fn number(&self, column: &str) -> Result<i64, Self::Fault> {
        self.maybe_number(column)?.ok_or_else(|| empty(column))
    }

    /// A number that counts up from zero.
    fn count(&self, column: &str) -> Result<u64, Self::Fault> {
        Ok(self.number(column)?.unsigned_abs())
    }

    /// A number of a narrow type.
    fn small<T: TryFrom<i64>>(&self, column: &str) -> Result<T, Self::Fault> {
        Ok(small(column, self.number(column)?)?)
    }

    fn time(&self, column: &str) -> Result<Timestamp, Self::Fault> {
        Ok(Timestamp::from_millis(self.number(column)?))
    }

    fn maybe_time(&self, column: &str) -> Result<Option<Timestamp>, Self::Fault> {
        Ok(self.maybe_number(column)?.map(Timestamp::from_millis))
    }

    fn duration(&self, column: &str) -> Result<Duration, Self::Fault> {
        Ok(Duration::from_millis(self.count(column)?))
    }

    fn maybe_duration(&self, column: &str) -> Result<Option<Duration>, Self::Fault> {
        let millis = self.maybe_number(column)?;
        Ok(millis.map(|millis| Duration::from_millis(millis.unsigned_abs())))
    }

    /// A value that is stored as JSON.
    fn json<T: DeserializeOwned>(&self, id: &str, column: &str) -> Result<T, Self::Fault> {
        Ok(parse(id, column, &self.text(column)?)?)
    }

    /// A unit variant, stored as its name in JSON.
    fn word<T: DeserializeOwned>(&self, id: &str, column: &str) -> Result<T, Self::Fault> {
        let word = Value::String(self.text(column)?);
        Ok(serde_json::from_value(word).map_err(|_| report_damage(id, column))?)
    }

    fn job_id(&self) -> Result<JobId, Self::Fault> {
        Ok(job_id(&self.text("id")?)?)
    }

    fn state_kind(&self, id: &str) -> Result<StateKind, Self::Fault> {
        Ok(StateKind::parse(&self.text("state")?).ok_or_else(|| report_damage(id, "state"))?)
    }

    /// A job and its run that must be stopped, if it has one.
    fn read_owed_stop(&self) -> Result<Option<(JobId, RemoteRun)>, Self::Fault> {
        Ok(match self.json(&self.text("id")?, CHECKPOINT)? {
            Checkpoint::Running(run) => Some((self.job_id()?, run)),
            Checkpoint::NotBegun | Checkpoint::Beginning { .. } => None,
        })
    }

    /// The owner's position in the queue.
    fn turn(&self) -> Result<Turn, Self::Fault> {
        let (running, served) = (self.count("running")?, self.count("served")?);
        Ok(Turn { running, served, arrived: self.count("arrived")? })
    }

    /// Reads a job with its request, and its result if it has one.
    fn record(&self, ask: Value, output: Option<Output>) -> Result<Record, Self::Fault> {
        // Roughly in the order of the columns: SQLite finds them faster that way.
        let id = self.text("id")?;
        let owner = OwnerId::new(self.text("owner")?);
        let conversation = self.maybe_text("conversation")?.map(ConversationId::new);
        let turn = self.small("turn")?;
        let new = NewJob {
            owner,
            conversation,
            subject: None,
            profile: Profile::new(self.text("profile")?),
            workflow: self.text("workflow")?,
            title: self.text("title")?,
            request: ask.into(),
            priority: self.small("priority")?,
            visibility: self.word(&id, "visibility")?,
            max_failures: self.small("max_failures")?,
            attempt_timeout: self.duration("attempt_timeout")?,
            life: self.maybe_duration("life")?,
            keep: self.maybe_duration("keep")?,
        };
        let state = self.job_state(&id, output)?;
        let fence = Fence(self.count("fence")?);
        let holder = match self.maybe_text("worker")? {
            Some(worker) => {
                Some(Holder { worker: WorkerId::new(worker), until: self.time("lease_until")? })
            }
            None => None,
        };
        let mut job = Job {
            id: job_id(&id)?,
            new,
            turn,
            state,
            checkpoint: self.json(&id, CHECKPOINT)?,
            failures: self.json(&id, "failures")?,
            allowance: None,
            progress: self.progress()?,
            // Callers that need it read it in a separate query.
            partial: None,
            questions: Questions::default(),
            fence,
            created_at: self.time("created_at")?,
            updated_at: self.time("updated_at")?,
            rev: Rev(self.count("rev")?),
        };
        let bytes = self.count("bytes")?;
        if let Some(text) = self.maybe_text("allowance")? {
            job.allowance = Some(parse(&id, "allowance", &text)?);
        }
        let notice = match self.maybe_number("notice")? {
            None | Some(0) => EndNotices::Off,
            Some(_) => EndNotices::Kept,
        };
        job.new.subject =
            self.maybe_text("subject")?.map(|subject| job_id(&subject)).transpose()?;
        if let Some(text) = self.maybe_text("questions")? {
            job.questions = parse(&id, "questions", &text)?;
            if job.state.kind().is_terminal() {
                job.questions.current = None;
            }
        }
        Ok(Record { job, holder, bytes, notice })
    }

    /// The state of a job as it is shown, in a row with the column of [`crate::listing::waiting_column`].
    fn shown_state(&self, id: &str) -> Result<StateKind, Self::Fault> {
        Ok(match self.number("waiting")? {
            0 => self.state_kind(id)?,
            _ => StateKind::Waiting,
        })
    }

    fn job_state(&self, id: &str, output: Option<Output>) -> Result<JobState, Self::Fault> {
        Ok(match self.state_kind(id)? {
            StateKind::Queued => JobState::Queued { run_at: self.time("run_at")? },
            StateKind::Running => JobState::Running { since: self.time("since")? },
            // Not stored: an open question is another row.
            StateKind::Waiting => return Err(report_damage(id, "state").into()),
            StateKind::Succeeded => {
                let output = Arc::new(output.ok_or_else(|| report_damage(id, "output"))?);
                JobState::Succeeded { at: self.time("ended_at")?, output }
            }
            StateKind::Failed => JobState::Failed { at: self.time("ended_at")? },
            StateKind::Cancelled => {
                let word: StopWord = self.word(id, "remote")?;
                let AfterCancel { after_cancel } = self.json(id, CHECKPOINT)?;
                let (remote, cost) = word.with(after_cancel);
                JobState::Cancelled { at: self.time("ended_at")?, remote, cost }
            }
        })
    }

    /// Returns the code of the last failed attempt; `None` for a code of a later version.
    fn last_code(&self) -> Result<Option<Code>, Self::Fault> {
        Ok(self.maybe_text("code")?.and_then(|code| Code::parse(&code)))
    }

    fn progress(&self) -> Result<Option<Progress>, Self::Fault> {
        let percent = self.maybe_number("percent")?;
        let Some(message) = self.maybe_text("message")? else { return Ok(None) };
        let percent = percent.map(|percent| small("percent", percent)).transpose()?;
        Ok(Some(Progress { percent, message }))
    }

    /// Reads a row of a list, and its number.
    fn summary(&self) -> Result<(u64, Summary), Self::Fault> {
        // In the order of the columns: SQLite finds them faster that way.
        let seq = self.count("seq")?;
        let id = self.text("id")?;
        let mut summary = Summary {
            id: job_id(&id)?,
            owner: OwnerId::new(self.text("owner")?),
            conversation: self.maybe_text("conversation")?.map(ConversationId::new),
            workflow: self.text("workflow")?,
            title: self.text("title")?,
            visibility: self.word(&id, "visibility")?,
            state: self.shown_state(&id)?,
            failures: self.small("failed")?,
            was_claimed: self.count("fence")? > 0,
            session: self.maybe_text("session")?,
            progress: self.progress()?,
            created_at: self.time("created_at")?,
            updated_at: self.time("updated_at")?,
            ended_at: self.maybe_time("ended_at")?,
            provider: self.text("provider")?,
            model: self.maybe_text("model")?,
            charge: self.charge()?,
            code: None,
        };
        if summary.failures > 0 {
            summary.code = self.last_code()?;
        }
        Ok((seq, summary))
    }

    /// Reads the columns of [`crate::ledger_columns::charge_columns`].
    fn charge(&self) -> Result<Option<SummaryCharge>, Self::Fault> {
        let amount = self.maybe_number("charged")?;
        let is_final = self.count("open_charges")? == 0;
        Ok(amount.map(|amount| SummaryCharge { amount: NanoUsd(amount.unsigned_abs()), is_final }))
    }

    /// Reads a row of a list of conversations, and its number.
    fn conversation(&self) -> Result<(u64, ConversationSummary), Self::Fault> {
        let summary = ConversationSummary {
            id: ConversationId::new(self.text("conversation")?),
            title: self.text("title")?,
            state: self.shown_state(&self.text("id")?)?,
            turns: self.small("turns")?,
            reports: self.small("reports")?,
            created_at: self.time("created_at")?,
            updated_at: self.time("updated_at")?,
        };
        Ok((self.count("seq")?, summary))
    }

    /// Reads a row of the changes.
    fn change(&self) -> Result<Change, Self::Fault> {
        let id = self.text("id")?;
        let state = self.state_kind(&id)?;
        let uncarried =
            HeldCallState::new(state, self.word(&id, "visibility")?, self.count("fence")? > 0);
        let in_conversation = self.maybe_text("conversation")?.is_some();
        Ok(Change { id: self.job_id()?, state, uncarried, in_conversation })
    }

    /// The key in a row, if there is one.
    fn key(&self) -> Result<Option<KeyRecord>, Self::Fault> {
        let Some(input_hash) = self.maybe_bytes("input_hash")? else { return Ok(None) };
        let damaged = |column: &str| corrupt(format!("{column} of a key"));
        let after_end = self.duration("span")?;
        let answered = self.maybe_duration("span_answered")?;
        Ok(Some(KeyRecord {
            input_hash: input_hash.try_into().map_err(|_| damaged("input_hash"))?,
            made_at: self.time("made_at")?,
            life: match (self.text("holds")?.as_str(), answered) {
                ("for", _) => KeyLife::For(after_end),
                ("until_answered", None) => KeyLife::UntilAnswered { after_end },
                ("until_answered", Some(answered)) => {
                    KeyLife::Replays { unanswered: after_end, answered }
                }
                _ => return Err(damaged("holds").into()),
            },
            answered_at: self.maybe_time("answered_at")?,
        }))
    }

    /// The identity of a call in a row; `None` if its digest is damaged.
    fn identity(&self) -> Result<Option<IdentityRecord>, Self::Fault> {
        let question = self.maybe_bytes("question")?.and_then(|bytes| bytes.try_into().ok());
        let Some(question) = question else { return Ok(None) };
        let unanswered = self.duration("span")?;
        Ok(Some(IdentityRecord {
            question,
            provider: self.text("provider")?,
            model: self.maybe_text("model")?,
            mode: if self.number("fresh")? == 0 { CallMode::Attach } else { CallMode::Fresh },
            made_at: self.time("made_at")?,
            life: KeyLife::Replays { unanswered, answered: self.duration("span_answered")? },
            answered_at: self.maybe_time("answered_at")?,
        }))
    }
}

/// The validity of a call's identity, as two columns: `span` and `span_answered`.
pub(crate) fn identity_life(life: KeyLife) -> (i64, i64) {
    match life {
        KeyLife::Replays { unanswered, answered } => (millis(unanswered), millis(answered)),
        KeyLife::UntilAnswered { after_end } | KeyLife::For(after_end) => {
            (millis(after_end), millis(after_end))
        }
    }
}

fn small<T: TryFrom<i64>>(column: &str, number: i64) -> Result<T, StoreError> {
    number.try_into().map_err(|_| corrupt(format!("{column} of {number}")))
}

/// The values of a state that have separate columns.
#[derive(Default)]
pub(crate) struct StateColumns {
    pub(crate) run_at: Option<i64>,
    pub(crate) since: Option<i64>,
    pub(crate) remote: Option<String>,
}

impl StateColumns {
    pub(crate) fn of(state: &JobState) -> Result<Self, StoreError> {
        let mut columns = Self::default();
        match state {
            JobState::Queued { run_at } => columns.run_at = Some(run_at.as_millis()),
            JobState::Running { since } => columns.since = Some(since.as_millis()),
            JobState::Cancelled { remote, .. } => {
                columns.remote = Some(word(&StopWord::of(*remote))?);
            }
            JobState::Succeeded { .. } | JobState::Failed { .. } => {}
        }
        Ok(columns)
    }
}

const CHECKPOINT: &str = "checkpoint";

/// The value of the column `remote`: the words of the first schema. Earlier versions, which may be running on the same
/// database, know no other words. [`AfterCancel`] holds the details that these words cannot express; earlier versions ignore
/// it.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum StopWord {
    NotNeeded,
    MaybeBegun,
    Owed,
    Done,
    Unsupported,
}

/// The part of the column `checkpoint` that only a cancelled job has.
#[derive(Deserialize)]
struct AfterCancel {
    #[serde(default, deserialize_with = "deserialize_known")]
    after_cancel: Option<FoundRun>,
}

/// The outcome of a run, found after the cancel.
#[derive(Serialize, Deserialize)]
struct FoundRun {
    run: FoundWord,
    cost: Cost,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum FoundWord {
    Ended,
    Completed,
    GoesOn,
}

impl StopWord {
    fn of(remote: RemoteStop) -> Self {
        match remote {
            RemoteStop::NotNeeded => Self::NotNeeded,
            RemoteStop::MaybeBegun => Self::MaybeBegun,
            RemoteStop::Owed => Self::Owed,
            RemoteStop::Told | RemoteStop::Ended => Self::Done,
            // Earlier versions show it this way: the run may go on, and a new run needs the user's consent.
            RemoteStop::Completed | RemoteStop::GoesOn | RemoteStop::Unsupported => {
                Self::Unsupported
            }
        }
    }

    /// Returns the state of the stop and the cost of the run, as far as they are known.
    fn with(self, found: Option<FoundRun>) -> (RemoteStop, Cost) {
        let (word, cost) = found.map(|found| (found.run, found.cost)).unzip();
        let remote = match (self, word) {
            (Self::NotNeeded, _) => RemoteStop::NotNeeded,
            (Self::MaybeBegun, _) => RemoteStop::MaybeBegun,
            (Self::Owed, _) => RemoteStop::Owed,
            (Self::Done, Some(FoundWord::Ended)) => RemoteStop::Ended,
            (Self::Done, _) => RemoteStop::Told,
            (Self::Unsupported, Some(FoundWord::Completed)) => RemoteStop::Completed,
            (Self::Unsupported, Some(FoundWord::GoesOn)) => RemoteStop::GoesOn,
            (Self::Unsupported, _) => RemoteStop::Unsupported,
        };
        (remote, cost.unwrap_or(Cost::Unknown))
    }
}

/// Treats a value from a later version as absent.
fn deserialize_known<'de, D: Deserializer<'de>>(value: D) -> Result<Option<FoundRun>, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(value)?).ok())
}

/// The column `checkpoint` of a job.
pub(crate) fn checkpoint_column(job: &Job) -> Result<String, StoreError> {
    let JobState::Cancelled { remote, cost, .. } = job.state else { return json(&job.checkpoint) };
    let run = match remote {
        RemoteStop::Ended => FoundWord::Ended,
        RemoteStop::Completed => FoundWord::Completed,
        RemoteStop::GoesOn => FoundWord::GoesOn,
        RemoteStop::NotNeeded
        | RemoteStop::MaybeBegun
        | RemoteStop::Owed
        | RemoteStop::Told
        | RemoteStop::Unsupported => return json(&job.checkpoint),
    };
    let unserialisable = |error: serde_json::Error| StoreError::Unavailable(error.into());
    let mut checkpoint = serde_json::to_value(&job.checkpoint).map_err(unserialisable)?;
    checkpoint["after_cancel"] =
        serde_json::to_value(FoundRun { run, cost }).map_err(unserialisable)?;
    json(&checkpoint)
}

/// The validity of a key, as three columns: `holds`, `span` and `span_answered`.
pub(crate) fn key_life(life: KeyLife) -> (&'static str, i64, Option<i64>) {
    match life {
        KeyLife::For(window) => ("for", millis(window), None),
        KeyLife::UntilAnswered { after_end } => ("until_answered", millis(after_end), None),
        KeyLife::Replays { unanswered, answered } => {
            ("until_answered", millis(unanswered), Some(millis(answered)))
        }
    }
}

/// The column for the most that a job's paid runs may cost.
pub(crate) fn allowance(job: &Job) -> Result<Option<String>, StoreError> {
    job.allowance.as_ref().map(json).transpose()
}

/// The columns of a job's questions, if it has asked any: `is_open` and `questions`.
pub(crate) fn questions_row(job: &Job) -> Result<Option<(i64, String)>, StoreError> {
    if job.questions.is_empty() {
        return Ok(None);
    }
    Ok(Some((i64::from(job.questions.open().is_some()), json(&job.questions)?)))
}

/// The column that records whether a notice of the end is wanted.
pub(crate) fn notice(notice: EndNotices) -> i64 {
    match notice {
        EndNotices::Off => 0,
        EndNotices::Kept => 1,
    }
}

/// A report text of at least this many bytes has a separate column.
pub(crate) const LONG_TEXT: usize = 64 * 1024;

/// Splits a result into the text of a long report and the rest.
pub(crate) fn split_text(output: &Output) -> (Cow<'_, Output>, Option<&str>) {
    match &output.body {
        Body::Report { text, sources, thinking, related } if text.len() >= LONG_TEXT => {
            let body = Body::Report {
                text: String::new(),
                sources: sources.clone(),
                thinking: thinking.clone(),
                related: related.clone(),
            };
            let Output { body: _, model, usage, cost } = output;
            let (model, usage, cost) = (model.clone(), usage.clone(), *cost);
            (Cow::Owned(Output { body, model, usage, cost }), Some(text))
        }
        Body::Report { .. } | Body::Tool { .. } => (Cow::Borrowed(output), None),
    }
}

/// Puts the text back into a long report. Returns `None` if the bytes are not text or the result is not a report.
pub(crate) fn join_text(mut output: Output, text: Vec<u8>) -> Option<Output> {
    match &mut output.body {
        Body::Report { text: place, .. } => *place = String::from_utf8(text).ok()?,
        Body::Tool { .. } => return None,
    }
    Some(output)
}

/// Parses the id that a column holds as text.
pub(crate) fn job_id(text: &str) -> Result<JobId, StoreError> {
    text.parse().map_err(|_| report_damage(text, "id"))
}

/// Converts a number that counts up from zero.
pub(crate) fn to_signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The change number in a column.
pub(crate) fn rev(value: i64) -> Rev {
    Rev(value.unsigned_abs())
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// A value as JSON text.
pub(crate) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unavailable(error.into()))
}

/// Returns a unit variant as its name in JSON, so that SQL and JSON use the same word.
pub(crate) fn word(value: &impl Serialize) -> Result<String, StoreError> {
    Ok(json(value)?.trim_matches('"').to_owned())
}

/// Parses the JSON text in a column of a job.
pub(crate) fn parse<T: DeserializeOwned>(
    id: &str,
    column: &str,
    text: &str,
) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| report_damage(id, column))
}

pub(crate) fn report_damage(id: &str, column: &str) -> StoreError {
    corrupt(format!("{column} of job {id}"))
}

fn corrupt(at: String) -> StoreError {
    StoreError::Corrupt { at }
}

fn empty<F: From<StoreError>>(column: &str) -> F {
    corrupt(format!("empty column {column}")).into()
}
