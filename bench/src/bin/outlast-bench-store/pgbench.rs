//! pgbench with the statements of our insert. They come from the server's log of one insert, so they always match.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use outlast_core::{InsertOutcome, Store as _};
use outlast_testkit::postgres;

use crate::beside_others::open;
use crate::callers::{Work, new_job};

/// The owner whose name identifies the insert in the log.
const OWNER: &str = "owner-in-the-log";

/// The number of the job that the previous transaction has drawn.
const DRAWN: &str = "currval(pg_get_serial_sequence('jobs', 'seq'))";

/// Makes an insert with its statements logged, and writes them into a script for pgbench. The values are those of that
/// insert, except for the job's id, its number and its owner; each client has its own owner. Two pipelines, as our two
/// round trips.
pub(crate) async fn script_of_an_insert(url: &str, dir: &Path) -> PathBuf {
    let store = open(&format!("{url}%20-clog_statement%3Dall")).await;
    // The first insert over a connection differs only in the statements before it.
    let Ok(InsertOutcome::New(job)) = store.insert(new_job(OWNER)).await else { unreachable!() };
    let id = job.id.to_string();
    let log = std::fs::read_to_string(server_log(url).await).unwrap();
    let mut script = String::from("\\startpipeline\n");
    for statement in transaction_with(&log, &id) {
        let mut sql = statement.sql.clone();
        let is_job = sql.contains("insert into bodies");
        let is_rev = sql.contains("next_rev()");
        for (number, value) in statement.values.iter().enumerate().rev() {
            let given = match value.as_str() {
                _ if is_job && number == 0 => DRAWN.to_owned(),
                _ if is_rev => format!("array[{DRAWN}]"),
                value if value == format!("'{id}'") => {
                    // Computed once, so that an index finds it.
                    "(select replace(gen_random_uuid()::text, '-', ''))".to_owned()
                }
                value if value == format!("'{OWNER}'") => "('caller-' || :client_id)".to_owned(),
                value => value.to_owned(),
            };
            sql = sql.replace(&format!("${}", number + 1), &given);
        }
        writeln!(script, "{sql};").unwrap();
        if sql.starts_with("select coalesce(") {
            script.push_str("\\endpipeline\n\\startpipeline\n");
        }
    }
    script.push_str("\\endpipeline\n");
    assert_eq!(script.matches("\\startpipeline").count(), 2, "not two round trips:\n{script}");
    assert!(!script.contains('$') && script.contains("commit;"), "not understood:\n{script}");
    store.close().await;
    let path = dir.join("insert.sql");
    std::fs::write(&path, script).unwrap();
    path
}

/// Returns transactions per second.
pub(crate) fn run(script: &Path, url: &str, work: Work) -> f64 {
    let clients = work.callers.to_string();
    let output = Command::new("pgbench")
        .args([
            "-n",
            "-M",
            "prepared",
            "-c",
            &clients,
            "-j",
            "2",
            "-t",
            &work.each.to_string(),
            "-f",
        ])
        .arg(script)
        .arg(url)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let all = format!("{0}/{0}", work.jobs());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains(&all), "{said}\n{errors}");
    let tps = said.lines().find_map(|line| line.strip_prefix("tps = ")).unwrap();
    tps.split_whitespace().next().unwrap().parse().unwrap()
}

/// A statement with its values, quoted as the server writes them.
struct Logged {
    sql: String,
    values: Vec<String>,
}

/// Returns the log that `scripts/with-postgres` makes the server write, next to its data.
async fn server_log(url: &str) -> PathBuf {
    let admin = postgres::connect(url).await;
    let row = admin.query_one("select current_setting('data_directory')", &[]).await.unwrap();
    Path::new(row.get::<_, &str>(0)).with_file_name("server.log")
}

/// Returns the statements of the transaction that names the job, including its beginning and its commit.
fn transaction_with(log: &str, id: &str) -> Vec<Logged> {
    // A line that begins with a tab continues the one before.
    let log = log.replace("\n\t", " ");
    let process = |line: &str| line.split(['[', ']']).nth(1).map(str::to_owned);
    let wanted = log.lines().find(|line| line.contains(id)).and_then(process).unwrap();
    let mut transaction = Vec::new();
    let lines: Vec<&str> =
        log.lines().filter(|line| process(line).as_ref() == Some(&wanted)).collect();
    let named = lines.iter().position(|line| line.contains(id)).unwrap();
    let begun = lines[..named].iter().rposition(|line| line.ends_with("statement: begin")).unwrap();
    for line in &lines[begun..] {
        if let Some((_, sql)) = line.split_once("LOG:  statement: ") {
            transaction.push(Logged { sql: sql.to_owned(), values: Vec::new() });
            if sql == "commit" {
                break;
            }
        } else if let Some((_, executed)) = line.split_once("LOG:  execute ") {
            let (_, sql) = executed.split_once(": ").unwrap();
            let sql = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            transaction.push(Logged { sql, values: Vec::new() });
        } else if let Some((_, values)) = line.split_once("DETAIL:  parameters: ") {
            transaction.last_mut().unwrap().values = parse_values(values);
        }
    }
    transaction
}

/// Parses `$1 = 'a', $2 = NULL` into its values.
fn parse_values(detail: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut rest = detail;
    while let Some((_, value)) = rest.split_once(" = ") {
        let end = match value.strip_prefix('\'') {
            Some(quoted) => 1 + end_of_quoted(quoted),
            None => value.find(',').unwrap_or(value.len()),
        };
        values.push(value[..end].to_owned());
        rest = &value[end..];
    }
    values
}

/// Returns the end of a quoted text, including its closing quote; a doubled quote is one of its letters.
fn end_of_quoted(text: &str) -> usize {
    let mut quotes = text.match_indices('\'').peekable();
    while let Some((at, _)) = quotes.next() {
        if quotes.next_if(|(next, _)| *next == at + 1).is_none() {
            return at + 1;
        }
    }
    text.len()
}
