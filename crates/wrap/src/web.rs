//! A wrapped server at an address: each line of the client is a request over streamable HTTP, each message of an answer a line.
//! Both eras; the headers of each are made from what the line says.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_client::Endpoint;
use outlast_http::{SseDecoder, error_chain, read_body};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::keeper::Event;
use crate::line::MAX_LINE;
use crate::message::{CallParams, Kind, Message, response};
use crate::server::{Backlog, ServerProcess, pass_line};

/// How long the end of a session may take.
const DELETE_WAIT: Duration = Duration::from_secs(1);
/// How long to wait before a broken stream is asked for again, and how often that is done without any event between.
const AGAIN: Duration = Duration::from_secs(1);
const MAX_AGAIN: u32 = 5;

const SSE: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";

/// One connection to a server.
struct Web {
    endpoint: Endpoint,
    client: reqwest::Client,
    generation: u64,
    events: mpsc::Sender<Event>,
    to_client: Arc<Backlog>,
    session: Mutex<WebSession>,
    /// Set when the server has forgotten the session.
    lost: watch::Sender<bool>,
}

/// What the greeting of the older era has brought.
#[derive(Clone, Default)]
struct WebSession {
    id: Option<String>,
    version: Option<String>,
}

#[derive(Default, Deserialize)]
struct Target {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default, rename = "taskId")]
    task: Option<String>,
}

/// Begins to pass lines to this address; no request is made before the first line.
pub(crate) fn start(
    endpoint: &Endpoint,
    generation: u64,
    events: &mpsc::Sender<Event>,
    to_client: Arc<Backlog>,
    backlog: Arc<Backlog>,
) -> std::io::Result<ServerProcess> {
    let client = endpoint.http_client().map_err(std::io::Error::other)?;
    let (input, lines) = mpsc::unbounded_channel();
    let to_server = backlog.clone();
    let (exits, exited) = watch::channel(false);
    let (lost, was_lost) = watch::channel(false);
    let web = Arc::new(Web {
        endpoint: endpoint.clone(),
        client,
        generation,
        events: events.clone(),
        to_client,
        session: Mutex::default(),
        lost,
    });
    outlast_engine::spawn(async move {
        let mut lines = lines;
        web.clone().pass(&mut lines, &backlog, was_lost).await;
        lines.close();
        while let Some(line) = lines.recv().await {
            backlog.remove(line.len());
        }
        web.delete().await;
        let _ = exits.send(true);
        drop(web.events.send(Event::ServerExited(generation, 0)).await);
    });
    Ok(ServerProcess { generation, input: Some(input), backlog: to_server, group: None, exited })
}

impl Web {
    /// Sends lines until no more comes; requests go side by side.
    async fn pass(
        self: Arc<Self>,
        lines: &mut mpsc::UnboundedReceiver<Vec<u8>>,
        backlog: &Arc<Backlog>,
        mut lost: watch::Receiver<bool>,
    ) {
        let mut requests = tokio::task::JoinSet::new();
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                _ = lost.wait_for(|lost| *lost) => return,
            };
            let Some(line) = line else { break };
            backlog.remove(line.len());
            let message = Message::read(&line).unwrap_or_default();
            let opens = message.method.as_deref() == Some("notifications/initialized");
            let is_request = message.id.is_some();
            let (web, own) = (self.clone(), self.clone());
            if is_request {
                requests.spawn(async move { web.post(line).await });
            } else {
                // A notification is on its way before what follows it.
                web.post(line).await;
            }
            if opens {
                requests.spawn(async move { own.listen().await });
            }
        }
    }

    fn known(&self) -> WebSession {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A request with what every request has.
    fn request(&self, method: Method, accepts: &str, session: &WebSession) -> RequestBuilder {
        let mut request = self.endpoint.request(&self.client, method).header(ACCEPT, accepts);
        if let Some(id) = &session.id {
            request = request.header(SESSION, id);
        }
        if let Some(version) = &session.version {
            request = request.header(VERSION, version);
        }
        request
    }

    /// Sends one message and passes on what is answered.
    async fn post(&self, line: Vec<u8>) {
        let message = Message::read(&line);
        let (id, method) = match message.as_ref().map(Message::kind) {
            Some(Kind::Request { id, method }) => (Some(id.to_owned()), method.to_owned()),
            Some(Kind::Notification { method }) => (None, method.to_owned()),
            _ => (None, String::new()),
        };
        let mut session = self.known();
        let mut headers = Vec::new();
        if let Some(message) = &message {
            let params: CallParams<'_> = message.params();
            if let Some(version) = params.meta().protocol_version {
                session = WebSession { id: None, version: Some(version.into_owned()) };
                headers.push(("mcp-method", method.clone()));
                let Target { name, uri, task } = message.params();
                headers.extend(name.or(uri).or(task).map(|name| ("mcp-name", name)));
            }
        }
        drop(message);
        let accepts = format!("{JSON}, {SSE}");
        let mut request = self.request(Method::POST, &accepts, &session).header(CONTENT_TYPE, JSON);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = line.strip_suffix(b"\n").unwrap_or(&line).to_vec();
        let answer = match request.body(body).send().await {
            Ok(answer) => answer,
            Err(error) => {
                return self.fail(id.as_deref(), &error_chain(&error.without_url())).await;
            }
        };
        if answer.status() == StatusCode::NOT_FOUND && session.id.is_some() {
            // The session is gone, and with it what was under way: as if the server had been started again.
            self.lost.send_replace(true);
            return;
        }
        if let (Some(id), "initialize") = (session_id(&answer), method.as_str()) {
            self.session.lock().unwrap_or_else(PoisonError::into_inner).id = Some(id);
        }
        self.read(answer, id.as_deref(), &method).await;
    }

    async fn read(&self, answer: Response, id: Option<&str>, method: &str) {
        let status = answer.status();
        let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if status.is_success() && kind.is_some_and(|kind| kind.starts_with(SSE)) {
            if let Err(why) = self.read_events(answer, id, method).await {
                self.fail(id, &why).await;
            }
            return;
        }
        let body = match read_body(answer, MAX_LINE).await {
            Ok(body) => body,
            Err(error) => return self.fail(id, &error.to_string()).await,
        };
        let is_message = Message::read(&body).is_some_and(|message| {
            message.method.is_some() || message.id.map(|it| it.get()) == id && id.is_some()
        });
        match is_message {
            true => self.say(body, method).await,
            false if id.is_some() => self.fail(id, &format!("HTTP {status}")).await,
            false => {}
        }
    }

    /// Reads events until the answer to this request; a stream that breaks is taken up again where its events have ids.
    async fn read_events(
        &self,
        answer: Response,
        id: Option<&str>,
        method: &str,
    ) -> Result<(), String> {
        let (mut answer, mut last_event, mut tries) = (Some(answer), None, 0);
        loop {
            let mut decoder = SseDecoder::new(MAX_LINE);
            while let Some(stream) = &mut answer {
                self.to_client.room().await;
                let Ok(Some(piece)) = stream.chunk().await else { break };
                decoder.push(&piece).map_err(|error| error.to_string())?;
                while let Some(event) = decoder.next_event() {
                    tries = 0;
                    last_event = event.id.filter(|id| !id.is_empty()).or(last_event);
                    let Some(data) = event.data.filter(|data| !data.trim().is_empty()) else {
                        continue;
                    };
                    let is_answer = id.is_some()
                        && Message::read(data.as_bytes()).is_some_and(|message| {
                            message.method.is_none() && message.id.map(|it| it.get()) == id
                        });
                    self.say(data.into_bytes(), method).await;
                    if is_answer {
                        return Ok(());
                    }
                }
            }
            tries += 1;
            let Some(last) = last_event.clone().filter(|_| tries <= MAX_AGAIN) else {
                return Err("the connection broke before the answer".to_owned());
            };
            tokio::time::sleep(AGAIN).await;
            let request = self.request(Method::GET, SSE, &self.known()).header(LAST_EVENT, last);
            answer = request.send().await.ok().filter(|answer| answer.status().is_success());
        }
    }

    /// Messages of the server that belong to no request, where it offers them.
    async fn listen(&self) {
        loop {
            let request = self.request(Method::GET, SSE, &self.known());
            let Ok(answer) = request.send().await else { return };
            if !answer.status().is_success() {
                return;
            }
            // Ends with the connection; no answer is waited for.
            drop(self.read_events(answer, None, "").await);
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// A message of the server, as one line.
    async fn say(&self, mut message: Vec<u8>, method: &str) {
        if method == "initialize"
            && let Ok(greeted) = serde_json::from_slice::<Value>(&message)
            && let Some(version) = greeted["result"]["protocolVersion"].as_str()
        {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            session.version = Some(version.to_owned());
        }
        // In JSON a line break is never part of a string.
        for byte in &mut message {
            if matches!(*byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
        message.push(b'\n');
        pass_line(&self.events, &self.to_client, self.generation, message).await;
    }

    /// A request has no answer; whether it was carried out cannot be known.
    async fn fail(&self, id: Option<&str>, why: &str) {
        let Some(id) = id else { return };
        let message =
            format!("the server did not answer ({why}); the request may or may not have happened");
        let error = json!({ "code": -32603, "message": message }).to_string();
        let line = response(id, "error", &error);
        pass_line(&self.events, &self.to_client, self.generation, line).await;
    }

    /// Tells the server that the session is over.
    async fn delete(&self) {
        let session = self.known();
        if session.id.is_some() {
            let request = self.request(Method::DELETE, JSON, &session).send();
            drop(tokio::time::timeout(DELETE_WAIT, request).await);
        }
    }
}

fn session_id(answer: &Response) -> Option<String> {
    Some(answer.headers().get(SESSION)?.to_str().ok()?.to_owned())
}
