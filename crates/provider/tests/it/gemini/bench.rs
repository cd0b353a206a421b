//! The adapter and the simulator it talks to.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{BeginError, Provider, RemoteRun, Run};
use outlast_provider::gemini::Gemini;
use outlast_simulator::{Options, Simulator, Stats};
use outlast_testkit::clock::ManualClock;

use crate::bench::{KEY, PATIENCE, ask, options, patiently};

pub(crate) struct Bench {
    pub(crate) sim: Simulator,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) gemini: Gemini,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::at_speed(1_000.0).await
    }

    pub(crate) async fn at_speed(speed: f64) -> Self {
        let sim = Simulator::start(Options { speed, ..Options::default() }).await.unwrap();
        let clock = Arc::new(ManualClock::default());
        let gemini = gemini(sim.url(), PATIENCE, &clock);
        Self { sim, clock, gemini }
    }

    pub(crate) async fn try_begin(&self, question: &str) -> Result<Box<dyn Run>, BeginError> {
        patiently(self.gemini.begin(&ask(question), "key")).await
    }

    pub(crate) async fn begin(&self, question: &str) -> Box<dyn Run> {
        self.try_begin(question).await.unwrap()
    }

    pub(crate) async fn resume(&self, remote: &RemoteRun) -> Box<dyn Run> {
        self.gemini
            .resume(&outlast_core::Request::from(serde_json::Value::Null), remote)
            .await
            .unwrap()
    }

    /// Waits until the simulator has counted so.
    pub(crate) async fn until(&self, reached: impl Fn(&Stats) -> bool) {
        patiently(async {
            while !reached(&self.sim.stats()) {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }
}

pub(crate) fn gemini(url: &str, timeout: Duration, clock: &Arc<ManualClock>) -> Gemini {
    Gemini::new(options(url, KEY, timeout, clock)).unwrap()
}
