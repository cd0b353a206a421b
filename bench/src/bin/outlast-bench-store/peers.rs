//! Other queues on PostgreSQL, at their pinned versions: each adds a number of jobs that do nothing, and runs a fixed
//! number of them at a time. interop/queues has the programs.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::callers::Work;

/// A queue, and the way it is used.
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    program: &'static str,
    how: &'static str,
}

/// Single jobs one after the other for each caller, and batches if the queue's documentation describes them.
pub(crate) const PEERS: [Peer; 5] = [
    Peer { name: "graphile-worker 0.18.0", program: "graphile-worker.mjs", how: "single" },
    Peer { name: "graphile-worker, in batches", program: "graphile-worker.mjs", how: "batches" },
    Peer { name: "pg-boss 12.35.0, fetch and complete", program: "pg-boss.mjs", how: "single" },
    Peer { name: "pg-boss, work in batches", program: "pg-boss.mjs", how: "batches" },
    Peer { name: "procrastinate 3.10.0", program: "procrastinate_worker.py", how: "single" },
];

impl Peer {
    /// Returns the jobs per second that are claimed, run and completed.
    pub(crate) fn run(&self, folder: &Path, url: &str, work: Work) -> f64 {
        let interpreter = if self.program.ends_with(".py") { "python" } else { "node" };
        let (jobs, callers) = (work.jobs().to_string(), work.callers.to_string());
        let output = Command::new(folder.join(interpreter))
            .arg(folder.join(self.program))
            .args([url, &jobs, &callers, self.how])
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {errors}", self.name);
        let said: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(said["jobs"], work.jobs(), "{}: {said} {errors}", self.name);
        work.jobs() as f64 / said["seconds"].as_f64().unwrap()
    }
}
