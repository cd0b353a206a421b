//! The port to observers of an engine's writes: metrics, other processes, files.

use std::pin::Pin;

use crate::{
    AnswerOutcome, CancelOutcome, ConversationId, InsertOutcome, Job, JobId, QuestionEvent, Scope,
    Settlement, StoreError, Timestamp,
};

/// Work that follows an event and that the caller of the write waits for.
pub type FollowUp<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// An observer of the writes of one engine. A write is durable before its event, and nothing depends on an observer:
/// a process that was not notified finds the same by looking.
pub trait Observer: Send + Sync {
    /// Handles an event at once. Work that takes longer is returned.
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>>;
}

/// A write of this process to the store.
#[derive(Clone, Copy, Debug)]
pub enum StoreEvent<'a> {
    /// A start created a job, or found one.
    Inserted(&'a InsertOutcome),
    /// A worker claimed a job from the queue.
    Claimed {
        job: &'a Job,
        /// The store's time of the claim.
        now: Timestamp,
    },
    /// A worker claimed a job by its id.
    Taken(&'a Job),
    /// A worker renewed its leases.
    Renewed {
        /// The jobs whose lease is lost.
        lost: &'a [JobId],
    },
    /// The progress of an attempt was recorded for the worker that continues after a crash.
    Checkpointed,
    /// The progress of an attempt was shown.
    Noted,
    /// An attempt ended.
    Settled { job: &'a Job, settlement: &'a Settlement },
    /// A run asked its owner a question, or the deadline of its question is over.
    Asked {
        /// The job as it was before.
        job: &'a Job,
        event: QuestionEvent,
    },
    /// The question of a job was answered, or the answer was refused.
    Answered(&'a AnswerOutcome),
    /// A cancel ended a job, or found it ended.
    Cancelled(&'a CancelOutcome),
    /// The remote run of a cancelled job, or the outcome of its stop, was recorded.
    StopRecorded,
    /// A conversation is about to be deleted. This is the one event before its write.
    Deleting { scope: &'a Scope, conversation: &'a ConversationId },
    /// The deletion of a conversation has ended, successfully or not.
    Deleted { conversation: &'a ConversationId },
    /// The store refused a write, or could not perform it.
    WriteFailed(&'a StoreError),
}
