//! One task per process that follows the store's changes and feeds the hub. It rests while nobody cares.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Glance, Rev, Store};

use crate::hub::{Hub, Interest};
use crate::stop::Stop;

/// A caller waits: look often. Its own process tells at once; this is for other processes.
const WAITING: Duration = Duration::from_millis(25);
/// Only idle workers would like to know.
const WORKING: Duration = Duration::from_millis(250);
/// How long one look may last before the time of the next due thing is read anew.
const LONGEST_LOOK: Duration = Duration::from_secs(5);
/// After an error, before the next look.
const AFTER_ERROR: Duration = Duration::from_millis(500);

/// Follows changes from `rev` on until asked to stop.
pub(crate) async fn follow(store: Arc<dyn Store>, hub: Arc<Hub>, mut rev: Rev, stop: Stop) {
    // Whoever has just come wants to know at once what is due; after that, only changes matter.
    let mut wait = Duration::ZERO;
    loop {
        let every = match hub.interest() {
            Interest::Waiting => WAITING,
            Interest::Working => WORKING,
            Interest::None => {
                tokio::select! {
                    () = hub.interest_grew() => {}
                    () = stop.asked() => return,
                }
                wait = Duration::ZERO;
                continue;
            }
        };
        let looked = tokio::select! {
            looked = store.changes(rev, Glance { wait, every }) => looked,
            () = hub.interest_grew() => {
                wait = Duration::ZERO;
                continue;
            }
            () = stop.asked() => return,
        };
        match looked {
            Ok(changes) => {
                wait = LONGEST_LOOK;
                rev = changes.rev.max(rev);
                hub.publish(&changes);
            }
            Err(error) => {
                tracing::warn!(%error, "changes cannot be read, will look again");
                tokio::select! {
                    () = tokio::time::sleep(AFTER_ERROR) => {}
                    () = stop.asked() => return,
                }
            }
        }
    }
}
