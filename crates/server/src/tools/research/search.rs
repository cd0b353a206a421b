//! Search: a quick answer, held for seconds, that begins or continues a conversation.

use std::time::Duration;

use outlast_core::{AskKind, HeldAnswer, Key, ResearchAsk, Visibility};
use rmcp::model::JsonObject;

use super::Research;
use super::answer::Asking;
use super::arguments::{SearchArguments, input_hash, take_conversation};
use super::ask::Terms;
use crate::arguments;
use crate::caller::Caller;
use crate::held::{AnswerWith, AskAnew, HeldCall, ToldAgain};
use crate::reply::{Answered, ToolResult};

/// How long after its timeout a search is waited for: its worker gives it up by then, unless the provider hangs.
const SEARCH_GRACE: Duration = Duration::from_secs(1);

impl Research {
    pub(super) async fn search(
        &self,
        caller: &mut Caller,
        tool: &'static str,
        mut given: JsonObject,
    ) -> ToolResult<Answered> {
        let conversation = take_conversation(tool, &mut given)?;
        let arguments: SearchArguments = arguments::read(given)?;
        let filters = arguments.filters()?;
        let asked_in = self.asked_in(caller, conversation).await?;
        let ask = ResearchAsk {
            kind: AskKind::Search,
            // Without instructions: the answer is the provider's own, as short as it likes.
            messages: asked_in.messages(None, &arguments.query),
            filters,
            ..ResearchAsk::default()
        };
        let hash = input_hash(tool, asked_in.conversation(), &arguments)?;
        let timeout = self.options.search_timeout;
        let visibility = Visibility::Unpromised;
        let terms = Terms { tool, workflow: "search", priority: 0, visibility, timeout };
        let call = HeldCall {
            job: self.new_job(&caller.owner, &asked_in, &ask, terms)?,
            key: None,
            call_key: Key::research(tool, hash, HeldAnswer::Quick),
            answer_with: AnswerWith::Outcome { within: Some(timeout + SEARCH_GRACE) },
            told_again: ToldAgain::ForAWhile(AskAnew::LaterOrInOtherWords),
        };
        let continued = asked_in.conversation().is_some();
        self.hold(caller, call, Asking { continued, show_thinking: arguments.show_thinking }).await
    }
}
