//! `outlast doctor`: its findings, its advice, and that it leaves nothing behind.

use std::time::Duration;

use outlast_simulator::{Options, Simulator};
use outlast_testkit::issuer::{Answer, JWKS, METADATA, SigningKey, TestIssuer};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::support::{Ran, World, running, start};

const NAMES: [&str; 15] = [
    "configuration",
    "data",
    "store",
    "sqlite",
    "locks",
    "provider",
    "clock",
    "pdftotext",
    "pandoc",
    "citations",
    "ports",
    "clients",
    "servers",
    "tools",
    "worker",
];

/// Returns the report, which has the same shape for all findings.
fn report(ran: &Ran) -> Value {
    let report: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let names: Vec<_> =
        report["checks"].as_array().unwrap().iter().map(|check| &check["name"]).collect();
    assert_eq!(names, NAMES, "{report}");
    for check in report["checks"].as_array().unwrap() {
        let status = check["status"].as_str().unwrap();
        assert!(["pass", "warn", "fail", "skipped"].contains(&status), "{check}");
        assert!(
            check["message"].as_str().is_some_and(|line| !line.is_empty() && !line.contains('\n')),
            "{check}"
        );
        assert!(check["fix"].is_string() || !["warn", "fail"].contains(&status), "no fix: {check}");
    }
    let failed = report["checks"].as_array().unwrap().iter().any(|check| check["status"] == "fail");
    assert_eq!(
        (report["ok"].as_bool(), ran.code),
        (Some(!failed), Some(i32::from(failed))),
        "{report}"
    );
    report
}

fn check<'a>(report: &'a Value, name: &str) -> &'a Value {
    report["checks"].as_array().unwrap().iter().find(|check| check["name"] == name).unwrap()
}

#[track_caller]
fn assert_found(report: &Value, name: &str, status: &str, said: &str) {
    let check = check(report, name);
    let text = format!(
        "{} {}",
        check["message"].as_str().unwrap(),
        check["fix"].as_str().unwrap_or_default()
    );
    assert!(check["status"] == status && text.contains(said), "{check}");
}

#[tokio::test]
async fn a_machine_that_is_ready_passes_and_nothing_is_made() {
    let world = World::new().await;
    let ran = world.run(&["doctor", "--json"]).await;
    let found = report(&ran);
    assert_eq!(ran.code, Some(0), "{found:#}");
    assert_found(&found, "configuration", "pass", "PERPLEXITY_API_KEY");
    assert_found(&found, "store", "pass", "will be made");
    assert_found(&found, "sqlite", "pass", "SQLite 3.");
    assert_found(&found, "locks", "pass", "keep processes apart");
    assert_found(&found, "provider", "pass", "takes the key");
    assert_found(&found, "clock", "pass", "");
    assert_found(&found, "clients", "skipped", "claude-code");
    assert_found(&found, "worker", "skipped", "outlast serve");
    assert!(!ran.stdout.contains("pplx-test"), "{}", ran.stdout);
    assert_eq!(world.submits(), 0, "nothing is bought");
    assert!(!world.data_dir().exists(), "and nothing is made");
    let around: Vec<_> = std::fs::read_dir(world.data_dir().parent().unwrap()).unwrap().collect();
    assert!(around.is_empty(), "nor left behind: {around:?}");
    let ran = world.run(&["doctor"]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.lines().next().unwrap().starts_with("\u{2713} configuration "), "{ran:?}");
    assert!(ran.stderr.contains("All is well"), "{ran:?}");
}

#[tokio::test]
async fn it_works_without_any_configuration_or_home() {
    let mut world = World::new().await;
    world.environment.clear();
    world.set("OUTLAST_DATA_DIR", world.data_dir().to_str().unwrap());
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "provider", "warn", "PERPLEXITY_API_KEY");
    assert_found(&found, "clients", "skipped", "home");
    let library = world.data_dir().parent().unwrap().to_owned();
    world.set("OUTLAST_LIBRARY", library.to_str().unwrap());
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "provider", "warn", "the library is empty");
    std::fs::write(library.join("a.md"), "The otter sleeps by day.").unwrap();
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "provider", "pass", "library");
}

#[tokio::test]
async fn a_configuration_that_cannot_be_used_is_named_with_what_would_be_right() {
    let mut world = World::new().await;
    world.set("OUTLAST_CONCURRENCY", "lots");
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "configuration", "fail", "OUTLAST_CONCURRENCY");
    assert_found(&found, "configuration", "fail", "a whole number");
    for name in ["store", "locks", "provider", "pdftotext", "pandoc", "worker"] {
        assert_found(&found, name, "skipped", "configuration");
    }
    world.set("OUTLAST_CONCURRENCY", "5");
    world.set("OUTLAST_TOKENS", "ann=hunter2");
    let ran = world.run(&["doctor", "--json"]).await;
    assert_found(&report(&ran), "configuration", "fail", "OUTLAST_TOKENS");
    assert!(!ran.stdout.contains("hunter2"));
    let ran = world.run(&["doctor", "--json", "--config", "/nowhere/outlast.toml"]).await;
    assert_found(&report(&ran), "configuration", "fail", "/nowhere/outlast.toml");
}

#[tokio::test]
async fn a_wrong_key_fails_and_so_does_a_provider_that_cannot_be_reached() {
    let mut world = World::new().await;
    world.set("PERPLEXITY_API_KEY", "pplx-wrong");
    let ran = world.run(&["doctor", "--json"]).await;
    assert_found(&report(&ran), "provider", "fail", "PERPLEXITY_API_KEY");
    assert!(!ran.stdout.contains("pplx-wrong"));
    world.set("PERPLEXITY_API_KEY", "pplx-test");
    world.set("PERPLEXITY_BASE_URL", "http://127.0.0.1:1");
    let ran = world.run(&["doctor", "--json"]).await;
    assert_found(&report(&ran), "provider", "fail", "offline");
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let ran = world.run(&["doctor"]).await;
    assert_eq!(ran.code, Some(1), "{ran:?}");
    assert!(!ran.stderr.contains("Ready") && !ran.stderr.contains("well"), "{ran:?}");
    assert_eq!(world.submits(), 0, "nothing is bought");
}

/// With a provider that never answers, and everything else as usual, it takes less than 3 s.
#[tokio::test]
async fn it_takes_less_than_three_seconds_whatever_hangs() {
    let mut world = World::new().await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    world.set("PERPLEXITY_BASE_URL", &format!("http://{}", silent.local_addr().unwrap()));
    let begun = Instant::now();
    let ran = world.run(&["doctor", "--json"]).await;
    let whole = begun.elapsed();
    let found = report(&ran);
    assert_found(&found, "provider", "fail", "in time");
    let own = Duration::from_millis(found["elapsed_ms"].as_u64().unwrap());
    // The process itself may have to wait for a busy machine before it can begin.
    assert!(own < Duration::from_secs(3), "{own:?} of {whole:?}");
}

#[tokio::test]
async fn a_store_in_use_shows_its_worker_and_one_that_is_left_its_jobs() {
    let world = World::new().await;
    let mut server = world.serve().await;
    let id = start(&mut server, "stuck").await;
    running(&world, &id).await;
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "store", "pass", "schema 17");
    assert_found(&found, "worker", "pass", "one is running; one job is unfinished");
    server.kill().await;
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "worker", "warn", "outlast worker");
    #[expect(clippy::disallowed_methods, reason = "the test looks past the store")]
    let database = rusqlite::Connection::open(world.database()).unwrap();
    let state: String = database.query_row("SELECT state FROM jobs", [], |row| row.get(0)).unwrap();
    assert_eq!(state, "running", "an inspection rescues no job");
}

#[tokio::test]
async fn a_store_that_cannot_be_used_fails_with_its_reason() {
    let mut world = World::new().await;
    std::fs::create_dir_all(world.data_dir()).unwrap();
    std::fs::write(
        world.database(),
        "no database at all, but long enough to look like one".repeat(50),
    )
    .unwrap();
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "store", "fail", "OUTLAST_STORE");
    std::fs::remove_file(world.database()).unwrap();
    std::fs::write(world.database().with_extension("db-wal"), "a log without its database")
        .unwrap();
    assert_found(&report(&world.run(&["doctor", "--json"]).await), "store", "fail", "-wal");
    assert!(!world.database().exists());
    std::fs::remove_file(world.database().with_extension("db-wal")).unwrap();
    let file = world.data_dir().join("file");
    std::fs::write(&file, "").unwrap();
    world.set("OUTLAST_DATA_DIR", "/proc/nowhere");
    assert_found(&report(&world.run(&["doctor", "--json"]).await), "store", "fail", "--data-dir");
    world.set("OUTLAST_STORE", "memory:");
    assert_found(
        &report(&world.run(&["doctor", "--json"]).await),
        "store",
        "warn",
        "OUTLAST_STORE",
    );
}

#[tokio::test]
async fn clients_are_found_and_one_that_runs_nothing_is_named() {
    let world = World::new().await;
    let home = world.data_dir().with_file_name("home");
    std::fs::create_dir_all(home.join(".cursor")).unwrap();
    std::fs::write(home.join(".claude.json"), "{}").unwrap();
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "clients", "warn", "outlast init claude-code");
    world.run(&["init", "cursor"]).await;
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "clients", "pass", "set up: cursor; not: claude-code");
    let gone = r#"{"mcpServers": {"outlast": {"command": "/gone/outlast"}}}"#;
    std::fs::write(home.join(".cursor/mcp.json"), gone).unwrap();
    assert_found(
        &report(&world.run(&["doctor", "--json"]).await),
        "clients",
        "warn",
        "outlast init cursor",
    );
    std::fs::write(home.join(".cursor/mcp.json"), "{").unwrap();
    assert_found(
        &report(&world.run(&["doctor", "--json"]).await),
        "clients",
        "warn",
        "line 1, column 1",
    );
}

/// A gateway without a list of models gives no information about the key.
#[tokio::test]
async fn a_provider_that_cannot_tell_is_no_failure() {
    let mut world = World::new().await;
    let simulator = Simulator::start(Options::default()).await.unwrap();
    world.set("PERPLEXITY_BASE_URL", &format!("{}/gateway", simulator.url()));
    let ran = world.run(&["doctor", "--json"]).await;
    assert_found(&report(&ran), "provider", "warn", "whether the key is right");
    assert_found(&report(&ran), "provider", "warn", "check that PERPLEXITY_BASE_URL is right");
}

/// J4, J5: a proxy and a missing converter limit what a check can read, and the doctor says so.
#[tokio::test]
async fn j4_the_doctor_reports_what_limits_citation_checks() {
    let mut world = World::new().await;
    world.set("HTTPS_PROXY", "http://127.0.0.1:9");
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "citations", "warn", "OUTLAST_CITATIONS_THROUGH_PROXY");
    world.set("OUTLAST_CITATIONS_THROUGH_PROXY", "true");
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "citations", "pass", "when you ask");
    world.set("OUTLAST_CHECK_CITATIONS", "never");
    let found = report(&world.run(&["doctor", "--json"]).await);
    assert_found(&found, "citations", "skipped", "switched off");
}

/// M2: the issuer is checked if one is configured: its keys, its sign-in and the audience.
#[tokio::test]
async fn m2_the_doctor_looks_at_the_issuer() {
    let key = SigningKey::p256("one");
    let issuer = TestIssuer::start(&[&key]).await;
    let metadata = |changes: Value| {
        let mut metadata = json!({
            "issuer": issuer.url(), "jwks_uri": format!("{}{JWKS}", issuer.url()),
            "code_challenge_methods_supported": ["S256"],
        });
        metadata.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        Answer::Document(metadata.to_string())
    };
    let mut world = World::new().await;
    world.set("OUTLAST_PUBLIC_URL", "https://research.example");
    world.set("OUTLAST_OAUTH_ISSUER", issuer.url());
    let no_method = json!({ "code_challenge_methods_supported": [] });
    let documents = json!({ "client_id_metadata_document_supported": true });
    for (path, answer, status, expected) in [
        (
            METADATA,
            metadata(json!({ "registration_endpoint": "x" })),
            "pass",
            "register themselves",
        ),
        (METADATA, metadata(documents), "pass", "metadata documents"),
        (METADATA, metadata(json!({})), "pass", "by hand"),
        (METADATA, metadata(json!({})), "pass", "https://research.example/mcp"),
        (METADATA, metadata(no_method), "warn", "S256"),
        (METADATA, metadata(json!({ "issuer": "https://other.example" })), "fail", "must be equal"),
        (METADATA, metadata(json!({})), "pass", "keys: 1"),
        (JWKS, Answer::Document(json!({ "keys": [] }).to_string()), "fail", "no key"),
        (JWKS, Answer::Silence, "fail", "within 2 s"),
    ] {
        issuer.answer(path, answer);
        let ran = world.run(&["doctor", "--json"]).await;
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let check = check(&report, "oauth");
        assert_eq!(check["status"], status, "{check}");
        assert!(check["message"].as_str().unwrap().contains(expected), "{check}");
    }
}
