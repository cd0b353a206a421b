//! What was made once and is needed again.

use super::fixture::Fixture;

/// G3: each name has the value it was last given, and that is no change of a job.
pub async fn g3_what_is_kept_is_there_until_it_is_replaced(fixture: Fixture) {
    let store = &fixture.store;
    let before = store.rev().await.unwrap();
    assert_eq!(store.kept("one").await.unwrap(), None);
    store.keep("one", "first").await.unwrap();
    store.keep("other", "of another name").await.unwrap();
    store.keep("one", "second ✓").await.unwrap();
    assert_eq!(store.kept("one").await.unwrap().as_deref(), Some("second ✓"));
    assert_eq!(store.kept("other").await.unwrap().as_deref(), Some("of another name"));
    assert_eq!(store.rev().await.unwrap(), before);
}
