//! A store around another: whatever its wrapper does not say otherwise goes through to the inner one.

use std::time::Duration;

use async_trait::async_trait;

use crate::{
    Cancelled, ChangeWait, Changes, Checkpoint, Claimed, ConversationId, ConversationPage,
    ConversationQuery, Dead, Insert, Inserted, Job, JobId, JobPage, JobQuery, Lease, OwnerId,
    Profile, Progress, Prune, Pruned, RemoteRun, RemoteStop, Rescued, Rev, Scope, Settlement,
    Store, StoreError, Timestamp, WorkerId,
};

/// Every method of the port once: from this come the ones of [`StoreWrapper`] and the store that they make.
macro_rules! around {
    ($(fn $method:ident(&self $(, $argument:ident: $kind:ty)*) -> $answer:ty;)*) => {
        /// A store that keeps nothing itself. Has every method of [`Store`], to be overridden one by one; what is not
        /// asks [`StoreWrapper::inner`].
        #[async_trait]
        pub trait StoreWrapper: Send + Sync {
            /// The store within.
            fn inner(&self) -> &dyn Store;

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
                    StoreWrapper::$method(self $(, $argument)*).await
                }
            )*
        }
    };
}

around! {
    fn rev(&self) -> Rev;
    fn insert(&self, insert: Insert) -> Inserted;
    fn claim(&self, worker: &WorkerId, profiles: &[Profile], lease: Duration) -> Option<Claimed>;
    fn take(&self, worker: &WorkerId, profiles: &[Profile], id: &JobId, lease: Duration) -> Option<Claimed>;
    fn orphans(&self, profiles: &[Profile]) -> Vec<JobId>;
    fn renew(&self, leases: &[Lease], lease: Duration) -> Vec<JobId>;
    fn checkpoint(&self, lease: &Lease, checkpoint: &Checkpoint) -> ();
    fn note(&self, lease: &Lease, progress: &Progress) -> ();
    fn settle(&self, lease: &Lease, settlement: Settlement) -> Job;
    fn cancel(&self, scope: &Scope, id: &JobId) -> Cancelled;
    fn rescue(&self, dead: &Dead) -> Rescued;
    fn record_late_run(&self, id: &JobId, run: &RemoteRun) -> ();
    fn owed_stops(&self, profiles: &[Profile], limit: usize) -> Vec<(JobId, RemoteRun)>;
    fn record_stop(&self, id: &JobId, outcome: RemoteStop) -> ();
    fn record_answer(&self, id: &JobId) -> ();
    fn has_worker(&self, profile: &Profile) -> bool;
    fn queued(&self, profiles: &[Profile]) -> u64;
    fn ahead(&self, id: &JobId) -> u64;
    fn dismiss(&self, worker: &WorkerId) -> ();
    fn prune(&self, scope: &Scope, prune: &Prune) -> Pruned;
    fn job(&self, scope: &Scope, id: &JobId) -> Option<Job>;
    fn list(&self, scope: &Scope, query: &JobQuery) -> JobPage;
    fn turns(&self, scope: &Scope, conversation: &ConversationId) -> Vec<Job>;
    fn conversations(&self, owner: &OwnerId, query: &ConversationQuery) -> ConversationPage;
    fn changes(&self, after: Rev, wait: ChangeWait) -> Changes;
}
