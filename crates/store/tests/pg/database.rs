//! A separate schema on the server that `scripts/test` starts.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Clock, EndNotices};
use outlast_store::{Judgement, PostgresOptions, PostgresStore};
use outlast_testkit::postgres;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

/// Judges immediately, as the suite does, so that the tests need not wait.
pub(crate) const AT_ONCE: Judgement =
    Judgement { free_for: Duration::ZERO, session_for: Duration::ZERO, leases_for: Duration::ZERO };

/// A schema.
#[derive(Clone)]
pub(crate) struct Database {
    url: String,
}

impl Database {
    /// Creates a schema.
    pub(crate) async fn fresh() -> Self {
        Self { url: postgres::fresh_schema().await }
    }

    /// Deletes all rows.
    pub(crate) async fn empty(&self, client: &Client) {
        let tables = "select string_agg(format('delete from %I', tablename), '; ' order by tablename) from pg_tables
             where schemaname = current_schema() and tablename <> 'meta'";
        let deletes: String = client.query_one(tables, &[]).await.unwrap().get(0);
        // This may conflict with a store that is indexing words.
        while let Err(error) = client.batch_execute(&deletes).await {
            assert_eq!(error.code(), Some(&SqlState::T_R_DEADLOCK_DETECTED), "{error}");
        }
    }

    /// The URL of the schema.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Opens a store that uses the server's clock.
    pub(crate) async fn open(&self) -> PostgresStore {
        self.open_with(None).await
    }

    /// Opens a store that uses a given clock.
    pub(crate) async fn open_with(&self, clock: Option<Arc<dyn Clock>>) -> PostgresStore {
        self.open_judging(clock, AT_ONCE).await
    }

    /// Opens a store that judges workers by these conditions.
    pub(crate) async fn open_judging(
        &self,
        clock: Option<Arc<dyn Clock>>,
        judgement: Judgement,
    ) -> PostgresStore {
        let options = PostgresOptions {
            url: self.url.clone(),
            clock,
            judgement,
            notices: EndNotices::Kept,
            limits: outlast_store::ConnectionLimits::default(),
            state_dir: None,
        };
        PostgresStore::open(options).await.expect("the store opens")
    }

    /// Opens a connection for the test itself.
    pub(crate) async fn client(&self) -> Client {
        postgres::connect(&self.url).await
    }
}
