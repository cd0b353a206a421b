//! Runs the store suite on the memory store.

use std::path::Path;
use std::sync::Arc;

use outlast_core::{Clock, EndNotices, Store};
use outlast_store::MemoryStore;

outlast_testkit::store_suite!(memory);

fn memory(clock: Arc<dyn Clock>, _dir: &Path) -> Arc<dyn Store> {
    Arc::new(MemoryStore::new(clock).with_notices(EndNotices::Kept))
}
