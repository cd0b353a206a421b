//! The PostgreSQL server that `scripts/with-postgres` starts, with a separate schema for every test.

mod relay;

use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

pub use relay::{Passing, Relay};

/// The server's URL; `None` if there is no server.
#[expect(
    clippy::disallowed_methods,
    reason = "the choice of the server is not part of the program's configuration"
)]
pub fn server() -> Option<String> {
    std::env::var("OUTLAST_TEST_POSTGRES").ok()
}

/// Returns true if tests that work with any store should use the database: `OUTLAST_TEST_STORE=postgres`.
#[expect(
    clippy::disallowed_methods,
    reason = "the choice of the server is not part of the program's configuration"
)]
pub fn everywhere() -> bool {
    std::env::var("OUTLAST_TEST_STORE").is_ok_and(|store| store == "postgres")
}

/// Creates an empty schema and returns its URL.
///
/// # Panics
/// Panics without a working server: a test that needs one fails and is not skipped.
pub async fn fresh_schema() -> String {
    let server = server().expect(
        "OUTLAST_TEST_POSTGRES names a PostgreSQL server: scripts/with-postgres starts one",
    );
    let schema = format!("case_{}", Uuid::new_v4().simple());
    let admin = connect(&server).await;
    admin.batch_execute(&format!("create schema {schema}")).await.expect("create a schema");
    let separator = if server.contains('?') { '&' } else { '?' };
    format!("{server}{separator}options=-csearch_path%3D{schema}")
}

/// The server's socket, for a relay.
///
/// # Panics
/// Panics without a server.
pub fn socket() -> String {
    let url = server().expect("OUTLAST_TEST_POSTGRES names a PostgreSQL server");
    let host = url.split("host=").nth(1).expect("the server listens on a socket");
    let folder = host.split('&').next().unwrap_or_default().replace("%2F", "/");
    format!("{folder}/.s.PGSQL.5432")
}

/// Opens a separate connection for the test.
///
/// # Panics
/// Panics if the server does not answer.
pub async fn connect(url: &str) -> Client {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}
