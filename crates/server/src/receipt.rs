//! Receipts of a workflow's answer. Its outcome is repeated until a caller has received it. The record of that is delayed a
//! little, because an answer and its caller's cancellation may cross on the way, and then no caller has received it.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{JobId, OwnerId};
use outlast_engine::Engine;
use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

/// A duration longer than the delay of a cancellation that was sent before the answer arrived.
const CANCEL_CROSSING_TIME: Duration = Duration::from_secs(2);

/// The record to write once a call has been answered.
pub(crate) struct Receipt {
    pub(crate) engine: Engine,
    pub(crate) job: JobId,
}

/// The answers that are being delivered. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Receipts {
    // Ids of one owner's connections may collide here: then an outcome is repeated once more than necessary. Ids of
    // different owners must not collide: no owner may withdraw the receipt of another owner's answer.
    open: Arc<Mutex<HashMap<CallId, CancellationToken>>>,
}

/// The owner of a call, and the id of its request.
type CallId = (OwnerId, RequestId);

impl Receipts {
    /// Registers a call that is about to be answered; from now on its caller can withdraw the receipt.
    pub(crate) fn expect(&self, call: &CallId) -> CancellationToken {
        let taken_back = CancellationToken::new();
        self.open.lock().insert(call.clone(), taken_back.clone());
        taken_back
    }

    /// Records that the call was answered, unless its caller withdraws the receipt in a moment.
    pub(crate) async fn record(
        self,
        call: CallId,
        receipt: Receipt,
        taken_back: CancellationToken,
    ) {
        let Receipt { engine, job } = receipt;
        let received = tokio::select! {
            () = taken_back.cancelled() => false,
            () = tokio::time::sleep(CANCEL_CROSSING_TIME) => true,
            () = engine.begin_leaving() => true,
        };
        self.open.lock().remove(&call);
        if !received {
            return tracing::debug!(job.id = %job, "the answer crossed a cancellation; it is kept for the next call");
        }
        // If this cannot be stored, the outcome is only repeated once more.
        if let Err(error) = engine.record_answer(&job).await {
            tracing::warn!(job.id = %job, %error, "not recorded that a call was answered");
        }
    }

    /// Withdraws the receipt: the caller no longer waits for this answer, which may already have been sent.
    pub(crate) fn take_back(&self, call: &CallId) {
        if let Some(open) = self.open.lock().get(call) {
            open.cancel();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Clients count their requests from one, so all owners use the same ids at the same time.
    #[test]
    fn e7_no_owner_takes_back_the_answer_of_another() {
        let receipts = Receipts::default();
        let call = |owner: &str| (OwnerId::new(owner), RequestId::Number(7));
        let anns = receipts.expect(&call("ann"));
        let bobs = receipts.expect(&call("bob"));
        receipts.take_back(&call("bob"));
        assert!(bobs.is_cancelled() && !anns.is_cancelled());
        receipts.take_back(&call("ann"));
        assert!(anns.is_cancelled());
    }
}
