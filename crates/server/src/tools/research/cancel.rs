//! Cancels the research in a conversation; the answer is the conversation after that.

use rmcp::model::JsonObject;

use super::Research;
use super::arguments::{CancelArguments, conversation_id};
use super::ask::not_found;
use super::history::Show;
use crate::arguments;
use crate::caller::Caller;
use crate::reply::ToolResult;

impl Research {
    /// Cancels the last question of a conversation, if it is unfinished; one that has ended keeps its outcome.
    pub(super) async fn cancel(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let CancelArguments { conversation_id: given } = arguments::read(given)?;
        let Some(id) = conversation_id(&given) else { return Err(not_found(&given)) };
        if let Some(job) = self.find_unfinished(caller, &id).await? {
            self.engine.cancel(&caller.scope(), &job).await?;
        }
        self.one_history(caller, &given, Show::default()).await
    }
}
