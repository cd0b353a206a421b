//! Runs the store suite on the SQLite store.

use std::path::Path;
use std::sync::Arc;

use outlast_core::{Clock, EndNotices, Store};
use outlast_store::SqliteStore;

outlast_testkit::store_suite!(sqlite);

#[expect(clippy::expect_used, reason = "a store that cannot be opened ends the test")]
fn sqlite(clock: Arc<dyn Clock>, dir: &Path) -> Arc<dyn Store> {
    let store = SqliteStore::open(&dir.join("jobs.db"), clock).expect("the store opens");
    Arc::new(store.with_notices(EndNotices::Kept))
}
