//! The PostgreSQL store keeps the port's promises, on the server of `OUTLAST_TEST_POSTGRES`.

#![expect(clippy::expect_used, reason = "a database that cannot be used ends the test")]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Clock, Store};
use outlast_store::{Judgement, PostgresOptions, PostgresStore};
use tokio::runtime::Handle;
use uuid::Uuid;

outlast_testkit::store_suite!(postgres);

/// A store in a schema of its own.
fn postgres(clock: Arc<dyn Clock>, _dir: &Path) -> Arc<dyn Store> {
    let url = std::env::var("OUTLAST_TEST_POSTGRES").expect("scripts/test starts a server and names it");
    let schema = format!("case_{}", Uuid::new_v4().simple());
    let opening = async {
        let (client, connection) =
            tokio_postgres::connect(&url, tokio_postgres::NoTls).await.expect("the server answers");
        let driving = tokio::spawn(connection);
        client.batch_execute(&format!("create schema {schema}")).await.expect("a schema is made");
        drop(client);
        driving.await.expect("the connection ends").expect("it ends well");
        let separator = if url.contains('?') { '&' } else { '?' };
        let options = PostgresOptions {
            url: format!("{url}{separator}options=-csearch_path%3D{schema}"),
            clock: Some(clock),
            judgement: Judgement {
                free_for: Duration::ZERO,
                session_for: Duration::ZERO,
                leases_for: Duration::ZERO,
            },
        };
        PostgresStore::open(options).await.expect("the store opens")
    };
    Arc::new(tokio::task::block_in_place(|| Handle::current().block_on(opening)))
}
