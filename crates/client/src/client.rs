//! A connection to an MCP server that can be used for any number of concurrent calls.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    CustomRequest, Implementation, ProtocolVersion, ServerResult, TASKS_EXTENSION_ID, Task,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::answer::ToolAnswer;
use crate::call::{CallTimer, Connection};
use crate::child::{self, Child, ChildEnd, ProgramToStart};
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::options::{CallOptions, ConnectOptions, Era};
use crate::pending::{DroppedMessages, PendingCalls};
use crate::stream::{BoundedLines, Cuttable};
use crate::task::{StartedCall, TaskCall};
use crate::wire_tap::WireTap;

/// The time rmcp has to close a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum number of pages in a list of tools, because a server could return pages forever.
const MAX_TOOL_PAGES: usize = 1_000;

/// A connection to an MCP server.
///
/// Calls take `&self`, so any number can run concurrently. Dropping the client without [`Client::close`] closes
/// the connection and kills the program it started.
pub struct Client {
    service: RunningService<RoleClient, ClientInfo>,
    connection: Connection,
    child: Option<Child>,
}

impl Client {
    /// Connects to a server over these streams: the server's output and its input.
    pub async fn connect<R, W>(
        output: R,
        input: W,
        options: ConnectOptions,
    ) -> Result<Self, ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let pending = Arc::new(PendingCalls::default());
        let cut = CancellationToken::new();
        let output = BoundedLines::new(output, options.longest_message, pending.clone());
        let input = Cuttable::new(input, cut.clone());
        // Our own limit ends in an error; rmcp's would drop the line silently.
        let pipe = AsyncRwTransport::new_client(output, input).with_max_line_length(usize::MAX);
        Self::handshake(pipe, pending, cut, options).await
    }

    /// Starts a program and connects to it over its standard input and output.
    pub fn spawn(
        program: ProgramToStart,
        options: ConnectOptions,
    ) -> BoxFuture<'static, Result<Self, ClientError>> {
        Box::pin(async move {
            let (child, output, input) = Child::start(&program)?;
            match Self::connect(output, input, options).await {
                Ok(client) => Ok(Self { child: Some(child), ..client }),
                Err(error) => Err(child.add_child_details(error).await),
            }
        })
    }

    /// Connects to the server at this address over Streamable HTTP.
    pub fn http(
        endpoint: Endpoint,
        options: ConnectOptions,
    ) -> BoxFuture<'static, Result<Self, ClientError>> {
        Box::pin(async move {
            let pending = Arc::new(PendingCalls::default());
            let transport = crate::http::transport(&endpoint, options.longest_message, &pending)?;
            Self::handshake(transport, pending, CancellationToken::new(), options).await
        })
    }

    async fn handshake<T: Transport<RoleClient> + 'static>(
        inner: T,
        pending: Arc<PendingCalls>,
        cut: CancellationToken,
        options: ConnectOptions,
    ) -> Result<Self, ClientError> {
        let longest_message = options.longest_message;
        let tap = WireTap {
            inner,
            pending: pending.clone(),
            cut,
            unsent: Arc::default(),
            asked_era: None,
        };
        let info = ClientInfo { name: options.name, tasks: options.tasks };
        let handshake = info.serve_with_lifecycle(tap, lifecycle(options.era));
        // The protocol forbids cancelling the handshake with a message, so the connection is closed instead.
        let limit = options.handshake_timeout;
        let service = match tokio::time::timeout(limit, handshake).await {
            Err(_) => return Err(ClientError::HandshakeTimedOut { limit }),
            Ok(Err(_)) if pending.broken.is_cancelled() => {
                return Err(ClientError::TooLong { limit: longest_message });
            }
            Ok(Err(error)) => return Err(handshake_failed(&error)),
            Ok(Ok(service)) => service,
        };
        let (peer, late_cancels) = (service.peer().clone(), Arc::default());
        let connection = Connection { peer, pending, longest_message, late_cancels };
        Ok(Self { service, connection, child: None })
    }

    /// Calls a tool and waits for its answer within these limits. If the server answers with a task, the task
    /// is followed to its end; the limits apply to the whole call.
    ///
    /// Arguments are a JSON object, or null for none. If the future is dropped, the server is notified.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<ToolAnswer, ClientError> {
        self.start_tool(tool, arguments, options).await?.finish().await
    }

    /// Like [`Client::call_tool`], but returns the task if the call became one, so that its id can be recorded
    /// before the caller waits for it. The limits count from the start of the call.
    pub async fn start_tool(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<StartedCall<'_>, ClientError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        match arguments {
            Value::Object(arguments) => params = params.with_arguments(arguments),
            Value::Null => {}
            _ => return Err(ClientError::Usage("the arguments are not a JSON object".to_owned())),
        }
        if let Some(trace) = &options.traceparent {
            params
                .meta
                .get_or_insert_default()
                .0
                .insert("traceparent".to_owned(), trace.as_str().into());
        }
        let timer = CallTimer::start(options)?;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let error = match self.connection.ask(request, &timer).await {
            Ok(ServerResult::CallToolResult(result)) => {
                return Ok(StartedCall::Answered(ToolAnswer::from(result)));
            }
            Ok(ServerResult::CreateTaskResult(created)) => {
                let id = created.task.task_id.clone();
                return Ok(StartedCall::Task(self.task_call(timer, id, Some(created.task))));
            }
            Ok(ServerResult::InputRequiredResult(_)) => ClientError::NeedsInput,
            Ok(ServerResult::EmptyResult(_)) => {
                ClientError::Unexpected("an empty result".to_owned())
            }
            Ok(_) => ClientError::Unexpected("not a tool's result".to_owned()),
            Err(error) => error,
        };
        Err(self.add_child_details(error).await)
    }

    /// Returns the tools of the server, each as the server describes it. The limits apply to each page of the
    /// list.
    pub async fn list_tools(&self, options: CallOptions) -> Result<Vec<Value>, ClientError> {
        let mut tools = Vec::new();
        let mut params = Value::Null;
        for _ in 0..MAX_TOOL_PAGES {
            let mut page = self.request("tools/list", params, options.clone()).await?;
            match page["tools"].take() {
                Value::Array(listed) => tools.extend(listed),
                _ => return Err(ClientError::Unexpected("not a list of tools".to_owned())),
            }
            match page["nextCursor"].take() {
                Value::Null => return Ok(tools),
                cursor => params = json!({ "cursor": cursor }),
            }
        }
        Err(ClientError::Unexpected("its list of tools is endless".to_owned()))
    }

    /// Sends a request and waits for its result within these limits.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        options: CallOptions,
    ) -> Result<Value, ClientError> {
        if method == "initialize" {
            return Err(ClientError::Usage("the handshake is already complete".to_owned()));
        }
        let params = Some(params).filter(|params| !params.is_null());
        let request = ClientRequest::CustomRequest(CustomRequest::new(method, params));
        let timer = CallTimer::start(options)?;
        match self.connection.ask(request, &timer).await {
            Ok(result) => serde_json::to_value(result)
                .map_err(|error| ClientError::Unexpected(error.to_string())),
            Err(error) => Err(self.add_child_details(error).await),
        }
    }

    /// Resumes a task that an earlier call became, perhaps in another process, within these limits. Nothing is
    /// sent before the task is [polled](TaskCall::finish) or [cancelled](TaskCall::cancel).
    ///
    /// ```no_run
    /// # use outlast_client::{CallOptions, Client, ClientError, StartedCall};
    /// # async fn run(client: &Client, other: &Client) -> Result<(), ClientError> {
    /// # let (options, arguments) = (CallOptions::default(), serde_json::json!({}));
    /// let id = match client.start_tool("slow", arguments, options.clone()).await? {
    ///     StartedCall::Task(task) => task.leave_running().id().to_owned(),
    ///     StartedCall::Answered(_) => return Ok(()),
    /// };
    /// // Later, perhaps after a crash:
    /// let answer = other.resume_task(&id, options)?.finish().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume_task(&self, id: &str, options: CallOptions) -> Result<TaskCall<'_>, ClientError> {
        Ok(self.task_call(CallTimer::start(options)?, id.to_owned(), None))
    }

    /// Counts the messages on this connection that belonged to no waiting request.
    pub fn dropped_messages(&self) -> DroppedMessages {
        self.connection.pending.dropped_messages()
    }

    /// The negotiated revision of the protocol, such as `2025-11-25`.
    pub fn protocol(&self) -> Option<String> {
        self.service.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// The name that the server reports.
    pub fn server_name(&self) -> Option<String> {
        self.service.peer_info()?.server_info.as_ref().map(|server| server.name.clone())
    }

    /// The process id of the program that was started.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::pid)
    }

    /// Sends pending messages and closes the connection. A program that was started has a second to exit, then
    /// receives SIGTERM and has another second, and is then killed.
    pub async fn close(mut self) -> Option<ChildEnd> {
        self.connection.finish_cancels().await;
        // The result does not matter: the connection is closed even if the other side stopped reading.
        drop(self.service.close_with_timeout(CLOSE_TIMEOUT).await);
        match self.child.take() {
            Some(child) => Some(child.stop().await),
            None => None,
        }
    }

    fn task_call(&self, timer: CallTimer, id: String, seen: Option<Task>) -> TaskCall<'_> {
        TaskCall::new(&self.connection, self.child.as_ref(), timer, id, seen)
    }

    async fn add_child_details(&self, error: ClientError) -> ClientError {
        child::add_child_details(self.child.as_ref(), error).await
    }
}

/// The client's description of itself in the handshake.
struct ClientInfo {
    name: String,
    tasks: bool,
}

impl ClientHandler for ClientInfo {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        if self.tasks {
            let tasks = (TASKS_EXTENSION_ID.to_owned(), Map::new());
            capabilities.extensions = Some([tasks].into_iter().collect());
        }
        let us = Implementation::new(self.name.clone(), env!("CARGO_PKG_VERSION"));
        ClientConfig::new(capabilities, us)
    }
}

fn lifecycle(era: Era) -> ClientLifecycleMode {
    let newest = vec![ProtocolVersion::V_2026_07_28];
    match era {
        Era::Initialize => ClientLifecycleMode::Initialize,
        Era::Stateless => ClientLifecycleMode::Discover { preferred_versions: newest },
        Era::Auto => ClientLifecycleMode::Auto {
            preferred_versions: newest,
            legacy_version: Some(ProtocolVersion::V_2025_11_25),
        },
    }
}

fn handshake_failed(error: &ClientInitializeError) -> ClientError {
    match error {
        error if error.is_authorization_required() => ClientError::Unauthorized,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => handshake_failed(fallback),
        ClientInitializeError::TransportError { error, .. } => crate::http::failure(&*error.error)
            .unwrap_or_else(|| ClientError::Handshake(error.error.to_string())),
        ClientInitializeError::ConnectionClosed(_) => {
            ClientError::Handshake("it closed the connection".to_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            ClientError::Handshake(format!("it refused: {} ({})", error.message, error.code.0))
        }
        ClientInitializeError::ExpectedInitResult(result) => {
            no_answer(serde_json::to_string(result))
        }
        ClientInitializeError::ExpectedInitResponse(message) => {
            no_answer(serde_json::to_string(message))
        }
        other => ClientError::Handshake(other.to_string()),
    }
}

/// Returns the error for a server that answered with something else.
fn no_answer(said: serde_json::Result<String>) -> ClientError {
    let said: String = said.unwrap_or_default().chars().take(200).collect();
    ClientError::Handshake(format!("{said} is not an answer to it"))
}
