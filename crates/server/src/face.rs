//! The content that a server offers, independent of its transport.

use outlast_core::{Job, OwnerId, WaitCommand};
use outlast_engine::Engine;
use rmcp::model::CallToolResult;

use crate::quoted::UNTRUSTED;
use crate::reply::Refusal;
use crate::tools::Tools;
use crate::tools::outcome::{outcome, plain};

/// The content that a server offers: an owner's jobs and a list of tool sets.
pub struct Face {
    /// The owner whose jobs callers without a token see.
    pub owner: OwnerId,
    /// The engine that runs the jobs.
    pub engine: Engine,
    /// The command that waits for a job, if callers are on this machine.
    pub wait: Option<WaitCommand>,
    /// The public address of the page without `/ui`, if the page is served.
    pub page: Option<String>,
    /// The tool sets that are enabled, in listing order. If two sets share a tool name, the first set provides it.
    pub sets: Vec<Tools>,
}

impl Face {
    /// Creates the content without a page and without a command that waits.
    pub fn new(owner: OwnerId, engine: Engine, sets: Vec<Tools>) -> Self {
        Self { owner, engine, wait: None, page: None, sets }
    }

    /// Returns the instructions for models: fewer than 200 words for any two sets, because every conversation includes them.
    pub(crate) fn instructions(&self) -> String {
        let mut text = format!(
            "outlast runs research as durable jobs: a job goes on when the client gives up, disconnects or restarts the \
             server, and is never paid for twice without the user's word. {UNTRUSTED}"
        );
        for set in &self.sets {
            text.push_str("\n\n");
            text.push_str(&set.instructions());
        }
        text
    }

    /// Returns the answer that the tool that started the job would have given.
    pub(crate) fn outcome(&self, job: &Job) -> Option<CallToolResult> {
        let of_a_set = self.sets.iter().find_map(|set| set.outcome(job));
        let told = of_a_set.or_else(|| outcome(job, |output| Ok(plain(job, output))));
        told.map(|told| told.unwrap_or_else(Refusal::into_result))
    }
}
