//! Tests of the PostgreSQL store on a real server: the store suite, and the properties that a shared database adds.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a database that cannot be used ends the test"
)]

mod database;
mod following;
mod liveness;
mod model;
mod plans;
mod statements;
mod cuts;
mod hanging;
mod copying;
mod ledger;
mod restored;
mod operating;

use std::path::Path;
use std::sync::Arc;

use outlast_core::{Clock, Store};
use tokio::runtime::Handle;

use database::Database;

outlast_testkit::store_suite!(postgres);

/// Opens a store in a separate schema.
fn postgres(clock: Arc<dyn Clock>, _dir: &Path) -> Arc<dyn Store> {
    let opening = async { Database::fresh().await.open_with(Some(clock)).await };
    Arc::new(tokio::task::block_in_place(|| Handle::current().block_on(opening)))
}
