//! A store that notifies the other listening processes on it of its changes (H2): a server learns of progress and ends,
//! and a worker of cancellations, before their next look at the store.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::{Store, StoreError, StoreMethod, StoreWrapper};
use outlast_engine::Engine;
use tokio::task::JoinHandle;

use super::own_jobs::OwnJobs;
use super::socket::{Message, SocketFolder};

/// The store of a process that notifies others.
pub(crate) struct TellingStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) folder: SocketFolder,
    /// The name of this process's own socket.
    pub(crate) own: String,
}

impl TellingStore {
    fn tell(&self) {
        for name in self.folder.names().filter(|name| *name != self.own) {
            // A process that cannot be notified looks at the store by itself.
            drop(self.folder.send_or_remove(&name, Message::Look));
        }
    }
}

/// Starts the task that receives notices of other processes' changes, and the log lines about this process's jobs.
pub(crate) fn listen(
    folder: &SocketFolder,
    engine: &Engine,
    own_jobs: Option<Arc<OwnJobs>>,
) -> Option<JoinHandle<()>> {
    let engine = engine.clone();
    folder.remove_dead();
    match folder.bind(&SocketFolder::front_name()) {
        Ok(socket) => {
            let take = move |datagram: &[u8]| {
                if let Some(own_jobs) = &own_jobs {
                    own_jobs.take(datagram);
                }
            };
            Some(outlast_engine::spawn(async move {
                socket.listen(|_| engine.look_now(), take).await;
            }))
        }
        Err(error) => {
            tracing::debug!(%error, "no socket beside the store; it is looked at instead");
            None
        }
    }
}

/// Ends the task, and with it its socket.
pub(crate) async fn end(listener: Option<JoinHandle<()>>) {
    if let Some(listener) = listener {
        listener.abort();
        drop(listener.await);
    }
}

#[async_trait]
impl StoreWrapper for TellingStore {
    fn inner(&self) -> &dyn Store {
        &*self.store
    }

    fn after(&self, method: StoreMethod, error: Option<&StoreError>) {
        match method {
            StoreMethod::Insert
            | StoreMethod::Take
            | StoreMethod::Checkpoint
            | StoreMethod::Note
            | StoreMethod::Settle
            | StoreMethod::Cancel
            | StoreMethod::RecordLateRun
            | StoreMethod::RecordStop => {
                if error.is_none() {
                    self.tell();
                }
            }
            // A claim is followed by a checkpoint at once; the rescue of a job is known in the rescuing process.
            StoreMethod::Claim | StoreMethod::Rescue => {}
            StoreMethod::Rev
            | StoreMethod::Orphans
            | StoreMethod::Renew
            | StoreMethod::ShowText
            | StoreMethod::OwedStops
            | StoreMethod::ClaimNotice
            | StoreMethod::RecordNotice
            | StoreMethod::RecordAnswer
            | StoreMethod::HasWorker
            | StoreMethod::Queued
            | StoreMethod::Ahead
            | StoreMethod::Dismiss
            | StoreMethod::Prune
            | StoreMethod::Job
            | StoreMethod::List
            | StoreMethod::Turns
            | StoreMethod::Conversations
            | StoreMethod::LedgerRows
            | StoreMethod::Spend
            | StoreMethod::Counts
            | StoreMethod::Kept
            | StoreMethod::Keep
            | StoreMethod::Changes => {}
        }
    }
}
