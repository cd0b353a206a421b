//! SQL for lists that both databases understand.

use outlast_core::{ConversationQuery, JobQuery, Scope, StateKind};

use crate::titles::TitleParts;

/// Returns the condition for jobs in these states, and a second condition that lets the database choose the matching index.
/// `jobs` is the name of the table in the statement.
pub(crate) fn of_states(states: &[StateKind], jobs: &str) -> Vec<String> {
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
    [in_states(states, jobs)].into_iter().chain(ended.map(str::to_owned)).collect()
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

/// The condition for a job with an open question: its shown state is `waiting`, whatever its stored one is.
fn waiting(jobs: &str) -> String {
    format!(
        "({jobs}.ended_at IS NULL AND EXISTS (SELECT 1 FROM questions WHERE questions.job = {jobs}.seq AND is_open = 1))"
    )
}

/// The column `waiting`: 1 for a job with an open question.
pub(crate) fn waiting_column(jobs: &str) -> String {
    format!("CAST(CASE WHEN {} THEN 1 ELSE 0 END AS bigint) AS waiting", waiting(jobs))
}

/// Returns the condition for jobs in these states, of which there is at least one.
pub(crate) fn in_states(states: &[StateKind], jobs: &str) -> String {
    let has = |state| states.contains(&state);
    let stored = states.iter().filter(|state| **state != StateKind::Waiting);
    // Constant words from our own code; none of them contains a quote.
    let words: Vec<_> = stored.map(|state| format!("'{}'", state.as_str())).collect();
    let stored = match &words[..] {
        [word] => format!("state = {word}"),
        words => format!("state IN ({})", words.join(", ")),
    };
    let has_unfinished = has(StateKind::Queued) || has(StateKind::Running);
    match (has(StateKind::Waiting), has_unfinished) {
        (true, _) if words.is_empty() => waiting(jobs),
        (true, _) if has(StateKind::Queued) && has(StateKind::Running) => stored,
        (true, _) => format!("({stored} OR {})", waiting(jobs)),
        (false, true) => format!("{stored} AND NOT {}", waiting(jobs)),
        (false, false) => stored,
    }
}

/// Selects a page of an owner's (`$1`) conversations, plus one more, as of a given time (`$2`) and before a number (`$3`). A
/// conversation has the position of its last shown turn in the order of arrival. `index` names the index, for a database that
/// needs it.
pub(crate) fn conversations(query: &ConversationQuery, index: &str) -> String {
    const KEPT: &str = "(expires_at IS NULL OR expires_at > $2)";
    // The same test as `Job::is_shown`.
    const SHOWN: &str = "(visibility <> 'unpromised' OR state = 'succeeded')";
    let turns = "FROM jobs WHERE owner = last.owner AND conversation = last.conversation";
    let wanted: String = of_states(&query.states, "last")
        .iter()
        .map(|condition| format!(" AND {condition}"))
        .collect();
    format!(
        "SELECT seq, id, conversation, state, {}, updated_at,
           (SELECT count(*) {turns} AND {SHOWN} AND {KEPT}) AS turns,
           (SELECT count(*) {turns} AND state = 'succeeded' AND {KEPT}) AS reports,
           (SELECT title {turns} AND {SHOWN} AND {KEPT} ORDER BY turn LIMIT 1) AS title,
           (SELECT created_at {turns} AND {SHOWN} AND {KEPT} ORDER BY turn LIMIT 1) AS created_at
         FROM jobs AS last {index}
         WHERE owner = $1 AND conversation IS NOT NULL AND {SHOWN} AND {KEPT} AND seq < $3{wanted}
           AND NOT EXISTS (SELECT 1 {turns} AND turn > last.turn AND {SHOWN} AND {KEPT})
         ORDER BY seq DESC LIMIT {}",
        waiting_column("last"),
        u64::from(query.limit) + 1
    )
}
