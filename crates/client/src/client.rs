//! A connection to an MCP server: made, used for any number of calls at once, and closed.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientRequest,
    Implementation, ProtocolVersion, ServerResult, TASKS_EXTENSION_ID,
};
use rmcp::service::{ClientInitializeError, ClientLifecycleMode, ClientServiceExt, RunningService};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use crate::answer::Answer;
use crate::call::{CallTimer, Link};
use crate::child::{Child, Left, Program};
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::options::{CallOptions, ConnectOptions, Era};
use crate::pending::{Dropped, PendingCalls};
use crate::stream::{BoundedLines, Cuttable};
use crate::task::{Started, TaskCall};
use crate::wire_tap::WireTap;

/// How long rmcp may take to put a connection away.
const PUT_AWAY: Duration = Duration::from_secs(4);
/// The longest list of tools to read, in pages: a server must not be able to go on for ever.
const MAX_TOOL_PAGES: usize = 1_000;

/// A connection to an MCP server.
///
/// Calls take `&self`: any number may run at once. Dropped without [`Client::close`], it hangs up, and a program it
/// started is killed.
pub struct Client {
    service: RunningService<RoleClient, ClientInfo>,
    pub(crate) link: Link,
    child: Option<Child>,
}

impl Client {
    /// Greets the server behind these streams: its output, and its input.
    pub async fn connect<R, W>(output: R, input: W) -> Result<Self, ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        Self::connect_with(output, input, ConnectOptions::default()).await
    }

    /// The same, with options.
    pub async fn connect_with<R, W>(
        output: R,
        input: W,
        options: ConnectOptions,
    ) -> Result<Self, ClientError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let board = Arc::new(PendingCalls::default());
        let cut = CancellationToken::new();
        let output = BoundedLines::new(output, options.longest_message, board.clone());
        let input = Cuttable::new(input, cut.clone());
        // Ours is the limit that ends in an error; rmcp's would drop the line in silence.
        let pipe = AsyncRwTransport::new_client(output, input).with_max_line_length(usize::MAX);
        Self::greet(pipe, board, cut, options).await
    }

    /// Starts a program and greets it over its standard input and output.
    pub async fn spawn(program: Program, options: ConnectOptions) -> Result<Self, ClientError> {
        let (child, output, input) = Child::start(&program)?;
        match Self::connect_with(output, input, options).await {
            Ok(client) => Ok(Self { child: Some(child), ..client }),
            Err(error) => Err(child.explained(error).await),
        }
    }

    /// Greets the server at this address over Streamable HTTP.
    pub async fn http(endpoint: Endpoint, options: ConnectOptions) -> Result<Self, ClientError> {
        let board = Arc::new(PendingCalls::default());
        let transport = crate::http::transport(&endpoint, options.longest_message, &board)?;
        Self::greet(transport, board, CancellationToken::new(), options).await
    }

    async fn greet<T: Transport<RoleClient> + 'static>(
        inner: T,
        board: Arc<PendingCalls>,
        cut: CancellationToken,
        options: ConnectOptions,
    ) -> Result<Self, ClientError> {
        let longest_message = options.longest_message;
        let tap = WireTap { inner, board: board.clone(), cut, unsent: Arc::default() };
        let greeter = ClientInfo { name: options.name, tasks: options.tasks };
        let greeting = greeter.serve_with_lifecycle(tap, lifecycle(options.era));
        // The greeting is never cancelled by message: the protocol forbids it. The connection ends instead.
        let service = match tokio::time::timeout(options.greeting, greeting).await {
            Err(_) => return Err(ClientError::GreetingTimedOut { limit: options.greeting }),
            Ok(Err(_)) if board.fault().is_some() => {
                return Err(ClientError::TooLong { limit: longest_message });
            }
            Ok(Err(error)) => return Err(not_greeted(&error)),
            Ok(Ok(service)) => service,
        };
        let link = Link::new(service.peer().clone(), board, longest_message);
        Ok(Self { service, link, child: None })
    }

    /// Calls a tool and waits for its answer, for ever.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
    ) -> Result<Answer, ClientError> {
        self.call_tool(tool, Value::Object(arguments), CallOptions::default()).await
    }

    /// Calls a tool and waits for its answer within these limits. A call that is answered with a task is followed to
    /// the task's end; the limits hold for the whole.
    ///
    /// Arguments are a JSON object, or null for none. When the future is dropped, the server is told.
    pub async fn call_tool(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<Answer, ClientError> {
        self.start_tool(tool, arguments, options).await?.finish().await
    }

    /// The same, but gives a task out when the call has become one, so that its name can be written down before anyone
    /// waits for it. The limits go on from the start of the call.
    pub async fn start_tool(
        &self,
        tool: &str,
        arguments: Value,
        options: CallOptions,
    ) -> Result<Started<'_>, ClientError> {
        let mut params = CallToolRequestParams::new(tool.to_owned());
        match arguments {
            Value::Object(arguments) => params = params.with_arguments(arguments),
            Value::Null => {}
            _ => return Err(ClientError::Usage("the arguments are not a JSON object".to_owned())),
        }
        let vigil = CallTimer::begin(&options)?;
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let error = match self.link.ask(request, &vigil).await {
            Ok(ServerResult::CallToolResult(result)) => {
                return Ok(Started::Answered(Answer::from(result)));
            }
            Ok(ServerResult::CreateTaskResult(created)) => {
                return Ok(Started::Task(TaskCall::begun(self, vigil, created.task)));
            }
            Ok(ServerResult::InputRequiredResult(_)) => ClientError::NeedsInput,
            Ok(other) => ClientError::Unexpected(kind(&other).to_owned()),
            Err(error) => error,
        };
        Err(self.explained(error).await)
    }

    /// The tools of the server, each as the server describes it; the limits hold for each page of the list.
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
        Err(ClientError::Unexpected("its list of tools does not end".to_owned()))
    }

    /// Sends any request and waits for its result within these limits.
    pub async fn request(
        &self,
        method: &str,
        params: Value,
        options: CallOptions,
    ) -> Result<Value, ClientError> {
        let mut message = json!({ "method": method });
        if !params.is_null()
            && let Some(message) = message.as_object_mut()
        {
            message.insert("params".to_owned(), params);
        }
        let request: ClientRequest = serde_json::from_value(message)
            .map_err(|error| ClientError::Usage(format!("{method}: {error}")))?;
        if matches!(request, ClientRequest::InitializeRequest(_)) {
            return Err(ClientError::Usage("the server was greeted already".to_owned()));
        }
        let vigil = CallTimer::begin(&options)?;
        match self.link.ask(request, &vigil).await {
            Ok(result) => serde_json::to_value(result)
                .map_err(|error| ClientError::Unexpected(error.to_string())),
            Err(error) => Err(self.explained(error).await),
        }
    }

    /// What came on this connection and was for nobody.
    pub fn dropped(&self) -> Dropped {
        self.link.board.dropped()
    }

    /// The revision of the protocol that is spoken, such as `2025-11-25`.
    pub fn protocol(&self) -> Option<String> {
        self.service.peer_info().map(|info| info.protocol_version.to_string())
    }

    /// The name that the server gives itself.
    pub fn server_name(&self) -> Option<String> {
        self.service.peer_info()?.server_info.as_ref().map(|server| server.name.clone())
    }

    /// The process id of the program that was started.
    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::pid)
    }

    /// Says goodbye: what was to be said is said, the connection closed, and a program that was started gets a second
    /// to leave, is then asked with SIGTERM, and then killed.
    pub async fn close(mut self) -> Option<Left> {
        self.link.farewell().await;
        // Whether the other side still listened makes no difference to a client that leaves.
        drop(self.service.close_with_timeout(PUT_AWAY).await);
        match self.child.take() {
            Some(child) => Some(child.leave().await),
            None => None,
        }
    }

    /// A child that left says more than its pipe.
    pub(crate) async fn explained(&self, error: ClientError) -> ClientError {
        match &self.child {
            Some(child) => child.explained(error).await,
            None => error,
        }
    }
}

/// Who we are.
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

fn not_greeted(error: &ClientInitializeError) -> ClientError {
    match error {
        error if error.is_authorization_required() => ClientError::Unauthorized,
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => not_greeted(fallback),
        ClientInitializeError::TransportError { error, .. } => crate::http::failure(&*error.error)
            .unwrap_or_else(|| ClientError::Greeting(error.error.to_string())),
        ClientInitializeError::ConnectionClosed(_) => {
            ClientError::Greeting("it hung up".to_owned())
        }
        ClientInitializeError::JsonRpcError(error) => {
            ClientError::Greeting(format!("it refused: {} ({})", error.message, error.code.0))
        }
        // The others may repeat a whole message.
        other => ClientError::Greeting(other.to_string().chars().take(300).collect()),
    }
}

fn kind(result: &ServerResult) -> &'static str {
    match result {
        ServerResult::EmptyResult(_) => "an empty result",
        _ => "not a tool's result",
    }
}
