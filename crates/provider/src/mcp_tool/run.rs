//! A call under way. Dropping the run closes its channel; the call is dropped with it, and its client takes it back.

use std::sync::Arc;

use async_trait::async_trait;
use outlast_client::{Answer, CallOptions, ClientError};
use outlast_core::{
    Body, Cost, Output, Progress, ProviderError, RemoteRun, Run, Step, Trouble, Usage,
};
use serde_json::{Map, Value};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::trouble;
use super::upstream::{Connected, Upstream};

/// Progress that nobody has taken yet; more of it is not worth keeping.
const UNTAKEN: usize = 64;
/// So much of a message is shown.
const MESSAGE: usize = 200;

/// A call that is under way.
pub(super) struct ToolRun {
    remote: RemoteRun,
    steps: mpsc::Receiver<Result<Step, ProviderError>>,
    /// Kept so that the task has an owner; it is never waited for.
    _task: JoinHandle<()>,
}

impl ToolRun {
    /// Makes the call and returns at once.
    pub(super) fn start(
        remote: RemoteRun,
        upstream: Arc<Upstream>,
        connected: Arc<Connected>,
        tool: String,
        arguments: Map<String, Value>,
        patience: CallOptions,
    ) -> Self {
        let (sender, steps) = mpsc::channel(UNTAKEN);
        let told = sender.clone();
        let patience = patience.on_progress(move |progress| {
            // Coalesced by whoever writes it down; what does not fit is overtaken anyway.
            drop(told.try_send(Ok(Step::Progress(relayed(progress)))));
        });
        let task = tokio::spawn(async move {
            let call = connected.client.call_tool(&tool, Value::Object(arguments), patience);
            let answer = tokio::select! {
                answer = call => answer,
                () = sender.closed() => return,
            };
            if let Err(ClientError::Gone { .. } | ClientError::TooLong { .. }) = &answer {
                upstream.lost(&connected).await;
            }
            let step = answer.map(done).map_err(|error| trouble(&error));
            // Nobody listens when the run was dropped in the last moment, and then nobody misses it.
            drop(sender.send(step).await);
        });
        Self { remote, steps, _task: task }
    }
}

#[async_trait]
impl Run for ToolRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        self.steps.recv().await.unwrap_or_else(|| {
            Err(ProviderError {
                trouble: Trouble::Unreachable,
                sentence: "the call was lost; the log of the server has the details".to_owned(),
                detail: None,
            })
        })
    }
}

/// The answer as it came, also one that its tool calls an error.
fn done(answer: Answer) -> Step {
    let Answer { content, structured, is_error, .. } = answer;
    let output = Output {
        body: Body::Tool { content, structured, is_error },
        model: None,
        usage: Usage::default(),
        cost: Cost::Unknown,
    };
    Step::Done { output: Box::new(output), raw: None }
}

fn relayed(progress: &outlast_client::Progress) -> Progress {
    let message = progress.message.as_deref().unwrap_or_default();
    Progress {
        percent: progress.percent().map(|percent| percent as u8),
        message: message.chars().take(MESSAGE).collect(),
    }
}
