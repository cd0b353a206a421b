//! A tool of an upstream MCP server as a provider: called once for each job, its progress relayed, its answer passed on as
//! it came. The client's limits say how long the tool may be silent, and how long it may take.
//!
//! A plain call depends on its connection: after a restart it is not resumed, and is repeated only if the
//! configuration allows it. A call that its server made a task of is resumed by the task's name.

mod upstream;
mod run;
mod drive;
mod provider_error;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_client::{CallOptions, ClientError};
use outlast_core::{
    BeginError, Clock, Cost, Provider, ProviderError, ProviderErrorKind, RecoverySemantics,
    RemoteRun, Request, RequestNote, ResumePolicy, Run, StopOutcome, WorkflowRequest,
};
use serde_json::{Map, Value};

use self::drive::{Drive, ToolLimits, ToolWork};
use self::provider_error::{provider_error, reject};
use self::run::ToolRun;
use self::upstream::UpstreamConnection;
pub use self::upstream::{ServerPlace, Upstream};
pub use crate::command::Rerun;

/// The time a server may take to cancel a task.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(20);

/// The options of a tool.
pub struct McpToolOptions {
    /// Its server.
    pub upstream: Arc<Upstream>,
    /// Its name there.
    pub tool: String,
    /// The argument that takes a job's message, if there is one.
    pub message_argument: Option<String>,
    /// The time it may be silent.
    pub idle_timeout: Duration,
    /// True if its progress restarts the idle timeout.
    pub reset_on_progress: bool,
    /// Its total time limit.
    pub total_timeout: Option<Duration>,
    /// The rule for repeating a call after a crash.
    pub rerun: Rerun,
    /// Dates a call.
    pub clock: Arc<dyn Clock>,
}

/// A tool of an upstream server as a provider.
pub struct McpTool {
    options: McpToolOptions,
}

impl McpTool {
    /// The name in [`RemoteRun::provider`].
    pub const NAME: &'static str = "mcp_tool";

    /// Connects to nothing yet.
    pub fn new(options: McpToolOptions) -> Self {
        Self { options }
    }

    fn arguments(&self, ask: &WorkflowRequest) -> Result<Map<String, Value>, ProviderError> {
        let mut arguments = ask.arguments.clone();
        if let Some(message) = &ask.message {
            let Some(name) = &self.options.message_argument else {
                return Err(reject("this workflow takes no message any more; give arguments"));
            };
            arguments.insert(name.clone(), Value::String(message.clone()));
        }
        Ok(arguments)
    }

    /// Drives a call that was made this long ago.
    fn drive(&self, connected: Arc<UpstreamConnection>, elapsed: Duration) -> Drive {
        let patience = ToolLimits {
            idle: self.options.idle_timeout,
            reset_on_progress: self.options.reset_on_progress,
            total: self.options.total_timeout,
        };
        Drive { upstream: Arc::clone(&self.options.upstream), connected, patience, elapsed }
    }

    /// The task that a run has become.
    fn task<'a>(&self, run: &'a RemoteRun) -> Task<'a> {
        match &run.cursor {
            None => Task::None,
            Some(cursor) => match run::task_of(cursor, self.options.upstream.name()) {
                Some(id) => Task::Ours(id),
                None => Task::Elsewhere,
            },
        }
    }
}

enum Task<'a> {
    /// It has become none: a plain call.
    None,
    /// One of this server.
    Ours(&'a str),
    /// One of a server that the workflow was a tool of when the call was made.
    Elsewhere,
}

#[async_trait]
impl Provider for McpTool {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn recovery_semantics(&self, _request: &Request) -> RecoverySemantics {
        RecoverySemantics {
            resend: self.options.rerun.into(),
            resume: ResumePolicy::WithCursor,
            can_stop: true,
        }
    }

    async fn begin(&self, request: &Request, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = request.to_workflow();
        let arguments = ask.and_then(|ask| self.arguments(ask)).map_err(BeginError::Refused)?;
        let connected = self.options.upstream.connect().await.map_err(BeginError::NotSent)?;
        let remote = RemoteRun {
            provider: Self::NAME.to_owned(),
            id: key.to_owned(),
            cursor: None,
            begun_at: self.options.clock.now(),
        };
        let trace = request.note(RequestNote::Traceparent).map(str::to_owned);
        let work = ToolWork::Call { tool: self.options.tool.clone(), arguments, trace };
        Ok(Box::new(ToolRun::start(remote, self.drive(connected, Duration::ZERO), work)))
    }

    async fn resume(
        &self,
        _request: &Request,
        run: &RemoteRun,
    ) -> Result<Box<dyn Run>, ProviderError> {
        let sentence = match self.task(run) {
            Task::Ours(id) => {
                let connected = self.options.upstream.connect().await?;
                let elapsed = self.options.clock.now().since(run.begun_at);
                let work = ToolWork::Task { id: id.to_owned() };
                let run = ToolRun::start(run.clone(), self.drive(connected, elapsed), work);
                return Ok(Box::new(run.confirm().await?));
            }
            Task::Elsewhere => "this workflow was a tool of another server when the call was made",
            Task::None => "a call ends with the connection it was made on",
        };
        Err(ProviderError::new(ProviderErrorKind::RunLost, sentence))
    }

    async fn stop(&self, run: &RemoteRun) -> Result<StopOutcome, ProviderError> {
        let id = match self.task(run) {
            Task::Ours(id) => id,
            // A plain call that is dropped is cancelled by its client, and ends with its connection.
            Task::None => return Ok(StopOutcome::Ended { cost: Cost::Unknown }),
            Task::Elsewhere => return Ok(StopOutcome::Unknown),
        };
        let connected = self.options.upstream.connect().await?;
        let patience = CallOptions::default().timeout(CANCEL_TIMEOUT);
        let task =
            connected.client.resume_task(id, patience).map_err(|error| provider_error(&error))?;
        match task.cancel().await {
            Ok(()) | Err(ClientError::TaskUnknown { .. }) => {
                Ok(StopOutcome::Ended { cost: Cost::Unknown })
            }
            Err(error @ ClientError::Refused { .. }) => {
                tracing::warn!(task = id, %error, "an upstream server refused to cancel a task");
                Ok(StopOutcome::Unknown)
            }
            Err(error) => {
                if let ClientError::Gone { .. } = &error {
                    self.options.upstream.drop_connection(&connected).await;
                }
                Err(provider_error(&error))
            }
        }
    }
}
