//! The number of bytes that each owner's jobs take. An insert adds up the changes since the previous insert.

use outlast_core::OwnerId;

use super::fault::Fault;
use super::text::escape;
use super::tx::Tx;
use crate::columns;

/// Adds up the changes and returns the owner's bytes. The caller has locked the owner's row.
pub(super) const ADD_UP: &str = sql!(postgres::room::add_up);

/// Records, with the transaction's commit, that a job of this owner takes more or fewer bytes.
pub(super) async fn move_bytes(
    tx: &mut Tx,
    owner: &OwnerId,
    before: u64,
    after: u64,
) -> Result<(), Fault> {
    if before == after {
        return Ok(());
    }
    let owner = escape(owner.as_str());
    let bytes = columns::to_signed(after) - columns::to_signed(before);
    tx.write_row(sql!(postgres::room::moved), vec![Box::new(owner), Box::new(bytes)]).await
}
