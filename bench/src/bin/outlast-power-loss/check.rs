//! Searches for all acknowledged changes in the files that a power loss left.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use outlast_core::{Body, Checkpoint, Job, JobId, JobState, Scope, Store};
use outlast_store::{SqliteStore, SystemClock};

use crate::work::report;

/// The furthest acknowledged state of each job.
#[derive(Default)]
pub(crate) struct Acknowledged {
    jobs: BTreeMap<String, String>,
    lines: usize,
}

impl Acknowledged {
    pub(crate) fn add(&mut self, line: &str) {
        let (what, id) = line.split_once(' ').unwrap();
        let order = |what: &str| {
            ["inserted", "begun", "settled", "cancelled"].iter().position(|known| *known == what)
        };
        let furthest = self.jobs.entry(id.to_owned()).or_default();
        // Two callers may report on one job in any order.
        if order(what) > order(furthest) {
            what.clone_into(furthest);
        }
        self.lines += 1;
    }

    pub(crate) fn count(&self) -> usize {
        self.lines
    }

    /// Opens the remaining files as the next server would; the error names the missing changes.
    pub(crate) async fn check(&self, folder: &Path) -> Result<(), String> {
        let path = folder.join("jobs.db");
        let store = SqliteStore::open(&path, Arc::new(SystemClock))
            .map_err(|error| format!("the store cannot be opened: {error}"))?;
        for (id, what) in &self.jobs {
            let id = id.parse::<JobId>().unwrap();
            let job = store.job(&Scope::Operator, &id).await.map_err(|error| format!("{error}"))?;
            let job = job.ok_or_else(|| format!("{id} was {what} and is gone"))?;
            if !holds(&job, what) {
                return Err(format!("{id} was {what} and is {:?}", job.state));
            }
        }
        let problems = store.check().await.map_err(|error| error.to_string())?;
        store.close().await;
        problems.first().map_or(Ok(()), |problem| Err(problem.clone()))
    }
}

/// Returns true if a job is at least in its acknowledged state.
fn holds(job: &Job, what: &str) -> bool {
    match (what, &job.state) {
        ("inserted", _) => true,
        ("cancelled", state) => matches!(state, JobState::Cancelled { .. }),
        ("begun" | "settled", JobState::Succeeded { output, .. }) => {
            matches!(&output.body, Body::Report { text, .. } if *text == report(&job.id))
        }
        ("begun", _) => matches!(job.checkpoint, Checkpoint::Running(_)),
        _ => false,
    }
}
