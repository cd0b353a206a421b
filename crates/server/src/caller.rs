//! Who makes a call, and what they can be told while it lasts.

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{JobId, OwnerId, Scope};
use parking_lot::Mutex;
use rmcp::model::{
    Extensions, MetaObject, NotificationMetaObject, ProgressNotificationParam, ProgressToken,
    ProtocolVersion,
};
use rmcp::service::{Peer, RequestContext, RoleServer};
use tokio::time::Instant;

use crate::metrics::Metrics;
use crate::receipt::Receipt;

/// Whose call an HTTP request is: put into the request's extensions where its token is checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Principal(pub(crate) OwnerId);

/// The room that a request's body takes among those under way; in the request's extensions until the call is answered,
/// or waits for something that takes longer than reading it.
#[derive(Clone)]
pub(crate) struct BodyRoom(Arc<Mutex<Option<Box<dyn Send + Sync>>>>);

impl BodyRoom {
    /// Keeps `room` until it is given back.
    pub(crate) fn new(room: impl Send + Sync + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(room)))))
    }
}

/// One call's caller.
pub(crate) struct Caller {
    /// Whose jobs they see.
    pub(crate) owner: OwnerId,
    /// Where their progress goes, if they want any.
    pub(crate) progress: Option<Reporter>,
    /// Whether a call of theirs may be answered with a task.
    pub(crate) takes_tasks: bool,
    /// Where it is counted how they were served.
    pub(crate) metrics: Arc<Metrics>,
    /// What is to be recorded once they have their answer.
    pub(crate) receipt: Option<Receipt>,
    /// Where the page is served, if it is.
    pub(crate) page: Option<String>,
    /// The room their request takes, while it is being worked on.
    pub(crate) body: Option<BodyRoom>,
}

impl Caller {
    /// The caller of a request; `owner` where no other principal was found out.
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
        Self { owner, progress, takes_tasks, metrics, receipt: None, page, body }
    }

    /// Says that the request was read and worked on, and only an answer is waited for.
    pub(crate) fn waits(&self) {
        if let Some(body) = &self.body {
            drop(body.0.lock().take());
        }
    }

    /// What they may see.
    pub(crate) fn scope(&self) -> Scope {
        Scope::Owner(self.owner.clone())
    }
}

/// Whose message it is; `local`'s where no other principal was found out.
pub(crate) fn owner<'a>(extensions: &'a Extensions, local: &'a OwnerId) -> &'a OwnerId {
    let parts = extensions.get::<http::request::Parts>();
    let principal = parts.and_then(|parts| parts.extensions.get::<Principal>());
    principal.map_or(local, |Principal(owner)| owner)
}

/// The extension means nothing under older revisions: clients there would take a task for an empty result.
pub(crate) fn takes_tasks(context: &RequestContext<RoleServer>) -> bool {
    is_modern(context)
        && context.client_capabilities().is_some_and(|client| client.supports_tasks())
}

/// Whether the request is of the newest era.
pub(crate) fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// Sends progress: strictly rising, not more often than once a second, and a sign of life every ten.
pub(crate) struct Reporter {
    peer: Peer<RoleServer>,
    token: ProgressToken,
    /// The job that is waited for, where it is the only one.
    job: Option<JobId>,
    /// Of several jobs that are waited for in turn, how many have ended and how many there are.
    part: Option<(usize, usize)>,
    value: f64,
    /// Whether the value is a percentage: work that does not say how far it has come is not at 0 %.
    is_percent: bool,
    message: String,
    sent_at: Option<Instant>,
    news: bool,
}

impl Reporter {
    const AT_MOST_EVERY: Duration = Duration::from_secs(1);
    const AT_LEAST_EVERY: Duration = Duration::from_secs(10);
    /// What a sign of life adds: small enough never to reach the next percent in an hour's silence.
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

    /// Says that what is noted from now on is of one job of several: how many have ended, and how many there are.
    pub(crate) fn part_of(&mut self, done: usize, total: usize) {
        self.part = Some((done, total));
    }

    /// Takes down where a job stands; [`Reporter::due`] says when to send it. An only job is named, so that a client that
    /// gives up knows what goes on without it.
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

    /// Waits until something should be sent. Cancel-safe.
    pub(crate) async fn due(&self) {
        if let Some(sent_at) = self.sent_at {
            let pause = if self.news { Self::AT_MOST_EVERY } else { Self::AT_LEAST_EVERY };
            tokio::time::sleep_until(sent_at + pause).await;
        } else if !self.news {
            std::future::pending::<()>().await;
        }
    }

    /// Sends what was noted last. A client that cannot be told still gets its answer.
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
    /// A caller of this owner's who wants neither progress nor tasks.
    pub(crate) fn test(owner: &str) -> Self {
        Self {
            owner: OwnerId::new(owner),
            progress: None,
            takes_tasks: false,
            metrics: Arc::default(),
            receipt: None,
            page: None,
            body: None,
        }
    }
}
