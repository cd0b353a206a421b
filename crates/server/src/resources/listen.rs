//! `subscriptions/listen` (2026-07-28): notifications about resources, and about tasks by `taskIds`.
//!
//! rmcp's type of the request has no `taskIds` and drops them while it parses. A request is therefore rewritten before it is
//! parsed: its filter gets another name, so that rmcp passes it on as a custom request, with every field. Remove this when
//! rmcp's filter has `taskIds`.

use rmcp::ErrorData;
use rmcp::model::{CustomNotification, CustomResult, ServerNotification};
use rmcp::service::{RequestContext, RoleServer};
use serde::Deserialize;
use serde_json::{Value, json};

use super::subscriptions::{News, ResourceFeed, pause};
use super::{ResourceId, report_refusal};
use crate::caller;
use crate::server::Server;

pub(crate) const METHOD: &str = "subscriptions/listen";
/// The name of the filter in a rewritten request.
const FILTER: &str = "outlast/notifications";
const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The maximum length of a request that is looked at, and of a list in it.
const MAX_BYTES: usize = 256 * 1024;
const MAX_LISTED: usize = 100;

/// Returns a message with its filter renamed, if it is such a request.
pub(crate) fn rewrite(message: &[u8]) -> Option<Vec<u8>> {
    let method = METHOD.as_bytes();
    if message.len() > MAX_BYTES || !message.windows(method.len()).any(|part| part == method) {
        return None;
    }
    let mut parsed: Value = serde_json::from_slice(message).ok()?;
    if parsed["method"] != METHOD {
        return None;
    }
    let params = parsed.get_mut("params")?.as_object_mut()?;
    let filter = params.get("notifications")?;
    // A filter of another type stays for rmcp to refuse.
    ListenFilter::deserialize(filter).ok()?;
    let filter = params.remove("notifications")?;
    params.insert(FILTER.to_owned(), filter);
    serde_json::to_vec(&parsed).ok()
}

/// Returns the filter of a rewritten request.
pub(crate) fn find_unread_filter(method: &str, params: Option<&Value>) -> Option<Value> {
    params?.get(FILTER).filter(|_| method == METHOD).cloned()
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListenFilter {
    #[serde(default)]
    resource_subscriptions: Vec<String>,
    #[serde(default)]
    task_ids: Vec<String>,
}

impl Server {
    /// Serves a subscription until the client ends it or the server stops. What does not exist, or belongs to another owner,
    /// is left out of the acknowledged filter.
    pub(crate) async fn listen(
        &self,
        filter: Value,
        context: &RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        let caller = self.caller(context);
        caller.waits();
        let filter = ListenFilter::deserialize(filter).unwrap_or_default();
        let (mut uris, mut resources) = (Vec::new(), Vec::new());
        for uri in filter.resource_subscriptions.into_iter().take(MAX_LISTED) {
            if let Some(id) = self.face.resource_id(&caller, &uri).await? {
                uris.push(uri);
                resources.push(id);
            }
        }
        let mut tasks = Vec::new();
        for id in filter.task_ids.iter().take(MAX_LISTED).filter(|_| caller.takes_tasks) {
            let Ok(id) = id.parse() else { continue };
            if self.face.resource_id(&caller, &ResourceId::Job(id).uri()).await?.is_some() {
                tasks.push(id);
            }
        }
        let engine = &self.face.engine;
        let follow = ResourceFeed::start(engine, &caller.owner, resources, tasks.clone()).await;
        let mut follow = follow.map_err(report_refusal)?;
        let mut accepted = json!({});
        if !uris.is_empty() {
            accepted["resourceSubscriptions"] = json!(uris);
        }
        if !tasks.is_empty() {
            let ids: Vec<String> = tasks.iter().map(ToString::to_string).collect();
            accepted["taskIds"] = json!(ids);
        }
        let acknowledged = json!({ "notifications": accepted });
        notify(context, "notifications/subscriptions/acknowledged", acknowledged).await?;
        // A task may have ended before the client subscribed.
        let mut news = News { resources: Vec::new(), tasks };
        loop {
            for uri in news.resources.iter().map(ResourceId::uri) {
                let updated = json!({ "uri": uri });
                notify(context, "notifications/resources/updated", updated).await?;
            }
            for id in &news.tasks {
                // A task that was removed has no state.
                if let Some(state) = self.face.task_notification(&caller, id).await? {
                    notify(context, "notifications/tasks", state).await?;
                }
            }
            pause().await;
            news = tokio::select! {
                biased;
                () = context.ct.cancelled() => {
                    return Err(ErrorData::internal_error("the subscription was cancelled", None));
                }
                () = engine.begin_leaving() => break,
                () = caller::wait_for_token_expiry(context) => break,
                news = follow.next() => news.map_err(report_refusal)?,
            };
        }
        let meta = json!({ SUBSCRIPTION_ID: context.id.clone().into_json_value() });
        Ok(CustomResult::new(json!({ "resultType": "complete", "_meta": meta })))
    }
}

/// Sends a notification of this subscription.
async fn notify(
    context: &RequestContext<RoleServer>,
    method: &str,
    mut params: Value,
) -> Result<(), ErrorData> {
    params["_meta"][SUBSCRIPTION_ID] = context.id.clone().into_json_value();
    let notification = CustomNotification::new(method, Some(params));
    let sent = context.peer.send_notification(ServerNotification::CustomNotification(notification));
    sent.await.map_err(|error| {
        ErrorData::internal_error(format!("failed to notify the client: {error}"), None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// L2: the task ids reach the handler; every other message stays as it is.
    #[test]
    fn l2_only_a_subscription_is_rewritten() {
        let listen = json!({ "jsonrpc": "2.0", "id": 1, "method": METHOD,
            "params": { "notifications": { "taskIds": ["a"] }, "_meta": { "x": 1 } } });
        let changed = rewrite(listen.to_string().as_bytes()).unwrap();
        let changed: Value = serde_json::from_slice(&changed).unwrap();
        let params = &changed["params"];
        assert_eq!(find_unread_filter(METHOD, Some(params)), Some(json!({ "taskIds": ["a"] })));
        assert_eq!((&params["_meta"], params.get("notifications")), (&json!({ "x": 1 }), None));
        for other in [
            json!({ "id": 1, "method": "tools/call", "params": { "name": METHOD } }),
            json!({ "id": 1, "method": METHOD, "params": {} }),
            json!({ "id": 1, "method": METHOD, "params": { "notifications": { "taskIds": 5 } } }),
        ] {
            assert_eq!(rewrite(other.to_string().as_bytes()), None, "{other}");
        }
        assert_eq!(rewrite(format!("[\"{METHOD}\"]").as_bytes()), None);
    }
}
