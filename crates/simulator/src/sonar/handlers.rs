//! The endpoints of Sonar. Jobs cannot be cancelled; a chat answer is a run that its client waits for.

use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{any, get};

use super::request;
use crate::app::{App, SharedApp, authorize, submits};
use crate::ask::Api;
use crate::errors::Refusal;
use crate::options::SonarMode;
use crate::socket::Hangup;

pub(crate) fn router(mode: SonarMode) -> Router<Arc<App>> {
    let (chat, submit, poll) = match mode {
        SonarMode::Retired => (any(retired), any(retired), any(retired)),
        SonarMode::Live => (
            submits(Api::SonarChat, request::chat),
            submits(Api::SonarAsync, request::job),
            get(poll),
        ),
    };
    let mut router = Router::new();
    for path in ["/chat/completions", "/v1/sonar"] {
        router = router.route(path, chat.clone());
    }
    for path in ["/v1/async/sonar", "/async/chat/completions"] {
        router = router.route(path, submit.clone()).route(&format!("{path}/{{id}}"), poll.clone());
    }
    router
}

async fn retired(headers: HeaderMap) -> Refusal {
    authorize(&headers).err().unwrap_or_else(Refusal::retired)
}

async fn poll(
    State(app): SharedApp,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    authorize(&headers)?;
    let (object, transport) = app.runs.poll(Api::SonarAsync, &id)?;
    Ok(transport.apply(transport.json(object), &app.runs.clock, &hangup))
}
