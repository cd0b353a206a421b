//! Deep research: held until the report is there, or queued and asked after, as the mode says.

use outlast_core::{AskKind, HeldAnswer, Key, ResearchAsk, Visibility};
use rmcp::model::JsonObject;

use super::answer::Asking;
use super::arguments::{ResearchArguments, input_hash, take_conversation};
use super::ask::Terms;
use super::{Research, ResearchMode};
use crate::arguments;
use crate::caller::Caller;
use crate::held::{AnswerWith, AskAnew, HeldCall, ToldAgain};
use crate::reply::{Answered, ToolResult};
use crate::tools::instructions::{DEEP_RESEARCH, research_instructions};

impl Research {
    pub(super) async fn deep_research(
        &self,
        caller: &mut Caller,
        tool: &'static str,
        mut given: JsonObject,
    ) -> ToolResult<Answered> {
        let conversation = take_conversation(tool, &mut given)?;
        let arguments: ResearchArguments = arguments::read(given)?;
        let priority = arguments.check()?;
        let asked_in = self.asked_in(caller, conversation).await?;
        let effort = arguments.reasoning_effort.into();
        let ask = ResearchAsk {
            kind: AskKind::Research,
            messages: asked_in.messages(Some(research_instructions(effort)), &arguments.query),
            effort: Some(effort),
            ..ResearchAsk::default()
        };
        let hash = input_hash(tool, asked_in.conversation(), &arguments)?;
        let (visibility, answer_with) = self.answer_with(caller);
        let timeout = self.options.attempt_timeout;
        let terms = Terms { tool, workflow: DEEP_RESEARCH, priority, visibility, timeout };
        let call = HeldCall {
            job: self.new_job(&caller.owner, &asked_in, &ask, terms)?,
            key: arguments::key(arguments.idempotency_key.as_deref(), hash)?,
            call_key: Key::research(tool, hash, HeldAnswer::Report),
            answer_with,
            told_again: ToldAgain::ForAWhile(AskAnew::WithAKey),
        };
        let asking = Asking { continued: asked_in.conversation().is_some(), show_thinking: false };
        self.hold(caller, call, asking).await
    }

    /// What a call is answered with in this mode, and with it whether its job is promised to the caller.
    fn answer_with(&self, caller: &Caller) -> (Visibility, AnswerWith) {
        let within = Some(self.options.inline_budget);
        match (self.options.mode, caller.takes_tasks) {
            (ResearchMode::Queued, _) => (Visibility::Promised, AnswerWith::JobAtOnce),
            (ResearchMode::Auto, true) => (Visibility::Promised, AnswerWith::Task),
            (ResearchMode::Auto, false) => (Visibility::Promised, AnswerWith::Outcome { within }),
            (ResearchMode::Blocking, true) => (Visibility::Task, AnswerWith::Task),
            (ResearchMode::Blocking, false) => {
                (Visibility::Unpromised, AnswerWith::Outcome { within: None })
            }
        }
    }
}
