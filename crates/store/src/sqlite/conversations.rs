//! Reads one conversation or a list of them. A conversation is a chain of jobs; no table holds anything else about it.

use outlast_core::{
    ConversationId, ConversationPage, ConversationQuery, Cursor, Job, OwnerId, Scope, Timestamp,
};
use rusqlite::{Connection, Row};

use super::fault::Fault;
use super::rows;
use crate::columns::{self, Columns as _};
use crate::{listing, page};

/// True if readers still see the job at `:now`.
const KEPT: &str = "(expires_at IS NULL OR expires_at > :now)";

/// The turns of a conversation in order.
pub(super) fn turns(
    connection: &Connection,
    scope: &Scope,
    conversation: &ConversationId,
    now: Timestamp,
) -> Result<Vec<Job>, Fault> {
    let (owned, owner) = match scope {
        Scope::Owner(owner) => ("owner = :owner", owner.as_str()),
        Scope::Operator => ("owner IS NOT :owner", ""),
    };
    let select = format!(
        "{} WHERE {owned} AND conversation = :conversation AND {KEPT} ORDER BY owner, turn",
        rows::WHOLE
    );
    let mut statement = connection.prepare_cached(&select)?;
    let parameters = rusqlite::named_params! {
        ":owner": owner,
        ":conversation": conversation.as_str(),
        ":now": now.as_millis(),
    };
    let turn = |row: &Row<'_>| Ok(rows::whole_row(connection, row)?.record.job);
    statement.query_and_then(parameters, turn)?.collect()
}

/// Returns a page of the owner's conversations.
pub(super) fn list(
    connection: &Connection,
    owner: &OwnerId,
    query: &ConversationQuery,
    now: Timestamp,
) -> Result<ConversationPage, Fault> {
    let mut statement = connection.prepare_cached(&page_of(query))?;
    let parameters = rusqlite::named_params! {
        "$1": owner.as_str(),
        "$2": now.as_millis(),
        "$3": query.after.map_or(i64::MAX, |Cursor(seq)| columns::to_signed(seq)),
    };
    let (conversations, next) =
        page(statement.query_and_then(parameters, |row| row.conversation())?, query.limit)?;
    Ok(ConversationPage { conversations, next })
}

/// Builds the statement for a page. SQLite knows neither how many jobs an owner has nor how few of them are in a given state,
/// so the statement names the index.
fn page_of(query: &ConversationQuery) -> String {
    let index = match query.states.as_slice() {
        states if listing::all_unfinished(states) => "INDEXED BY jobs_unfinished",
        [_] => "INDEXED BY jobs_ended_state",
        _ => "INDEXED BY jobs_turns",
    };
    listing::conversations(query, index)
}

#[cfg(test)]
mod tests {
    use outlast_core::StateKind;
    use tempfile::TempDir;

    use super::*;
    use crate::sqlite::{open, sql};

    /// A statement that names an index fails if the index does not exist.
    #[test]
    fn conversations_are_read_in_the_order_of_an_index() {
        let dir = TempDir::new().unwrap();
        let connection = open::made_for_test(&dir);
        for (states, index, sorts) in [
            (vec![], "jobs_turns", false),
            (vec![StateKind::Failed], "jobs_ended_state", false),
            (vec![StateKind::Failed, StateKind::Cancelled], "jobs_turns", false),
            (vec![StateKind::Running], "jobs_unfinished", false),
        ] {
            let query = ConversationQuery { states, limit: 50, after: None };
            let plan = sql::plan(&connection, &page_of(&query));
            let first = plan.first().unwrap();
            assert!(
                first.starts_with(&format!("SEARCH last USING INDEX {index} (owner=?")),
                "{plan:?}"
            );
            assert!(!plan.iter().any(|line| line.starts_with("SCAN")), "{plan:?}");
            let sorted = plan.iter().any(|line| line.contains("TEMP B-TREE FOR ORDER BY"));
            assert_eq!(sorted, sorts, "only what is few is sorted: {plan:?}");
        }
    }
}
