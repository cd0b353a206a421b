//! A handler in front of the server: it lists and calls the fixtures, adds the inputs that a fixture's task
//! asks for, and forwards everything else.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{NewJob, OwnerId, Profile, Visibility};
use outlast_server::Server;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CancelTaskParams, CancelledNotificationParam,
    ClientCapabilities, CustomRequest, CustomResult, DetailedTask, GetTaskParams, GetTaskResult,
    InitializeRequestParams, InitializeResult, InputRequiredResult, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerConfig, TaskPayload, TaskStatus, Tool,
    UpdateTaskParams,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer};
use rmcp::{ErrorData, ServerHandler};
use serde_json::{Value, json};

use crate::asking::{Asking, elicit};
use crate::tools::{FIXTURES, Fixture, Kind};
use crate::work::Ask;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Fixtures {
    server: Server,
    profile: Profile,
    asking: Arc<Asking>,
    /// The tasks whose failure is reported as a protocol error, not as a tool error. outlast has none: every
    /// outcome of a job is an answer of its tool.
    broken: Arc<std::sync::Mutex<std::collections::HashSet<String>>>,
}

impl Fixtures {
    pub(crate) fn new(server: Server, profile: Profile, asking: Arc<Asking>) -> Self {
        Self { server, profile, asking, broken: Arc::default() }
    }

    fn job(
        &self,
        tool: &str,
        arguments: Value,
        question: Option<u64>,
        visibility: Visibility,
    ) -> Result<NewJob, ErrorData> {
        let ask = Ask { tool: tool.to_owned(), arguments, question };
        Ok(NewJob {
            owner: OwnerId::new("local"),
            conversation: None,
            subject: None,
            profile: self.profile.clone(),
            workflow: tool.to_owned(),
            title: tool.to_owned(),
            request: serde_json::to_value(ask).map_err(internal)?.into(),
            priority: 0,
            visibility,
            max_failures: 0,
            attempt_timeout: Duration::from_secs(300),
            life: None,
            keep: Some(Duration::from_secs(3600)),
        })
    }

    /// Returns a task if the client supports tasks, with the inputs it asks for meanwhile.
    async fn task(
        &self,
        context: &RequestContext<RoleServer>,
        tool: &str,
        arguments: Value,
    ) -> Result<CallToolResponse, ErrorData> {
        let keys: &[&str] = match tool {
            "confirm_delete" => &["confirm"],
            "multi_input" => &["first", "second"],
            _ => &[],
        };
        let visibility = match takes_tasks(context) {
            true => Visibility::Task,
            false => Visibility::Unpromised,
        };
        let asks = !keys.is_empty() && visibility == Visibility::Task;
        let question = match asks {
            true => Some(self.asking.ask(elicit(keys).map_err(internal)?)),
            false => None,
        };
        let job = self.job(tool, arguments, question, visibility)?;
        let answer = self.server.hold(context, job).await?;
        if let CallToolResponse::Task(created) = &answer {
            let id = &created.task.task_id;
            if let Some(question) = question {
                self.asking.asked_by(question, id);
            }
            if tool == "protocol_error_job"
                && let Ok(mut broken) = self.broken.lock()
            {
                broken.insert(id.clone());
            }
        }
        Ok(answer)
    }

    fn is_broken(&self, task: &str) -> bool {
        self.broken.lock().is_ok_and(|broken| broken.contains(task))
    }
}

impl ServerHandler for Fixtures {
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(fixture) = Fixture::from_name(&request.name) else {
            return self.server.call_tool(request, context).await;
        };
        let arguments = Value::Object(request.arguments.unwrap_or_default());
        match fixture.kind {
            Kind::Held => {
                let job = self.job(fixture.name, arguments, None, Visibility::Unpromised)?;
                self.server.hold(&context, job).await
            }
            Kind::MayBeTask => self.task(&context, fixture.name, arguments).await,
            Kind::MustBeTask if takes_tasks(&context) => {
                self.task(&context, fixture.name, arguments).await
            }
            Kind::MustBeTask => {
                Err(required(json!({ "extensions": { "io.modelcontextprotocol/tasks": {} } })))
            }
            Kind::AsksFirst => match request.input_responses {
                None => {
                    let asks = elicit(&["user_name"]).map_err(internal)?;
                    let asks = InputRequiredResult::from_input_requests(asks);
                    Ok(CallToolResponse::InputRequired(asks))
                }
                Some(answers) => {
                    let answer =
                        answers.get("user_name").and_then(|it| it.pointer("/content/name"));
                    let arguments = json!({ "name": answer });
                    self.task(&context, fixture.name, arguments).await
                }
            },
            Kind::NeedsSampling => Err(required(json!({ "sampling": {} }))),
        }
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(FIXTURES.iter().map(Fixture::tool).collect()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        Fixture::from_name(name).map(Fixture::tool)
    }

    async fn get_task(
        &self,
        request: GetTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetTaskResult, ErrorData> {
        let id = request.task_id.clone();
        let told = self.server.get_task(request, context).await?;
        let task = told.task.task.clone();
        let payload = match told.task.status() {
            TaskStatus::Working => match self.asking.open(&id) {
                Some(input_requests) => TaskPayload::InputRequired { input_requests },
                None => return Ok(told),
            },
            TaskStatus::Completed if self.is_broken(&id) => {
                let error = json!({ "code": -32603, "message": "the fixture broke" });
                TaskPayload::Failed { error: error.as_object().cloned().unwrap_or_default() }
            }
            _ => return Ok(told),
        };
        Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
    }

    async fn update_task(
        &self,
        request: UpdateTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.update_task(request.clone(), context).await?;
        self.asking.answer(&request.task_id, request.input_responses.keys());
        Ok(())
    }

    // Everything else is forwarded to the server.

    fn get_info(&self) -> ServerConfig {
        self.server.get_info()
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        self.server.initialize(request, context).await
    }

    async fn cancel_task(
        &self,
        request: CancelTaskParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.server.cancel_task(request, context).await
    }

    async fn on_cancelled(
        &self,
        notification: CancelledNotificationParam,
        context: NotificationContext<RoleServer>,
    ) {
        self.server.on_cancelled(notification, context).await;
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        self.server.list_prompts(request, context).await
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        self.server.list_resources(request, context).await
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        self.server.list_resource_templates(request, context).await
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        self.server.read_resource(request, context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // The tools are those of the runner, not the server's.
        if request.method.ends_with("/tools/list") {
            let listed = self.list_tools(None, context).await?;
            let listed = serde_json::to_value(listed)
                .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            return Ok(CustomResult::new(listed));
        }
        self.server.on_custom_request(request, context).await
    }
}

fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    let modern = context
        .protocol_version()
        .is_some_and(|version| version >= rmcp::model::ProtocolVersion::V_2026_07_28);
    modern && context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

fn required(capabilities: Value) -> ErrorData {
    match serde_json::from_value::<ClientCapabilities>(capabilities) {
        Ok(capabilities) => ErrorData::missing_required_client_capability(capabilities),
        Err(error) => internal(error),
    }
}

fn internal(error: serde_json::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
