//! The MCP handler: lists tools, passes calls on, keeps count of calls under way.

use std::sync::Arc;

use outlast_core::OwnerId;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListPromptsRequestMethod,
    ListPromptsResult, ListResourceTemplatesRequestMethod, ListResourceTemplatesResult,
    ListResourcesRequestMethod, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use tokio_util::task::TaskTracker;

use crate::caller::Caller;
use crate::metrics::Metrics;
use crate::tools::research_jobs::ResearchJobs;
use crate::tools::research_jobs::{CANCEL, POLL, START};

/// What a server shows: whose jobs, and which tool sets.
pub struct Face {
    /// Whose jobs callers see who have shown no token of their own.
    pub owner: OwnerId,
    /// The tool set `research-jobs`, if it is on.
    pub research_jobs: Option<ResearchJobs>,
}

/// The MCP server. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    face: Arc<Face>,
    tools: Arc<Vec<Tool>>,
    calls: TaskTracker,
    metrics: Arc<Metrics>,
}

impl Server {
    /// A server that shows this face.
    pub fn new(face: Face) -> Self {
        let tools = face.research_jobs.iter().flat_map(ResearchJobs::tools).collect();
        Self {
            face: Arc::new(face),
            tools: Arc::new(tools),
            calls: TaskTracker::new(),
            metrics: Arc::default(),
        }
    }

    /// The same server, whose figures are counted here.
    pub fn counted(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    pub(crate) fn calls_under_way(&self) -> usize {
        self.calls.len()
    }

    /// Waits until no call is under way.
    pub(crate) async fn calls_answered(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    fn instructions(&self) -> String {
        let mut text =
            "outlast runs long research as durable jobs: a job goes on when the client gives up, \
                        disconnects or restarts the server, and is never paid for twice."
                .to_owned();
        if self.face.research_jobs.is_some() {
            text.push_str(&format!(
                "\n\nFor any question that needs deep research, call {START} once; it answers at once with a jobId. \
                 Then call {POLL} with that jobId until the status is COMPLETED or FAILED: each call waits for the \
                 result and returns well before a client's own time limit, so call it again straight away, and do \
                 not start the research again while it runs. Call {CANCEL} only when the result is no longer wanted. \
                 Keep the jobId: any client of the same user can poll it."
            ));
        }
        text
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(
                Implementation::new("outlast", env!("CARGO_PKG_VERSION")).with_title("outlast"),
            )
            .with_instructions(self.instructions())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools.to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _under_way = self.calls.token();
        let caller = Caller::of(&context, &self.face.owner, self.metrics());
        let call = self.dispatch(caller, request);
        tokio::select! {
            answer = call => answer,
            // The client gave up on this call: its wait ends, the job goes on.
            () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
        }
    }

    // Nothing of the kind is declared, so nothing is listed either.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourcesRequestMethod>())
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListResourceTemplatesRequestMethod>())
    }
}

impl Server {
    async fn dispatch(
        &self,
        mut caller: Caller,
        request: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        if let Some(set) = &self.face.research_jobs
            && let Some(answer) = set.call(&mut caller, &name, arguments).await
        {
            return Ok(answer.unwrap_or_else(crate::reply::Refusal::into_result).into());
        }
        let name: String =
            name.chars().take(64).filter(|character| !character.is_control()).collect();
        Err(ErrorData::invalid_params(
            format!("there is no tool `{name}`; tools/list names them all"),
            None,
        ))
    }
}
