//! What is compared with: one connection, one transaction for each insert, just as durable.

use std::path::Path;
use std::sync::Mutex;

use outlast_core::NewJob;
use rusqlite::Connection;

pub(crate) struct Plain {
    connection: Mutex<Connection>,
}

impl Plain {
    #[expect(clippy::disallowed_methods, reason = "the store that is compared with is not ours")]
    pub(crate) fn open(path: &Path) -> Self {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT UNIQUE, owner TEXT, title TEXT, state TEXT);
                 CREATE INDEX jobs_owner ON jobs (owner, seq DESC);
                 CREATE TABLE bodies (job INTEGER PRIMARY KEY, ask TEXT);",
            )
            .unwrap();
        Self { connection: Mutex::new(connection) }
    }

    pub(crate) async fn insert(&self, job: NewJob) {
        tokio::task::block_in_place(|| {
            let mut connection = self.connection.lock().unwrap();
            let tx = connection.transaction().unwrap();
            let id = format!("{:032x}", fastrand::u128(..));
            tx.prepare_cached(
                "INSERT INTO jobs (id, owner, title, state) VALUES (?, ?, ?, 'queued')",
            )
            .unwrap()
            .execute((id, job.owner.as_str(), &job.title))
            .unwrap();
            let seq = tx.last_insert_rowid();
            tx.prepare_cached("INSERT INTO bodies VALUES (?, ?)")
                .unwrap()
                .execute((seq, job.ask.to_string()))
                .unwrap();
            tx.commit().unwrap();
        });
    }
}
