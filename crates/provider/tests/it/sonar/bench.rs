//! Adapters of the Sonar dialect as tests have them.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{BeginError, Provider, Request, Run};
use outlast_provider::perplexity::{Agent, Sonar};
use outlast_testkit::clock::ManualClock;
use serde_json::json;

use crate::bench::{Followed, KEY, follow, options, patiently};

/// Short enough to wait for.
pub(crate) const SOON: Duration = Duration::from_millis(500);

/// With waits between checks that a test need not feel.
pub(crate) fn sonar(url: &str, timeout: Duration) -> Sonar {
    sonar_by(url, timeout, &Arc::default())
}

pub(crate) fn sonar_by(url: &str, timeout: Duration, clock: &Arc<ManualClock>) -> Sonar {
    Sonar::new(options(url, KEY, timeout, clock)).unwrap()
}

pub(crate) fn agent(url: &str, timeout: Duration) -> Agent {
    Agent::new(options(url, KEY, timeout, &Arc::default())).unwrap()
}

pub(crate) fn ask(kind: &str) -> Request {
    json!({"kind": kind, "messages": [{"role": "user", "content": "why?"}]}).into()
}

pub(crate) async fn begin(provider: &dyn Provider, ask: &Request) -> Box<dyn Run> {
    patiently(provider.begin(ask, "key-1")).await.unwrap()
}

pub(crate) async fn not_begun(provider: &dyn Provider, ask: &Request) -> BeginError {
    let Err(error) = patiently(provider.begin(ask, "key-1")).await else { panic!("it began") };
    error
}

/// Asks and follows.
pub(crate) async fn answered(provider: &dyn Provider, ask: &Request) -> Followed {
    follow(&mut *begin(provider, ask).await).await
}
