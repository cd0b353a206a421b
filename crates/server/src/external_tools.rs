//! Calls of tools that are in no tool set here, answered with a job as the sets do it: held, or as a task. For handlers
//! that stand before the server ([`crate::serve_http_as`]).

use outlast_core::{Key, NewJob, Visibility};
use rmcp::ErrorData;
use rmcp::model::CallToolResponse;
use rmcp::service::{RequestContext, RoleServer};
use sha2::{Digest, Sha256};

use crate::caller::Caller;
use crate::receipt::Receipt;
use crate::reply::Refusal;
use crate::server::Server;
use crate::{tasks, wait};

impl Server {
    /// Runs the job and answers with what came of it; on the way the caller is told how it comes on.
    ///
    /// The owner and the visibility of the job are set here, because they follow from the call.
    pub async fn hold(
        &self,
        context: &RequestContext<RoleServer>,
        job: NewJob,
    ) -> Result<CallToolResponse, ErrorData> {
        let _under_way = self.under_way();
        let mut caller = self.caller(context);
        let answer = tokio::select! {
            answer = self.held(&mut caller, job) => answer,
            () = context.ct.cancelled() => {
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
        };
        self.see_received(caller, context);
        Ok(answer.unwrap_or_else(|refusal| refusal.into_result().into()))
    }

    /// The same, but with a task at once for a caller that takes one.
    pub async fn hold_or_promise(
        &self,
        context: &RequestContext<RoleServer>,
        job: NewJob,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(context);
        if !caller.takes_tasks {
            return self.hold(context, job).await;
        }
        let job = NewJob { owner: caller.owner, visibility: Visibility::Task, ..job };
        match self.engine().start(job, None).await {
            Ok(started) => {
                self.engine().carry_if_held(&started.job);
                Ok(CallToolResponse::Task(tasks::created(&started.job)))
            }
            Err(error) => Ok(Refusal::from(error).into_result().into()),
        }
    }

    async fn held(&self, caller: &mut Caller, job: NewJob) -> Result<CallToolResponse, Refusal> {
        let job = NewJob { owner: caller.owner.clone(), visibility: Visibility::Unpromised, ..job };
        let tool = job.workflow.clone();
        let input = serde_json::to_vec(&job.ask).map_err(|_| Refusal::internal())?;
        let key = Key::held(&tool, Sha256::digest(input).into());
        let started = self.engine().start_held(job, key).await?;
        let id = started.job.id;
        let reading = wait::for_job(self.engine(), caller, &id, None).await?;
        let reading = reading.ok_or_else(Refusal::internal)?;
        caller.receipt = Some(Receipt { engine: self.engine().clone(), job: id });
        Ok(self.outcome(&reading.job).into())
    }
}
