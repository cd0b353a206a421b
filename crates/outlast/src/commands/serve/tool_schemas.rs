//! The schemas of workflows that are tools of other servers: requested when a server starts, and stored for the time
//! when the other server does not answer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use outlast_engine::Engine;
use outlast_provider::mcp_tool::Upstream;
use outlast_server::{InputSchema, Workflow};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::task::JoinSet;

use crate::config::{self, Config, WorkflowAction};
use crate::wire::upstreams_to_ask;

/// The time limit of another server's list of tools.
const PATIENCE: Duration = Duration::from_secs(5);
/// A longer schema would fill the context of every conversation, and is not used.
const MAX_SCHEMA_BYTES: usize = 256 * 1024;

/// Gives each workflow that is a tool of another server the schema of that tool: the one that the server returns in
/// time, otherwise the last one seen. A schema in outlast.toml has precedence.
pub(super) async fn complete(workflows: &mut [Workflow], config: &Config, engine: &Engine) {
    let needed = find_missing(workflows, config);
    if needed.is_empty() {
        return;
    }
    let names: BTreeSet<&str> = needed.values().map(|tool| tool.upstream.as_str()).collect();
    let answered = ask(&names, config).await;
    for (workflow, tool) in needed {
        let seen = answered.get(&tool.upstream).and_then(|tools| schema_of(tools, &tool.name));
        let document = match seen {
            Some(document) => {
                remember(engine, config, tool, &document).await;
                Some(document)
            }
            None => last_seen(engine, config, tool).await,
        };
        if let Some(document) = document {
            workflows[workflow].input = Some(Arc::new(input(document, tool)));
        }
    }
}

/// Returns the last schema seen for a workflow, for a command that starts one job and does not ask other servers.
pub(crate) async fn last_seen_input(
    workflow: &str,
    config: &Config,
    engine: &Engine,
) -> Option<InputSchema> {
    let configured = config.workflows.iter().find(|it| it.name == workflow)?;
    let WorkflowAction::Tool(tool) = &configured.work else { return None };
    if configured.input.is_some() {
        return None;
    }
    Some(input(last_seen(engine, config, tool).await?, tool))
}

fn input(document: Value, tool: &config::Tool) -> InputSchema {
    InputSchema::of_server(document).with_message_argument(tool.message_argument.clone())
}

/// Returns the workflows without their own schema, by their index, with their tools.
fn find_missing<'a>(
    workflows: &[Workflow],
    config: &'a Config,
) -> BTreeMap<usize, &'a config::Tool> {
    let tool = |(place, workflow): (usize, &Workflow)| {
        let configured = config.workflows.iter().find(|it| it.name == workflow.name)?;
        match &configured.work {
            WorkflowAction::Tool(tool) if workflow.input.is_none() => Some((place, tool)),
            WorkflowAction::Tool(_) | WorkflowAction::Command { .. } => None,
        }
    };
    workflows.iter().enumerate().filter_map(tool).collect()
}

/// Requests the tools of these servers, all concurrently.
async fn ask(names: &BTreeSet<&str>, config: &Config) -> BTreeMap<String, Vec<Value>> {
    let upstreams = match upstreams_to_ask(config) {
        Ok(upstreams) => upstreams,
        Err(error) => {
            tracing::warn!(%error, "failed to ask other servers for the schemas of their tools");
            return BTreeMap::new();
        }
    };
    let mut asked = JoinSet::new();
    for name in names {
        if let Some(upstream) = upstreams.get(name) {
            asked.spawn(ask_one((*name).to_owned(), Arc::clone(upstream)));
        }
    }
    asked.join_all().await.into_iter().flatten().collect()
}

async fn ask_one(name: String, upstream: Arc<Upstream>) -> Option<(String, Vec<Value>)> {
    let why = match tokio::time::timeout(PATIENCE, upstream.list_tools()).await {
        Ok(Ok(tools)) => return Some((name, tools)),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("no answer within {} s", PATIENCE.as_secs()),
    };
    tracing::warn!(
        upstream = name,
        why,
        "failed to read the schemas of an upstream's tools; using the last ones seen"
    );
    None
}

/// Returns the schema of one tool in a list; `None` if the tool is missing, or its schema is not an object or too long.
fn schema_of(tools: &[Value], name: &str) -> Option<Value> {
    let tool = tools.iter().find(|tool| tool["name"] == name);
    if tool.is_none() {
        tracing::warn!(tool = name, "an upstream server does not list the tool of a workflow");
    }
    let schema = tool?.get("inputSchema").filter(|schema| schema.is_object())?;
    if schema.to_string().len() > MAX_SCHEMA_BYTES {
        tracing::warn!(tool = name, "the schema of an upstream's tool is too long and is not used");
        return None;
    }
    Some(schema.clone())
}

async fn remember(engine: &Engine, config: &Config, tool: &config::Tool, document: &Value) {
    let (name, text) = (file_name(config, tool), document.to_string());
    // Most starts get the same schema as the last one.
    if matches!(engine.get_setting(&name).await, Ok(Some(kept)) if kept == text) {
        return;
    }
    if let Err(error) = engine.put_setting(&name, &text).await {
        tracing::warn!(%error, "failed to store the schema of an upstream's tool");
    }
}

async fn last_seen(engine: &Engine, config: &Config, tool: &config::Tool) -> Option<Value> {
    let kept = match engine.get_setting(&file_name(config, tool)).await {
        Ok(kept) => kept?,
        Err(error) => {
            tracing::warn!(%error, "failed to read the schema of an upstream's tool");
            return None;
        }
    };
    serde_json::from_str(&kept).ok()
}

/// Returns the name under which a schema is stored: two files on one store may use the same name for different servers.
fn file_name(config: &Config, tool: &config::Tool) -> String {
    let file = config.file.as_ref().map(|file| file.path.display().to_string());
    let file = file.unwrap_or_default();
    let parts = [file.as_str(), tool.upstream.as_str(), tool.name.as_str()].join("\0");
    let digest: String =
        Sha256::digest(parts).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    format!("input-schema/{digest}")
}
