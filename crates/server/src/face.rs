//! What a server shows, whatever it is served over.

use outlast_core::{Job, OwnerId};
use outlast_engine::Engine;
use rmcp::model::CallToolResult;

use crate::quoted::UNTRUSTED;
use crate::reply::Refusal;
use crate::tools::Tools;
use crate::tools::outcome::{outcome, plain};

/// What a server shows: whose jobs, and which tool sets.
pub struct Face {
    /// Whose jobs callers without a token of their own see.
    pub owner: OwnerId,
    /// Where jobs are.
    pub engine: Engine,
    /// Where people reach the page, if it is served: the address before `/ui`.
    pub page: Option<String>,
    /// The tool sets that are on, in the order they are listed; a name that two share belongs to the first.
    pub sets: Vec<Tools>,
}

impl Face {
    /// Fewer than 200 words with any two sets: they are sent with every conversation.
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

    /// What the tool that began the job would have answered.
    pub(crate) fn outcome(&self, job: &Job) -> Option<CallToolResult> {
        let of_a_set = self.sets.iter().find_map(|set| set.outcome(job));
        let told = of_a_set.or_else(|| outcome(job, |output| Ok(plain(job, output))));
        told.map(|told| told.unwrap_or_else(Refusal::into_result))
    }
}
