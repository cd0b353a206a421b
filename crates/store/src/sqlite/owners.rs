//! Shares the store among owners: the order in which they are served, and the bytes that each has stored. Triggers maintain
//! the counts (schema 4).

use outlast_core::{JobId, OwnerId, Profile, Timestamp, rules};
use rusqlite::{Connection, OptionalExtension as _};

use super::fault::Fault;
use super::sql;
use crate::columns::Columns as _;

/// Owners with queued jobs, the next one to serve first: the order of `rules::Turn`.
const IN_TURN: &str = sql!(sqlite::owners::in_turn);

/// The head of one owner's queue for one profile, found in one index step. The same test as `rules::is_claimable`.
const HEAD: &str = sql!(sqlite::owners::head);

/// Returns the next job to claim over all these profiles.
///
/// An owner whose jobs have other profiles, or are not due yet, costs one step for each profile.
pub(super) fn next_job(
    connection: &Connection,
    profiles: &[Profile],
    now: Timestamp,
) -> Result<Option<i64>, Fault> {
    let mut in_turn = connection.prepare_cached(IN_TURN)?;
    let mut head = connection.prepare_cached(HEAD)?;
    let mut owners = in_turn.query([])?;
    while let Some(owner) = owners.next()? {
        let owner: String = owner.get(0)?;
        let mut best: Option<(i64, i64)> = None;
        for profile in profiles {
            let first = head
                .query_row((profile.as_str(), &owner, now.as_millis()), |row| {
                    Ok((row.get(0)?, row.get(1)?))
                })
                .optional()?;
            best = best.into_iter().chain(first).min();
        }
        if let Some((_, seq)) = best {
            return Ok(Some(seq));
        }
    }
    Ok(None)
}

/// The number of queued jobs that are claimed before this one, all read from one snapshot.
pub(super) fn ahead(connection: &Connection, id: &JobId) -> Result<u64, Fault> {
    const MINE: &str = sql!(sqlite::owners::mine);
    const OTHERS: &str = sql!(sqlite::owners::others);
    let snapshot = connection.unchecked_transaction()?;
    let mut statement = snapshot.prepare_cached(MINE)?;
    let mine = statement.query_and_then([id.to_string()], |row| -> Result<_, Fault> {
        Ok((row.turn()?, [row.text("profile")?, row.text("owner")?], row.count("before")?))
    });
    let Some((mine, names, before)) = mine?.next().transpose()? else { return Ok(0) };
    let mut statement = snapshot.prepare_cached(OTHERS)?;
    let mut others = statement.query(names)?;
    let mut ahead = before;
    while let Some(row) = others.next()? {
        ahead += rules::jobs_ahead(&mine, before, &row.turn()?, row.count("waiting")?);
    }
    Ok(ahead)
}

/// The number of bytes that the owner's jobs take.
pub(super) fn bytes(connection: &Connection, owner: &OwnerId) -> Result<u64, Fault> {
    let select = sql!(sqlite::owners::bytes);
    let bytes: Option<i64> = sql::optional(connection, select, [owner.as_str()])?;
    Ok(bytes.unwrap_or(0).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::open;

    /// F10: a claim reads the head of one owner's queue, however long the queue is.
    #[test]
    fn f10_a_claim_walks_two_indices_and_sorts_nothing() {
        let dir = TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        let table = [
            (IN_TURN, "SCAN owners USING INDEX owners_turn"),
            (HEAD, "SEARCH jobs USING INDEX jobs_claim (profile=? AND owner=?)"),
            ("SELECT max(served) FROM owners", "SEARCH owners USING COVERING INDEX owners_served"),
        ];
        for (select, expected) in table {
            assert_eq!(sql::plan(&connection, select), [expected]);
        }
    }
}
