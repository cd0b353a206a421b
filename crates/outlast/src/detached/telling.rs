//! A store whose changes are told to the other processes on it that listen (H2): a server hears of progress and of ends, a worker of
//! cancellations, without waiting until the store is looked at the next time.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_core::{Store, StoreError, StoreMethod, StoreWrapper};
use outlast_engine::Engine;
use tokio::task::JoinHandle;

use super::own_jobs::OwnJobs;
use super::socket::{Message, SocketFolder};

/// The store of a process that tells.
pub(crate) struct TellingStore {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) folder: SocketFolder,
    /// The name of this process's own socket.
    pub(crate) own: String,
}

impl TellingStore {
    fn tell(&self) {
        for name in self.folder.names().filter(|name| *name != self.own) {
            // A process that cannot be told looks by itself.
            drop(self.folder.send_or_remove(&name, Message::Look));
        }
    }
}

/// The task that hears of changes which other processes made, and takes the log lines about the jobs of this one.
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

/// Ends it, and with it its socket.
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
            // A claim is followed by a checkpoint at once; who rescues a job hears of it in its own process.
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
