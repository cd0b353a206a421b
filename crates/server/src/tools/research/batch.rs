//! Reading several conversations at once, and waiting for all of them (B16). One that cannot be read never hides another.

use std::collections::BTreeMap;

use outlast_core::{ConversationId, JobId};
use outlast_engine::{PollError, Reading};
use outlast_mirror::{ErrorEntry, ProgressShape, StatusFile};
use rmcp::model::CallToolResult;
use serde::Serialize;
use serde_json::{Map, Value};

use super::arguments::{HistoriesArguments, check_count, conversation_id};
use super::history::{ConversationShape, Show};
use super::render::Lines;
use super::{AWAIT, HISTORY, LIST, Research};
use crate::arguments;
use crate::caller::{Caller, Reporter};
use crate::reply::{Refusal, told};
use crate::text::{echoed_id, printable};
use crate::wait;

/// One conversation of a batch.
#[derive(Debug, Default, Serialize)]
struct Entry {
    #[serde(skip_serializing_if = "Option::is_none")]
    conversation: Option<ConversationShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusFile>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorEntry>,
}

/// Which of them have an end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    /// Nobody waited.
    No,
    /// All of them.
    ToTheEnd,
    /// Not yet all of them.
    InPart,
}

impl Research {
    pub(super) async fn histories(
        &self,
        caller: &Caller,
        given: Map<String, Value>,
    ) -> Result<CallToolResult, Refusal> {
        let (ids, show) = read(given)?;
        self.batch(caller, &ids, show).await
    }

    pub(super) async fn await_histories(
        &self,
        caller: &mut Caller,
        given: Map<String, Value>,
    ) -> Result<CallToolResult, Refusal> {
        let (ids, show) = read(given)?;
        // Whoever is told of progress can wait for ever; the others have a limit that nobody knows.
        let budget = caller.progress.is_none().then_some(self.options.inline_budget);
        let all = self.all_ended(caller, &ids);
        let waited = match budget {
            Some(budget) => tokio::time::timeout(budget, all).await.unwrap_or(Waited::InPart),
            None => all.await,
        };
        self.present(caller, &ids, show, waited).await
    }

    /// The present state of all.
    pub(super) async fn batch(
        &self,
        caller: &Caller,
        ids: &[String],
        show: Show,
    ) -> Result<CallToolResult, Refusal> {
        self.present(caller, ids, show, Waited::No).await
    }

    async fn present(
        &self,
        caller: &Caller,
        ids: &[String],
        show: Show,
        waited: Waited,
    ) -> Result<CallToolResult, Refusal> {
        let mut entries = BTreeMap::new();
        let mut text = Lines::new(format!("**{} conversations**", ids.len()));
        let mut counts = Counts::default();
        for given in ids {
            let name = echoed_id(given);
            if entries.contains_key(&name) {
                continue;
            }
            let (entry, said) = self.entry(caller, given, show).await;
            counts.add(&entry);
            text.line("");
            text.line(&format!("`{name}`: {said}"));
            entries.insert(name, entry);
        }
        text.line("");
        text.line(&counts.summary());
        match waited {
            // What is there to be shown decides, not the clock: a slow read of what never was has nothing to wait for.
            Waited::InPart if counts.unfinished > 0 => text.line(&format!(
                "Not all have ended. Call `{AWAIT}` again with the same ids to go on waiting; nothing is lost and \
                 nothing runs twice."
            )),
            Waited::No if counts.unfinished > 0 => {
                text.line("Not all have ended. Ask again in half a minute.");
            }
            Waited::No | Waited::ToTheEnd | Waited::InPart => {}
        }
        told(text.done(), &entries)
    }

    /// One conversation, and what is said of it in the text.
    async fn entry(&self, caller: &Caller, given: &str, show: Show) -> (Entry, String) {
        let Some(id) = conversation_id(given) else {
            return failed(
                "INVALID_ID",
                "this cannot be the id of a conversation: 8 to 64 of A-Z a-z 0-9 _ -",
            );
        };
        match self.shown(caller, &id, show).await {
            Ok(Some(shown)) => {
                let said = shown.text();
                let entry = Entry {
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
    async fn all_ended(&self, caller: &mut Caller, ids: &[String]) -> Waited {
        let mut open = Vec::new();
        for id in ids.iter().filter_map(|given| conversation_id(given)) {
            if let Some(job) = self.unfinished(caller, &id).await {
                open.push(job);
            }
        }
        let total = open.len();
        for (done, job) in open.into_iter().enumerate() {
            match self.ended(caller, &job, done, total).await {
                Ok(true) => {}
                Ok(false) => return Waited::InPart,
                Err(error) => {
                    tracing::warn!(job.id = %job, %error, "a conversation cannot be waited for");
                    return Waited::InPart;
                }
            }
        }
        Waited::ToTheEnd
    }

    async fn unfinished(&self, caller: &Caller, id: &ConversationId) -> Option<JobId> {
        let read = self.engine.conversation(&caller.owner, id).await.ok()??;
        let last = read.last();
        (!last.state.kind().is_terminal()).then_some(last.id)
    }

    /// Waits for one of them; false when the server leaves first.
    async fn ended(
        &self,
        caller: &mut Caller,
        id: &JobId,
        done: usize,
        total: usize,
    ) -> Result<bool, PollError> {
        let Some((mut reading, mut watch)) = self.engine.watch(&caller.scope(), id).await? else {
            return Ok(true);
        };
        while !reading.job.state.kind().is_terminal() {
            if let Some(reporter) = &mut caller.progress {
                note(reporter, &reading, done, total);
            }
            tokio::select! {
                changed = watch.changed() => match changed? {
                    Some(changed) => reading = changed,
                    None => return Ok(true),
                },
                () = wait::due(caller.progress.as_ref()) => {
                    if let Some(reporter) = &mut caller.progress {
                        reporter.send().await;
                    }
                }
                () = self.engine.leaving() => return Ok(false),
            }
        }
        Ok(true)
    }
}

/// Progress over all of them: those that have ended, and how far the one waited for has come.
fn note(reporter: &mut Reporter, reading: &Reading, done: usize, total: usize) {
    let standing = reading.standing();
    let percent = standing.percent().unwrap_or(0);
    let share = (done as f64 * 100.0 + f64::from(percent)) / total.max(1) as f64;
    let words = printable(&standing.words());
    reporter.note(Some(share), &format!("{done} of {total} ended; {words}"));
}

fn read(given: Map<String, Value>) -> Result<(Vec<String>, Show), Refusal> {
    let arguments: HistoriesArguments = arguments::read(Some(given))?;
    check_count("conversationIds", &arguments.conversation_ids)?;
    let show = Show { system: arguments.include_system_prompt, thinking: arguments.show_thinking };
    Ok((arguments.conversation_ids, show))
}

fn failed(code: &str, message: &str) -> (Entry, String) {
    let error = ErrorEntry { code: code.to_owned(), message: message.to_owned(), timestamp: None };
    (Entry { error: Some(error), ..Entry::default() }, format!("{code}: {message}"))
}

#[derive(Default)]
struct Counts {
    read: usize,
    errors: usize,
    unfinished: usize,
}

impl Counts {
    fn add(&mut self, entry: &Entry) {
        self.read += usize::from(entry.conversation.is_some());
        self.errors += usize::from(entry.error.is_some());
        let status = entry.status.as_ref();
        let unfinished = status.is_some_and(|status| !status.status.state().is_terminal());
        self.unfinished += usize::from(unfinished);
    }

    fn summary(&self) -> String {
        let Self { read, errors, unfinished } = self;
        format!("{read} read, {errors} not found or not readable, {unfinished} not yet ended.")
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::Cost;

    use super::super::ResearchMode;
    use super::super::tests::{Oracle, caller, research};
    use super::*;

    /// E7: how long the store took to look is nobody's business, and a model is not sent to wait for nothing.
    #[tokio::test]
    async fn e7_a_wait_for_what_never_was_is_over_however_long_it_took() {
        let set = research(Oracle::answering(None, Cost::Unknown), ResearchMode::Queued).await;
        let ids = ["0".repeat(32)];
        let show = Show { system: false, thinking: false };
        let mut said = Vec::new();
        for waited in [Waited::ToTheEnd, Waited::InPart] {
            let told = set.present(&caller("ann"), &ids, show, waited).await.unwrap();
            said.push(serde_json::to_string(&told).unwrap());
        }
        assert!(said[0].contains("NOT_FOUND"), "{}", said[0]);
        assert_eq!(said[0], said[1]);
    }
}
