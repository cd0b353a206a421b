//! The caller of a request, and the progress that it receives while the call runs.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{JobId, OwnerId, Scope, Traceparent};
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::{
    Extensions, MetaObject, NotificationMetaObject, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::questions::{AskedQuestion, CallBinding, QuestionChannel, StatedQuestion};
use crate::receipt::Receipt;

/// The sender of an HTTP request. The token check stores it in the request's extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    /// The owner of the jobs that the sender starts and sees.
    pub(crate) owner: OwnerId,
    pub(crate) access: Access,
    /// The expiry of an access token; the server's own tokens have none.
    pub(crate) expires: Option<Instant>,
    pub(crate) identified_by: Identification,
}

/// The way in which the owner of a request was identified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Identification {
    Token,
    /// The server asks for no token: every client is the same owner.
    Nothing,
}

impl Principal {
    /// Creates the principal of one of the server's own tokens, or of a server that needs none.
    pub(crate) fn of_server(owner: OwnerId, identified_by: Identification) -> Self {
        Self { owner, access: Access::Run, expires: None, identified_by }
    }
}

/// The actions that a caller may take; each includes those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    /// Nothing: a token without a scope of this server.
    Nothing,
    /// Reads its own jobs and reports.
    Read,
    /// Starts and cancels jobs.
    Run,
    /// Reads the metrics of all owners.
    Admin,
}

/// The share of the body budget that a request holds. It stays in the request's extensions until the call is answered, or
/// until the call waits for something that takes longer than reading the body.
#[derive(Clone)]
pub(crate) struct BodyRoom(Arc<Mutex<Option<Box<dyn Send + Sync>>>>);

impl BodyRoom {
    /// Holds `room` until it is released.
    pub(crate) fn new(room: impl Send + Sync + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(room)))))
    }
}

/// The caller of one call.
pub(crate) struct Caller {
    /// The owner whose jobs the caller sees.
    pub(crate) owner: OwnerId,
    /// The reporter of progress, if the caller asked for progress.
    pub(crate) progress: Option<Reporter>,
    /// True if a call may be answered with a task.
    pub(crate) takes_tasks: bool,
    /// True if the call must be answered with a task, also if it attaches to a job that has ended.
    pub(crate) needs_task: bool,
    /// The metrics of the server.
    pub(crate) metrics: Arc<Metrics>,
    /// The record to write once the caller has received the answer.
    pub(crate) receipt: Option<Receipt>,
    /// The address of the page, if it is served.
    pub(crate) page: Option<String>,
    /// The share of the body budget that the request holds while it is processed.
    pub(crate) body: Option<BodyRoom>,
    /// The trace that the request belongs to.
    pub(crate) trace: Option<Traceparent>,
    /// The way to ask its user, if there is one.
    pub(crate) channel: Option<QuestionChannel>,
    /// True if the call asks for the result of a task.
    pub(crate) is_of_task: bool,
    /// The call itself, for the signed state of a question.
    pub(crate) binding: Option<CallBinding>,
    /// The question that the user has reacted to with this call, which waits for the job of that question.
    pub(crate) resumed: Option<StatedQuestion>,
    /// The question that the call is answered with.
    pub(crate) asked: Option<AskedQuestion>,
}

impl Caller {
    /// Creates the caller of a request; `owner` applies if no principal was identified.
    pub(crate) fn of(
        context: &RequestContext<RoleServer>,
        owner: &OwnerId,
        page: Option<String>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let owner = self::owner(&context.extensions, owner).clone();
        let progress = context.meta.get_progress_token();
        let progress = progress.map(|token| Reporter::new(context.peer.clone(), token));
        let takes_tasks = takes_tasks(context);
        let parts = context.extensions.get::<http::request::Parts>();
        let body = parts.and_then(|parts| parts.extensions.get::<BodyRoom>()).cloned();
        let trace = context.meta.get("traceparent").and_then(|trace| trace.as_str());
        let header = || parts?.headers.get("traceparent")?.to_str().ok();
        let trace = trace.or_else(header).and_then(Traceparent::parse);
        let channel = QuestionChannel::of(context);
        Self { progress, takes_tasks, page, body, trace, channel, ..Self::new(owner, metrics) }
    }

    /// Creates a caller who wants neither progress nor tasks, and cannot be asked.
    fn new(owner: OwnerId, metrics: Arc<Metrics>) -> Self {
        Self {
            owner,
            progress: None,
            takes_tasks: false,
            needs_task: false,
            metrics,
            receipt: None,
            page: None,
            body: None,
            trace: None,
            channel: None,
            is_of_task: false,
            binding: None,
            resumed: None,
            asked: None,
        }
    }

    /// Releases the body budget: the request has been read, and the call only waits for an answer now.
    pub(crate) fn waits(&self) {
        if let Some(body) = &self.body {
            drop(body.0.lock().take());
        }
    }

    /// Returns the jobs that the caller may see.
    pub(crate) fn scope(&self) -> Scope {
        Scope::Owner(self.owner.clone())
    }
}

/// Returns the owner of a message; `local` if no principal was identified.
pub(crate) fn owner<'a>(extensions: &'a Extensions, local: &'a OwnerId) -> &'a OwnerId {
    principal(extensions).map_or(local, |principal| &principal.owner)
}

/// Returns the principal of a message, if one was identified.
fn principal(extensions: &Extensions) -> Option<&Principal> {
    extensions.get::<http::request::Parts>()?.extensions.get::<Principal>()
}

/// Checks that the sender of a request may do this. The HTTP server refuses such requests with a challenge before they get
/// here, unless it reads a message otherwise than rmcp.
pub(crate) fn check_access(
    context: &RequestContext<RoleServer>,
    needed: Access,
) -> Result<(), ErrorData> {
    match principal(&context.extensions) {
        Some(principal) if principal.access < needed => {
            let sentence = "the access token lacks a scope: insufficient_scope";
            Err(ErrorData::invalid_request(sentence, None))
        }
        Some(_) | None => Ok(()),
    }
}

/// Returns true if the tasks of this request's owner are not those of every other client.
pub(crate) fn is_identified(context: &RequestContext<RoleServer>) -> bool {
    principal(&context.extensions)
        .is_none_or(|principal| principal.identified_by == Identification::Token)
}

/// Waits until the token of a request has expired.
pub(crate) async fn wait_for_token_expiry(context: &RequestContext<RoleServer>) {
    match principal(&context.extensions).and_then(|principal| principal.expires) {
        Some(expires) => tokio::time::sleep_until(expires).await,
        None => std::future::pending().await,
    }
}

/// Returns the session of an HTTP request of the older era; an empty text for the one session of a pipe.
pub(crate) fn session(context: &RequestContext<RoleServer>) -> String {
    let parts = context.extensions.get::<http::request::Parts>();
    let id = parts.and_then(|parts| parts.headers.get("mcp-session-id"));
    id.and_then(|id| id.to_str().ok()).unwrap_or_default().to_owned()
}

/// Returns true if the client accepts tasks. The extension has no meaning in older revisions: their clients would take a
/// task for an empty result.
pub(crate) fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context)
        && context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// Returns true if the request uses the newest protocol revision or a later one.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Sends progress: strictly increasing, at most once a second, and a sign of life every ten seconds.
pub(crate) struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// The job that the call waits for, if there is only one.
    job: Option<JobId>,
    /// The number of jobs that have ended and the total, if the call waits for several in turn.
    part: Option<(usize, usize)>,
    value: f64,
    /// True if the value is a percentage. Work that reports no percentage is not at 0 %.
    is_percent: bool,
    message: String,
    sent_at: Option<Instant>,
    news: bool,
}

impl Reporter {
    const AT_MOST_EVERY: Duration = Duration::from_secs(1);
    const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
    /// The increment of a sign of life: too small to reach the next percent in an hour of silence.
    const SIGN_OF_LIFE: f64 = 0.001;

    fn new(peer: Peer<RoleServer>, token: ProgressToken) -> Self {
        Self {
            peer,
            token,
            job: None,
            part: None,
            value: 0.0,
            is_percent: false,
            message: String::new(),
            sent_at: None,
            news: false,
        }
    }

    /// States that the following notes are about one job of several: `done` of `total` have ended.
    pub(crate) fn part_of(&mut self, done: usize, total: usize) {
        self.part = Some((done, total));
    }

    /// Notes the standing of a job; [`Reporter::due`] determines when it is sent. If there is only one job, its id is sent
    /// too, so that a client that gives up knows which job continues.
    pub(crate) fn note(&mut self, job: JobId, percent: Option<u8>, standing: &str) {
        let Some((done, total)) = self.part else {
            self.job = Some(job);
            return self.take_down(percent.map(f64::from), standing);
        };
        let percent = f64::from(percent.unwrap_or(0));
        let share = (done as f64 * 100.0 + percent) / total.max(1) as f64;
        self.take_down(Some(share), &format!("{done} of {total} ended; {standing}"));
    }

    fn take_down(&mut self, percent: Option<f64>, message: &str) {
        self.is_percent = percent.is_some();
        let percent = percent.unwrap_or(0.0);
        if percent > self.value || message != self.message {
            self.value = percent.max(self.value);
            message.clone_into(&mut self.message);
            self.news = true;
        }
    }

    /// Waits until a message is due. Cancel-safe.
    pub(crate) async fn due(&self) {
        if let Some(sent_at) = self.sent_at {
            let pause = if self.news { Self::AT_MOST_EVERY } else { Self::AT_LEAST_EVERY };
            tokio::time::sleep_until(sent_at + pause).await;
        } else if !self.news {
            std::future::pending::<()>().await;
        }
    }

    /// Sends the latest note. If the notification fails, the client still gets its answer.
    pub(crate) async fn send(&mut self) {
        if self.sent_at.is_some() {
            self.value += Self::SIGN_OF_LIFE;
        }
        self.sent_at = Some(Instant::now());
        self.news = false;
        let mut progress = ProgressNotificationParam::new(self.token.clone(), self.value)
            .with_message(self.message.clone());
        progress.total = self.is_percent.then_some(100.0);
        progress.meta = self.job.map(|job| {
            let mut meta = MetaObject::default();
            meta.insert("outlast/jobId".to_owned(), job.to_string().into());
            NotificationMetaObject(meta)
        });
        if let Err(error) = self.peer.notify_progress(progress).await {
            tracing::debug!(%error, "progress not sent");
        }
    }
}

#[cfg(test)]
impl Caller {
    /// Returns a caller with this owner who wants neither progress nor tasks.
    pub(crate) fn test(owner: &str) -> Self {
        Self::new(OwnerId::new(owner), Arc::default())
    }
}
