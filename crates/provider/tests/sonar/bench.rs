//! Adapters as tests have them, and runs followed to their ends.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    BeginError, Body, Output, Progress, Provider, ProviderError, Run, Source, Step,
};
use outlast_provider::http::HttpOptions;
use outlast_provider::perplexity::{Agent, PerplexityOptions, Sonar, Waits};
use outlast_testkit::clock::ManualClock;
use serde_json::{Value, json};

/// Far beyond what anything here takes: a hang becomes a failure.
pub(crate) const PATIENCE: Duration = Duration::from_secs(15);

/// Short enough to wait for.
pub(crate) const SOON: Duration = Duration::from_millis(200);

/// Looks like no key of any vendor, so that only knowing it keeps it out of texts.
pub(crate) const KEY: &str = "hunter2-of-the-house";

pub(crate) fn options(url: &str, timeout: Duration, clock: &Arc<ManualClock>) -> PerplexityOptions {
    PerplexityOptions {
        base_url: url.to_owned(),
        api_key: KEY.to_owned(),
        http: HttpOptions { timeout, proxy: None },
        clock: clock.clone(),
    }
}

/// With waits between checks that a test need not feel.
pub(crate) fn sonar(url: &str, timeout: Duration) -> Sonar {
    sonar_by(url, timeout, &Arc::default())
}

pub(crate) fn sonar_by(url: &str, timeout: Duration, clock: &Arc<ManualClock>) -> Sonar {
    let sonar = Sonar::new(options(url, timeout, clock)).unwrap();
    sonar.with_waits(Waits::of(&[Duration::from_millis(2)]))
}

pub(crate) fn agent(url: &str, timeout: Duration) -> Agent {
    Agent::new(options(url, timeout, &Arc::default())).unwrap()
}

pub(crate) fn ask(kind: &str) -> Value {
    json!({"kind": kind, "messages": [{"role": "user", "content": "why?"}]})
}

pub(crate) async fn begin(provider: &dyn Provider, ask: &Value) -> Box<dyn Run> {
    patiently(provider.begin(ask, "key-1")).await.unwrap()
}

pub(crate) async fn not_begun(provider: &dyn Provider, ask: &Value) -> BeginError {
    let Err(error) = patiently(provider.begin(ask, "key-1")).await else { panic!("it began") };
    error
}

/// What a run told, and how it ended.
pub(crate) struct Followed {
    pub(crate) progress: Vec<Progress>,
    pub(crate) end: Result<(Output, Vec<u8>), ProviderError>,
}

impl Followed {
    pub(crate) fn output(&self) -> &Output {
        &self.end.as_ref().unwrap().0
    }

    pub(crate) fn text(&self) -> &str {
        let Body::Report { text, .. } = &self.output().body else { panic!("no report") };
        text
    }

    pub(crate) fn sources(&self) -> &[Source] {
        let Body::Report { sources, .. } = &self.output().body else { panic!("no report") };
        sources
    }

    pub(crate) fn error(&self) -> &ProviderError {
        self.end.as_ref().unwrap_err()
    }

    pub(crate) fn told(&self) -> Vec<(u8, &str)> {
        let told = self.progress.iter();
        told.map(|step| (step.percent.unwrap(), step.message.as_str())).collect()
    }
}

/// Follows a run to its end; what it says of its progress is checked on the way (B6).
pub(crate) async fn follow(run: &mut dyn Run) -> Followed {
    let mut progress: Vec<Progress> = Vec::new();
    let end = patiently(async {
        loop {
            match run.next().await {
                Ok(Step::Progress(step)) => progress.push(step),
                Ok(Step::Moved) => {}
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

/// Asks and follows.
pub(crate) async fn answered(provider: &dyn Provider, ask: &Value) -> Followed {
    follow(&mut *begin(provider, ask).await).await
}

pub(crate) async fn patiently<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap()
}
