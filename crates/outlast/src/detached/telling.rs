//! Notifies the other listening processes on a store of this process's changes, and receives their notices (H2): a
//! server learns of progress and ends, and a worker of cancellations, before their next look at the store.

use std::sync::Arc;

use outlast_core::{FollowUp, Observer, StoreEvent};
use outlast_engine::Engine;
use tokio::task::JoinHandle;

use super::own_jobs::OwnJobs;
use super::socket::{Message, SocketFolder};

/// Notifies the other processes of each change.
pub(crate) struct ChangeNotifier {
    pub(crate) folder: SocketFolder,
    /// The name of this process's own socket.
    pub(crate) own: String,
}

impl ChangeNotifier {
    fn notify(&self) {
        for name in self.folder.names().filter(|name| *name != self.own) {
            // A process that cannot be notified looks at the store by itself.
            drop(self.folder.send_or_remove(&name, Message::Look));
        }
    }
}

impl Observer for ChangeNotifier {
    fn observe<'a>(&'a self, event: &StoreEvent<'a>) -> Option<FollowUp<'a>> {
        match event {
            StoreEvent::Inserted(_)
            | StoreEvent::Taken(_)
            | StoreEvent::Checkpointed
            | StoreEvent::Noted
            | StoreEvent::Settled { .. }
            | StoreEvent::Cancelled(_)
            | StoreEvent::Asked { .. }
            | StoreEvent::Answered(_)
            | StoreEvent::StopRecorded => self.notify(),
            // A claim is followed by a checkpoint at once.
            StoreEvent::Claimed { .. } => {}
            StoreEvent::Renewed { .. }
            | StoreEvent::Deleting { .. }
            | StoreEvent::Deleted { .. }
            | StoreEvent::WriteFailed(_) => {}
        }
        None
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
