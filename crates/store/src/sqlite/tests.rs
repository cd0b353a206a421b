//! Lists and searches among 100,000 jobs (I6).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_core::{
    ConversationQuery, Cursor, Day, JobQuery, OwnerId, Scope, SpendBy, SpendQuery, StateKind,
};
use outlast_testkit::clock::START;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{conversations, ledger, open, reads, titles};

const JOBS: u32 = 100_000;
/// The maximum number of SQLite's virtual machine steps for a page. A scan of all jobs takes more than a million.
const AT_MOST: u64 = 250_000;
/// The interval, in steps, at which steps are counted.
const COUNTED: u32 = 100;

/// Adds the jobs of one owner, and fifty of another. Most succeeded, one in a thousand failed, the oldest were cancelled; one
/// in fifty is a library job. Each has twelve of five thousand words.
fn fill(connection: &Connection) {
    let fill = format!(
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {JOBS})
         INSERT INTO jobs (id, owner, conversation, turn, profile, workflow, title, title_folded, priority, visibility,
           max_failures, attempt_timeout, state, ended_at, remote, fence, checkpoint, failures, created_at, updated_at, rev)
         SELECT printf('%032x', n * 7919), iif(n % 2000 = 1999, 'bob', 'ann'), printf('%032x', n), 1,
           iif(n % 50 = 0, 'library 01', 'perplexity/agent https://api.example 01'), 'deep_research',
           'Question ' || n, 'question ' || n, 0, 'promised', 2, 1000,
           CASE WHEN n = 1 THEN 'cancelled' WHEN n % 1000 = 0 THEN 'failed' ELSE 'succeeded' END,
           n, iif(n = 1, 'not_needed', NULL), 1, '{{\"at\":\"not_begun\"}}', '[]', n, n, n FROM numbers;
         INSERT INTO bodies (job, ask) SELECT seq, '{{}}' FROM jobs;
         WITH RECURSIVE places(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM places WHERE n < 12)
         INSERT INTO search (rowid, words)
         SELECT seq, 'question ' || char(167) || 'o' || hex(owner) || ' ' || char(167) || 'p' || hex(provider) || ' ' ||
           iif(state = 'succeeded', char(167) || 's ', '') || (SELECT group_concat('word' || (seq * n * 31 % 5000), ' ') FROM places) FROM jobs;"
    );
    connection.execute_batch(&fill).unwrap();
}

#[test]
fn i6_lists_filters_counts_and_searches_walk_through_no_100_000_jobs() {
    let dir = TempDir::new().unwrap();
    let mut connection = open::made_for_test(&dir);
    fill(&connection);
    let page = JobQuery { limit: 50, ..JobQuery::default() };
    let of = |state| JobQuery { states: vec![state], ..page.clone() };
    let words = |words: &str| JobQuery { words: Some(words.to_owned()), ..page.clone() };
    let library = Some("library".to_owned());
    let cases = [
        ("newest", page.clone(), 50),
        ("far down", JobQuery { after: Some(Cursor(200)), ..page.clone() }, 50),
        ("a rare state", of(StateKind::Cancelled), 1),
        ("none running", of(StateKind::Running), 0),
        ("failed", of(StateKind::Failed), 50),
        (
            "the beginning of an id",
            JobQuery { id_prefix: Some(format!("{:032x}", 7919)[..31].to_owned()), ..page.clone() },
            1,
        ),
        (
            "unfinished",
            JobQuery { states: vec![StateKind::Queued, StateKind::Running], ..page.clone() },
            0,
        ),
        ("a provider", JobQuery { provider: library.clone(), ..page.clone() }, 50),
        ("provider and state", JobQuery { provider: library, ..of(StateKind::Cancelled) }, 0),
        ("a word of all", words("question"), 50),
        ("a word of few", words("word4321"), 50),
        ("two words", words("word17 word4321"), 50),
        ("a word of none", words("nothing"), 0),
        ("the start of many words", words("word"), 50),
        (
            "a word of all, a rare provider",
            JobQuery {
                words: Some("question".to_owned()),
                provider: Some("openai".to_owned()),
                ..page.clone()
            },
            0,
        ),
        (
            "words and a rare state",
            JobQuery { words: Some("question".to_owned()), ..of(StateKind::Cancelled) },
            1,
        ),
    ];
    let owners = ["ann", "bob"].map(|owner| Scope::Owner(OwnerId::new(owner)));
    for scope in owners.into_iter().chain([Scope::Operator]) {
        for (name, query, at_most) in &cases {
            let steps = steps(&mut connection, |connection| {
                let page = reads::list(connection, &scope, query, START).unwrap();
                assert!(page.jobs.len() <= *at_most, "{name}: {}", page.jobs.len());
            });
            eprintln!("{scope:?} {name}: {steps} steps");
            assert!(steps < AT_MOST, "{scope:?} {name}: {steps}");
        }
        let steps = steps(&mut connection, |connection| {
            reads::counts(connection, &scope, 1_000, START).unwrap();
        });
        eprintln!("{scope:?} counts: {steps} steps");
        assert!(steps < AT_MOST, "{scope:?} counts: {steps}");
    }
}

/// Indexes the titles of all complete segments.
fn index_titles(connection: &Connection) {
    while titles::is_owed(connection).unwrap() {
        titles::index_next(connection).unwrap();
    }
}

fn titled(text: &str) -> JobQuery {
    JobQuery { search: Some(text.to_owned()), limit: 50, ..JobQuery::default() }
}

#[test]
fn i6_searches_in_titles_compare_few_of_100_000() {
    let dir = TempDir::new().unwrap();
    let mut connection = open::made_for_test(&dir);
    fill(&connection);
    let texts =
        ["question", "Question 1", "question 77777", "n 4998", "tion 0", "none", "q", "7", "%"];
    let owners = ["ann", "bob", "nobody"].map(|owner| Scope::Owner(OwnerId::new(owner)));
    let scopes: Vec<Scope> = owners.into_iter().chain([Scope::Operator]).collect();
    let list = |connection: &Connection, scope: &Scope, text: &str, after| {
        let query = JobQuery { after, ..titled(text) };
        reads::list(connection, scope, &query, START).unwrap()
    };
    let cursors = [None, Some(Cursor(30_000)), Some(Cursor(1))];
    let mut expected = Vec::new();
    for scope in &scopes {
        for text in texts {
            expected.extend(cursors.map(|after| list(&connection, scope, text, after)));
        }
    }
    index_titles(&connection);
    let mut expected = expected.into_iter();
    for scope in &scopes {
        for text in texts {
            for after in cursors {
                let steps = steps(&mut connection, |connection| {
                    let page = list(connection, scope, text, after);
                    assert_eq!(Some(page), expected.next(), "{text} of {scope:?}");
                });
                assert!(steps < AT_MOST, "{text} of {scope:?}: {steps}");
            }
        }
    }
}

/// The numbers of the newest jobs are given out again.
#[test]
fn titles_of_jobs_with_numbers_of_removed_jobs_are_found() {
    let dir = TempDir::new().unwrap();
    let connection = open::made_for_test(&dir);
    fill(&connection);
    index_titles(&connection);
    let indexed = titles::end(&connection).unwrap();
    connection
        .execute_batch(
            "PRAGMA foreign_keys = OFF; DELETE FROM jobs WHERE seq > 50000;
             INSERT INTO jobs (id, owner, turn, profile, workflow, title, title_folded, priority, visibility, max_failures,
               attempt_timeout, state, ended_at, fence, checkpoint, failures, created_at, updated_at, rev)
             SELECT 'f' || substr(id, 2), owner, turn, profile, workflow, 'fences', 'fences', priority, visibility, max_failures,
               attempt_timeout, state, ended_at, fence, checkpoint, failures, created_at, updated_at, rev
             FROM jobs WHERE seq BETWEEN 40000 AND 49000 AND state = 'succeeded'",
        )
        .unwrap();
    assert!(titles::end(&connection).unwrap() < indexed);
    for _ in 0..2 {
        let page = reads::list(&connection, &Scope::Operator, &titled("fences"), START).unwrap();
        assert_eq!(page.jobs.len(), 50);
        let after = Some(Cursor(50_010));
        let query = JobQuery { after, ..titled("fences") };
        let page = reads::list(&connection, &Scope::Operator, &query, START).unwrap();
        assert_eq!((page.jobs.len(), page.next), (9, None));
        index_titles(&connection);
    }
}

#[test]
fn conversations_and_sums_of_any_owner_walk_through_no_100_000_jobs() {
    let dir = TempDir::new().unwrap();
    let mut connection = open::made_for_test(&dir);
    fill(&connection);
    // Ann's jobs are no longer turns, except for the fifty oldest.
    connection
        .execute_batch(
            "UPDATE jobs SET conversation = NULL WHERE owner = 'ann' AND seq > 50;
             INSERT INTO ledger (job, run, owner, provider, model, at, day, amount, kind, state)
               SELECT id, 1, owner, provider, 'model-' || (seq % 3), seq, seq % 30, 5, 'reported', 'spent' FROM jobs;",
        )
        .unwrap();
    for (owner, shown) in [("ann", 50), ("bob", 50), ("nobody", 0)] {
        let owner = OwnerId::new(owner);
        for states in [vec![], vec![StateKind::Succeeded], vec![StateKind::Running]] {
            let all = states.is_empty();
            let query = ConversationQuery { states, limit: 50, after: None };
            let steps = steps(&mut connection, |connection| {
                let page = conversations::list(connection, &owner, &query, START).unwrap();
                assert!(!all || page.conversations.len() == shown, "{owner:?}");
            });
            eprintln!("{owner:?} {query:?}: {steps} steps");
            // Succeeded jobs that are not turns are scanned.
            assert!(steps < AT_MOST || !query.states.is_empty(), "{owner:?} {query:?}: {steps}");
        }
        for scope in [Scope::Owner(owner), Scope::Operator] {
            for by in [SpendBy::Day, SpendBy::Provider, SpendBy::Model, SpendBy::Owner] {
                let query = SpendQuery { by, since: Day(0) };
                let steps = steps(&mut connection, |connection| {
                    ledger::spend(connection, &scope, &query).unwrap();
                });
                assert!(steps < AT_MOST / 10, "{scope:?} {by:?}: {steps}");
            }
        }
    }
}

/// Counts SQLite's virtual machine steps: the same number on every computer, however busy.
fn steps(connection: &mut Connection, step: impl FnOnce(&Connection)) -> u64 {
    let counted = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&counted);
    let handler = move || {
        count.fetch_add(u64::from(COUNTED), Ordering::Relaxed);
        false
    };
    connection.progress_handler(COUNTED as i32, Some(handler)).unwrap();
    step(connection);
    connection.progress_handler(0, None::<fn() -> bool>).unwrap();
    counted.load(Ordering::Relaxed)
}
