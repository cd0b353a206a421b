//! `check_citations`: compares a report, or any Markdown text, with the pages that it cites (J1). Free.

use std::fmt::Write as _;

use outlast_core::conversation::Conversation;
use outlast_core::{
    CallMode, FetchConsent, Job, JobState, NewJob, RequestContent, Role, printable,
};
use outlast_engine::StartOutcome;
use outlast_mirror::StatusWord;
use outlast_sources::{CheckedClaim, CitationCheck};
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::Research;
use super::arguments::conversation_id;
use super::ask::not_found;
use crate::arguments::{self, check};
use crate::caller::Caller;
use crate::citations::{citation_check, last_report};
use crate::quoted::{Quotation, TextBlocks};
use crate::reply::{
    CallResult, Refusal, ToolResult, answer_with_blocks, answer_with_text, without_nulls,
};
use crate::tool_names::research::{CHECK_CITATIONS, HISTORY};
use crate::tools::outcome::outcome;
use crate::wait::{self, IdOrigin, OnQuestion};

/// The maximum number of characters of a text.
const MAX_TEXT_CHARS: usize = 1_000_000;
/// The maximum number of claims in the text of an answer; the structured content has all.
const MAX_SHOWN_CLAIMS: usize = 50;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckArguments {
    #[serde(rename = "conversationId")]
    conversation_id: Option<String>,
    message: Option<usize>,
    #[serde(default)]
    fresh: bool,
    text: Option<String>,
}

impl Research {
    pub(super) async fn check_citations(
        &self,
        caller: &mut Caller,
        given: JsonObject,
    ) -> ToolResult<CallResult> {
        let arguments: CheckArguments = arguments::read(given)?;
        let started = match (&arguments.conversation_id, &arguments.text) {
            (Some(id), None) => match self.check_report(caller, id, &arguments).await? {
                CheckStart::Known(check) => return Ok(answered(&check)?.into()),
                CheckStart::Started(started) => *started,
            },
            (None, Some(text)) => {
                check(arguments.message.is_none() && !arguments.fresh, || {
                    "message and fresh need conversationId".to_owned()
                })?;
                self.check_text(caller, text).await?
            }
            (Some(_), Some(_)) | (None, None) => {
                return Err(Refusal::validation("give either conversationId or text"));
            }
        };
        if caller.takes_tasks && !started.job.state.kind().is_terminal() {
            return Ok(CallResult::Task(Box::new(started.job)));
        }
        let id = started.job.id;
        let whose = if started.existed { IdOrigin::Any } else { IdOrigin::JustMade };
        let reading =
            wait::for_job(&self.engine, caller, &id, None, whose, OnQuestion::Nothing).await?;
        let removed = "the report was removed while it was checked";
        let job = reading.ok_or_else(|| Refusal::validation(removed))?.job;
        let state = job.state.kind();
        match self.check_outcome(&job) {
            Some(outcome) => outcome.map(Into::into),
            None => Ok(CallResult::from_start(unfinished(&job), id, state)),
        }
    }

    /// Returns the answer that the call which started the check would have got; `None` while it is unfinished.
    pub(crate) fn check_outcome(&self, job: &Job) -> Option<ToolResult> {
        outcome(job, |_| answered(job))
    }

    async fn check_report(
        &self,
        caller: &Caller,
        given: &str,
        arguments: &CheckArguments,
    ) -> Result<CheckStart, Refusal> {
        let id = conversation_id(given).ok_or_else(|| not_found(given))?;
        let found = self.engine.conversation(&caller.owner, &id).await?;
        let conversation = found.ok_or_else(|| not_found(given))?;
        let report = match arguments.message {
            None => last_report(&conversation),
            Some(number) => report_at(&conversation, number),
        };
        let report = report.ok_or_else(|| {
            Refusal::validation(match arguments.message {
                None => format!("the conversation has no report yet; {HISTORY} shows its state"),
                Some(number) => format!(
                    "message {number} is not a report; {HISTORY} lists the messages, from 0"
                ),
            })
        })?;
        let known = self.engine.finished_check(&caller.scope(), &report.id).await?;
        if let Some(known) = known.filter(|_| !arguments.fresh) {
            return Ok(CheckStart::Known(Box::new(known)));
        }
        if report.holds_library_text() && !report.is_of_library() {
            return Err(Refusal::validation(format!(
                "conversationId: the report has text of local documents, which the addresses of its sources \
                 could reveal; a person can check it with `outlast check {} --yes`",
                report.id
            )));
        }
        let mode = if arguments.fresh { CallMode::Fresh } else { CallMode::Attach };
        let consent = FetchConsent::NotGiven;
        let started = self.engine.start_check(report, CHECK_CITATIONS, consent, mode).await?;
        let started = started.ok_or_else(|| Refusal::validation("there is no report"))?;
        Ok(CheckStart::Started(Box::new(started)))
    }

    async fn check_text(&self, caller: &Caller, text: &str) -> Result<StartOutcome, Refusal> {
        let length = text.chars().count();
        check((1..=MAX_TEXT_CHARS).contains(&length), || {
            format!("text must have 1 to {MAX_TEXT_CHARS} characters, not {length}")
        })?;
        let title: String = text.trim_start_matches(['#', ' ', '\n']).chars().take(80).collect();
        let title = title.lines().next().unwrap_or_default();
        let digest = Sha256::digest(text).into();
        let job = NewJob::check_of_text(caller.owner.clone(), title, text.to_owned());
        let job = job.with_tool(CHECK_CITATIONS).with_traceparent(caller.trace.as_ref());
        Ok(self.engine.start_document_check(job, digest).await?)
    }
}

/// The begin of a check.
enum CheckStart {
    /// The report was checked before.
    Known(Box<Job>),
    Started(Box<StartOutcome>),
}

/// Returns the turn whose report is this message of the conversation's history, counted from 0 without instructions.
fn report_at(conversation: &Conversation, number: usize) -> Option<&Job> {
    let mut next = 0;
    for (at, turn) in conversation.turns().enumerate() {
        let sent = turn.new.request.research().map_or(1, |ask| {
            ask.messages.iter().filter(|message| message.role != Role::System).count()
        });
        next += if at == 0 { sent } else { 1 };
        if turn.output().is_some() {
            if next == number {
                return Some(turn);
            }
            next += 1;
        }
    }
    None
}

fn conversation_of(job: &Job) -> Option<&str> {
    match job.new.request.content() {
        RequestContent::CitationCheck(check) => check.conversation.as_deref(),
        RequestContent::Research(_)
        | RequestContent::Workflow(_)
        | RequestContent::Unreadable { .. } => None,
    }
}

/// Returns the answer with the result of a check.
fn answered(job: &Job) -> ToolResult {
    let check = citation_check(job).ok_or_else(Refusal::internal)?;
    let id = conversation_of(job);
    let shape = without_nulls(json!({
        "conversationId": id,
        "status": StatusWord::Completed,
        "citationCheck": check,
    }));
    let mut text = TextBlocks::new(id.unwrap_or(&job.id.to_string()), summary(&check));
    let doubtful: Vec<_> =
        check.claims.iter().filter(|claim| claim.verdict.is_doubtful()).collect();
    if !doubtful.is_empty() {
        let shown: String =
            doubtful.iter().take(MAX_SHOWN_CLAIMS).map(|claim| line(claim)).collect();
        text.quote(Quotation::Passages, &printable(shown.trim_end()));
        if let Some(more) = doubtful.len().checked_sub(MAX_SHOWN_CLAIMS).filter(|more| *more > 0) {
            text.line(&format!("{more} more are in the structured content."));
        }
    }
    Ok(answer_with_blocks(text.finish(), shape))
}

fn summary(check: &CitationCheck) -> String {
    format!(
        "{}.\n\"supported\" means that the facts were found in the source, not that the sentence is true.",
        check.summary()
    )
}

/// Renders a claim with what was found.
fn line(claim: &CheckedClaim) -> String {
    let numbers: String = claim.citations.iter().map(|number| format!("[{number}]")).collect();
    let mut line = format!("- {}: {} {numbers}\n", claim.verdict.as_str(), claim.text);
    if let Some(found) = &claim.found {
        let _ = writeln!(line, "  the source has: {found}");
    } else if !claim.missing.is_empty() {
        let _ = writeln!(line, "  not found: {}", claim.missing.join("; "));
    }
    if let Some(reason) = claim.reason {
        let _ = writeln!(line, "  {}", reason.words());
    }
    line
}

/// Returns the answer while the check is still running: this server is stopping.
fn unfinished(job: &Job) -> rmcp::model::CallToolResult {
    let status = match job.state {
        JobState::Queued { .. } => StatusWord::Pending,
        _ => StatusWord::from(job.kind()),
    };
    let shape = without_nulls(json!({ "conversationId": conversation_of(job), "status": status }));
    answer_with_text(
        "The check goes on; make the same call again for its result.".to_owned(),
        shape,
    )
}
