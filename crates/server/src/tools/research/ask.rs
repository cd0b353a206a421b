//! From a question to a job and its answer: in which conversation it is asked, and what is made durable of it.

use std::time::Duration;

use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, Job, Message, NewJob, OwnerId, Profile, ResearchAsk, Role, Visibility,
};

use super::answer::{self, Asking};
use super::arguments::conversation_id;
use super::{Research, ResearchOptions};
use crate::arguments::as_json;
use crate::caller::Caller;
use crate::held::{self, Carried, HeldCall};
use crate::reply::{Answered, Refusal, RefusalCode, ToolResult};
use crate::text::{echoed_id, title};
use crate::tool_names::research::LIST;
use crate::tools::outcome::outcome;

/// Where a question is asked.
pub(super) enum AskedIn {
    /// In a conversation that begins with it.
    New,
    /// In this one.
    In(Box<Conversation>),
    /// In one that only files know.
    ArchivedConversation { id: ConversationId, provider: &'static str, said: Vec<Message> },
}

/// How a job differs from others of this set.
pub(super) struct Terms {
    pub(super) tool: &'static str,
    pub(super) workflow: &'static str,
    pub(super) priority: i16,
    pub(super) visibility: Visibility,
    /// How long one try may take.
    pub(super) timeout: Duration,
}

impl AskedIn {
    /// The conversation, if there is one already.
    pub(super) fn conversation(&self) -> Option<&ConversationId> {
        match self {
            Self::New => None,
            Self::In(conversation) => Some(&conversation.id),
            Self::ArchivedConversation { id, .. } => Some(id),
        }
    }

    /// The provider that has to answer there; `None` where any may.
    fn provider(&self) -> Option<&str> {
        match self {
            Self::New => None,
            Self::In(conversation) => Some(conversation.provider()),
            Self::ArchivedConversation { provider, .. } => Some(provider),
        }
    }

    /// What is sent upstream: instructions, what was said before, the question.
    pub(super) fn messages(&self, instructions: Option<Message>, question: &str) -> Vec<Message> {
        let said = match self {
            Self::New => Vec::new(),
            Self::In(conversation) => conversation.context(),
            Self::ArchivedConversation { said, .. } => said.clone(),
        };
        let question = Message { role: Role::User, content: question.to_owned() };
        instructions.into_iter().chain(said).chain([question]).collect()
    }
}

impl Research {
    /// Finds the conversation to be continued, if one is named, or refuses.
    pub(super) async fn asked_in(
        &self,
        caller: &Caller,
        conversation: Option<String>,
    ) -> Result<AskedIn, Refusal> {
        let Some(given) = &conversation else { return Ok(AskedIn::New) };
        let Some(id) = conversation_id(given) else { return Err(not_found(given)) };
        if let Some(conversation) = self.engine.conversation(&caller.owner, &id).await? {
            return Ok(AskedIn::In(Box::new(conversation)));
        }
        let archived = self.archived_as_asked_in(&caller.owner, &id).await?;
        archived.ok_or_else(|| not_found(given))
    }

    /// Who answers a question there (P1): a conversation stays with its provider, whatever else is configured now.
    fn profile(&self, asked_in: &AskedIn) -> Result<Profile, Refusal> {
        let ResearchOptions { profile, others, .. } = &self.options;
        let Some(provider) = asked_in.provider() else { return Ok(profile.clone()) };
        let mut configured = std::iter::once(profile).chain(others);
        let found = configured.find(|profile| profile.provider() == provider);
        found.cloned().ok_or_else(|| not_configured(provider))
    }

    /// The job for a question.
    pub(super) fn new_job(
        &self,
        owner: &OwnerId,
        asked_in: &AskedIn,
        ask: &ResearchAsk,
        terms: Terms,
    ) -> Result<NewJob, Refusal> {
        let conversation = asked_in.conversation().cloned();
        let held = terms.visibility == Visibility::Unpromised;
        let job = NewJob {
            owner: owner.clone(),
            conversation: Some(conversation.unwrap_or_else(new_conversation)),
            profile: self.profile(asked_in)?,
            workflow: terms.workflow.to_owned(),
            title: title(ask.question()),
            ask: as_json(ask)?,
            priority: terms.priority,
            visibility: terms.visibility,
            // Nothing that a caller waits for is submitted twice.
            max_failures: if held { 0 } else { self.options.max_failures },
            attempt_timeout: terms.timeout,
            life: None,
            // Of a held call, the failure; its report has become a turn of a conversation and stays.
            keep: held.then_some(self.options.keep),
        };
        Ok(job.made_by(terms.tool))
    }

    /// Carries a question to its answer: the report, a task, or that it is queued.
    pub(super) async fn hold(
        &self,
        caller: &mut Caller,
        call: HeldCall,
        asking: Asking,
    ) -> ToolResult<Answered> {
        let expected = self.engine.expects(&call.job.profile, &call.job.ask);
        let outcome = |job: &Job| self.ended(job, asking);
        match held::carry(&self.engine, caller, call, &outcome).await? {
            // A job that only its held call knows is not shown before it has succeeded.
            Carried::Unfinished { job, .. } if job.is_shown() => {
                answer::queued(&job, asking, self.path_of(&job), &expected).map(Answered::Now)
            }
            carried => carried.answered(),
        }
    }

    /// What came of a question; `None` while its job is unfinished.
    pub(super) fn ended(&self, job: &Job, asking: Asking) -> Option<ToolResult> {
        outcome(job, |output| answer::completed(job, output, asking, self.path_of(job)))
    }

    fn path_of(&self, job: &Job) -> Option<String> {
        self.path(&job.new.owner, job.new.conversation.as_ref()?)
    }
}

/// The caller has no such conversation; foreign is the same as unknown.
pub(super) fn not_found(given: &str) -> Refusal {
    let id = echoed_id(given);
    Refusal::because(
        RefusalCode::CONVERSATION_NOT_FOUND,
        format!("there is no conversation `{id}`; check the id, or find it with {LIST}"),
    )
}

/// The conversation's provider cannot be asked by this server.
fn not_configured(provider: &str) -> Refusal {
    let how = match provider {
        Profile::LIBRARY => "set OUTLAST_LIBRARY to the folders of documents",
        Profile::PERPLEXITY => "set PERPLEXITY_API_KEY",
        _ => "configure it",
    };
    Refusal::because(
        RefusalCode::CONFIGURATION,
        format!(
            "this conversation belongs to the provider `{provider}`, which is not configured on this server, and is \
             sent to no other; tell the user to {how} and restart outlast, or begin a new conversation"
        ),
    )
}

fn new_conversation() -> ConversationId {
    ConversationId::new(uuid::Uuid::new_v4().simple().to_string())
}
