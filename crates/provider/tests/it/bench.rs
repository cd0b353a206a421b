//! An adapter, the simulator it talks to, and the clock it reads.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    BeginError, Body, Output, Progress, Provider, ProviderError, RemoteRun, Request, Run, Source,
    Step, StopOutcome,
};
use outlast_provider::http::HttpOptions;
use outlast_provider::perplexity::Agent;
use outlast_provider::vendor::{PollIntervals, VendorOptions};
use outlast_simulator::{Options, SeenRequest, Simulator};
use outlast_testkit::clock::ManualClock;
use serde_json::{Value, json};

/// Far beyond what anything here takes: a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Looks like no key of any vendor, so that only knowing it keeps it out of texts.
pub(crate) const KEY: &str = "hunter2-of-the-house";

pub(crate) struct Bench {
    pub(crate) sim: Simulator,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) agent: Agent,
}

impl Bench {
    pub(crate) async fn new() -> Self {
        Self::with_timeout(PATIENCE).await
    }

    pub(crate) async fn with_timeout(timeout: Duration) -> Self {
        let sim = Simulator::start(Options { speed: 1_000.0, ..Options::default() }).await;
        let sim = sim.unwrap();
        let clock = Arc::new(ManualClock::default());
        let agent = Agent::new(options(sim.url(), KEY, timeout, &clock)).unwrap();
        Self { sim, clock, agent }
    }

    pub(crate) async fn try_begin(&self, question: &str) -> Result<Box<dyn Run>, BeginError> {
        patiently(self.agent.begin(&ask(question), "key")).await
    }

    pub(crate) async fn begin(&self, question: &str) -> Box<dyn Run> {
        self.try_begin(question).await.unwrap()
    }

    pub(crate) async fn not_begun(&self, question: &str) -> BeginError {
        let Err(error) = self.try_begin(question).await else { panic!("{question} began a run") };
        error
    }

    pub(crate) async fn resume(&self, remote: &RemoteRun) -> Box<dyn Run> {
        self.agent.resume(&Request::from(Value::Null), remote).await.unwrap()
    }

    /// Waits until the simulator has counted so.
    pub(crate) async fn until(&self, reached: impl Fn(&outlast_simulator::Stats) -> bool) {
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
        reached: impl Fn(&outlast_simulator::Stats) -> bool,
    ) -> Followed {
        let release = async {
            self.until(reached).await;
            self.sim.release();
        };
        let (followed, ()) = tokio::join!(follow(run), release);
        followed
    }

    /// The run's object as a GET shows it.
    pub(crate) async fn object(&self, id: &str) -> Value {
        #[expect(clippy::disallowed_methods, reason = "a look past the adapter")]
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        let url = format!("{}/v1/agent/{id}", self.sim.url());
        let response = client.get(url).bearer_auth(KEY).send().await.unwrap();
        serde_json::from_slice(&response.bytes().await.unwrap()).unwrap()
    }

    /// The events after which streams were resumed.
    pub(crate) fn cursors(&self) -> Vec<u64> {
        let requests = self.sim.requests();
        let cursor = |request: &SeenRequest| {
            request.path.split_once("starting_after=").map(|(_, cursor)| cursor.parse().unwrap())
        };
        requests.iter().filter_map(cursor).collect()
    }
}

/// The progress of a run, and its end.
pub(crate) struct Followed {
    pub(crate) progress: Vec<Progress>,
    pub(crate) end: Result<(Output, Vec<u8>), ProviderError>,
}

impl Followed {
    pub(crate) fn output(&self) -> &Output {
        let (output, _) = self.end.as_ref().unwrap();
        output
    }

    pub(crate) fn text(&self) -> &str {
        let Body::Report { text, .. } = &self.output().body else { panic!("no report") };
        text
    }

    pub(crate) fn sources(&self) -> &[Source] {
        let Body::Report { sources, .. } = &self.output().body else { panic!("no report") };
        sources
    }

    pub(crate) fn reported(&self) -> Vec<(u8, &str)> {
        let told = self.progress.iter();
        told.map(|step| (step.percent.unwrap(), step.message.as_str())).collect()
    }

    pub(crate) fn error(&self) -> &ProviderError {
        self.end.as_ref().unwrap_err()
    }
}

/// Follows a run to its end; what it says of its progress is checked on the way (B6).
pub(crate) async fn follow(run: &mut dyn Run) -> Followed {
    let mut progress: Vec<Progress> = Vec::new();
    let end = patiently(async {
        loop {
            match run.next().await {
                Ok(Step::Progress(step)) => progress.push(step),
                Ok(Step::Moved | Step::Wait | Step::Cancel) => {}
                Ok(Step::Done { output, raw }) => return Ok((*output, raw.unwrap())),
                Err(error) => return Err(error),
            }
        }
    });
    let end = end.await;
    let percents: Vec<u8> = progress.iter().map(|step| step.percent.unwrap()).collect();
    assert!(percents.first().is_none_or(|first| *first == 25), "{progress:?}");
    assert!(percents.is_sorted() && percents.iter().all(|percent| *percent <= 95), "{progress:?}");
    Followed { progress, end }
}

pub(crate) fn options(
    base_url: &str,
    api_key: &str,
    timeout: Duration,
    clock: &Arc<ManualClock>,
) -> VendorOptions {
    VendorOptions {
        base_url: base_url.to_owned(),
        api_key: api_key.to_owned(),
        model: None,
        http: HttpOptions { timeout, proxy: None },
        clock: clock.clone(),
        waits: Some(quick()),
    }
}

/// Waits between checks that a test need not feel.
/// The time of nothing but 404 after which a run is lost here; five minutes in production.
pub(crate) const LOST_AFTER: Duration = Duration::from_millis(400);

pub(crate) fn quick() -> PollIntervals {
    PollIntervals::of(&[Duration::from_millis(2)]).with_lost_after(LOST_AFTER)
}

pub(crate) fn ask(question: &str) -> Request {
    json!({"messages": [{"role": "user", "content": question}], "effort": "low"}).into()
}

/// Returns a request with one field changed.
pub(crate) fn with(request: &Request, field: &str, value: impl Into<Value>) -> Request {
    let mut json = request.json().clone();
    json[field] = value.into();
    json.into()
}

/// The text in a response object.
pub(crate) fn text_in(object: &Value) -> &str {
    let items = object["output"].as_array().unwrap();
    let message = items.iter().find(|item| item["type"] == "message").unwrap();
    message["content"][0]["text"].as_str().unwrap()
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}

/// A run that was seen to have ended without a report.
#[track_caller]
pub(crate) fn assert_ended(stopped: Result<StopOutcome, ProviderError>) {
    assert!(matches!(stopped, Ok(StopOutcome::Ended { .. })), "{stopped:?}");
}

/// A run that was seen to have completed.
#[track_caller]
pub(crate) fn assert_completed(stopped: Result<StopOutcome, ProviderError>) {
    assert!(matches!(stopped, Ok(StopOutcome::Completed { .. })), "{stopped:?}");
}
