//! The tools that ask: from a question to a durable job and its answer. The mode determines whether deep research is held
//! until the report is ready, or queued and polled; search is a quick answer, held for seconds.

use std::time::Duration;

use outlast_core::{
    CallMode, ConversationId, HeldAnswer, Job, Key, Message, NewJob, OwnerId, Profile,
    ResearchKind, ResearchRequest, Role, Visibility,
};
use rmcp::model::{CallToolResult, JsonObject};
use serde_json::{Value, json};

use super::answer::{self, QuestionStyle};
use super::arguments::{
    ResearchQuestion, SearchArguments, conversation_id, input_hash, take_conversation,
};
use super::{DocumentSharing, Research, ResearchMode, ResearchSet};
use crate::arguments;
use crate::caller::Caller;
use crate::citations::{CheckSummary, check_of, last_report};
use crate::held::{self, AnswerWith, AskAnew, HeldCall, HeldResult, REPLAYED, ToldAgain};
use crate::identity::{AskedQuestion, Recognition};
use crate::reply::{CallResult, Refusal, RefusalCode, ToolResult};
use crate::text::echo_id;
use crate::tool_names::research::{LIST, SEARCH, SEARCH_FOLLOWUP};
use crate::tools::instructions::{
    DEEP_RESEARCH, new_conversation, research_job, research_messages,
};
use crate::tools::outcome::outcome;
use crate::tools::recipient::{how_to_configure, no_provider};

/// The time for which a call waits after the timeout of a search: its worker has given up by then, unless the provider
/// hangs.
const SEARCH_GRACE: Duration = Duration::from_secs(1);

/// The conversation of a question; by default a new one.
#[derive(Default)]
pub(super) struct AskedIn {
    /// The conversation that the question continues.
    pub(super) conversation: Option<ConversationId>,
    /// The provider that must answer in it (P1).
    pub(super) provider: Option<String>,
    /// The provider that the caller chose instead.
    pub(super) wanted: Option<Profile>,
    /// True if the conversation holds text from documents of this machine.
    pub(super) holds_documents: bool,
    /// The earlier messages.
    pub(super) said: Vec<Message>,
}

impl Research {
    /// Handles a call of one of the tools that ask.
    pub(super) async fn ask(
        &self,
        caller: &mut Caller,
        tool: &'static str,
        given: JsonObject,
    ) -> ToolResult<CallResult> {
        match tool {
            SEARCH | SEARCH_FOLLOWUP => self.search(caller, tool, given).await,
            _ => self.deep_research(caller, tool, given).await,
        }
    }

    async fn deep_research(
        &self,
        caller: &mut Caller,
        tool: &'static str,
        mut given: JsonObject,
    ) -> ToolResult<CallResult> {
        let conversation = take_conversation(tool, &mut given)?;
        let set = self.options.set;
        let asked = ResearchQuestion::read(set, tool, conversation.as_deref(), given)?;
        let mut asked_in = self.find_asked_in(caller, conversation).await?;
        asked_in.wanted = self.find_wanted(asked.provider.as_deref())?;
        let question = Message { role: Role::User, content: asked.query.clone() };
        let ask = ResearchRequest {
            kind: ResearchKind::Research,
            messages: research_messages(asked.effort, asked_in.said.drain(..), asked.query),
            effort: Some(asked.effort),
            budget: asked.budget,
            approve_plan: asked.approve_plan,
            ..ResearchRequest::default()
        };
        let (visibility, answer_with) = self.answer_with(caller);
        let job = self.new_job(&caller.owner, tool, &asked_in, &ask, visibility)?;
        if ask.approve_plan && job.profile.provider() != Profile::RESEARCHER {
            return Err(Refusal::validation(
                "approve_plan works with the provider `researcher` alone: leave it out, or name that provider",
            ));
        }
        let answer = HeldAnswer::Report;
        let ask_again = match asked.mode {
            CallMode::Attach => AskAnew::WithAKey,
            CallMode::Fresh => AskAnew::ByFreshCall,
        };
        let identity = AskedQuestion {
            tool,
            conversation: asked_in.conversation.as_ref().map(ConversationId::as_str),
            messages: &[question],
            effort: ask.effort,
            filters: &ask.filters,
        };
        let recognition = Recognition { named_provider: asked.provider, mode: asked.mode, answer };
        let identity = identity.identity(&self.engine, &job, recognition)?;
        let call = HeldCall {
            job: NewJob { priority: asked.priority, ..job },
            key: asked.key.map(|key| key.with_identity(identity.clone())),
            call_key: Key::research(tool, asked.hash, answer).with_identity(identity),
            answer_with,
            told_again: ToldAgain::ForAWhile(ask_again),
        };
        self.hold(caller, call, self.choose_asking(asked_in.conversation.is_some())).await
    }

    /// Returns the kind of answer in this mode, and the visibility of the job that follows from it.
    fn answer_with(&self, caller: &Caller) -> (Visibility, AnswerWith) {
        let within = Some(self.options.inline_budget);
        match (self.options.mode, caller.takes_tasks) {
            (ResearchMode::Queued, _) => (Visibility::Promised, AnswerWith::JobAtOnce),
            (ResearchMode::Auto, true) => (Visibility::Promised, AnswerWith::Task),
            (ResearchMode::Auto, false) => (Visibility::Promised, AnswerWith::Outcome { within }),
            (ResearchMode::Blocking, takes_tasks) => held::until_its_end(takes_tasks),
        }
    }

    async fn search(
        &self,
        caller: &mut Caller,
        tool: &'static str,
        mut given: JsonObject,
    ) -> ToolResult<CallResult> {
        let conversation = take_conversation(tool, &mut given)?;
        let arguments: SearchArguments = arguments::read(given)?;
        let filters = arguments.filters()?;
        let mut asked_in = self.find_asked_in(caller, conversation).await?;
        let question = Message { role: Role::User, content: arguments.query.clone() };
        let ask = ResearchRequest {
            kind: ResearchKind::Search,
            // Without instructions: the provider chooses the form and the length of the answer.
            messages: asked_in.said.drain(..).chain([question.clone()]).collect(),
            filters,
            ..ResearchRequest::default()
        };
        let conversation = asked_in.conversation.as_ref().map(ConversationId::as_str);
        let hash = input_hash(tool, conversation, &arguments)?;
        let within = Some(self.options.search_timeout + SEARCH_GRACE);
        let job = self.new_job(&caller.owner, tool, &asked_in, &ask, Visibility::Unpromised)?;
        let answer = HeldAnswer::Quick;
        let (messages, filters) = (&[question][..], &ask.filters);
        let identity = AskedQuestion { tool, conversation, messages, effort: None, filters };
        let recognition = Recognition { named_provider: None, mode: CallMode::Attach, answer };
        let identity = identity.identity(&self.engine, &job, recognition)?;
        let call = HeldCall {
            job,
            key: None,
            call_key: Key::research(tool, hash, answer).with_identity(identity),
            answer_with: AnswerWith::Outcome { within },
            told_again: ToldAgain::ForAWhile(AskAnew::LaterOrInOtherWords),
        };
        let continued = asked_in.conversation.is_some();
        let show_thinking = arguments.show_thinking;
        self.hold(caller, call, QuestionStyle { show_thinking, ..self.choose_asking(continued) })
            .await
    }

    /// Finds the conversation to continue, if one is named, or refuses.
    async fn find_asked_in(
        &self,
        caller: &Caller,
        conversation: Option<String>,
    ) -> Result<AskedIn, Refusal> {
        let Some(given) = &conversation else { return Ok(AskedIn::default()) };
        let Some(id) = conversation_id(given) else { return Err(not_found(given)) };
        if let Some(conversation) = self.engine.conversation(&caller.owner, &id).await? {
            let provider = Some(conversation.provider().to_owned());
            let holds_documents = conversation.holds_library_text();
            let said = conversation.context();
            let conversation = Some(conversation.id);
            return Ok(AskedIn { conversation, provider, wanted: None, holds_documents, said });
        }
        let archived = self.find_archived_asked_in(&caller.owner, &id).await?;
        archived.ok_or_else(|| not_found(given))
    }

    /// Returns the provider that a call names, if any; refuses one that is not configured.
    fn find_wanted(&self, named: Option<&str>) -> Result<Option<Profile>, Refusal> {
        let Some(named) = named else { return Ok(None) };
        let profiles = &self.options.profiles;
        let found = profiles.iter().find(|profile| profile.provider() == named);
        found.cloned().map(Some).ok_or_else(|| {
            let names: Vec<&str> = profiles.iter().map(Profile::provider).collect();
            if names.is_empty() {
                return no_provider();
            }
            let names = names.join(", ");
            Refusal::validation(format!("provider must be one of those configured: {names}"))
        })
    }

    /// Returns the provider of a question (P1): a conversation stays with its provider, whatever else is configured now,
    /// unless the caller names another.
    fn profile(&self, asked_in: &AskedIn) -> Result<Profile, Refusal> {
        if let Some(wanted) = &asked_in.wanted {
            self.check_documents_stay(asked_in, wanted)?;
            return Ok(wanted.clone());
        }
        let mut profiles = self.options.profiles.iter();
        let found = match &asked_in.provider {
            None => profiles.next().ok_or_else(no_provider),
            Some(provider) => profiles
                .find(|profile| profile.provider() == provider)
                .ok_or_else(|| self.not_configured(asked_in, provider)),
        };
        let found = found?;
        self.check_documents_stay(asked_in, found)?;
        Ok(found.clone())
    }

    /// Refuses to send a conversation that holds text from local documents to another provider, unless callers may (P1).
    fn check_documents_stay(&self, asked_in: &AskedIn, wanted: &Profile) -> Result<(), Refusal> {
        let leaves = asked_in.holds_documents && !wanted.keeps_text();
        let is_allowed = self.options.sharing == DocumentSharing::AgentsToo;
        if is_allowed || !(leaves || wanted.shares_documents()) {
            return Ok(());
        }
        let provider = wanted.provider();
        if !leaves {
            return Err(Refusal::validation(format!(
                "provider must not be `{provider}` here: it reads the user's local documents and sends text of them to a \
                 model on another machine, and only the user may do that; tell the user to run `outlast research \
                 --provider {provider} \"...\"`, or to set library.agents_may_share in outlast.toml"
            )));
        }
        let command = command_to_move(asked_in, provider);
        Err(Refusal::validation(format!(
            "provider must not be `{provider}` here: this conversation holds text from the user's local documents, and only \
             the user may send that to {provider}; leave provider out, or tell the user to run {command} or to ask on the \
             page of `outlast ui`"
        )))
    }

    /// Returns the refusal if this server cannot use the conversation's provider.
    fn not_configured(&self, asked_in: &AskedIn, provider: &str) -> Refusal {
        let how = how_to_configure(provider);
        let Some(first_profile) = self.options.profiles.first() else {
            let sentence = format!(
                "this conversation belongs to the provider `{provider}`, and no provider is configured on this server; \
                 tell the user to {how} and restart outlast"
            );
            return Refusal::because(RefusalCode::CONFIGURATION, sentence);
        };
        let first = first_profile.provider();
        let callers_may_move = !asked_in.holds_documents
            || first_profile.keeps_text()
            || self.options.sharing == DocumentSharing::AgentsToo;
        let moving = match self.options.set {
            ResearchSet::AnyProvider if callers_may_move => format!(
                ", or, if the user wants what was said in it sent to {first}, give `provider: \"{first}\"`"
            ),
            ResearchSet::AnyProvider => format!(
                ", or, if the user wants what was said in it sent to {first}, to run {}",
                command_to_move(asked_in, first)
            ),
            ResearchSet::Perplexity => String::new(),
        };
        Refusal::because(
            RefusalCode::CONFIGURATION,
            format!(
                "this conversation belongs to the provider `{provider}`, which is not configured on this server, and \
                 is sent to no other; tell the user to {how} and restart outlast, or begin a new conversation{moving}"
            ),
        )
    }

    /// Builds the job of a question.
    fn new_job(
        &self,
        owner: &OwnerId,
        tool: &str,
        asked_in: &AskedIn,
        ask: &ResearchRequest,
        visibility: Visibility,
    ) -> Result<NewJob, Refusal> {
        let (workflow, attempt_timeout) = match ask.kind {
            ResearchKind::Research => (DEEP_RESEARCH, self.options.attempt_timeout),
            _ => ("search", self.options.search_timeout),
        };
        let held = visibility == Visibility::Unpromised;
        let profile = self.profile(asked_in)?;
        let own = asked_in.provider.as_deref();
        let moved_from = own.and_then(|own| profile.moves_from(own, asked_in.holds_documents));
        let conversation = asked_in.conversation.clone().unwrap_or_else(new_conversation);
        let job = NewJob {
            conversation: Some(conversation),
            workflow: workflow.to_owned(),
            visibility,
            // A job that a caller waits for is never submitted a second time.
            max_failures: if held { 0 } else { self.options.max_failures },
            // Applies to the failure of a held call; its report becomes a turn of a conversation and is kept.
            keep: held.then_some(self.options.keep),
            ..research_job(owner, profile, ask, attempt_timeout)?
        };
        let job = job.with_tool(tool);
        Ok(match moved_from {
            Some(provider) => job.with_moved_from(provider),
            None => job,
        })
    }

    /// Serves a question until its answer: the report, a task, or a note that it is queued.
    async fn hold(
        &self,
        caller: &mut Caller,
        call: HeldCall,
        asking: QuestionStyle,
    ) -> ToolResult<CallResult> {
        let call = HeldCall { job: call.job.with_traceparent(caller.trace.as_ref()), ..call };
        let expected = self.engine.expects(&call.job.profile, &call.job.request);
        let outcome = |job: &Job| self.answer_if_ended(job, asking);
        match held::carry(&self.engine, caller, call, &outcome).await? {
            // A job that only its held call knows is not shown before it has succeeded.
            HeldResult::Unfinished { job, .. } if job.is_shown() => {
                let queued = answer::answer_queued(&job, asking, self.path_of(&job), &expected);
                Ok(CallResult::LeftRunning(queued, job.id))
            }
            carried => {
                let mut answered = carried.into_answer()?;
                if let CallResult::Now(result) = &mut answered {
                    self.add_check(caller, result).await;
                }
                Ok(answered)
            }
        }
    }

    /// Adds the check of the report to a repeated answer. A new report has none yet.
    async fn add_check(&self, caller: &Caller, result: &mut CallToolResult) {
        let is_replay = result.meta.as_ref().is_some_and(|meta| meta.0.contains_key(REPLAYED));
        let Some(Value::Object(shape)) = result.structured_content.as_mut().filter(|_| is_replay)
        else {
            return;
        };
        let Some(id) = shape.get("conversationId").and_then(Value::as_str) else { return };
        let id = ConversationId::new(id);
        let check = async {
            let conversation = self.engine.conversation(&caller.owner, &id).await?;
            match conversation.as_ref().and_then(last_report) {
                Some(report) => check_of(&self.engine, &caller.scope(), report).await,
                None => Ok(None),
            }
        };
        // An answer without the summary is better than none.
        if let Ok(Some(check)) = check.await {
            shape.insert("citationCheck".to_owned(), json!(CheckSummary::from(&check)));
        }
    }

    /// Renders the outcome of a question; `None` while its job is unfinished.
    pub(super) fn answer_if_ended(&self, job: &Job, asking: QuestionStyle) -> Option<ToolResult> {
        outcome(job, |output| {
            let note = self.engine.expects(&job.new.profile, &job.new.request).budget_note;
            answer::answer_completed(job, output, asking, self.path_of(job), note.as_deref())
        })
    }

    fn path_of(&self, job: &Job) -> Option<String> {
        self.path(&job.new.owner, job.new.conversation.as_ref()?)
    }
}

/// Returns the command by which a person moves a conversation to another provider.
fn command_to_move(asked_in: &AskedIn, provider: &str) -> String {
    let id = asked_in.conversation.as_ref().map_or("ID", ConversationId::as_str);
    format!("`outlast research --follow-up {id} --provider {provider} \"...\"`")
}

/// Returns the refusal for a conversation that the caller does not have; one of another owner counts as unknown.
pub(super) fn not_found(given: &str) -> Refusal {
    let id = echo_id(given);
    Refusal::because(
        RefusalCode::CONVERSATION_NOT_FOUND,
        format!("there is no conversation `{id}`; check the id, or find it with {LIST}"),
    )
}
