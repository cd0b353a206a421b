//! Follows the changes of the resources and tasks that a client subscribed to (L2, L3).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    ChangeWait, ConversationId, JobId, JobQuery, OwnerId, RequestContent, Rev, Scope, StateKind,
    StoreError,
};
use outlast_engine::Engine;
use parking_lot::Mutex;
use rmcp::ErrorData;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{Peer, RoleServer};
use tokio::task::AbortHandle;

use super::{ResourceId, report_refusal};

/// The time after which a follower checks that its client is still connected.
const QUIET: Duration = Duration::from_secs(15);
/// The interval of looks for changes of other processes.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// The minimum time between two notifications about the same subscription.
const AT_LEAST_APART: Duration = Duration::from_millis(300);
/// The maximum number of jobs whose conversation is remembered.
const MAX_REMEMBERED: usize = 10_000;
/// The maximum number of subscriptions of one session.
const MAX_PER_SESSION: usize = 20;

/// The changes since the last look.
#[derive(Debug, Default)]
pub(super) struct News {
    /// The resources that have changed.
    pub(super) resources: Vec<ResourceId>,
    /// The tasks that have changed.
    pub(super) tasks: Vec<JobId>,
}

/// Follows resources and tasks of one owner.
pub(super) struct ResourceFeed {
    engine: Engine,
    scope: Scope,
    resources: Vec<ResourceId>,
    tasks: Vec<JobId>,
    rev: Rev,
    /// The last known state of each job. A resource changes with the state of its job.
    states: HashMap<JobId, StateKind>,
    /// The conversation of each job; `None` if it has none, or belongs to another owner.
    conversations: HashMap<JobId, Option<ConversationId>>,
}

impl ResourceFeed {
    /// Starts to follow: reports every change after this.
    pub(super) async fn start(
        engine: &Engine,
        owner: &OwnerId,
        resources: Vec<ResourceId>,
        tasks: Vec<JobId>,
    ) -> Result<Self, StoreError> {
        // Read before the states, so that no change is missed in between.
        let rev = engine.rev().await?;
        let scope = Scope::Owner(owner.clone());
        let mut states = HashMap::new();
        for resource in &resources {
            let last = match resource {
                ResourceId::Job(id) => {
                    engine.job(&scope, id).await?.map(|job| (job.id, job.state.kind()))
                }
                // A check has no state before its end.
                ResourceId::Citations(_) => None,
                ResourceId::Report(id) => engine
                    .conversation(owner, id)
                    .await?
                    .map(|found| (found.last().id, found.last().state.kind())),
            };
            states.extend(last);
        }
        let (engine, conversations) = (engine.clone(), HashMap::new());
        Ok(Self { engine, scope, resources, tasks, rev, states, conversations })
    }

    /// Waits for changes; returns nothing new after a while without any.
    pub(super) async fn next(&mut self) -> Result<News, StoreError> {
        let wait = ChangeWait { at_most: QUIET, look_every: LOOK_EVERY };
        let changes = self.engine.changes(self.rev, wait).await?;
        self.rev = changes.rev;
        let mut news = News::default();
        for change in &changes.jobs {
            if self.tasks.contains(&change.id) {
                news.tasks.push(change.id);
            }
            let job = ResourceId::Job(change.id);
            let mut concerned = vec![job];
            if change.in_conversation
                && self.resources.iter().any(|it| matches!(it, ResourceId::Report(_)))
            {
                let conversation = self.conversation(change.id).await?;
                concerned.extend(conversation.map(ResourceId::Report));
            }
            if change.state == StateKind::Succeeded
                && self.resources.iter().any(|it| matches!(it, ResourceId::Citations(_)))
            {
                concerned.extend(self.checked(change.id).await?.map(ResourceId::Citations));
            }
            concerned.retain(|resource| self.resources.contains(resource));
            if !concerned.is_empty()
                && self.states.insert(change.id, change.state) != Some(change.state)
            {
                news.resources.extend(concerned);
            }
        }
        Ok(news)
    }

    /// Returns the conversation whose report a job has checked.
    async fn checked(&self, job: JobId) -> Result<Option<ConversationId>, StoreError> {
        let Some(job) = self.engine.job(&self.scope, &job).await? else { return Ok(None) };
        let RequestContent::CitationCheck(check) = job.new.request.content() else {
            return Ok(None);
        };
        Ok(check.conversation.as_deref().map(ConversationId::new))
    }

    async fn conversation(&mut self, job: JobId) -> Result<Option<ConversationId>, StoreError> {
        if let Some(known) = self.conversations.get(&job) {
            return Ok(known.clone());
        }
        if self.conversations.len() >= MAX_REMEMBERED {
            self.conversations.clear();
        }
        let id_prefix = Some(job.to_string());
        let query = JobQuery { id_prefix, limit: 1, ..JobQuery::default() };
        let found = self.engine.list(&self.scope, &query).await?.jobs.pop();
        let conversation = found.and_then(|job| job.conversation);
        self.conversations.insert(job, conversation.clone());
        Ok(conversation)
    }
}

/// Waits until the next notification about a subscription may be sent.
pub(super) async fn pause() {
    tokio::time::sleep(AT_LEAST_APART).await;
}

/// The subscriptions of the older era (`resources/subscribe`), by session and address.
#[derive(Clone, Default)]
pub(crate) struct Subscriptions(Arc<Mutex<HashMap<(String, String), AbortHandle>>>);

impl Subscriptions {
    /// Notifies this client of every change of the resource until it unsubscribes or disconnects.
    pub(crate) async fn add(
        &self,
        session: String,
        uri: String,
        resource: ResourceId,
        (engine, owner): (&Engine, &OwnerId),
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let follow = ResourceFeed::start(engine, owner, vec![resource], Vec::new()).await;
        let mut follow = follow.map_err(report_refusal)?;
        let (engine, address) = (engine.clone(), uri.clone());
        let mut tasks = self.0.lock();
        tasks.retain(|_, task| !task.is_finished());
        let key = (session, uri);
        if tasks.keys().filter(|(of, _)| *of == key.0).count() >= MAX_PER_SESSION
            && !tasks.contains_key(&key)
        {
            let why = format!("a session has {MAX_PER_SESSION} subscriptions at most");
            return Err(ErrorData::invalid_params(why, None));
        }
        let task = outlast_engine::spawn(async move {
            while !peer.is_transport_closed() {
                let news = tokio::select! {
                    () = engine.begin_leaving() => return,
                    news = follow.next() => news,
                };
                match news {
                    Ok(news) if news.resources.is_empty() => continue,
                    Ok(_) => {}
                    Err(error) => {
                        tracing::debug!(%error, "failed to follow a resource; trying again");
                        pause().await;
                        continue;
                    }
                }
                let updated = ResourceUpdatedNotificationParam::new(address.clone());
                if peer.notify_resource_updated(updated).await.is_err() {
                    return;
                }
                pause().await;
            }
        });
        if let Some(old) = tasks.insert(key, task.abort_handle()) {
            old.abort();
        }
        Ok(())
    }

    /// Ends a subscription, if there is one.
    pub(crate) fn remove(&self, session: String, uri: String) {
        if let Some(task) = self.0.lock().remove(&(session, uri)) {
            task.abort();
        }
    }
}
