//! Tasks that ask their client for input. outlast has no such tasks; the fixtures add them so that the
//! scenarios around them can run. Everything else about these tasks is outlast's own code.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rmcp::model::{InputRequest, InputRequests};
use serde_json::json;
use tokio::sync::watch;

/// The questions that are not answered yet.
#[derive(Default)]
pub(crate) struct Asking {
    state: Mutex<Questions>,
    /// Notified of every answer.
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Questions {
    last: u64,
    open: HashMap<u64, InputRequests>,
    tasks: HashMap<String, u64>,
}

impl Asking {
    /// Asks for these inputs and returns the question's id.
    pub(crate) fn ask(&self, requests: InputRequests) -> u64 {
        let mut state = self.state();
        state.last += 1;
        let question = state.last;
        state.open.insert(question, requests);
        question
    }

    /// Records the task that asks the question.
    pub(crate) fn asked_by(&self, question: u64, task: &str) {
        self.state().tasks.insert(task.to_owned(), question);
    }

    /// Returns the inputs that a task waits for.
    pub(crate) fn open(&self, task: &str) -> Option<InputRequests> {
        let state = self.state();
        let open = state.open.get(state.tasks.get(task)?)?;
        (!open.is_empty()).then(|| open.clone())
    }

    /// Accepts answers. Answers to unknown questions are ignored.
    pub(crate) fn answer<'a>(&self, task: &str, keys: impl Iterator<Item = &'a String>) {
        let mut state = self.state();
        let Some(question) = state.tasks.get(task).copied() else { return };
        if let Some(open) = state.open.get_mut(&question) {
            keys.for_each(|key| drop(open.remove(key)));
        }
        drop(state);
        self.changed.send_replace(());
    }

    /// Waits until every input of a question is answered. Cancel-safe.
    pub(crate) async fn answered(&self, question: u64) {
        let mut changed = self.changed.subscribe();
        while self.state().open.get(&question).is_some_and(|open| !open.is_empty()) {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Questions> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds a request for a string under each of these keys.
pub(crate) fn elicit(keys: &[&str]) -> Result<InputRequests, serde_json::Error> {
    let mut requests = BTreeMap::new();
    for key in keys {
        let request: InputRequest = serde_json::from_value(json!({
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "A word, please.",
                "requestedSchema": { "type": "object", "properties": { "name": { "type": "string" } } },
            },
        }))?;
        requests.insert((*key).to_owned(), request);
    }
    Ok(requests)
}
