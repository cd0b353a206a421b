//! The provider of the fixtures. It is an ordinary provider, so every call goes through the engine and the
//! store.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, Body, Clock, Cost, Output, Progress, Provider, ProviderError, ProviderErrorKind,
    RecoverySemantics, RemoteRun, Request, ResendPolicy, ResumePolicy, Run, Step, StopOutcome,
    Usage,
};
use outlast_store::SystemClock;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::asking::Asking;

/// A picture of one pixel and an empty sound.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Longer than the server's interval between two progress notifications.
const BETWEEN: Duration = Duration::from_millis(1_100);

/// The ask of a job.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Ask {
    /// The name of the fixture.
    pub(crate) tool: String,
    pub(crate) arguments: Value,
    /// The id of the question it asks the client, if any.
    pub(crate) question: Option<u64>,
}

pub(crate) struct Work {
    asking: Arc<Asking>,
}

impl Work {
    pub(crate) fn new(asking: &Arc<Asking>) -> Self {
        Self { asking: Arc::clone(asking) }
    }
}

#[async_trait]
impl Provider for Work {
    fn name(&self) -> &'static str {
        "conformance"
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: ResendPolicy::Idempotent,
            resume: ResumePolicy::Never,
            can_stop: true,
        }
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask: Ask = serde_json::from_value(request.json().clone()).map_err(|_| {
            BeginError::Refused(provider_error(ProviderErrorKind::Rejected, "no such fixture"))
        })?;
        let remote = RemoteRun {
            provider: self.name().to_owned(),
            id: key.to_owned(),
            cursor: None,
            begun_at: SystemClock.now(),
        };
        let asking = Arc::clone(&self.asking);
        Ok(Box::new(Running { remote, asking, began: Instant::now(), steps: 0, ask }))
    }

    async fn resume(
        &self,
        _request: &Request,
        _run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        Err(provider_error(ProviderErrorKind::RunLost, "a fixture does not outlive its process"))
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        Ok(StopOutcome::Ended { cost: outlast_core::Cost::Unknown })
    }
}

struct Running {
    remote: RemoteRun,
    asking: Arc<Asking>,
    began: Instant,
    steps: u8,
    ask: Ask,
}

#[async_trait]
impl Run for Running {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        match self.ask.tool.as_str() {
            "test_tool_with_progress" if self.steps < 3 => {
                tokio::time::sleep_until(self.began + BETWEEN * u32::from(self.steps)).await;
                self.steps += 1;
                let percent = Some(50 * (self.steps - 1));
                return Ok(Step::Progress(Progress { percent, message: "working".to_owned() }));
            }
            "test_tool_with_progress" => tokio::time::sleep_until(self.began + BETWEEN * 3).await,
            "slow_compute" => tokio::time::sleep_until(self.began + self.seconds()).await,
            "failing_job" | "protocol_error_job" => {
                tokio::time::sleep_until(self.began + Duration::from_secs(1)).await;
                return Err(provider_error(ProviderErrorKind::Rejected, "this job always fails"));
            }
            _ => {}
        }
        if let Some(question) = self.ask.question {
            self.asking.answered(question).await;
        }
        Ok(Step::Done { output: Box::new(self.output()), raw: None })
    }
}

impl Running {
    fn seconds(&self) -> Duration {
        let seconds = self.ask.arguments.get("seconds").and_then(Value::as_f64).unwrap_or(0.0);
        Duration::try_from_secs_f64(seconds).unwrap_or_default()
    }

    fn output(&self) -> Output {
        let text = |text: String| json!({ "type": "text", "text": text });
        let image = json!({ "type": "image", "data": PNG, "mimeType": "image/png" });
        let resource = json!({ "type": "resource", "resource": {
            "uri": "test://embedded-resource",
            "mimeType": "text/plain",
            "text": "This is an embedded resource content.",
        } });
        let name = self.ask.arguments.get("name").and_then(Value::as_str).unwrap_or("stranger");
        let content = match self.ask.tool.as_str() {
            "test_image_content" => vec![image],
            "test_audio_content" => {
                vec![json!({ "type": "audio", "data": WAV, "mimeType": "audio/wav" })]
            }
            "test_embedded_resource" => vec![resource],
            "test_multiple_content_types" => {
                vec![text("Multiple content types test:".to_owned()), image, resource]
            }
            "greet" | "test_tool_with_task" => vec![text(format!("Hello, {name}!"))],
            tool => vec![text(format!("{tool} is done."))],
        };
        let is_error = self.ask.tool == "test_error_handling";
        let body = Body::Tool { content, structured: None, is_error };
        Output { body, model: None, usage: Usage::default(), cost: Cost::Unknown }
    }
}

fn provider_error(kind: ProviderErrorKind, sentence: &str) -> ProviderError {
    ProviderError::new(kind, sentence)
}
