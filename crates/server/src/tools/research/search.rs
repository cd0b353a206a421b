//! Search: a quick answer, held for seconds, that begins or continues a conversation.

use std::time::Duration;

use outlast_core::{AskKind, HeldAnswer, Key, ResearchAsk, Visibility};
use rmcp::model::CallToolResult;
use serde_json::{Map, Value};

use super::answer::Asked;
use super::arguments::{SearchArguments, input_hash, take_conversation};
use super::ask::{Place, Terms};
use super::{Research, SEARCH_FOLLOWUP};
use crate::arguments;
use crate::caller::Caller;
use crate::held::AskAnew;
use crate::reply::Refusal;

/// So long after its time a search has been given up by whoever carries it, unless the provider does not even answer.
const GRACE: Duration = Duration::from_secs(1);

impl Research {
    pub(super) async fn search(
        &self,
        caller: &mut Caller,
        tool: &str,
        mut given: Map<String, Value>,
    ) -> Result<CallToolResult, Refusal> {
        let conversation =
            (tool == SEARCH_FOLLOWUP).then(|| take_conversation(&mut given)).transpose()?;
        let arguments: SearchArguments = arguments::read(Some(given))?;
        let filters = arguments.filters()?;
        let place = match conversation {
            Some(id) => self.place(caller, &id).await?,
            None => Place::New,
        };
        let ask = ResearchAsk {
            kind: AskKind::Search,
            // Without instructions: the answer is the provider's own, as short as it likes.
            messages: place.messages(None, &arguments.query),
            filters,
            ..ResearchAsk::default()
        };
        let hash = input_hash(tool, place.conversation(), &arguments)?;
        let terms = Terms {
            tool,
            workflow: "search",
            priority: 0,
            visibility: Visibility::Unpromised,
            attempt_timeout: self.options.search_timeout,
        };
        let job = self.new_job(&caller.owner, &place, &ask, terms)?;
        let key = Key::research(tool, hash, HeldAnswer::Quick);
        let started = match self.engine.start_held(job, key).await {
            Ok(started) => started,
            Err(error) => return Err(self.refused(caller, &place, error).await),
        };
        let asked = Asked {
            continued: place.conversation().is_some(),
            show_thinking: arguments.show_thinking,
            path: self.path_of(&caller.owner, &started.job),
        };
        let budget = Some(self.options.search_timeout + GRACE);
        self.held(caller, started, &asked, budget, AskAnew::LaterOrInOtherWords).await
    }
}
