//! Calls of tools that are in no tool set here, answered with a job as the sets do it: held, or as a task. For handlers
//! that stand before the server ([`crate::serve_http_as`]).

use outlast_core::{Job, Key, NewJob, Visibility};
use rmcp::ErrorData;
use rmcp::model::CallToolResponse;
use rmcp::service::{RequestContext, RoleServer};

use crate::arguments::digest;
use crate::caller::Caller;
use crate::held::{self, AnswerWith, HeldCall, ToldAgain};
use crate::reply::{Answered, ToolResult};
use crate::server::Server;

/// Whether a call may be answered with a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsTask {
    /// Where the client takes one.
    IfTaken,
    /// In no case.
    Never,
}

impl Server {
    /// Runs the job and answers with what came of it, or with a task; on the way the caller is told of its progress.
    ///
    /// The owner and the visibility of the job are set here, because they follow from the call.
    pub async fn hold(
        &self,
        context: &RequestContext<RoleServer>,
        job: NewJob,
        as_task: AsTask,
    ) -> Result<CallToolResponse, ErrorData> {
        let server = self.clone();
        self.serve_call(context, |caller| {
            Box::pin(async move { server.held(caller, job, as_task).await })
        })
        .await
    }

    async fn held(
        &self,
        caller: &mut Caller,
        job: NewJob,
        as_task: AsTask,
    ) -> ToolResult<Answered> {
        let (visibility, answer_with) = match as_task {
            AsTask::IfTaken if caller.takes_tasks => (Visibility::Task, AnswerWith::Task),
            AsTask::IfTaken | AsTask::Never => {
                (Visibility::Unpromised, AnswerWith::Outcome { within: None })
            }
        };
        let call = HeldCall {
            call_key: Key::held(&job.workflow, digest(&job.ask)?),
            job: NewJob { owner: caller.owner.clone(), visibility, ..job },
            key: None,
            answer_with,
            told_again: ToldAgain::UntilReceived,
        };
        let outcome = |job: &Job| self.face().outcome(job).map(Ok);
        held::carry(self.engine(), caller, call, &outcome).await?.answered()
    }
}
