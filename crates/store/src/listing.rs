//! SQL for lists that both databases understand.

use outlast_core::{ConversationQuery, JobQuery, Scope, StateKind};

use crate::titles::TitleParts;

/// Returns the condition for jobs in these states, and a second condition that lets the database choose the matching index.
pub(crate) fn of_states(states: &[StateKind]) -> Vec<String> {
    let ended = match states {
        [] => return Vec::new(),
        states if all_unfinished(states) => Some("ended_at IS NULL"),
        // The indexes of ended jobs return the order of a list only for a single state.
        [StateKind::Failed | StateKind::Cancelled] => {
            Some("ended_at IS NOT NULL AND state <> 'succeeded'")
        }
        [_] => Some("ended_at IS NOT NULL"),
        _ => None,
    };
    [in_states(states)].into_iter().chain(ended.map(str::to_owned)).collect()
}

/// Returns whether the query asks only for jobs that have not ended.
pub(crate) fn all_unfinished(states: &[StateKind]) -> bool {
    !states.is_empty() && states.iter().all(|state| !state.is_terminal())
}

/// Returns the parts of the text that titles must contain, for a list that is best found by them. Words, ids and unfinished jobs
/// have indexes that find fewer jobs.
pub(crate) fn title_parts(scope: &Scope, query: &JobQuery) -> Option<TitleParts> {
    let text = query.search.as_deref()?;
    let is_narrow =
        query.words.is_some() || query.id_prefix.is_some() || all_unfinished(&query.states);
    if is_narrow { None } else { TitleParts::of(&text.to_lowercase(), scope.owner()) }
}

fn in_states(states: &[StateKind]) -> String {
    // Constant words from our own code; none of them contains a quote.
    let words: Vec<_> = states.iter().map(|state| format!("'{}'", state.as_str())).collect();
    format!("state IN ({})", words.join(", "))
}

/// Selects a page of an owner's (`$1`) conversations, plus one more, as of a given time (`$2`) and before a number (`$3`). A
/// conversation has the position of its last shown turn in the order of arrival. `index` names the index, for a database that
/// needs it.
pub(crate) fn conversations(query: &ConversationQuery, index: &str) -> String {
    const KEPT: &str = "(expires_at IS NULL OR expires_at > $2)";
    // The same test as `Job::is_shown`.
    const SHOWN: &str = "(visibility <> 'unpromised' OR state = 'succeeded')";
    let turns = "FROM jobs WHERE owner = last.owner AND conversation = last.conversation";
    let wanted: String =
        of_states(&query.states).iter().map(|condition| format!(" AND {condition}")).collect();
    format!(
        "SELECT seq, id, conversation, state, updated_at,
           (SELECT count(*) {turns} AND {SHOWN} AND {KEPT}) AS turns,
           (SELECT count(*) {turns} AND state = 'succeeded' AND {KEPT}) AS reports,
           (SELECT title {turns} AND {SHOWN} AND {KEPT} ORDER BY turn LIMIT 1) AS title,
           (SELECT created_at {turns} AND {SHOWN} AND {KEPT} ORDER BY turn LIMIT 1) AS created_at
         FROM jobs AS last {index}
         WHERE owner = $1 AND conversation IS NOT NULL AND {SHOWN} AND {KEPT} AND seq < $3{wanted}
           AND NOT EXISTS (SELECT 1 {turns} AND turn > last.turn AND {SHOWN} AND {KEPT})
         ORDER BY seq DESC LIMIT {}",
        u64::from(query.limit) + 1
    )
}
