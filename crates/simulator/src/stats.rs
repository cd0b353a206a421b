//! What the simulator counted.

use serde::Serialize;

/// Counts since the start or the last reset. Every request that passed the key check counts, whatever its answer.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Stats {
    /// Runs created; each one is money spent.
    pub submits: u64,
    /// Submits answered with an error; no run came of them. Those with a bad key are among them.
    pub refused: u64,
    /// Runs created for an input that had a run before: paid twice.
    pub duplicate_submits: u64,
    /// Submits answered with the run that their idempotency key had already; nothing was paid for them.
    pub replayed_submits: u64,
    /// Searches answered; each one is money spent.
    pub searches: u64,
    /// GETs of a run without a stream.
    pub polls: u64,
    /// GETs of a run with a stream.
    pub attaches: u64,
    /// Requests to cancel a run.
    pub cancels: u64,
    /// The simulated price of the finished runs and of the searches, in nano-dollars.
    pub spent_nanos: u64,
    /// The runs, oldest first.
    pub runs: Vec<RunStats>,
}

/// One run and the requests that concerned it.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct RunStats {
    /// The run's id, also when the client was never told.
    pub id: String,
    /// Where it was submitted: `agent`, `openai`, `gemini`, `sonar-async` or `sonar-chat`.
    pub api: String,
    /// What a poll would say now.
    pub status: String,
    /// Its simulated price in nano-dollars, once it has finished; nothing is said of one that failed or was cancelled.
    pub billed_nanos: Option<u64>,
    /// The last message of the input without markers, its first 80 characters.
    pub submitted_input: String,
    /// Polls of this run.
    pub polls: u64,
    /// Streams of this run, that of its submit included.
    pub streams: u64,
    /// Cancels of this run.
    pub cancels: u64,
}
