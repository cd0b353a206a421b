//! The MCP handler: lists tools, passes calls on, keeps count of calls under way.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use outlast_core::OwnerId;
use outlast_engine::Engine;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskMethod, CancelTaskParams,
    CancelledNotificationParam, ConstString, CustomRequest, CustomResult, GetTaskMethod,
    GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams, InitializeResult,
    ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesRequestMethod,
    ListResourceTemplatesResult, ListResourcesRequestMethod, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool, UpdateTaskMethod,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::caller::{self, Caller};
use crate::malformed;
use crate::metrics::Metrics;
use crate::receipt::Receipts;
use crate::reply::Answered;
use crate::tasks;
use crate::tools::Tools;

/// What a server shows: whose jobs, and which tool sets.
pub struct Face {
    /// Whose jobs callers see who have shown no token of their own.
    pub owner: OwnerId,
    /// Where jobs are.
    pub engine: Engine,
    /// The tool sets that are on, in the order they are listed; a name that two share belongs to the first.
    pub sets: Vec<Tools>,
}

/// The MCP server. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    face: Arc<Face>,
    tools: Arc<Vec<Tool>>,
    /// Which of the face's sets a tool belongs to.
    sets: Arc<HashMap<String, usize>>,
    calls: TaskTracker,
    metrics: Arc<Metrics>,
    receipts: Receipts,
}

impl Server {
    /// A server that shows this face.
    pub fn new(face: Face) -> Self {
        let mut tools = Vec::new();
        let mut sets = HashMap::new();
        for (at, set) in face.sets.iter().enumerate() {
            for tool in set.tools() {
                if let Entry::Vacant(free) = sets.entry(tool.name.to_string()) {
                    free.insert(at);
                    tools.push(tool);
                }
            }
        }
        Self {
            face: Arc::new(face),
            tools: Arc::new(tools),
            sets: Arc::new(sets),
            calls: TaskTracker::new(),
            metrics: Arc::default(),
            receipts: Receipts::default(),
        }
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.face.engine
    }

    /// The owner whom stdio and the command line of this installation work for.
    pub(crate) fn operator(&self) -> &OwnerId {
        &self.face.owner
    }

    pub(crate) fn sets(&self) -> impl Iterator<Item = &Tools> {
        self.face.sets.iter()
    }

    /// Who asks after a task; nobody of an older revision does.
    fn task_caller<M: ConstString>(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Caller, ErrorData> {
        let caller = self.caller(context);
        if caller.takes_tasks { Ok(caller) } else { Err(ErrorData::method_not_found::<M>()) }
    }

    /// The same server, whose figures are counted here.
    pub fn counted(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    pub(crate) fn metrics(&self) -> Arc<Metrics> {
        Arc::clone(&self.metrics)
    }

    /// Who makes this call.
    pub(crate) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        Caller::of(context, &self.face.owner, self.metrics())
    }

    /// Counts a call as under way until it is dropped.
    pub(crate) fn under_way(&self) -> TaskTrackerToken {
        self.calls.token()
    }

    /// Records that a call's answer was received, if that is worth a record, unless the caller takes it back.
    pub(crate) fn see_received(&self, caller: Caller, context: &RequestContext<RoleServer>) {
        let Some(receipt) = caller.receipt else { return };
        let asked = (caller.owner, context.id.clone());
        let taken_back = self.receipts.expect(&asked);
        // Cancelled a moment ago, before there was anything to take back: rmcp drops the answer.
        if context.ct.is_cancelled() {
            taken_back.cancel();
        }
        self.calls.spawn(self.receipts.clone().record(asked, receipt, taken_back));
    }

    pub(crate) fn calls_under_way(&self) -> usize {
        self.calls.len()
    }

    /// Waits until no call is under way.
    pub(crate) async fn calls_answered(&self) {
        self.calls.close();
        self.calls.wait().await;
    }

    /// Fewer than 200 words with any two sets: they are sent with every conversation.
    fn instructions(&self) -> String {
        let mut text = "outlast runs research as durable jobs: a job goes on when the client gives up, disconnects \
                        or restarts the server, and is never paid for twice without the user's word."
            .to_owned();
        for set in &self.face.sets {
            text.push_str("\n\n");
            text.push_str(&set.instructions());
        }
        text
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().enable_tasks().build())
            .with_server_info(
                Implementation::new("outlast", env!("CARGO_PKG_VERSION")).with_title("outlast"),
            )
            .with_instructions(self.instructions())
    }

    /// Older revisions know nothing of tasks, and their clients take one for an empty result.
    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        context.peer.set_peer_info(request.clone());
        let mut info = self.negotiate_initialize(&request)?;
        info.capabilities.extensions = None;
        Ok(info)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let caller = self.task_caller::<GetTaskMethod>(&context)?;
        self.task_state(&caller, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.task_caller::<UpdateTaskMethod>(&context)?;
        self.task_updated(&caller, &request.task_id).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        let caller = self.task_caller::<CancelTaskMethod>(&context)?;
        self.task_cancelled(&caller, &request.task_id).await
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
        let _under_way = self.under_way();
        let mut caller = self.caller(&context);
        let answer = tokio::select! {
            biased;
            // The client gave up on this call: its wait ends, the job goes on.
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            answer = self.dispatch(&mut caller, request) => answer,
        };
        self.see_received(caller, &context);
        answer
    }

    /// What rmcp cannot read as one of its own requests, one of ours with wrong parameters among them.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(malformed::wrong_params(&request.method, request.params))
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        if let Some(request) = notification.request_id {
            let owner = caller::owner(&context.extensions, &self.face.owner);
            self.receipts.take_back(&(owner.clone(), request));
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
        caller: &mut Caller,
        request: CallToolRequestParams,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        let set = self.sets.get(name.as_ref()).and_then(|at| self.face.sets.get(*at));
        if let Some(set) = set
            && let Some(answer) = set.call(caller, &name, arguments).await
        {
            return Ok(match answer {
                Ok(Answered::Now(result)) => result.into(),
                Ok(Answered::Task(job)) => CallToolResponse::Task(tasks::created(&job)),
                Err(refusal) => refusal.into_result().into(),
            });
        }
        let name: String = name
            .chars()
            .take(64)
            .filter(|character| !outlast_core::is_terminal_control(*character))
            .collect();
        Err(ErrorData::invalid_params(
            format!("there is no tool `{name}`; tools/list names them all"),
            None,
        ))
    }
}
