//! The endpoints of Sonar. Jobs have no cancel; a chat answer is a run that its client waits for.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{ConnectInfo, Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{any, get, post};

use super::request;
use crate::app::{App, answer, authorize};
use crate::errors::Refusal;
use crate::options::SonarMode;
use crate::run::RunApi;
use crate::runs::PolledRun;
use crate::socket::Hangup;

const CHAT: [&str; 2] = ["/chat/completions", "/v1/sonar"];
const JOBS: [&str; 2] = ["/v1/async/sonar", "/async/chat/completions"];

pub(crate) fn router(mode: SonarMode) -> Router<Arc<App>> {
    let mut router = Router::new();
    for path in CHAT {
        router = match mode {
            SonarMode::Retired => router.route(path, any(retired)),
            SonarMode::Live => router.route(path, post(chat)),
        };
    }
    for path in JOBS {
        let one = format!("{path}/{{id}}");
        router = match mode {
            SonarMode::Retired => router.route(path, any(retired)).route(&one, any(retired)),
            SonarMode::Live => router.route(path, post(submit)).route(&one, get(look)),
        };
    }
    router
}

async fn retired(headers: HeaderMap) -> Refusal {
    authorize(&headers).err().unwrap_or_else(Refusal::retired)
}

async fn chat(
    State(app): State<Arc<App>>,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let receipt = app.accept(&headers, || request::chat(&body))?;
    answer(&app, receipt, &hangup).await
}

async fn submit(
    State(app): State<Arc<App>>,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Refusal> {
    let receipt = app.accept(&headers, || request::job(&body))?;
    answer(&app, receipt, &hangup).await
}

async fn look(
    State(app): State<Arc<App>>,
    ConnectInfo(hangup): ConnectInfo<Hangup>,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Refusal> {
    authorize(&headers)?;
    let PolledRun { object, transport } = app.runs.poll(RunApi::SonarJobs, &id)?;
    Ok(transport.apply(transport.json(object), &app.runs.clock, &hangup))
}
