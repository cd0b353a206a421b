//! The number of bytes that each owner's jobs take. An insert adds up the changes since the previous insert.

use outlast_core::OwnerId;

use super::fault::Fault;
use super::text::escaped;
use super::tx::Tx;
use crate::columns;

/// Adds up the changes and returns the owner's bytes. The caller has locked the owner's row.
pub(super) const ADD_UP: &str = "with moved as (delete from room where owner = $1 returning bytes)
     update owners set bytes = bytes + coalesce((select sum(bytes) from moved), 0)::bigint
     where owner = $1 returning bytes";

/// Records, with the transaction's commit, that a job of this owner takes more or fewer bytes.
pub(super) async fn moved(
    tx: &mut Tx,
    owner: &OwnerId,
    before: u64,
    after: u64,
) -> Result<(), Fault> {
    if before == after {
        return Ok(());
    }
    let owner = escaped(owner.as_str());
    let bytes = columns::signed(after) - columns::signed(before);
    tx.write_row(
        "insert into room (owner, bytes) select owner, sum(bytes)::bigint
         from unnest($1::text[], $2::bigint[]) as moved (owner, bytes) group by owner",
        vec![Box::new(owner), Box::new(bytes)],
    )
    .await
}
