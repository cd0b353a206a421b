//! The response time of the command line. Measured on demand: `cargo nextest run -p outlast bench --run-ignored all
//! --no-capture`, with OUTLAST_BENCH naming a release binary.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::time::Instant;

use crate::support::{World, binary};

const JOBS: usize = 100_000;

#[expect(clippy::disallowed_methods, reason = "the benchmark script names the binary")]
fn median(world: &World, arguments: &[&str]) -> Duration {
    let program = std::env::var_os("OUTLAST_BENCH").map_or(binary().to_owned(), PathBuf::from);
    let mut times: Vec<Duration> = (0..21)
        .map(|_| {
            let since = Instant::now();
            let status = Command::new(&program)
                .args(arguments)
                .env_clear()
                .envs(world.environment.iter().cloned())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .unwrap();
            assert!(status.success());
            since.elapsed()
        })
        .collect();
    times.sort();
    times[10]
}

#[tokio::test]
#[ignore = "a measurement: needs a quiet machine and a release binary"]
async fn help_and_lists_are_fast_with_100_000_jobs() {
    let world = World::new().await;
    let question = "Why is the sky blue? [[sim:ok;words=60;sources=2;delay_ms=0]]";
    let (job, _) = super::snapshots::asked(&world, question).await;
    #[expect(clippy::disallowed_methods, reason = "rows are copied behind the store's back")]
    let connection = rusqlite::Connection::open(world.database()).unwrap();
    let columns: Vec<String> = connection
        .prepare("SELECT name FROM pragma_table_info('jobs') WHERE name NOT IN ('seq', 'id', 'conversation', 'turn')")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .collect::<Result<_, _>>()
        .unwrap();
    let columns = columns.join(", ");
    let copies = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {JOBS})
         INSERT INTO jobs (id, conversation, turn, {columns})
         SELECT lower(hex(randomblob(16))), lower(hex(randomblob(16))), 1, {columns} FROM jobs, n WHERE jobs.id = ?1"
    );
    assert_eq!(connection.execute(&copies, [&job]).unwrap(), JOBS);
    drop(connection);
    let prefix = &job[..8];
    for arguments in [
        &["--help"] as &[&str],
        &["jobs", "list"],
        &["jobs", "list", "--json", "--limit", "1000"],
        &["jobs", "list", "--search", "nothing like it"],
        &["jobs", "show", prefix],
        &["conversations", "list"],
    ] {
        println!(
            "{:>8.1} ms  outlast {}",
            median(&world, arguments).as_secs_f64() * 1e3,
            arguments.join(" ")
        );
    }
}
