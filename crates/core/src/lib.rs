//! The words and rules of outlast.
//!
//! A *job* is one durable request. *Rules* decide what may happen to it, as pure functions of the job and
//! the time; a [`Store`] records it; a worker carries it through a [`Provider`]. Nothing here does I/O, reads
//! a clock or knows a runtime, so everything here can be tested by table.

mod id;
mod time;

mod job;
mod ask;
mod workflow;
mod output;
mod failure;
mod standing;
mod lease;
pub mod conversation;
mod report_check;
mod text;
mod thinking;
mod redact_request;

pub mod rules;

mod provider;
mod store;
mod store_wrapper;

pub use ask::{AskKind, ContextSize, Effort, Message, Recency, ResearchAsk, Role, SearchFilters};
pub use failure::{Code, Failure};
pub use id::{ConversationId, JobId, NotAJobId, OwnerId, Profile, WorkerId};
pub use job::{
    Checkpoint, Job, JobState, NewJob, Progress, RemoteRun, RemoteStop, Rev, StateKind, Visibility,
};
pub use lease::{Claimed, Fence, Holder, Lease, Record};
pub use output::{Body, Cost, NanoUsd, Output, Source, Usage};
pub use provider::{
    Again, BeginError, Nature, Provider, ProviderError, Resumes, Run, Step, Trouble,
};
pub use redact_request::RequestWords;
pub use report_check::{ReportCheck, check as check_report};
pub use standing::{Standing, Waits};
pub use store::{
    BoxError, Cancelled, Change, Changes, ConversationPage, ConversationQuery, ConversationSummary,
    Cursor, Dead, Glance, HeldAnswer, Insert, Inserted, JobPage, JobQuery, Key, KeyLife, Prune,
    Pruned, Rescued, Scope, Settlement, Store, StoreError, Summary, Uncarried,
};
pub use store_wrapper::{StoreMethod, StoreWrapper};
pub use text::{escaped_json, is_shown, is_terminal_control, printable};
pub use thinking::told_apart;
pub use time::{Clock, Timestamp};
pub use workflow::{WorkflowAsk, session_of};
