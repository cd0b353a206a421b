//! A schema of its own on the server that `scripts/test` starts.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::Clock;
use outlast_store::{Judgement, PostgresOptions, PostgresStore};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// Judges at once, as the suite does, which has no time to lose.
pub(crate) const AT_ONCE: Judgement =
    Judgement { free_for: Duration::ZERO, session_for: Duration::ZERO, leases_for: Duration::ZERO };

/// A schema.
pub(crate) struct Database {
    url: String,
}

impl Database {
    /// Makes a schema.
    pub(crate) async fn fresh() -> Self {
        let server = server();
        let schema = format!("case_{}", Uuid::new_v4().simple());
        let admin = connect(&server).await;
        admin.batch_execute(&format!("create schema {schema}")).await.expect("a schema is made");
        let separator = if server.contains('?') { '&' } else { '?' };
        Self { url: format!("{server}{separator}options=-csearch_path%3D{schema}") }
    }

    /// The URL of the schema.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Opens a store by the server's clock.
    pub(crate) async fn open(&self) -> PostgresStore {
        self.open_with(None).await
    }

    /// Opens a store by a clock.
    pub(crate) async fn open_with(&self, clock: Option<Arc<dyn Clock>>) -> PostgresStore {
        self.open_judging(clock, AT_ONCE).await
    }

    /// Opens a store that judges workers like this.
    pub(crate) async fn open_judging(
        &self,
        clock: Option<Arc<dyn Clock>>,
        judgement: Judgement,
    ) -> PostgresStore {
        let options = PostgresOptions { url: self.url.clone(), clock, judgement };
        PostgresStore::open(options).await.expect("the store opens")
    }

    /// A connection of the test's own.
    pub(crate) async fn client(&self) -> Client {
        connect(&self.url).await
    }
}

/// The server's URL.
#[expect(
    clippy::disallowed_methods,
    reason = "which server to use is no part of the program's configuration"
)]
pub(crate) fn server() -> String {
    std::env::var("OUTLAST_TEST_POSTGRES")
        .expect("OUTLAST_TEST_POSTGRES names a PostgreSQL server: scripts/test starts one")
}

async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}
