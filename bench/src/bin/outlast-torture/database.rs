//! The database under the servers, which is killed as well.

use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};

use outlast_testkit::postgres;

/// A separate schema in a server that can be killed.
pub(crate) struct Database {
    pub(crate) url: String,
    control: String,
    /// The number of kills of the server, and of single connections.
    servers: AtomicU64,
    connections: AtomicU64,
    /// The number of calls that were asked to try again because the store could not be used.
    refusals: AtomicU64,
}

impl Database {
    #[expect(
        clippy::disallowed_methods,
        reason = "scripts/with-postgres says how its server is controlled"
    )]
    pub(crate) async fn new() -> Self {
        Self {
            url: postgres::fresh_schema().await,
            control: std::env::var("OUTLAST_TEST_POSTGRES_CONTROL").unwrap(),
            servers: AtomicU64::new(0),
            connections: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        }
    }

    /// Kills every process of the database server at once and starts it again.
    pub(crate) async fn kill_server(&self) {
        for action in ["kill", "start"] {
            self.control(action).await;
        }
        self.servers.fetch_add(1, Ordering::SeqCst);
    }

    /// Stops every process of the database server: its connections stay open and nothing is answered.
    pub(crate) async fn hang(&self) {
        self.control("hang").await;
    }

    /// Ends [`Database::hang`].
    pub(crate) async fn resume(&self) {
        self.control("resume").await;
    }

    async fn control(&self, action: &str) {
        let mut control = tokio::process::Command::new(&self.control);
        let done = control.arg(action).stdin(Stdio::null()).status().await.unwrap();
        assert!(done.success(), "the database does not {action}");
    }

    /// Ends one connection, whatever it is doing.
    pub(crate) async fn kill_connection(&self, random: &mut fastrand::Rng) {
        let admin = postgres::connect(&self.url).await;
        let ended = admin
            .query(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'outlast'
                 order by md5(pid::text || $1) limit 1",
                &[&random.u32(..).to_string()],
            )
            .await;
        self.connections.fetch_add(ended.map_or(0, |rows| rows.len() as u64), Ordering::SeqCst);
    }

    /// Counts a call that was asked to try again.
    pub(crate) fn refused(&self) {
        self.refusals.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a description of the faults.
    pub(crate) fn told(&self) -> String {
        let [servers, connections, refusals] =
            [&self.servers, &self.connections, &self.refusals].map(|it| it.load(Ordering::SeqCst));
        format!(
            "the database was killed {servers} times, {connections} of its connections were ended, {refusals} calls were \
             asked to try again"
        )
    }
}
