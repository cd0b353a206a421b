//! Conversations are chains of jobs; no table holds anything else about them. Reads one, or a list of them.

use outlast_core::{
    ConversationId, ConversationPage, ConversationQuery, Cursor, Job, OwnerId, Scope, Timestamp,
};
use rusqlite::{Connection, Row};

use super::fault::Fault;
use super::rows;
use crate::columns::{self, Columns as _};
use crate::page;

/// What conversation tools show of a job: the same test as `Job::is_shown`.
const SHOWN: &str = "(visibility <> 'unpromised' OR state = 'succeeded')";
/// Whether readers still see it, at `:now`.
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

/// A page of the owner's conversations: each stands where its last shown turn does in the order of arrival.
pub(super) fn list(
    connection: &Connection,
    owner: &OwnerId,
    query: &ConversationQuery,
    now: Timestamp,
) -> Result<ConversationPage, Fault> {
    let states: Vec<&str> = query.states.iter().map(|state| state.as_str()).collect();
    let select = format!(
        "SELECT seq, id, conversation, state, updated_at,
           (SELECT count(*) FROM jobs WHERE owner = last.owner AND conversation = last.conversation
              AND {SHOWN} AND {KEPT}) AS turns,
           (SELECT count(*) FROM jobs WHERE owner = last.owner AND conversation = last.conversation
              AND state = 'succeeded' AND {KEPT}) AS reports,
           (SELECT title FROM jobs WHERE owner = last.owner AND conversation = last.conversation
              AND {SHOWN} AND {KEPT} ORDER BY turn LIMIT 1) AS title,
           (SELECT created_at FROM jobs WHERE owner = last.owner AND conversation = last.conversation
              AND {SHOWN} AND {KEPT} ORDER BY turn LIMIT 1) AS created_at
         FROM jobs AS last
         WHERE owner = :owner AND conversation IS NOT NULL AND {SHOWN} AND {KEPT} AND seq < :after
           AND (:all OR state IN (SELECT value FROM json_each(:states)))
           AND NOT EXISTS (SELECT 1 FROM jobs WHERE owner = last.owner
              AND conversation = last.conversation AND turn > last.turn AND {SHOWN} AND {KEPT})
         ORDER BY seq DESC LIMIT :limit"
    );
    let mut statement = connection.prepare_cached(&select)?;
    let parameters = rusqlite::named_params! {
        ":owner": owner.as_str(),
        ":now": now.as_millis(),
        ":after": query.after.map_or(i64::MAX, |Cursor(seq)| columns::signed(seq)),
        ":all": states.is_empty(),
        ":states": columns::json(&states)?,
        ":limit": i64::from(query.limit) + 1,
    };
    let (conversations, next) =
        page(statement.query_and_then(parameters, |row| row.conversation())?, query.limit)?;
    Ok(ConversationPage { conversations, next })
}
