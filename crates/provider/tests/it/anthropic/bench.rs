//! The adapter, the simulator it talks to, and the clock it reads.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{Provider, ProviderError, RemoteRun, Run, Step};
use outlast_provider::anthropic::Anthropic;
use outlast_simulator::{Options, Simulator};
use outlast_testkit::clock::ManualClock;
use serde_json::Value;

use crate::bench::{self, KEY, PATIENCE, ask, patiently};

pub(super) struct Bench {
    pub(super) sim: Simulator,
    pub(super) clock: Arc<ManualClock>,
    pub(super) anthropic: Anthropic,
}

impl Bench {
    pub(super) async fn new() -> Self {
        Self::with_timeout(PATIENCE).await
    }

    pub(super) async fn with_timeout(timeout: Duration) -> Self {
        let sim = Simulator::start(Options { speed: 1_000.0, ..Options::default() }).await;
        let (sim, clock) = (sim.unwrap(), Arc::default());
        let anthropic = adapter(sim.url(), timeout, &clock);
        Self { sim, clock, anthropic }
    }

    /// The session of a question, nothing sent into it.
    pub(super) async fn begin(&self, question: &str) -> Box<dyn Run> {
        patiently(self.anthropic.begin(&ask(question), question)).await.unwrap()
    }

    pub(super) async fn resume(&self, question: &str, remote: &RemoteRun) -> Box<dyn Run> {
        self.anthropic.resume(&ask(question), remote).await.unwrap()
    }

    /// Begins a run and follows it until it was sent.
    pub(super) async fn sent(&self, question: &str) -> Box<dyn Run> {
        let mut run = self.begin(question).await;
        while run.remote().cursor.as_deref() != Some("sent") {
            patiently(run.next()).await.unwrap();
        }
        run
    }

    /// Waits until the simulator has counted so.
    pub(super) async fn until(&self, reached: impl Fn(&outlast_simulator::Stats) -> bool) {
        patiently(async {
            while !reached(&self.sim.stats()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Requests so far whose method and path begin so.
    pub(super) fn requests(&self, beginning: &str) -> Vec<outlast_simulator::SeenRequest> {
        let line = |seen: &outlast_simulator::SeenRequest| format!("{} {}", seen.method, seen.path);
        let requests = self.sim.requests().into_iter();
        requests.filter(|seen| line(seen).starts_with(beginning)).collect()
    }

    /// A call past the adapter.
    pub(super) async fn post(&self, path: &str) -> Value {
        #[expect(clippy::disallowed_methods, reason = "a look past the adapter")]
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let request = client.post(format!("{}{path}", self.sim.url())).header("x-api-key", KEY);
        let request = request.header("anthropic-beta", "managed-agents-2026-04-01");
        let answer = request.send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice(&answer).unwrap()
    }
}

pub(super) fn adapter(url: &str, timeout: Duration, clock: &Arc<ManualClock>) -> Anthropic {
    let options = bench::options(url, KEY, timeout, clock);
    Anthropic::new(options).unwrap()
}

/// Follows a run until its cursor begins so.
pub(super) async fn until_cursor(run: &mut dyn Run, beginning: &str) {
    while !run.remote().cursor.is_some_and(|cursor| cursor.starts_with(beginning)) {
        let step = patiently(run.next()).await.unwrap();
        assert!(!matches!(step, Step::Done { .. }), "it ended before");
    }
}

/// Follows a run, whose begin was reported already, to its end.
pub(super) async fn finish(run: &mut dyn Run) -> Result<(), ProviderError> {
    patiently(async {
        loop {
            if let Step::Done { .. } = run.next().await? {
                return Ok(());
            }
        }
    })
    .await
}
