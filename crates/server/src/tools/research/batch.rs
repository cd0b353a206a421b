//! Reads several conversations at once, and waits for all of them (B16). One that cannot be read never hides another.

use outlast_core::{ConversationId, JobId};
use rmcp::model::JsonObject;
use serde_json::{Value, json};

use super::Research;
use super::arguments::{HistoriesArguments, check_count, conversation_id};
use super::history::{Show, ShownConversation};
use crate::arguments;
use crate::caller::Caller;
use crate::quoted::TextBlocks;
use crate::reply::{Refusal, ToolResult, answer_with_blocks, without_nulls};
use crate::text::echo_id;
use crate::tool_names::research::{AWAIT, HISTORY, LIST};
use crate::wait::{self, IdOrigin, OnQuestion};

/// The extent of the wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchWait {
    /// The call did not wait.
    No,
    /// All of them ended.
    ToTheEnd,
    /// Some of them have not ended.
    InPart,
}

impl Research {
    pub(super) async fn histories(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let (ids, show) = read(given)?;
        self.batch(caller, &ids, show).await
    }

    pub(super) async fn await_histories(
        &self,
        caller: &mut Caller,
        given: JsonObject,
    ) -> ToolResult {
        let (ids, show) = read(given)?;
        // A caller that receives progress can wait forever; the time limits of other callers are unknown.
        let budget = caller.progress.is_none().then_some(self.options.inline_budget);
        let all = self.all_ended(caller, &ids);
        let waited = match budget {
            Some(budget) => tokio::time::timeout(budget, all).await.unwrap_or(BatchWait::InPart),
            None => all.await,
        };
        self.present(caller, &ids, show, waited).await
    }

    /// Returns the current state of all.
    pub(super) async fn batch(&self, caller: &Caller, ids: &[String], show: Show) -> ToolResult {
        self.present(caller, ids, show, BatchWait::No).await
    }

    async fn present(
        &self,
        caller: &Caller,
        ids: &[String],
        show: Show,
        waited: BatchWait,
    ) -> ToolResult {
        let mut entries = JsonObject::new();
        let (mut read, mut unfinished) = (0, 0);
        let mut text = TextBlocks::new("", format!("**{} conversations**", ids.len()));
        for given in ids {
            let name = echo_id(given);
            if entries.contains_key(&name) {
                continue;
            }
            let entry = match self.entry(caller, given, show).await {
                Ok(shown) => {
                    read += 1;
                    unfinished += u32::from(!shown.status.status.state().is_terminal());
                    let mut entry = json!({ "status": shown.status, "progress": shown.progress });
                    entry["conversation"] = shown.conversation;
                    text.line(&format!("\n`{name}`:"));
                    text.append(shown.blocks);
                    without_nulls(entry)
                }
                Err((code, message)) => {
                    text.line(&format!("\n`{name}`: {code}: {message}"));
                    json!({ "error": { "code": code, "message": message } })
                }
            };
            entries.insert(name, entry);
        }
        let errors = entries.len() - read;
        text.line(&format!(
            "\n{read} read, {errors} not found or not readable, {unfinished} not yet ended."
        ));
        match waited {
            // An unknown id has no result to wait for, however long the search for it took.
            BatchWait::InPart if unfinished > 0 => text.line(&format!(
                "Not all have ended. Call `{AWAIT}` again with the same ids to go on waiting; nothing is lost and \
                 nothing runs twice."
            )),
            BatchWait::No if unfinished > 0 => {
                text.line("Not all have ended. Ask again in half a minute.");
            }
            BatchWait::No | BatchWait::ToTheEnd | BatchWait::InPart => {}
        }
        Ok(answer_with_blocks(text.finish(), Value::Object(entries)))
    }

    /// Returns one conversation, or a code and a sentence with the reason.
    async fn entry(
        &self,
        caller: &Caller,
        given: &str,
        show: Show,
    ) -> Result<ShownConversation, (&'static str, String)> {
        let Some(id) = conversation_id(given) else {
            let why = "this cannot be the id of a conversation: 8 to 64 of A-Z a-z 0-9 _ -";
            return Err(("INVALID_ID", why.to_owned()));
        };
        match self.show(caller, &id, show).await {
            Ok(Some(shown)) => Ok(shown),
            Ok(None) => Err((
                "NOT_FOUND",
                format!("there is no such conversation; check the id, or find it with {LIST}"),
            )),
            Err(refusal) => {
                tracing::warn!(conversation.id = %id, ?refusal, "a conversation of a batch cannot be read");
                Err((
                    "RETRIEVAL_ERROR",
                    format!("the conversation cannot be read just now; try {HISTORY} later"),
                ))
            }
        }
    }

    /// Waits until every conversation has ended, one after the other: the order does not matter, because the slowest
    /// determines the end.
    async fn all_ended(&self, caller: &mut Caller, ids: &[String]) -> BatchWait {
        let mut open = Vec::new();
        for id in ids.iter().filter_map(|given| conversation_id(given)) {
            open.extend(self.find_unfinished(caller, &id).await.ok().flatten());
        }
        for (done, job) in open.iter().enumerate() {
            if let Some(reporter) = &mut caller.progress {
                reporter.part_of(done, open.len());
            }
            match wait::for_job(&self.engine, caller, job, None, IdOrigin::Any, OnQuestion::AskUser)
                .await
            {
                Ok(Some(reading)) if !reading.job.state.kind().is_terminal() => {
                    return BatchWait::InPart;
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(job.id = %job, %error, "a conversation cannot be waited for");
                    return BatchWait::InPart;
                }
            }
        }
        BatchWait::ToTheEnd
    }

    /// Returns the last job of a conversation, if it is unfinished.
    pub(super) async fn find_unfinished(
        &self,
        caller: &Caller,
        id: &ConversationId,
    ) -> Result<Option<JobId>, Refusal> {
        let Some(read) = self.engine.conversation(&caller.owner, id).await? else {
            return Ok(None);
        };
        let last = read.last();
        Ok((!last.state.kind().is_terminal()).then_some(last.id))
    }
}

fn read(given: JsonObject) -> Result<(Vec<String>, Show), Refusal> {
    let arguments: HistoriesArguments = arguments::read(given)?;
    check_count("conversationIds", &arguments.conversation_ids)?;
    let (system, thinking) = (arguments.include_system_prompt, arguments.show_thinking);
    let show = Show { system, thinking, offset: None };
    Ok((arguments.conversation_ids, show))
}

#[cfg(test)]
mod tests {
    use outlast_core::Cost;

    use super::super::ResearchMode;
    use super::super::tests::{Oracle, research};
    use super::*;

    /// E7: the answer does not reveal how long the store searched, and never makes a model wait for a job that does not
    /// exist.
    #[tokio::test]
    async fn e7_a_wait_for_what_never_was_is_over_however_long_it_took() {
        let set = research(Oracle::answering(None, Cost::Unknown), ResearchMode::Queued).await;
        let ids = ["0".repeat(32)];
        let show = Show::default();
        let mut said = Vec::new();
        for waited in [BatchWait::ToTheEnd, BatchWait::InPart] {
            let told = set.present(&Caller::test("ann"), &ids, show, waited).await.unwrap();
            said.push(serde_json::to_string(&told).unwrap());
        }
        assert!(said[0].contains("NOT_FOUND"), "{}", said[0]);
        assert_eq!(said[0], said[1]);
    }
}
