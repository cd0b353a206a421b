//! The promises to clients: every job whose start was answered, and every end that was shown.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};

use serde_json::Value;

#[derive(Default)]
pub(crate) struct Ledger {
    entries: Mutex<Entries>,
}

#[derive(Default)]
pub(crate) struct Entries {
    /// The maximum number of submits of a job, by question.
    pub(crate) allowed: HashMap<String, u64>,
    /// Acknowledged jobs: id and question.
    pub(crate) jobs: Vec<(String, String)>,
    /// The first end seen of each job.
    pub(crate) ends: HashMap<String, Value>,
}

impl Ledger {
    pub(crate) fn open(&self) -> MutexGuard<'_, Entries> {
        self.entries.lock().unwrap()
    }

    /// Records a question that is about to be asked.
    pub(crate) fn ask(&self, question: &str, allowed: u64) {
        self.open().allowed.insert(question.to_owned(), allowed);
    }

    /// Records a start that was answered.
    pub(crate) fn acknowledge(&self, id: &str, question: &str) {
        self.open().jobs.push((id.to_owned(), question.to_owned()));
    }

    /// Returns true if a client has seen the job's end.
    pub(crate) fn has_ended(&self, id: &str) -> bool {
        self.open().ends.contains_key(id)
    }

    /// Checks the reading of a job. Every later call must see an end that was seen once.
    pub(crate) fn see(&self, answer: &Value, ended_before: bool) {
        let id = answer["jobId"].as_str().unwrap().to_owned();
        assert_ne!(answer["status"], "NOT_FOUND", "an acknowledged job is lost: {id}");
        let mut entries = self.open();
        match entries.ends.get(&id) {
            Some(_) if !ended_before && !is_end(answer) => {}
            Some(end) => {
                assert_eq!(comparable(end), comparable(answer), "an end once seen has changed")
            }
            None if is_end(answer) => {
                entries.ends.insert(id, answer.clone());
            }
            None => {}
        }
    }

    pub(crate) fn unfinished(&self) -> usize {
        let entries = self.open();
        entries.jobs.len() - entries.ends.len().min(entries.jobs.len())
    }

    /// Returns a random acknowledged job, most often one of the latest.
    pub(crate) fn some_job(&self, random: &mut fastrand::Rng) -> Option<String> {
        let entries = self.open();
        let recent = entries.jobs.len().min(60);
        let index = entries.jobs.len().checked_sub(random.usize(0..recent.max(1)) + 1)?;
        Some(entries.jobs[index].0.clone())
    }
}

pub(crate) fn is_end(answer: &Value) -> bool {
    matches!(answer["status"].as_str(), Some("COMPLETED" | "FAILED" | "CANCELLED"))
}

/// Returns an end without the sentence about pending actions at the provider.
fn comparable(answer: &Value) -> Value {
    let mut answer = answer.clone();
    if answer["status"] == "CANCELLED" {
        answer["message"] = Value::Null;
    }
    answer
}
