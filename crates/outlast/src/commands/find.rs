//! Finds a job or a conversation by a person's input: the whole id, or a unique prefix.

use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, ConversationQuery, ConversationSummary, Job, JobId, JobQuery, StateKind,
};
use outlast_mirror::ArchivedConversation;

use super::engine::CommandSession;
use crate::error::{CommandError, CommandResult, refuse};
use crate::ui;

/// The shortest prefix of an id that is accepted: shorter ones are typing mistakes.
const SHORTEST_PREFIX: usize = 8;
/// The source of job ids.
const JOB_IDS: &str = "`outlast jobs list` shows the ids";
/// The number of ids that are shown for an ambiguous prefix.
const SHOWN: usize = 5;
/// The number of conversations that are read at a time.
const CONVERSATIONS_PER_PAGE: u32 = 1_000;

/// Returns the job with this id or unique prefix.
pub(super) async fn job(session: &CommandSession<'_>, given: &str) -> CommandResult<Job> {
    if let Some(job) = job_if_any(session, given).await? {
        return Ok(job);
    }
    if let Some(failed) = is_conversation(session, given).await? {
        return Err(failed);
    }
    if is_job_prefix(given) {
        return Err(CommandError::failed(format!("there is no job `{given}`"), JOB_IDS));
    }
    let hint = format!("give 8 to 32 lower-case hexadecimal digits; {JOB_IDS}");
    refuse(format!("`{}` is not the id of a job", ui::short(given, 64)), hint)
}

fn is_job_prefix(given: &str) -> bool {
    (SHORTEST_PREFIX..=32).contains(&given.len())
        && given.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Returns the job with this id or unique prefix, if there is one.
pub(super) async fn job_if_any(
    session: &CommandSession<'_>,
    given: &str,
) -> CommandResult<Option<Job>> {
    let (engine, scope) = (&session.engine, session.own());
    let id_prefix = Some(given.to_owned());
    let query = JobQuery { id_prefix, limit: SHOWN as u32, ..JobQuery::default() };
    let ids: Vec<JobId> = match given.parse() {
        _ if !is_job_prefix(given) => Vec::new(),
        Ok(id) => vec![id],
        Err(_) => engine.list(&scope, &query).await?.jobs.iter().map(|job| job.id).collect(),
    };
    match ids.as_slice() {
        [id] => Ok(engine.job(&scope, id).await?),
        [] => Ok(None),
        many => Err(ambiguous("jobs", given, many)),
    }
}

/// Returns an error if a job was requested and this is a conversation.
async fn is_conversation(
    session: &CommandSession<'_>,
    given: &str,
) -> CommandResult<Option<CommandError>> {
    let is_prefix = given.len() >= SHORTEST_PREFIX;
    let found = if is_prefix { find_by_start(session, given).await? } else { Vec::new() };
    let [id] = found.as_slice() else { return Ok(None) };
    let hint = format!("`outlast conversations show {id}` shows it, with the ids of its jobs");
    Ok(Some(CommandError::failed(format!("`{given}` is a conversation, not a job"), hint)))
}

/// Returns an error if a conversation was requested and this is a job.
async fn is_job(session: &CommandSession<'_>, given: &str) -> CommandResult<Option<CommandError>> {
    let query = JobQuery { id_prefix: Some(given.to_owned()), limit: 2, ..JobQuery::default() };
    let found = session.engine.list(&session.own(), &query).await?.jobs;
    let [job] = found.as_slice() else { return Ok(None) };
    let hint = match &job.conversation {
        Some(id) => format!("it is a turn of the conversation {id}"),
        None => "it belongs to no conversation".to_owned(),
    };
    let hint = format!("{hint}; `outlast jobs show {}` shows it", job.id);
    Ok(Some(CommandError::failed(format!("`{given}` is a job, not a conversation"), hint)))
}

/// A conversation, and its source.
pub(super) enum FoundConversation {
    /// From the store.
    Stored(Box<Conversation>),
    /// Only from its files: an older server wrote it, or the store is gone.
    Archived(Box<ArchivedConversation>),
}

/// Returns the conversation with this id or unique prefix.
pub(super) async fn conversation(
    session: &CommandSession<'_>,
    given: &str,
) -> CommandResult<FoundConversation> {
    let hint = "`outlast conversations list` shows the ids";
    let is_prefix = (SHORTEST_PREFIX..=64).contains(&given.len())
        && given.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    if !is_prefix {
        let hint = format!("give its first 8 characters or more; {hint}");
        return refuse(format!("`{}` is not the id of a conversation", ui::short(given, 64)), hint);
    }
    if let Some(found) = conversation_if_any(session, given).await? {
        return Ok(found);
    }
    let none = || CommandError::failed(format!("there is no conversation `{given}`"), hint);
    Err(is_job(session, given).await?.unwrap_or_else(none))
}

/// Returns the conversation with this id or unique prefix, if there is one.
pub(super) async fn conversation_if_any(
    session: &CommandSession<'_>,
    given: &str,
) -> CommandResult<Option<FoundConversation>> {
    if let Some(found) = whole(session, &ConversationId::new(given)).await? {
        return Ok(Some(found));
    }
    let ids = find_by_start(session, given).await?;
    match ids.as_slice() {
        [id] => whole(session, id).await,
        [] => Ok(None),
        many => Err(ambiguous("conversations", given, many)),
    }
}

async fn whole(
    session: &CommandSession<'_>,
    id: &ConversationId,
) -> CommandResult<Option<FoundConversation>> {
    let owner = &session.config.owner;
    if let Some(stored) = session.engine.conversation(owner, id).await? {
        return Ok(Some(FoundConversation::Stored(Box::new(stored))));
    }
    let Some(mirror) = &session.mirror else { return Ok(None) };
    let archived = mirror.read_archived(owner, id).await?;
    Ok(archived.map(|archived| FoundConversation::Archived(Box::new(archived))))
}

/// Returns the ids with this prefix, at most as many as an answer names.
async fn find_by_start(
    session: &CommandSession<'_>,
    given: &str,
) -> CommandResult<Vec<ConversationId>> {
    let starts = |found: &ConversationSummary| found.id.as_str().starts_with(given);
    let mut ids = conversations(session, Vec::new(), starts).await?;
    ids.truncate(SHOWN);
    Ok(ids)
}

/// Returns the ids of the wanted conversations in these states, or in any.
pub(super) async fn conversations(
    session: &CommandSession<'_>,
    states: Vec<StateKind>,
    is_wanted: impl Fn(&ConversationSummary) -> bool,
) -> CommandResult<Vec<ConversationId>> {
    let limit = CONVERSATIONS_PER_PAGE;
    let mut query = ConversationQuery { states, limit, ..ConversationQuery::default() };
    let mut ids = Vec::new();
    loop {
        let page = session.engine.conversations(&session.config.owner, &query).await?;
        ids.extend(page.conversations.into_iter().filter(&is_wanted).map(|found| found.id));
        if page.next.is_none() {
            return Ok(ids);
        }
        query.after = page.next;
    }
}

fn ambiguous(what: &str, given: &str, ids: &[impl std::fmt::Display]) -> CommandError {
    let list = ids.iter().map(|id| format!("  {id}")).collect::<Vec<_>>().join("\n");
    let why = format!("several {what} start with `{given}`:\n{list}");
    CommandError::wrong(why, "give more of the id")
}
