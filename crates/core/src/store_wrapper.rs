//! A store around another: every method that a wrapper does not override calls the inner store.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    AnswerOutcome, CancelOutcome, ChangeWait, Changes, Checkpoint, ClaimedJob, ClaimedNotice,
    CloseReason, ConversationId, ConversationPage, ConversationQuery, Cost, Insert, InsertOutcome,
    Job, JobId, JobPage, JobQuery, JournalStep, Lease, LedgerRow, NewQuestion, NewStep,
    NoticeClaim, NoticeOutcome, OwnerId, Page, Profile, Progress, Prune, PruneOutcome, Question,
    RemoteRun, RemoteStop, RescueBy, RescueOutcome, ResolveOutcome, Rev, Scope, Settlement,
    SpendQuery, SpendSum, StateCount, StateKind, StepDecision, StepEnd, StepOutput, StepStart,
    Store, StoreError, Timestamp, WorkerId,
};

/// Lists every method of the port once. This list generates [`StoreMethod`], the methods of [`StoreWrapper`] and the
/// store that they make.
macro_rules! wrapper_of {
    ($($name:ident: fn $method:ident(&self $(, $argument:ident: $kind:ty)*) -> $answer:ty;)*) => {
        /// The methods of [`Store`] that may fail, by name.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum StoreMethod {
            $(
                #[doc = concat!("[`Store::", stringify!($method), "`]")]
                $name,
            )*
        }

        /// A store that keeps nothing itself. It has every method of [`Store`], and a wrapper can override each of
        /// them. All others call [`StoreWrapper::inner`].
        #[async_trait]
        pub trait StoreWrapper: Send + Sync {
            /// Returns the inner store.
            fn inner(&self) -> &dyn Store;

            /// Called after every method. A wrapper matches the name without `_`, so that a new method of the port
            /// does not compile until each wrapper has decided how to handle it.
            fn after(&self, method: StoreMethod, error: Option<&StoreError>);

            $(
                #[doc = concat!("As [`Store::", stringify!($method), "`].")]
                async fn $method(&self $(, $argument: $kind)*) -> Result<$answer, StoreError> {
                    self.inner().$method($($argument),*).await
                }
            )*
        }

        #[async_trait]
        impl<T: StoreWrapper> Store for T {
            fn now(&self) -> Timestamp {
                self.inner().now()
            }

            $(
                async fn $method(&self $(, $argument: $kind)*) -> Result<$answer, StoreError> {
                    let done = StoreWrapper::$method(self $(, $argument)*).await;
                    self.after(StoreMethod::$name, done.as_ref().err());
                    done
                }
            )*
        }
    };
}

wrapper_of! {
    Rev: fn rev(&self) -> Rev;
    Insert: fn insert(&self, insert: Insert) -> InsertOutcome;
    Claim: fn claim(&self, worker: &WorkerId, profiles: &[Profile], lease: Duration) -> Option<ClaimedJob>;
    ClaimById: fn claim_by_id(&self, worker: &WorkerId, profiles: &[Profile], id: &JobId, lease: Duration) -> Option<ClaimedJob>;
    UnclaimedHeldCalls: fn unclaimed_held_calls(&self, profiles: &[Profile]) -> Vec<JobId>;
    Renew: fn renew(&self, leases: &[Lease], lease: Duration) -> Vec<JobId>;
    Checkpoint: fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> ();
    ShowProgress: fn show_progress(&self, lease: &Lease, progress: &Progress) -> ();
    ShowText: fn show_text(&self, lease: &Lease, text: &str) -> ();
    BeginStep: fn begin_step(&self, lease: &Lease, step: &NewStep) -> StepStart;
    EndStep: fn end_step(&self, lease: &Lease, key: &str, end: &StepEnd) -> ();
    ResolveStep: fn resolve_step(&self, scope: &Scope, job: &JobId, key: &str, decision: StepDecision) -> ResolveOutcome;
    SavePage: fn save_page(&self, lease: &Lease, page: &Page, max_bytes: u64) -> ();
    Ask: fn ask(&self, lease: &Lease, question: &NewQuestion) -> Question;
    CloseQuestion: fn close_question(&self, lease: &Lease, key: &str, reason: CloseReason) -> ();
    Answer: fn answer(&self, scope: &Scope, id: &JobId, question: Option<&str>, text: &str) -> AnswerOutcome;
    Settle: fn settle(&self, lease: &Lease, settlement: Settlement) -> Job;
    Cancel: fn cancel(&self, scope: &Scope, id: &JobId) -> CancelOutcome;
    Rescue: fn rescue(&self, dead: &RescueBy) -> RescueOutcome;
    RecordLateRun: fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> ();
    PendingStops: fn pending_stops(&self, profiles: &[Profile], limit: usize) -> Vec<(JobId, RemoteRun)>;
    RecordStop: fn record_stop(&self, id: &JobId, outcome: RemoteStop, cost: Cost) -> ();
    ClaimNotice: fn claim_notice(&self, lease: Duration) -> NoticeClaim;
    RecordNotice: fn record_notice(&self, claimed: &ClaimedNotice, outcome: NoticeOutcome) -> ();
    RecordAnswer: fn record_answer(&self, id: &JobId) -> ();
    HasWorker: fn has_worker(&self, profile: &Profile) -> bool;
    CountQueued: fn count_queued(&self, profiles: &[Profile]) -> u64;
    QueuePosition: fn queue_position(&self, id: &JobId) -> u64;
    DeregisterWorker: fn deregister_worker(&self, worker: &WorkerId) -> ();
    Prune: fn prune(&self, scope: &Scope, prune: &Prune) -> PruneOutcome;
    ForgetRuns: fn forget_runs(&self, provider: &str, ended_before: Timestamp) -> u32;
    Job: fn job(&self, scope: &Scope, id: &JobId) -> Option<Job>;
    List: fn list(&self, scope: &Scope, query: &JobQuery) -> JobPage;
    Counts: fn counts(&self, scope: &Scope, at_most: u32) -> Vec<StateCount>;
    Turns: fn turns(&self, scope: &Scope, conversation: &ConversationId) -> Vec<Job>;
    NewestAbout: fn newest_about(&self, scope: &Scope, subject: &JobId, states: &[StateKind]) -> Option<Job>;
    Steps: fn steps(&self, scope: &Scope, job: &JobId) -> Vec<JournalStep>;
    StepOutputs: fn step_outputs(&self, scope: &Scope, job: &JobId, kinds: &[&str]) -> Vec<StepOutput>;
    Page: fn page(&self, owner: &OwnerId, digest: &[u8; 32]) -> Option<Page>;
    Conversations: fn conversations(&self, owner: &OwnerId, query: &ConversationQuery) -> ConversationPage;
    LedgerRows: fn ledger_rows(&self, scope: &Scope, job: &JobId) -> Vec<LedgerRow>;
    Spend: fn spend(&self, scope: &Scope, query: &SpendQuery) -> Vec<SpendSum>;
    GetSetting: fn get_setting(&self, name: &str) -> Option<String>;
    PutSetting: fn put_setting(&self, name: &str, value: &str) -> ();
    CreateSetting: fn create_setting(&self, name: &str, value: &str) -> String;
    Changes: fn changes(&self, after: Rev, wait: ChangeWait) -> Changes;
}
