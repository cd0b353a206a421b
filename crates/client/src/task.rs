//! A call that has become a task at the server: it has a name there, outlives the connection, and can be taken up again
//! over another one, by another process too.

mod follow;

use rmcp::model::{CancelTaskParams, CancelTaskRequest, ClientRequest, ServerResult, Task};
use rmcp::service::ServiceError;

use crate::answer::Answer;
use crate::call::{CANCEL_GRACE, CallTimer, Link};
use crate::client::Client;
use crate::error::{ClientError, GivenUpTask, TaskFate};
use crate::options::CallOptions;

/// What a server made of a call: see [`Client::start_tool`].
pub enum Started<'a> {
    /// It answered.
    Answered(Answer),
    /// It goes on as a task.
    Task(TaskCall<'a>),
}

impl Started<'_> {
    /// Waits for the answer, if it is not there yet.
    pub async fn finish(self) -> Result<Answer, ClientError> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Task(task) => task.finish().await,
        }
    }
}

/// A task at the server and the patience with it. Dropped before its end, it goes on, unless its caller asked to
/// [cancel it on giving up](CallOptions::cancel_on_give_up).
pub struct TaskCall<'a> {
    client: &'a Client,
    vigil: CallTimer,
    abandoned: Abandoned,
    /// What the server last said of it.
    seen: Option<Task>,
}

impl<'a> TaskCall<'a> {
    pub(crate) fn begun(client: &'a Client, vigil: CallTimer, task: Task) -> Self {
        let abandoned = Abandoned::new(&client.link, task.task_id.clone(), &vigil);
        Self { client, vigil, abandoned, seen: Some(task) }
    }

    /// Its name at the server, for [`Client::resume_task`].
    pub fn id(&self) -> &str {
        &self.abandoned.id
    }

    /// From now on it goes on at the server when it is dropped, also where it is cancelled at a limit: its name was
    /// recorded, so that it can be taken up.
    pub fn left_running(mut self) -> Self {
        self.abandoned.when_dropped = Parting::Leave;
        self
    }

    /// Asks after it, at the pace the server wishes, until it has ended.
    pub async fn finish(self) -> Result<Answer, ClientError> {
        let Self { client, vigil, abandoned, seen } = self;
        match client.link.follow(&vigil, abandoned, seen).await {
            Ok(result) => Ok(Answer::from(result)),
            Err(error) => Err(client.explained(error).await),
        }
    }

    /// Has the server end it, and waits for its word.
    pub async fn cancel(self) -> Result<(), ClientError> {
        let Self { client, vigil, mut abandoned, .. } = self;
        abandoned.when_dropped = Parting::Leave;
        match client.link.ask(cancel_request(&abandoned.id), &vigil).await {
            Ok(_) => Ok(()),
            Err(error) => Err(client.explained(unknown(error, &abandoned.id)).await),
        }
    }
}

impl Client {
    /// Takes up a task that an earlier call has become, perhaps of another process, within these limits. Nothing is
    /// sent before the task is [asked after](TaskCall::finish) or [cancelled](TaskCall::cancel).
    ///
    /// ```no_run
    /// # use outlast_client::{CallOptions, Client, ClientError, Started};
    /// # async fn run(client: &Client, other: &Client) -> Result<(), ClientError> {
    /// # let (options, arguments) = (CallOptions::default(), serde_json::json!({}));
    /// let id = match client.start_tool("slow", arguments, options.clone()).await? {
    ///     Started::Task(task) => task.left_running().id().to_owned(),
    ///     Started::Answered(_) => return Ok(()),
    /// };
    /// // Some time and a crash later:
    /// let answer = other.resume_task(&id, options)?.finish().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn resume_task(&self, id: &str, options: CallOptions) -> Result<TaskCall<'_>, ClientError> {
        let vigil = CallTimer::begin(&options)?;
        let abandoned = Abandoned::new(&self.link, id.to_owned(), &vigil);
        Ok(TaskCall { client: self, vigil, abandoned, seen: None })
    }
}

/// What becomes of a task whose caller leaves it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Parting {
    Cancel,
    Leave,
}

/// A task that a caller waits for, and what becomes of it when the caller gives it up.
pub(crate) struct Abandoned {
    link: Link,
    id: String,
    /// When a limit is reached, or the task cannot go on.
    given_up: Parting,
    when_dropped: Parting,
}

impl Abandoned {
    fn new(link: &Link, id: String, vigil: &CallTimer) -> Self {
        let parting = if vigil.cancel_on_give_up { Parting::Cancel } else { Parting::Leave };
        Self { link: link.clone(), id, given_up: parting, when_dropped: parting }
    }

    fn ended(mut self) {
        self.when_dropped = Parting::Leave;
    }

    /// It waits for what this client cannot give.
    fn stuck(mut self) {
        self.when_dropped = self.given_up;
    }

    /// A limit was reached: cancels it where that was asked for.
    async fn give_up(mut self) -> GivenUpTask {
        self.when_dropped = Parting::Leave;
        let id = self.id.clone();
        if self.given_up == Parting::Leave {
            return GivenUpTask { id, fate: TaskFate::GoesOn };
        }
        let words = cancel(self.link.clone(), id.clone());
        let fate = match tokio::time::timeout(CANCEL_GRACE, words).await {
            Ok(Ok(_)) => TaskFate::Cancelled,
            Ok(Err(_)) | Err(_) => TaskFate::CancelUnconfirmed,
        };
        GivenUpTask { id, fate }
    }
}

impl Drop for Abandoned {
    fn drop(&mut self) {
        if self.when_dropped == Parting::Leave {
            return;
        }
        let words = cancel(self.link.clone(), self.id.clone());
        self.link.later(async move {
            // A server that has stopped listening is not waited for.
            drop(tokio::time::timeout(CANCEL_GRACE, words).await);
        });
    }
}

async fn cancel(link: Link, id: String) -> Result<ServerResult, ServiceError> {
    link.peer.send_request(cancel_request(&id)).await
}

fn cancel_request(id: &str) -> ClientRequest {
    ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id.to_owned())))
}

/// A server that refuses a task's name, or has no tasks any more, does not know it.
fn unknown(error: ClientError, id: &str) -> ClientError {
    const METHOD_NOT_FOUND: i32 = -32_601;
    const INVALID_PARAMS: i32 = -32_602;
    match error {
        ClientError::Refused { code: METHOD_NOT_FOUND | INVALID_PARAMS, message } => {
            ClientError::TaskUnknown { task: id.to_owned(), message }
        }
        other => other,
    }
}
