//! Reading several conversations at once, and waiting for all of them (B16). One that cannot be read never hides another.

use std::collections::BTreeMap;

use outlast_core::{ConversationId, JobId};
use outlast_mirror::{ErrorEntry, ProgressShape, StatusFile};
use rmcp::model::JsonObject;
use serde::Serialize;

use super::Research;
use super::arguments::{HistoriesArguments, check_count, conversation_id};
use super::history::{ConversationShape, Show};
use super::render::TextLines;
use crate::arguments;
use crate::caller::Caller;
use crate::reply::{Refusal, ToolResult, told};
use crate::text::echoed_id;
use crate::tool_names::research::{AWAIT, HISTORY, LIST};
use crate::wait;

/// One conversation of a batch.
#[derive(Debug, Default, Serialize)]
struct BatchEntry {
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorEntry>,
}

/// Which of them were waited for to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BatchWait {
    /// They were not waited for.
    No,
    /// All of them.
    ToTheEnd,
    /// Not yet all of them.
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
        // A caller that is told of progress can wait for ever; the limits of others are not known.
        let budget = caller.progress.is_none().then_some(self.options.inline_budget);
        let all = self.all_ended(caller, &ids);
        let waited = match budget {
            Some(budget) => tokio::time::timeout(budget, all).await.unwrap_or(BatchWait::InPart),
            None => all.await,
        };
        self.present(caller, &ids, show, waited).await
    }

    /// The present state of all.
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
        let mut entries = BTreeMap::new();
        let mut text = TextLines::new(format!("**{} conversations**", ids.len()));
        for given in ids {
            let name = echoed_id(given);
            if entries.contains_key(&name) {
                continue;
            }
            let (entry, said) = self.entry(caller, given, show).await;
            text.line("");
            text.line(&format!("`{name}`: {said}"));
            entries.insert(name, entry);
        }
        let count = |is: fn(&BatchEntry) -> bool| entries.values().filter(|it| is(it)).count();
        let read = count(|entry| entry.conversation.is_some());
        let errors = count(|entry| entry.error.is_some());
        let unfinished = count(BatchEntry::is_unfinished);
        text.line(&format!(
            "\n{read} read, {errors} not found or not readable, {unfinished} not yet ended."
        ));
        match waited {
            // An unknown id has no result to wait for, however long it took to look for it.
            BatchWait::InPart if unfinished > 0 => text.line(&format!(
                "Not all have ended. Call `{AWAIT}` again with the same ids to go on waiting; nothing is lost and \
                 nothing runs twice."
            )),
            BatchWait::No if unfinished > 0 => {
                text.line("Not all have ended. Ask again in half a minute.");
            }
            BatchWait::No | BatchWait::ToTheEnd | BatchWait::InPart => {}
        }
        told(text.done(), &entries)
    }

    /// One conversation, and what is said of it in the text.
    async fn entry(&self, caller: &Caller, given: &str, show: Show) -> (BatchEntry, String) {
        let Some(id) = conversation_id(given) else {
            return failed(
                "INVALID_ID",
                "this cannot be the id of a conversation: 8 to 64 of A-Z a-z 0-9 _ -",
            );
        };
        match self.shown(caller, &id, show).await {
            Ok(Some(shown)) => {
                let said = shown.text();
                let entry = BatchEntry {
                    conversation: Some(shown.conversation),
                    status: Some(shown.status),
                    progress: shown.progress,
                    error: None,
                };
                (entry, said)
            }
            Ok(None) => failed(
                "NOT_FOUND",
                &format!("there is no such conversation; check the id, or find it with {LIST}"),
            ),
            Err(refusal) => {
                tracing::warn!(conversation.id = %id, ?refusal, "a conversation of a batch cannot be read");
                failed(
                    "RETRIEVAL_ERROR",
                    &format!("the conversation cannot be read just now; try {HISTORY} later"),
                )
            }
        }
    }

    /// Waits until every conversation has ended, one after the other: the slowest decides in any order.
    async fn all_ended(&self, caller: &mut Caller, ids: &[String]) -> BatchWait {
        let mut open = Vec::new();
        for id in ids.iter().filter_map(|given| conversation_id(given)) {
            open.extend(self.unfinished(caller, &id).await);
        }
        for (done, job) in open.iter().enumerate() {
            if let Some(reporter) = &mut caller.progress {
                reporter.part_of(done, open.len());
            }
            match wait::for_job(&self.engine, caller, job, None).await {
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

    async fn unfinished(&self, caller: &Caller, id: &ConversationId) -> Option<JobId> {
        let read = self.engine.conversation(&caller.owner, id).await.ok()??;
        let last = read.last();
        (!last.state.kind().is_terminal()).then_some(last.id)
    }
}

fn read(given: JsonObject) -> Result<(Vec<String>, Show), Refusal> {
    let arguments: HistoriesArguments = arguments::read(given)?;
    check_count("conversationIds", &arguments.conversation_ids)?;
    let show = Show { system: arguments.include_system_prompt, thinking: arguments.show_thinking };
    Ok((arguments.conversation_ids, show))
}

fn failed(code: &str, message: &str) -> (BatchEntry, String) {
    let error = ErrorEntry { code: code.to_owned(), message: message.to_owned(), timestamp: None };
    (BatchEntry { error: Some(error), ..BatchEntry::default() }, format!("{code}: {message}"))
}

impl BatchEntry {
    fn is_unfinished(&self) -> bool {
        self.status.as_ref().is_some_and(|status| !status.status.state().is_terminal())
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::Cost;

    use super::super::ResearchMode;
    use super::super::tests::{Oracle, caller, research};
    use super::*;

    /// E7: how long the store took to look is not told, and a model is not sent to wait for nothing.
    #[tokio::test]
    async fn e7_a_wait_for_what_never_was_is_over_however_long_it_took() {
        let set = research(Oracle::answering(None, Cost::Unknown), ResearchMode::Queued).await;
        let ids = ["0".repeat(32)];
        let show = Show { system: false, thinking: false };
        let mut said = Vec::new();
        for waited in [BatchWait::ToTheEnd, BatchWait::InPart] {
            let told = set.present(&caller("ann"), &ids, show, waited).await.unwrap();
            said.push(serde_json::to_string(&told).unwrap());
        }
        assert!(said[0].contains("NOT_FOUND"), "{}", said[0]);
        assert_eq!(said[0], said[1]);
    }
}
