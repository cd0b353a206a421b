//! Serves calls of tools that belong to no tool set here: as held calls or as tasks, in the same way as the tool sets. For
//! handlers in front of the server ([`crate::serve_http`]).

use outlast_core::{Job, Key, NewJob, Visibility};
use rmcp::ErrorData;
use rmcp::model::CallToolResponse;
use rmcp::service::{RequestContext, RoleServer};

use crate::arguments::digest;
use crate::held::{self, HeldCall, ToldAgain};
use crate::server::Server;

impl Server {
    /// Runs the job and answers with its result, or with a task if its visibility is [`Visibility::Task`]. The caller
    /// receives progress in the meantime. This function sets the owner of the job.
    pub async fn hold(
        &self,
        context: &RequestContext<RoleServer>,
        job: NewJob,
    ) -> Result<CallToolResponse, ErrorData> {
        let face = self.face.clone();
        let tool = job.tool().to_owned();
        self.serve_call(context, &tool, |caller| {
            Box::pin(async move {
                let (_, answer_with) = held::until_its_end(job.visibility == Visibility::Task);
                let call = HeldCall {
                    call_key: Key::for_held_call(&job.workflow, digest(&job.request)?),
                    job: NewJob { owner: caller.owner.clone(), ..job },
                    key: None,
                    answer_with,
                    told_again: ToldAgain::UntilReceived,
                };
                let outcome = |job: &Job| face.outcome(job).map(Ok);
                held::carry(&face.engine, caller, call, &outcome).await?.into_answer()
            })
        })
        .await
    }
}
