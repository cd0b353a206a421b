//! The types and rules of outlast.
//!
//! A *job* is one durable request. *Rules* decide what may happen to it, as pure functions of the job and the time. A
//! [`Store`] records it, and a worker runs it with a [`Provider`]. Nothing here does I/O, reads a clock or depends on
//! a runtime, so tables can test everything here.

mod id;
mod time;

mod job;
mod origin;
mod trace;
mod local_text;
mod state_kind;
mod visibility;
mod request;
#[cfg(test)]
mod stored_words;
mod research_request;
mod workflow;
mod citation_check;
mod output;
mod ledger;
mod budget;
mod failure;
mod payment;
mod standing;
mod wait_command;
mod lease;
mod notice;
pub mod conversation;
mod text;
mod thinking;
mod partial;
mod redact_request;
mod reason;
mod remote;
mod journal;
mod research_record;
mod run_journal;
mod question;

pub mod rules;

mod progress;
mod provider;
mod store;
mod key;
mod listing;
pub mod search;
mod changes;
mod store_wrapper;
mod observer;

pub use budget::{BudgetLimit, BudgetRefusal};
pub use changes::{Change, ChangeWait, Changes, HeldCallState};
pub use citation_check::{CheckRequest, CheckedAddress, FetchConsent};
pub use failure::{Code, Failure};
pub use id::{ConversationId, Fence, JobId, NotAJobId, OwnerId, Profile, Rev, WorkerId};
pub use job::{Checkpoint, Job, JobState, NewJob};
pub use journal::{
    JournalStep, NewStep, Page, Resend, ResolveOutcome, StepCosts, StepDecision, StepEnd,
    StepOutput, StepResult, StepStart, StepState, Takeover,
};
pub use key::{CallIdentity, CallMode, HeldAnswer, Key, KeyLife};
pub use lease::{ClaimedJob, Holder, Lease, Record};
pub use ledger::{
    ChargeState, CountedSpend, LedgerRow, Reservation, RunAllowance, SpendBy, SpendLimits,
    SpendQuery, SpendSum, SpendTerms,
};
pub use listing::{
    ConversationPage, ConversationQuery, ConversationSummary, Cursor, JobPage, JobQuery,
    StateCount, Summary, SummaryCharge,
};
pub use local_text::LIBRARY_NOTE;
pub use notice::{
    ClaimedNotice, EndNotices, NotDelivered, Notice, NoticeClaim, NoticeOutcome, Notifier,
};
pub use observer::{FollowUp, Observer, StoreEvent};
pub use output::{Body, Cost, NanoUsd, Output, Source, Usage};
pub use partial::Partial;
pub use payment::RequestState;
pub use progress::Progress;
pub use provider::{
    BeginError, Provider, ProviderError, ProviderErrorKind, RecoverySemantics, ResendPolicy,
    ResumePolicy, Run, RunStatus, Step,
};
pub use question::{
    Answer, AnswerOutcome, AnswerRefusal, CloseReason, NewQuestion, Question, QuestionEvent,
    QuestionState, Questions,
};
pub use redact_request::RequestWords;
pub use remote::{RemoteRun, RemoteStop, StopOutcome};
pub use request::{Request, RequestContent, RequestNote};
pub use research_record::{
    FailedRecord, NoteRecord, NotesRecord, QuestionsRecord, ReadRecord, ResearchRecord, SearchHit,
    SearchRecord, digest_from_hex,
};
pub use research_request::{
    ContextSize, Effort, Message, Recency, ResearchKind, ResearchRequest, Role, SearchFilters,
};
pub use run_journal::RunJournal;
pub use standing::{Standing, Waits};
pub use state_kind::StateKind;
pub use store::{
    BoxError, CancelOutcome, InitialWorker, Insert, InsertOutcome, Prune, PruneOutcome, RescueBy,
    RescueOutcome, Scope, Settlement, Store, StoreError,
};
pub use store_wrapper::{StoreMethod, StoreWrapper};
pub use text::{
    address_line, escape_json, is_hidden, is_shown, is_terminal_control, printable, visible,
    without_hidden,
};
pub use thinking::split_thinking;
pub use time::{Clock, Day, Timestamp};
pub use trace::Traceparent;
pub use visibility::Visibility;
pub use wait_command::WaitCommand;
pub use workflow::WorkflowRequest;
