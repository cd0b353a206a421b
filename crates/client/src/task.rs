//! A call that has become a task at the server: it has an id there, outlives the connection, and can be taken up again
//! over another one, by another process too.

mod follow;

use rmcp::model::{CancelTaskParams, CancelTaskRequest, ClientRequest, Task};

use crate::answer::ToolAnswer;
use crate::call::{CallTimer, Connection};
use crate::child::{self, Child};
use crate::error::{ClientError, GivenUpTask, TaskFate};
use crate::options::CANCEL_GRACE;

/// What a server made of a call: see [`Client::start_tool`](crate::Client::start_tool).
pub enum StartedCall<'a> {
    /// The server answered.
    Answered(ToolAnswer),
    /// The call goes on as a task.
    Task(TaskCall<'a>),
}

impl StartedCall<'_> {
    /// Waits for the answer, if it is not there yet.
    pub async fn finish(self) -> Result<ToolAnswer, ClientError> {
        match self {
            Self::Answered(answer) => Ok(answer),
            Self::Task(task) => task.finish().await,
        }
    }
}

/// A task at the server and the limits of its caller. Dropped before its end, the task goes on, unless the caller asked
/// to [cancel it on giving up](crate::CallOptions::cancel_on_give_up).
pub struct TaskCall<'a> {
    connection: &'a Connection,
    child: Option<&'a Child>,
    timer: CallTimer,
    guard: TaskGuard<'a>,
    /// What the server last said of the task.
    seen: Option<Task>,
}

impl<'a> TaskCall<'a> {
    pub(crate) fn new(
        connection: &'a Connection,
        child: Option<&'a Child>,
        timer: CallTimer,
        id: String,
        seen: Option<Task>,
    ) -> Self {
        let on_give_up =
            if timer.cancel_on_give_up { GivenUp::Cancel } else { GivenUp::LeaveRunning };
        let guard = TaskGuard { connection, id, at_limit: on_give_up, when_dropped: on_give_up };
        Self { connection, child, timer, guard, seen }
    }

    /// The task's id at the server, for [`Client::resume_task`](crate::Client::resume_task).
    pub fn id(&self) -> &str {
        &self.guard.id
    }

    /// From now on the task goes on at the server when this is dropped, also where it is cancelled at a limit: its id
    /// was recorded, so that it can be taken up.
    pub fn left_running(mut self) -> Self {
        self.guard.when_dropped = GivenUp::LeaveRunning;
        self
    }

    /// Polls the task, at the interval the server asks for, until it has ended.
    pub async fn finish(self) -> Result<ToolAnswer, ClientError> {
        let Self { connection, child, timer, guard, seen } = self;
        match connection.follow(&timer, guard, seen).await {
            Ok(result) => Ok(ToolAnswer::from(result)),
            Err(error) => Err(child::explained(child, error).await),
        }
    }

    /// Has the server end the task, and waits for its confirmation.
    pub async fn cancel(self) -> Result<(), ClientError> {
        let Self { connection, child, timer, mut guard, .. } = self;
        guard.when_dropped = GivenUp::LeaveRunning;
        match connection.ask(cancel_request(&guard.id), &timer).await {
            Ok(_) => Ok(()),
            Err(error) => Err(child::explained(child, unknown(error, &guard.id)).await),
        }
    }
}

/// What becomes of a task whose caller gives it up.
#[derive(Clone, Copy, PartialEq, Eq)]
enum GivenUp {
    Cancel,
    LeaveRunning,
}

/// Cancels a task that its caller gives up, where that was asked for.
struct TaskGuard<'a> {
    connection: &'a Connection,
    id: String,
    /// When a limit is reached, or the task needs what this client cannot give.
    at_limit: GivenUp,
    when_dropped: GivenUp,
}

impl TaskGuard<'_> {
    fn task_ended(mut self) {
        self.when_dropped = GivenUp::LeaveRunning;
    }

    fn needs_input(mut self) {
        self.when_dropped = self.at_limit;
    }

    /// A limit was reached: cancels the task where that was asked for.
    async fn give_up(mut self) -> GivenUpTask {
        self.when_dropped = GivenUp::LeaveRunning;
        let id = self.id.clone();
        if self.at_limit == GivenUp::LeaveRunning {
            return GivenUpTask { id, fate: TaskFate::GoesOn };
        }
        let cancelling = self.connection.peer.send_request(cancel_request(&id));
        let fate = match tokio::time::timeout(CANCEL_GRACE, cancelling).await {
            Ok(Ok(_)) => TaskFate::Cancelled,
            Ok(Err(_)) | Err(_) => TaskFate::CancelUnconfirmed,
        };
        GivenUpTask { id, fate }
    }
}

impl Drop for TaskGuard<'_> {
    fn drop(&mut self) {
        if self.when_dropped == GivenUp::Cancel {
            let (peer, request) = (self.connection.peer.clone(), cancel_request(&self.id));
            self.connection.cancel_later(async move { peer.send_request(request).await });
        }
    }
}

fn cancel_request(id: &str) -> ClientRequest {
    ClientRequest::CancelTaskRequest(CancelTaskRequest::new(CancelTaskParams::new(id.to_owned())))
}

/// A server that refuses a task's id, or has no tasks any more, does not know the task.
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
