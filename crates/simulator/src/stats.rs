//! The counts of the simulator.

use serde::Serialize;

/// Counts since the start or the last reset. Every request with a valid key counts, whatever its response.
#[derive(Clone, Debug, Default, Serialize, PartialEq, Eq)]
pub struct Stats {
    /// Runs created; each one is money spent.
    pub submits: u64,
    /// Submits answered with an error, without a run. Those with a bad key are included.
    pub refused: u64,
    /// Runs created for an input that already had a run: paid twice.
    pub duplicate_submits: u64,
    /// Submits answered with the run that their idempotency key already had; they cost nothing.
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
    /// The run's id, even if the client never received it.
    pub id: String,
    /// The API of the submit: `agent`, `openai`, `gemini`, `sonar-async` or `sonar-chat`.
    pub api: String,
    /// The status that a poll would return now.
    pub status: String,
    /// The simulated price in nano-dollars once it has finished; none for a run that failed or was cancelled.
    pub billed_nanos: Option<u64>,
    /// The last message of the input without markers, its first 80 characters.
    pub submitted_input: String,
    /// Polls of this run.
    pub polls: u64,
    /// Streams of this run, including that of its submit.
    pub streams: u64,
    /// Cancels of this run.
    pub cancels: u64,
}
