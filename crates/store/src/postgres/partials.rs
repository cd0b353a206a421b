//! The partial texts of running attempts.

use outlast_core::{Lease, StoreError};

use super::fault::Fault;
use super::text::escape;
use super::tx::Tx;
use crate::columns;

/// Stores the partial text of a running job. Not a change: no rev.
pub(super) async fn show(tx: &mut Tx, lease: &Lease, text: &str) -> Result<(), Fault> {
    // The same test as `rules::check_lease`. Locks the job, so that no text is shown for an attempt that is being settled.
    const SHOW: &str = sql!(postgres::partials::show);
    let id = lease.job.to_string();
    let worker = escape(lease.worker.as_str());
    let fence = columns::to_signed(lease.fence.0);
    let text = escape(text);
    let [shown] = tx.load([(SHOW, &[&id, &worker, &fence, &text])]).await?;
    if shown.is_empty() { Err(StoreError::LeaseLost.into()) } else { Ok(()) }
}
