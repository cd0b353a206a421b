//! Whether an answer was received. A held call's outcome is told again until somebody has it; the record of that waits a
//! moment, because an answer and its caller's cancellation may cross on the way, and then nobody has it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_core::JobId;
use outlast_engine::Engine;
use rmcp::model::RequestId;
use tokio_util::sync::CancellationToken;

/// Longer than a cancellation takes that left before the answer arrived.
const CROSSING: Duration = Duration::from_secs(2);

/// What is to be recorded once a call has been answered.
pub(crate) struct Receipt {
    pub(crate) engine: Engine,
    pub(crate) job: JobId,
}

/// The answers on their way. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct Receipts {
    // Ids of several connections may meet here: then one more call is told again than need be.
    open: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
}

impl Receipts {
    /// Expects that a call is answered; from now on its caller can take it back.
    pub(crate) fn expect(&self, request: &RequestId) -> CancellationToken {
        let taken_back = CancellationToken::new();
        self.open().insert(request.clone(), taken_back.clone());
        taken_back
    }

    /// Records that the call was answered, unless its caller takes it back in a moment.
    pub(crate) async fn record(
        self,
        request: RequestId,
        receipt: Receipt,
        taken_back: CancellationToken,
    ) {
        let Receipt { engine, job } = receipt;
        let received = tokio::select! {
            () = taken_back.cancelled() => false,
            () = tokio::time::sleep(CROSSING) => true,
            () = engine.leaving() => true,
        };
        self.open().remove(&request);
        if !received {
            return tracing::debug!(job.id = %job, "the answer crossed a cancellation; it is kept for the next call");
        }
        // If this cannot be stored, the outcome is only told once more.
        if let Err(error) = engine.answered(&job).await {
            tracing::warn!(job.id = %job, %error, "not recorded that a call was answered");
        }
    }

    /// The caller no longer waits for this answer, which may be on its way.
    pub(crate) fn take_back(&self, request: &RequestId) {
        if let Some(open) = self.open().get(request) {
            open.cancel();
        }
    }

    fn open(&self) -> std::sync::MutexGuard<'_, HashMap<RequestId, CancellationToken>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
