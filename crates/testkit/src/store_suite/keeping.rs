//! Settings: values that are created once and needed again.

use super::fixture::Fixture;

/// G3: each name has its last value, and storing one is not a change of a job.
pub async fn g3_a_stored_setting_stays_until_it_is_replaced(fixture: Fixture) {
    let store = &fixture.store;
    let before = store.rev().await.unwrap();
    assert_eq!(store.get_setting("one").await.unwrap(), None);
    store.put_setting("one", "first").await.unwrap();
    store.put_setting("other", "of another name").await.unwrap();
    store.put_setting("one", "second ✓").await.unwrap();
    assert_eq!(store.get_setting("one").await.unwrap().as_deref(), Some("second ✓"));
    assert_eq!(store.get_setting("other").await.unwrap().as_deref(), Some("of another name"));
    assert_eq!(store.rev().await.unwrap(), before);
}

/// M4: of several processes that create a setting at once, one does, and all get its value.
pub async fn m4_a_setting_is_created_once(fixture: Fixture) {
    let store = &fixture.store;
    let create = |value: &'static str| store.create_setting("key", value);
    let (one, two, three) = tokio::join!(create("one"), create("two"), create("three"));
    let stored = store.get_setting("key").await.unwrap().unwrap();
    for created in [one, two, three] {
        assert_eq!(created.unwrap(), stored);
    }
    assert_eq!(store.create_setting("key", "later").await.unwrap(), stored);
    store.put_setting("key", "replaced").await.unwrap();
    assert_eq!(store.create_setting("key", "later").await.unwrap(), "replaced");
}
