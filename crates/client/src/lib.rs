//! Call an MCP tool that may take an hour.
//!
//! For now: one connection over a pair of byte streams, and calls without a limit. Only this crate and the server
//! know rmcp.

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use rmcp::service::{RoleClient, RunningService, ServiceExt};
use serde_json::{Map, Value};
use tokio::io::{AsyncRead, AsyncWrite};

/// A connection to an MCP server.
pub struct Client {
    service: RunningService<RoleClient, ()>,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// All text blocks, joined by newlines.
    pub text: String,
    /// The structured form, if there is one.
    pub structured: Option<Value>,
    /// Whether the tool calls its own answer an error.
    pub is_error: bool,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The other side does not speak MCP, or left while being greeted.
    #[error("the server could not be greeted: {0}")]
    Greeting(String),
    /// The connection broke, or the server refused the call.
    #[error("the call failed: {0}")]
    Call(String),
}

impl Client {
    /// Greets the server behind these streams: its output, and its input.
    pub async fn connect<R, W>(output: R, input: W) -> Result<Self, ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let service = ().serve((output, input)).await;
        let service = service.map_err(|error| ClientError::Greeting(error.to_string()))?;
        Ok(Self { service })
    }

    /// Calls a tool and waits for its answer.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Answer, ClientError> {
        let request = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let result = self.service.call_tool(request).await;
        result.map(Answer::from).map_err(|error| ClientError::Call(error.to_string()))
    }

    /// Says goodbye.
    pub async fn close(self) {
        // Whether the other side still listened makes no difference to a client that leaves.
        drop(self.service.cancel().await);
    }
}

impl From<CallToolResult> for Answer {
    fn from(result: CallToolResult) -> Self {
        let texts: Vec<String> = result.content.iter().filter_map(text).collect();
        Self {
            text: texts.join("\n"),
            structured: result.structured_content,
            is_error: result.is_error.unwrap_or(false),
        }
    }
}

fn text(block: &ContentBlock) -> Option<String> {
    block.as_text().map(|text| text.text.clone())
}
