//! Finished jobs by the million: copies of an existing one, each with its own id and owner.

use std::path::Path;

use rusqlite::Connection;

/// Copies a finished job this number of times, without the store's code; no process may have the file open.
#[expect(
    clippy::disallowed_methods,
    reason = "a million jobs by the front door would take an hour"
)]
pub(crate) fn add(path: &Path, count: u64) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch("PRAGMA synchronous = OFF; PRAGMA cache_size = -200000;").unwrap();
    let mut columns: Vec<String> = connection
        .prepare(
            "SELECT name FROM pragma_table_info('jobs') WHERE name NOT IN ('seq', 'id', 'owner')",
        )
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    columns.sort();
    let columns = columns.join(", ");
    connection
        .execute_batch(&format!(
            "BEGIN;
             CREATE TEMP TABLE one AS SELECT * FROM jobs WHERE state = 'succeeded' LIMIT 1;
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {count})
             INSERT INTO jobs (id, owner, {columns})
               SELECT lower(hex(randomblob(16))), 'owner-' || (i % 1000), {columns} FROM n, one;
             INSERT INTO bodies (job, ask, output)
               SELECT jobs.seq, '\"why\"', '{{}}' FROM jobs LEFT JOIN bodies ON bodies.job = jobs.seq
               WHERE bodies.job IS NULL;
             COMMIT;"
        ))
        .unwrap();
}
