//! A wrapped server at an address: each line of the client becomes a request over streamable HTTP, and each message of
//! an answer becomes a line. Supports both eras; the headers of each are derived from the content of the line.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use outlast_client::Endpoint;
use outlast_http::{SseDecoder, error_chain, read_body};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

use crate::host::HostEvent;
use crate::line::MAX_LINE;
use crate::message::{
    CallParams, CancelParams, Message, MessageKind, id_key, repair_utf8, response,
};
use crate::server::{Backlog, ServerProcess, pass_line};

/// The time limit for ending a session.
const DELETE_WAIT: Duration = Duration::from_secs(1);
/// The delay before a broken stream is requested again, and the number of attempts without any event in between.
const AGAIN: Duration = Duration::from_secs(1);
const MAX_AGAIN: u32 = 5;
/// The time that later messages wait until the server has accepted a notification. After the first one that the server
/// holds, none waits.
const NOTIFICATION_WAIT: Duration = Duration::from_secs(1);
/// The time for which a notification that the server holds keeps its connection.
const NOTIFICATION_LIMIT: Duration = Duration::from_secs(60);

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
    events: mpsc::Sender<HostEvent>,
    to_client: Arc<Backlog>,
    session: Mutex<WebSession>,
    /// Set when the server has forgotten the session.
    lost: watch::Sender<bool>,
}

/// A request whose answer has not ended.
struct OpenRequest {
    task: AbortHandle,
    /// True if it is of the newest era.
    is_modern: bool,
}

/// The certainty with which an unanswered request was not carried out.
#[derive(Clone, Copy)]
enum Certainty {
    /// It was certainly not carried out.
    NotCarriedOut,
    Unknown,
}

/// The values from the greeting of the older era.
#[derive(Clone, Default)]
struct WebSession {
    id: Option<String>,
    version: Option<String>,
}

#[derive(Default, Deserialize)]
struct RequestTarget {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    uri: Option<String>,
    #[serde(default, rename = "taskId")]
    task: Option<String>,
}

/// Starts relaying lines to this address; makes no request before the first line.
pub(crate) fn start(
    endpoint: &Endpoint,
    generation: u64,
    events: &mpsc::Sender<HostEvent>,
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
        if !*web.lost.borrow() {
            drop(web.events.send(HostEvent::ServerExited(generation, 0)).await);
        }
    });
    Ok(ServerProcess { generation, input: Some(input), backlog: to_server, group: None, exited })
}

impl Web {
    /// Sends lines until the input ends; requests run concurrently.
    async fn pass(
        self: Arc<Self>,
        lines: &mut mpsc::UnboundedReceiver<Vec<u8>>,
        backlog: &Arc<Backlog>,
        mut lost: watch::Receiver<bool>,
    ) {
        let mut requests = JoinSet::new();
        let mut open: HashMap<String, OpenRequest> = HashMap::new();
        let mut wait = NOTIFICATION_WAIT;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                Some(_) = requests.join_next() => {
                    open.retain(|_, request| !request.task.is_finished());
                    continue;
                }
                _ = lost.wait_for(|lost| *lost) => return,
            };
            let Some(line) = line else { break };
            backlog.remove(line.len());
            let message = Message::read(&line).unwrap_or_default();
            let (web, own) = (self.clone(), self.clone());
            let limit = match message.kind() {
                MessageKind::Request { id, .. } => {
                    let params: CallParams<'_> = message.params();
                    let (key, is_modern) = (id_key(id), params.meta().protocol_version.is_some());
                    let task = requests.spawn(async move { web.post(line).await });
                    open.insert(key, OpenRequest { task, is_modern });
                    continue;
                }
                MessageKind::Notification { method: "notifications/cancelled" } => {
                    if self.close_request(&message, &mut open) {
                        continue;
                    }
                    NOTIFICATION_LIMIT
                }
                MessageKind::Notification { .. } | MessageKind::Response { .. } => {
                    NOTIFICATION_LIMIT
                }
                // It may be a batch, whose answers take some time.
                MessageKind::Other => Duration::MAX,
            };
            let opens = message.method.as_deref() == Some("notifications/initialized");
            // A notification reaches the server before the lines that follow it, unless the server holds it.
            let (taken, is_taken) = oneshot::channel();
            requests.spawn(async move {
                drop(tokio::time::timeout(limit, web.post(line)).await);
                // Fails only when nothing waits for it any more.
                let _ = taken.send(());
            });
            if tokio::time::timeout(wait, is_taken).await.is_err() {
                wait = Duration::ZERO;
            }
            if opens {
                requests.spawn(async move { own.listen().await });
            }
        }
    }

    /// Cancels an open request of the newest era, in which closing the response stream is the cancellation. Returns
    /// false if the server must get the notification.
    fn close_request(&self, cancel: &Message<'_>, open: &mut HashMap<String, OpenRequest>) -> bool {
        let params: CancelParams<'_> = cancel.params();
        let key = params.request.map(|request| id_key(request.get())).unwrap_or_default();
        match open.get(&key) {
            Some(request) if request.is_modern => {
                request.task.abort();
                open.remove(&key);
                true
            }
            Some(_) => false,
            // A server that was never greeted speaks the newest era, and its request is over.
            None => self.known().version.is_none(),
        }
    }

    fn known(&self) -> WebSession {
        self.session.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Builds a request with the common headers.
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

    /// Sends one message and relays the messages of the answer.
    async fn post(&self, line: Vec<u8>) {
        let message = Message::read(&line);
        let (id, method) = match message.as_ref().map(Message::kind) {
            Some(MessageKind::Request { id, method }) => (Some(id.to_owned()), method.to_owned()),
            Some(MessageKind::Notification { method }) => (None, method.to_owned()),
            _ => (None, String::new()),
        };
        let mut session = self.known();
        let mut headers = Vec::new();
        if let Some(message) = &message {
            let params: CallParams<'_> = message.params();
            if let Some(version) = params.meta().protocol_version {
                session = WebSession { id: None, version: Some(version.into_owned()) };
                headers.push(("mcp-method", method.clone()));
                let RequestTarget { name, uri, task } = message.params();
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
                // Without a connection nothing was sent.
                let (words, certainty) = match error.is_connect() {
                    true => ("cannot be reached", Certainty::NotCarriedOut),
                    false => ("did not answer", Certainty::Unknown),
                };
                let why = format!("{words} ({})", error_chain(&error.without_url()));
                return self.fail(id.as_deref(), &why, certainty).await;
            }
        };
        if answer.status() == StatusCode::NOT_FOUND && session.id.is_some() {
            let why = "has forgotten the session, which is opened again";
            self.fail(id.as_deref(), why, Certainty::NotCarriedOut).await;
            // The calls under way are gone with the session, as if the server had been restarted. Known before the
            // client's next message, which opens a new session.
            drop(self.events.send(HostEvent::SessionLost(self.generation)).await);
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
                let why = format!("did not answer ({why})");
                self.fail(id, &why, Certainty::Unknown).await;
            }
            return;
        }
        let (words, certainty) = meaning(status);
        let body = match read_body(answer, MAX_LINE).await {
            Ok(body) => repair_utf8(&body).unwrap_or(body),
            Err(error) => {
                return self.fail(id, &format!("{words} ({error})"), certainty).await;
            }
        };
        let is_message = Message::read(&body).is_some_and(|message| {
            message.method.is_some() || message.id.map(|it| it.get()) == id && id.is_some()
        });
        match is_message {
            true => self.say(body, method).await,
            false if id.is_some() => {
                self.fail(id, &format!("{words} (HTTP {status})"), certainty).await;
            }
            false => {}
        }
    }

    /// Reads events until the answer to this request. Resumes a broken stream if its events have ids.
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

    /// Reads messages of the server that belong to no request, if the server offers them.
    async fn listen(&self) {
        loop {
            let request = self.request(Method::GET, SSE, &self.known());
            let Ok(answer) = request.send().await else { return };
            if !answer.status().is_success() {
                return;
            }
            // Ends with the connection; it waits for no answer.
            drop(self.read_events(answer, None, "").await);
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Passes on a message of the server as one line.
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

    /// Answers a request that the server has not answered.
    async fn fail(&self, id: Option<&str>, why: &str, certainty: Certainty) {
        let Some(id) = id else { return };
        let outcome = match certainty {
            Certainty::NotCarriedOut => "was not carried out",
            Certainty::Unknown => "may or may not have happened",
        };
        let message = format!("the server {why}; the request {outcome}");
        let error = json!({ "code": -32603, "message": message }).to_string();
        let line = response(id, "error", &error);
        pass_line(&self.events, &self.to_client, self.generation, line).await;
    }

    /// Notifies the server that the session is over.
    async fn delete(&self) {
        let session = self.known();
        if session.id.is_some() {
            let request = self.request(Method::DELETE, JSON, &session).send();
            drop(tokio::time::timeout(DELETE_WAIT, request).await);
        }
    }
}

/// Returns the meaning of an answer that contains no message.
fn meaning(status: StatusCode) -> (&'static str, Certainty) {
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => (
            "refused the request; check the token and the headers that wrap sends",
            Certainty::NotCarriedOut,
        ),
        // A proxy may send this for a request that it has passed on.
        StatusCode::REQUEST_TIMEOUT => ("did not answer", Certainty::Unknown),
        _ if status.is_redirection() => (
            "redirects requests, which wrap does not follow; give wrap the final address",
            Certainty::NotCarriedOut,
        ),
        _ if status.is_client_error() => ("refused the request", Certainty::NotCarriedOut),
        _ => ("did not answer", Certainty::Unknown),
    }
}

fn session_id(answer: &Response) -> Option<String> {
    Some(answer.headers().get(SESSION)?.to_str().ok()?.to_owned())
}
