//! The adapter, the simulator it talks to, and the clock it reads.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{BeginError, Provider, RemoteRun, Run};
use outlast_provider::openai::OpenAi;
use outlast_simulator::{Options, Simulator, Stats};
use outlast_testkit::clock::ManualClock;
use serde_json::Value;

use crate::bench::{Followed, KEY, PATIENCE, ask, follow, options, patiently};
use crate::canned::Canned;

/// The key of a first send, as the engine makes it.
pub(crate) const SEND_KEY: &str = "00000000000000000000000000000007-0";

pub(crate) struct Bench {
    pub(crate) sim: Simulator,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) openai: OpenAi,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let sim = Simulator::start(Options { speed: 1_000.0, ..Options::default() }).await;
        let sim = sim.unwrap();
        let clock = Arc::new(ManualClock::default());
        let url = format!("{}/openai", sim.url());
        let openai = OpenAi::new(options(&url, KEY, PATIENCE, &clock)).unwrap();
        Self { sim, clock, openai }
    }

    pub(crate) async fn try_begin(&self, question: &str) -> Result<Box<dyn Run>, BeginError> {
        patiently(self.openai.begin(&ask(question), SEND_KEY)).await
    }

    pub(crate) async fn begin(&self, question: &str) -> Box<dyn Run> {
        self.try_begin(question).await.unwrap()
    }

    pub(crate) async fn not_begun(&self, question: &str) -> BeginError {
        let Err(error) = self.try_begin(question).await else { panic!("{question} began a run") };
        error
    }

    pub(crate) async fn resume(&self, remote: &RemoteRun) -> Box<dyn Run> {
        self.openai
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

    /// Follows a held run, lets it go on once `reached`, and follows it to its end.
    pub(crate) async fn follow_released(
        &self,
        run: &mut dyn Run,
        reached: impl Fn(&Stats) -> bool,
    ) -> Followed {
        let release = async {
            self.until(reached).await;
            self.sim.release();
        };
        let (followed, ()) = tokio::join!(follow(run), release);
        followed
    }

    /// The answer to a call past the adapter.
    pub(crate) async fn call(&self, method: reqwest::Method, path: &str) -> Value {
        #[expect(clippy::disallowed_methods, reason = "a look past the adapter")]
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("{}/openai/v1/{path}", self.sim.url());
        let response = client.request(method, url).bearer_auth(KEY).send().await.unwrap();
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }
}

/// The adapter for a scripted server.
pub(crate) fn openai(server: &Canned, timeout: Duration) -> OpenAi {
    OpenAi::new(options(&server.url, KEY, timeout, &server.clock)).unwrap()
}

pub(crate) async fn begun(openai: &OpenAi) -> Box<dyn Run> {
    patiently(openai.begin(&ask("q"), SEND_KEY)).await.unwrap()
}

pub(crate) async fn refused(openai: &OpenAi) -> BeginError {
    let Err(error) = patiently(openai.begin(&ask("q"), SEND_KEY)).await else { panic!("it began") };
    error
}
