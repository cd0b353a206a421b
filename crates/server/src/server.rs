//! The MCP handler: lists the tools, dispatches calls and counts the calls in progress.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use outlast_core::Scope;
use rmcp::ErrorData;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskMethod, CancelTaskParams,
    CancelledNotificationParam, ConstString, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    GetTaskMethod, GetTaskParams, GetTaskResult, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsRequestMethod, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
    SubscribeRequestParams, Tool, UnsubscribeRequestParams, UpdateTaskMethod, UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use tokio_util::task::TaskTracker;

use crate::app;
use crate::audit::{AuditEvent, AuditLog};
use crate::caller::{self, Access, Caller};
use crate::face::Face;
use crate::http::access_for_tool;
use crate::icons;
use crate::malformed;
use crate::metrics::Metrics;
use crate::notified;
use crate::questions::{self, CallBinding};
use crate::receipt::Receipts;
use crate::reply::{CallResult, ToolResult};
use crate::resources::{self, Subscriptions};
use crate::tasks;
use crate::tasks_2025;
use crate::text::echo_id;
use crate::tool_names;
use crate::tools::{ListedTool, Tools};

/// The MCP server. Cheap to clone.
#[derive(Clone)]
pub struct Server {
    pub(crate) face: Arc<Face>,
    tools: Arc<Vec<ListedTool>>,
    /// The tool of the views inside a chat; listed only for clients that show such views.
    show: Arc<ListedTool>,
    pub(crate) calls: TaskTracker,
    pub(crate) metrics: Arc<Metrics>,
    receipts: Receipts,
    subscriptions: Subscriptions,
    pub(crate) audit: Option<Arc<dyn AuditLog>>,
}

impl Server {
    /// Creates a server for this interface.
    pub fn new(face: Face) -> Self {
        let mut tools: Vec<ListedTool> = Vec::new();
        for listed in face.sets.iter().flat_map(Tools::list_tools) {
            if tools.iter().all(|known| known.tool.name != listed.tool.name) {
                tools.push(ListedTool { tool: icons::with_icon(listed.tool), ..listed });
            }
        }
        Self {
            show: Arc::new(app::tool(&face.engine)),
            face: Arc::new(face),
            tools: Arc::new(tools),
            calls: TaskTracker::new(),
            metrics: Arc::default(),
            receipts: Receipts::default(),
            subscriptions: Subscriptions::default(),
            audit: None,
        }
    }

    pub(crate) fn find_tool(&self, name: &str) -> Option<&ListedTool> {
        self.tools.iter().find(|listed| listed.tool.name == name)
    }

    /// Returns the caller of a task request; clients of an older revision get "method not found".
    fn task_caller<M: ConstString>(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Caller, ErrorData> {
        let caller = self.caller(context);
        if caller.takes_tasks { Ok(caller) } else { Err(ErrorData::method_not_found::<M>()) }
    }

    /// Returns the same server, which counts into these metrics.
    pub fn with_metrics(self, metrics: Arc<Metrics>) -> Self {
        Self { metrics, ..self }
    }

    /// Returns the same server, which records refusals and sign-ins in this log.
    pub fn with_audit(self, audit: Option<Arc<dyn AuditLog>>) -> Self {
        Self { audit, ..self }
    }

    /// Returns the caller of this request.
    pub(crate) fn caller(&self, context: &RequestContext<RoleServer>) -> Caller {
        Caller::of(context, &self.face.owner, self.face.page.clone(), Arc::clone(&self.metrics))
    }

    /// Serves one call: counts it as in progress, ends its wait when the client gives up, and starts the receipt.
    pub(crate) async fn serve_call(
        &self,
        context: &RequestContext<RoleServer>,
        tool: &str,
        call: impl for<'a> FnOnce(&'a mut Caller) -> BoxFuture<'a, ToolResult<CallResult>>,
    ) -> Result<CallToolResponse, ErrorData> {
        let _under_way = self.calls.token();
        let mut caller = self.caller(context);
        let answer = tokio::select! {
            biased;
            // The client gave up on this call: the wait ends, the job continues.
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            answer = call(&mut caller) => answer,
        };
        if let Some(asked) = caller.asked.take() {
            return questions::ask_by_answer(&self.face.engine, &asked, caller.binding.as_ref())
                .await
                .map_err(tasks::report_refusal);
        }
        if let (Some(audit), Err(refusal)) = (&self.audit, &answer) {
            let (owner, code) = (&caller.owner, refusal.code());
            audit.record(&AuditEvent::RefusedCall { owner, tool, code });
        }
        self.record_receipt(caller, context);
        Ok(match answer {
            Ok(CallResult::Now(result)) => result.into(),
            Ok(CallResult::LeftRunning(result, job)) => {
                notified::with_wait(result, &job, self.face.wait.as_ref(), context).into()
            }
            Ok(CallResult::Task(job)) => {
                let mut task = tasks::describe_created(&job);
                task.meta = self.face.wait.as_ref().map(|wait| notified::wait_meta(wait, &job.id));
                CallToolResponse::Task(task)
            }
            Err(refusal) => refusal.into_result().into(),
        })
    }

    /// Records that the client received the answer, if the call needs such a record, unless the client cancels the call.
    fn record_receipt(&self, caller: Caller, context: &RequestContext<RoleServer>) {
        let Some(receipt) = caller.receipt else { return };
        let call = (caller.owner, context.id.clone());
        let taken_back = self.receipts.expect(&call);
        // The client cancelled a moment ago, before there was a receipt to withdraw: rmcp drops the answer.
        if context.ct.is_cancelled() {
            taken_back.cancel();
        }
        self.calls.spawn(self.receipts.clone().record(call, receipt, taken_back));
    }

    /// Waits until no call is in progress.
    pub(crate) async fn calls_answered(&self) {
        self.calls.close();
        self.calls.wait().await;
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_tasks();
        ServerConfig::new(capabilities.build())
            .with_server_info(
                Implementation::new("outlast", env!("CARGO_PKG_VERSION"))
                    .with_title("outlast")
                    .with_icons(vec![icons::server()]),
            )
            .with_instructions(self.face.instructions())
    }

    /// Negotiates a session without the task extension, which clients of older revisions do not know. The capability of the tasks
    /// of 2025-11-25 is added when the answer is written: see `tasks_2025.rs`.
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
        self.face.task_state(&caller, &request.task_id).await
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        caller::check_access(&context, Access::Run)?;
        let caller = self.task_caller::<UpdateTaskMethod>(&context)?;
        self.face.task_updated(&caller, &request.task_id, &request.input_responses).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        caller::check_access(&context, Access::Run)?;
        let caller = self.task_caller::<CancelTaskMethod>(&context)?;
        self.face.task_cancelled(&caller, &request.task_id).await
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools: Vec<Tool> = self.tools.iter().map(|listed| listed.tool.clone()).collect();
        if app::is_shown_to(&context) {
            tools = tools.into_iter().map(app::with_page).collect();
            tools.push(self.show.tool.clone());
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.find_tool(name).map(|listed| listed.tool.clone())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, input_responses, request_state, .. } = request;
        caller::check_access(&context, access_for_tool(&name))?;
        let of_a_view = (name == app::SHOW && app::is_shown_to(&context)).then_some(&*self.show);
        let Some(listed) = self.find_tool(&name).or(of_a_view) else {
            let name = echo_id(&name);
            let sentence = format!("there is no tool `{name}`; tools/list names them all");
            return Err(ErrorData::invalid_params(sentence, None));
        };
        let arguments = arguments.unwrap_or_default();
        let owner = caller::owner(&context.extensions, &self.face.owner);
        let binding = CallBinding::new(owner, &name, &arguments);
        let resumed = match request_state {
            Some(state) => {
                let (engine, owner) = (&self.face.engine, Scope::Owner(owner.clone()));
                let responses = input_responses.unwrap_or_default();
                Some(questions::resume(engine, &owner, &state, &binding, &responses).await?)
            }
            None => None,
        };
        let mut answer = self
            .serve_call(&context, &name, |caller| {
                (caller.binding, caller.resumed) = (Some(binding), resumed);
                (listed.call)(caller, arguments)
            })
            .await?;
        if let CallToolResponse::Complete(result) = &mut answer
            && !knows_links(&context)
        {
            result.content.retain(|block| !matches!(block, ContentBlock::ResourceLink(_)));
        }
        Ok(match (answer, &self.face.page) {
            (CallToolResponse::Complete(result), Some(base)) if tool_names::starts(&name) => {
                app::with_link(result, base).into()
            }
            (answer, _) => answer,
        })
    }

    /// Answers every request that rmcp cannot parse as a request that it knows. This includes our methods with wrong parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let CustomRequest { method, params, .. } = request;
        if let Some(method) = tasks_2025::original_method(&method) {
            return self.answer_renamed(method, params, context).await;
        }
        if caller::is_modern(&context) && REMOVED.contains(&method.as_str()) {
            return Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None));
        }
        if let Some(filter) = resources::find_unread_filter(&method, params.as_ref()) {
            return match caller::is_modern(&context) {
                true => self.listen(filter, &context).await,
                false => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
            };
        }
        Err(malformed::wrong_params(&method, params))
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

    // Prompts are never declared, so they are not listed either.

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Err(ErrorData::method_not_found::<ListPromptsRequestMethod>())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|request| request.cursor);
        let mut listed = self.face.resources(&self.caller(&context), cursor.as_deref()).await?;
        // Pages are listed only for clients that show them.
        if cursor.is_none() && app::is_shown_to(&context) {
            drop(listed.resources.splice(..0, app::pages()));
        }
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let page = app::is_shown_to(&context).then(|| app::read(&request.uri)).flatten();
        Ok(match page {
            Some(page) => page.into(),
            None => self.face.resource(&self.caller(&context), &request.uri).await?.into(),
        })
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(resources::templates())
    }

    async fn subscribe(
        &self,
        request: SubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        refuse_if_modern(&context, "resources/subscribe")?;
        let (caller, uri) = (self.caller(&context), request.uri);
        let Some(id) = self.face.resource_id(&caller, &uri).await? else {
            return Err(resources::report_unknown(&uri));
        };
        let (session, of) = (caller::session(&context), (&self.face.engine, &caller.owner));
        self.subscriptions.add(session, uri, id, of, context.peer.clone()).await
    }

    async fn unsubscribe(
        &self,
        request: UnsubscribeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        refuse_if_modern(&context, "resources/unsubscribe")?;
        self.subscriptions.remove(caller::session(&context), request.uri);
        Ok(())
    }
}

/// Methods of earlier revisions that the newest one does not have any more.
const REMOVED: [&str; 3] = ["initialize", "resources/subscribe", "resources/unsubscribe"];

/// Refuses a method that the newest revision does not have any more.
fn refuse_if_modern(
    context: &RequestContext<RoleServer>,
    method: &'static str,
) -> Result<(), ErrorData> {
    match caller::is_modern(context) {
        true => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        false => Ok(()),
    }
}

/// Returns true if the client's revision has links to resources in results.
fn knows_links(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2025_06_18)
}
