//! The key stays out of everything a person, a log or a store may see.

use std::sync::{Arc, Mutex};

use outlast_core::{Provider, ProviderError};
use outlast_provider::http::{HttpOptions, ProxyOptions, ProxyScope};
use outlast_provider::perplexity::Agent;
use outlast_provider::vendor::VendorOptions;

use crate::bench::{self, Bench, KEY, PATIENCE, ask, follow, patiently};
use crate::canned::{Canned, Then, raw, reply, stream};

#[track_caller]
fn keeps_the_key(case: &str, error: &ProviderError) {
    let texts = [error.to_string(), format!("{error:?}"), error.sentence.clone()];
    for text in texts.iter().chain(&error.detail) {
        assert!(!text.contains(KEY), "{case}: {text}");
    }
}

#[tokio::test]
async fn no_error_contains_the_key_even_when_the_provider_repeats_it() {
    let bench = Bench::new().await;
    for status in [400, 401, 403, 422, 429, 500, 503] {
        for body in ["json", "html"] {
            let fault = format!("http;status={status};body={body};secret={KEY}");
            let error = bench.not_begun(&format!("q [[sim:{fault}]]")).await;
            let text = format!("{error} {error:?}");
            assert!(!text.contains(KEY), "{fault}: {text}");
            assert!(text.contains("[redacted]"), "{fault}: upstream's words are kept: {text}");
        }
    }
    let scenarios = [
        format!("fail;delay_ms=0;code={KEY}"),
        format!("no_terminal|fail;delay_ms=0;code={KEY}"),
        format!("http;on=poll;status=401;secret={KEY}|no_terminal|ok;delay_ms=0"),
    ];
    for scenario in scenarios {
        let followed = follow(&mut *bench.begin(&format!("q [[sim:{scenario}]]")).await).await;
        keeps_the_key(&scenario, followed.error());
        assert!(followed.error().detail.as_ref().unwrap().contains("[redacted]"), "{scenario}");
    }
    let run = bench.begin(&format!("q [[sim:http;on=poll;status=500;secret={KEY}|stuck]]")).await;
    keeps_the_key("stop", &bench.agent.stop(&run.remote()).await.unwrap_err());
}

/// Secrets that must never be seen in a wrong place.
const CANARIES: [&str; 5] =
    [KEY, "canary-question", "canary-report", "canary-proxy-password", "canary-title"];

/// A gateway may rename runs: the answer is taken, and the log has one warning.
#[tokio::test]
async fn b9a_a_poll_answer_that_names_another_run_is_used_and_logged() {
    let server = Canned::serve(|line, nth| match (line, nth) {
        (line, _) if line.starts_with("POST") => reply(200, r#"{"id":"r","status":"queued"}"#),
        (line, _) if line.contains("stream=true") => reply(400, "{}"),
        (_, ..6) => reply(200, r#"{"id":"another-run","status":"in_progress"}"#),
        _ => reply(
            200,
            r#"{"id":"another-run","status":"completed","output":[{"type":"message","content":[{"text":"Blue."}]}]}"#,
        ),
    })
    .await;
    let log = log_of(async {
        let agent = server.agent(PATIENCE);
        let mut run = patiently(agent.begin(&ask("q"), "key")).await.unwrap();
        assert_eq!(follow(&mut *run).await.text(), "Blue.");
    })
    .await;
    let warnings = log.lines().filter(|line| line.contains("the id of another run")).count();
    assert_eq!(warnings, 1, "{log}");
    assert!(log.contains("another-run"), "{log}");
}

/// Everything any part of the program logs while the future runs, at the finest level.
async fn log_of(future: impl Future<Output = ()>) -> String {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(log.clone())
        .finish();
    let guard = tracing::subscriber::set_default(subscriber);
    future.await;
    drop(guard);
    let bytes = log.0.lock().unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> tracing_subscriber::fmt::MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// A server that repeats the key wherever it can, behind a proxy that wants a password.
async fn hostile() -> Canned {
    Canned::serve(|line, nth| {
        let created = r#"{"type":"response.created","response":{"id":"r"}}"#;
        let echo = format!(
            r#"{{"error":{{"message":"{KEY} pplx-canary","type":"{KEY}","code":500}},"status":"failed"}}"#
        );
        let report = r#"{"id":"r","status":"completed","output":[
            {"type":"search_results","results":[{"id":1,"url":"u","title":"canary-title"}]},
            {"type":"message","content":[{"text":"canary-report"}]}]}"#;
        match (line.contains("/cancel"), nth) {
            (true, _) => reply(503, &echo),
            (_, 0) => stream(&[created, &format!(r#"{{"type":"error","error":"{KEY}"}}"#)], Then::Close),
            (_, 1) => reply(503, &echo),
            (_, 2) => reply(429, &echo),
            (_, 3) => raw(200, "content-length: 999", echo.as_bytes(), Then::Close),
            (_, 4) => reply(200, &format!("no json {KEY}")),
            (_, 5) => reply(200, r#"{"id":"r","status":"in_progress"}"#),
            (_, 6) => reply(503, &echo),
            (_, 7) => reply(200, report),
            _ => reply(500, &echo),
        }
    })
    .await
}

/// Seeded secrets, every log level, every kind of fault: nothing shows what it should not.
#[tokio::test]
async fn no_log_at_any_level_and_no_error_shows_a_seeded_secret() {
    let server = hostile().await;
    let url = server.url.replace("http://", "http://ann:canary-proxy-password@");
    let proxy = ProxyOptions { url, scope: ProxyScope::Everything, except: String::new() };
    let options = bench::options("http://api.invalid", KEY, PATIENCE, &server.clock);
    let http = HttpOptions { timeout: PATIENCE, proxy: Some(proxy) };
    let mut errors = Vec::new();
    let log = log_of(async {
        let agent = Agent::new(VendorOptions { http, ..options }).unwrap();
        let mut run = patiently(agent.begin(&ask("canary-question"), "key")).await.unwrap();
        assert_eq!(follow(&mut *run).await.text(), "canary-report");
        errors.push(format!("{:?}", agent.stop(&run.remote()).await));
        let Err(error) = agent.begin(&ask("canary-question"), "key").await else { panic!("begun") };
        errors.push(format!("{error} {error:?}"));
        errors.push(format!("{:?}", agent.typical_cost(&ask("canary-question"))));
        tracing::trace!("the log works");
    })
    .await;
    assert!(log.contains("the log works") && log.contains("failed to check the run"), "{log}");
    let head = &server.seen()[0].head;
    assert!(head.contains("proxy-authorization") && head.contains(KEY));
    errors.push(log);
    for text in &errors {
        for canary in CANARIES.iter().chain(&["pplx-canary", "YW5uOmNhbmFyeS"]) {
            let shown = text.lines().find(|line| line.contains(canary));
            assert!(shown.is_none(), "{canary}: {}", shown.unwrap());
        }
    }
}
