//! Calls of tools that are in no tool set here, answered with a job as the sets do it: held, or as a task. For handlers
//! that stand before the server ([`crate::serve_http`]).

use outlast_core::{Job, Key, NewJob, Visibility};
use rmcp::ErrorData;
use rmcp::model::CallToolResponse;
use rmcp::service::{RequestContext, RoleServer};

use crate::arguments::digest;
use crate::held::{self, HeldCall, ToldAgain};
use crate::server::Server;

impl Server {
    /// Runs the job and answers with what came of it, or with a task where its visibility is [`Visibility::Task`]; on the
    /// way the caller is told of its progress. The owner of the job is set here.
    pub async fn hold(
        &self,
        context: &RequestContext<RoleServer>,
        job: NewJob,
    ) -> Result<CallToolResponse, ErrorData> {
        let face = self.face.clone();
        self.serve_call(context, |caller| {
            Box::pin(async move {
                let (_, answer_with) = held::until_its_end(job.visibility == Visibility::Task);
                let call = HeldCall {
                    call_key: Key::held(&job.workflow, digest(&job.ask)?),
                    job: NewJob { owner: caller.owner.clone(), ..job },
                    key: None,
                    answer_with,
                    told_again: ToldAgain::UntilReceived,
                };
                let outcome = |job: &Job| face.outcome(job).map(Ok);
                held::carry(&face.engine, caller, call, &outcome).await?.answered()
            })
        })
        .await
    }
}
