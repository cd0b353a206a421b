//! Conversations: chains of jobs, read completely and in lists.

use std::time::Duration;

use outlast_core::{
    ConversationId, ConversationQuery, Job, NewJob, OwnerId, Scope, StateKind, Visibility,
};

use super::fixture::{Fixture, a_job, alice, bob, fail, succeed, worker};

fn a_turn(conversation: &str, title: &str) -> NewJob {
    let conversation = Some(ConversationId::new(conversation));
    NewJob { conversation, title: title.to_owned(), ..a_job() }
}

async fn add_ended(fixture: &Fixture, turn: NewJob) -> Job {
    let job = fixture.add(turn).await;
    let w1 = worker("w1");
    let taken = fixture.take(&w1, &job.id).await;
    fixture.store.settle(&taken.expect("it is queued").lease, succeed()).await.unwrap()
}

async fn names(fixture: &Fixture, owner: &OwnerId, query: &ConversationQuery) -> Vec<String> {
    let page = fixture.store.conversations(owner, query).await.unwrap();
    page.conversations.iter().map(|summary| summary.id.as_str().to_owned()).collect()
}

fn all() -> ConversationQuery {
    ConversationQuery { limit: 100, ..ConversationQuery::default() }
}

/// The messages of a conversation are its jobs in order of turn.
pub async fn turns_are_read_in_order_and_complete(fixture: Fixture) {
    let first = add_ended(&fixture, a_turn("c", "one")).await;
    add_ended(&fixture, a_turn("d", "stranger")).await;
    let second = fixture.add(a_turn("c", "two")).await;
    let name = ConversationId::new("c");
    assert_eq!(
        fixture.store.turns(&Scope::Owner(alice()), &name).await.unwrap(),
        [first.clone(), second.clone()]
    );
    let theirs = fixture.add(NewJob { owner: bob(), ..a_turn("c", "theirs") }).await;
    let all = fixture.store.turns(&Scope::Operator, &name).await.unwrap();
    assert_eq!(all, [first, second, theirs.clone()]);
    assert_eq!(fixture.store.turns(&Scope::Owner(bob()), &name).await.unwrap(), [theirs]);
    assert_eq!(
        fixture.store.turns(&Scope::Owner(alice()), &ConversationId::new("x")).await.unwrap(),
        []
    );
}

/// B17: newest first, each once, with any number of turns.
pub async fn conversations_are_listed_by_their_newest_turn(fixture: Fixture) {
    add_ended(&fixture, a_turn("old", "first question")).await;
    fixture.clock.advance(Duration::from_secs(5));
    add_ended(&fixture, a_turn("new", "other question")).await;
    assert_eq!(names(&fixture, &alice(), &all()).await, ["new", "old"]);
    fixture.clock.advance(Duration::from_secs(5));
    let last = fixture.add(a_turn("old", "second question")).await;
    let page = fixture.store.conversations(&alice(), &all()).await.unwrap();
    let old = &page.conversations[0];
    assert_eq!((old.id.as_str(), old.title.as_str()), ("old", "first question"));
    assert_eq!((old.turns, old.reports, old.state), (2, 1, StateKind::Queued));
    assert!(old.created_at < old.updated_at);
    assert_eq!(old.updated_at, last.updated_at);
    assert!(names(&fixture, &bob(), &all()).await.is_empty(), "foreign is unknown");
}

/// B17: by state and in pages.
pub async fn conversations_are_paged_and_filtered(fixture: Fixture) {
    for name in ["a", "b", "c"] {
        add_ended(&fixture, a_turn(name, name)).await;
    }
    fixture.add(a_turn("d", "d")).await;
    let ended = ConversationQuery { states: vec![StateKind::Succeeded], limit: 2, after: None };
    let page = fixture.store.conversations(&alice(), &ended).await.unwrap();
    assert_eq!(names(&fixture, &alice(), &ended).await, ["c", "b"]);
    let rest = ConversationQuery { after: page.next, ..ended };
    let page = fixture.store.conversations(&alice(), &rest).await.unwrap();
    assert_eq!(names(&fixture, &alice(), &rest).await, ["a"]);
    assert_eq!(page.next, None);
}

/// C5: a failed held call leaves nothing behind.
pub async fn a_held_call_makes_no_conversation_until_it_succeeds(fixture: Fixture) {
    let held = |name: &str| NewJob { visibility: Visibility::Unpromised, ..a_turn(name, name) };
    fixture.add(held("waiting")).await;
    let failed = fixture.add(held("failed")).await;
    let taken = fixture.take(&worker("w1"), &failed.id).await;
    fixture.store.settle(&taken.expect("it is queued").lease, fail()).await.unwrap();
    assert!(names(&fixture, &alice(), &all()).await.is_empty());
    add_ended(&fixture, held("good")).await;
    assert_eq!(names(&fixture, &alice(), &all()).await, ["good"]);
}
