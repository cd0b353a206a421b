//! A tool of an upstream MCP server as a provider: called once for each job, its progress relayed, its answer passed on as
//! it came. How long it may be silent, and how long it may take, is the client's patience.
//!
//! A call lives on its connection: after a restart it is not taken up, and is made again only where the configuration
//! allows it.

mod upstream;
mod run;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use outlast_client::{CallOptions, ClientError};
use outlast_core::{
    Again, BeginError, Clock, Nature, Provider, ProviderError, RemoteRun, RemoteStop, Run, Trouble,
    WorkflowAsk,
};
use serde_json::{Map, Value};

use self::run::ToolRun;
pub use self::upstream::{Server, Upstream};
pub use crate::command::Rerun;

/// What a tool is made of.
pub struct McpToolOptions {
    /// Its server.
    pub upstream: Arc<Upstream>,
    /// Its name there.
    pub tool: String,
    /// The argument that takes a job's message, if there is one.
    pub message_argument: Option<String>,
    /// How long it may be silent.
    pub idle_timeout: Duration,
    /// Whether its progress counts as a sign of life.
    pub reset_on_progress: bool,
    /// How long it may take in all.
    pub total_timeout: Option<Duration>,
    /// Whether a call may be made again after a crash.
    pub rerun: Rerun,
    /// Tells when a call was made.
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

    fn arguments(&self, ask: WorkflowAsk) -> Result<Map<String, Value>, ProviderError> {
        let mut arguments = ask.arguments;
        if let Some(message) = ask.message {
            let Some(name) = &self.options.message_argument else {
                return Err(rejected("this workflow takes no message any more; give arguments"));
            };
            arguments.insert(name.clone(), Value::String(message));
        }
        Ok(arguments)
    }

    fn patience(&self) -> CallOptions {
        let mut patience = CallOptions::default().timeout(self.options.idle_timeout);
        if self.options.reset_on_progress {
            patience = patience.reset_timeout_on_progress();
        }
        match self.options.total_timeout {
            Some(total) => patience.max_total_timeout(total),
            None => patience,
        }
    }
}

#[async_trait]
impl Provider for McpTool {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn nature(&self, _ask: &Value) -> Nature {
        let again = match self.options.rerun {
            Rerun::Never => Again::Never,
            Rerun::AfterCrash => Again::Safe,
        };
        Nature { again, resumes: false, stops: true }
    }

    async fn begin(&self, ask: &Value, key: &str) -> Result<Box<dyn Run>, BeginError> {
        let ask = serde_json::from_value(ask.clone());
        let ask = ask.map_err(|_| rejected("the request cannot be read by this version"));
        let arguments = ask.and_then(|ask| self.arguments(ask)).map_err(BeginError::Refused)?;
        let connected = self.options.upstream.connected().await.map_err(BeginError::NotSent)?;
        let remote = RemoteRun {
            provider: Self::NAME.to_owned(),
            id: key.to_owned(),
            cursor: None,
            begun_at: self.options.clock.now(),
        };
        let upstream = Arc::clone(&self.options.upstream);
        let tool = self.options.tool.clone();
        Ok(Box::new(ToolRun::start(remote, upstream, connected, tool, arguments, self.patience())))
    }

    async fn resume(&self, _run: &RemoteRun) -> Result<Box<dyn Run>, ProviderError> {
        Err(ProviderError {
            trouble: Trouble::RunGone,
            sentence: "a call ends with the connection it was made on".to_owned(),
            detail: None,
        })
    }

    async fn stop(&self, _run: &RemoteRun) -> Result<RemoteStop, ProviderError> {
        // A call that is dropped is taken back by its client, and ends with its connection.
        Ok(RemoteStop::Done)
    }
}

fn rejected(sentence: &str) -> ProviderError {
    ProviderError { trouble: Trouble::Rejected, sentence: sentence.to_owned(), detail: None }
}

/// Why there is no answer, by remedy.
fn trouble(error: &ClientError) -> ProviderError {
    let (trouble, sentence) = match error {
        ClientError::Start { .. } => (
            Trouble::Rejected,
            "the server of this workflow cannot be started; mend its [upstream] entry",
        ),
        ClientError::Greeting(_) | ClientError::GreetingTimedOut { .. } => (
            Trouble::Unavailable { retry_after: None },
            "the server of this workflow did not greet us; the log says why",
        ),
        ClientError::Unauthorized => (
            Trouble::Unauthorized,
            "the server of this workflow asks for another token; mend its [upstream] entry",
        ),
        ClientError::TimedOut(timed_out) => {
            return ProviderError {
                trouble: Trouble::RunTimedOut,
                sentence: format!("{timed_out}; give the workflow more time if that is too short"),
                detail: None,
            };
        }
        ClientError::Refused { code, .. } => {
            return ProviderError {
                trouble: Trouble::RunFailed,
                sentence: format!(
                    "the server of this workflow refused the call with code {code}; the log and `outlast jobs show` \
                     have its words"
                ),
                detail: Some(error.to_string()),
            };
        }
        ClientError::Gone { .. } => {
            (Trouble::Unreachable, "the server of this workflow left before it answered")
        }
        ClientError::TaskCancelled { .. } => {
            (Trouble::RunStopped, "somebody cancelled the task at the server of this workflow")
        }
        ClientError::NeedsInput | ClientError::Usage(_) => {
            (Trouble::Rejected, "the server of this workflow asks for what nobody here can give")
        }
        _ => (
            Trouble::RunFailed,
            "the answer of this workflow's server cannot be used; the log says why",
        ),
    };
    ProviderError { trouble, sentence: sentence.to_owned(), detail: Some(error.to_string()) }
}
