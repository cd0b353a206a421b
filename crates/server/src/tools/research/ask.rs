//! From a question to a job: where in which conversation it is asked, and what is made durable of it.

use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, Message, NewJob, OwnerId, Profile, ResearchAsk, Role, StoreError, Visibility,
};
use outlast_mirror::StatusWord;

use super::arguments::conversation_id;
use super::{HISTORY, LIST, Research, ResearchOptions};
use crate::caller::Caller;
use crate::reply::{Refusal, RefusalCode};
use crate::text::{echoed_id, title};

/// Where a question is asked.
pub(super) enum Place {
    /// In a conversation that begins with it.
    New,
    /// In this one.
    In(Box<Conversation>),
    /// In one that only files know.
    Archived { id: ConversationId, provider: &'static str, said: Vec<Message> },
}

/// How a job differs from others of this set.
pub(super) struct Terms<'a> {
    pub(super) tool: &'a str,
    pub(super) workflow: &'static str,
    pub(super) priority: i16,
    pub(super) visibility: Visibility,
    pub(super) attempt_timeout: std::time::Duration,
}

impl Place {
    /// The conversation, if there is one already.
    pub(super) fn conversation(&self) -> Option<&ConversationId> {
        match self {
            Self::New => None,
            Self::In(conversation) => Some(&conversation.id),
            Self::Archived { id, .. } => Some(id),
        }
    }

    /// The provider that has to answer there; `None` where any may.
    fn provider(&self) -> Option<&str> {
        match self {
            Self::New => None,
            Self::In(conversation) => Some(conversation.provider()),
            Self::Archived { provider, .. } => Some(provider),
        }
    }

    /// What is sent upstream: instructions, what was said before, the question.
    pub(super) fn messages(&self, instructions: Option<Message>, question: &str) -> Vec<Message> {
        let said = match self {
            Self::New => Vec::new(),
            Self::In(conversation) => conversation.context(),
            Self::Archived { said, .. } => said.clone(),
        };
        let question = Message { role: Role::User, content: question.to_owned() };
        instructions.into_iter().chain(said).chain([question]).collect()
    }
}

impl Research {
    /// Finds the conversation to be continued, or refuses.
    pub(super) async fn place(&self, caller: &Caller, given: &str) -> Result<Place, Refusal> {
        let Some(id) = conversation_id(given) else { return Err(not_found(given)) };
        if let Some(conversation) = self.engine.conversation(&caller.owner, &id).await? {
            return Ok(Place::In(Box::new(conversation)));
        }
        let archived = self.archived_place(&caller.owner, &id).await?;
        archived.ok_or_else(|| not_found(given))
    }

    /// Who answers a question there (P1): a conversation stays with its provider, whatever else is configured now.
    fn profile(&self, place: &Place) -> Result<Profile, Refusal> {
        let ResearchOptions { profile, others, .. } = &self.options;
        let Some(provider) = place.provider() else { return Ok(profile.clone()) };
        let mut configured = std::iter::once(profile).chain(others);
        let found = configured.find(|profile| profile.provider() == provider);
        found.cloned().ok_or_else(|| not_configured(provider))
    }

    /// The job for a question.
    pub(super) fn new_job(
        &self,
        owner: &OwnerId,
        place: &Place,
        ask: &ResearchAsk,
        terms: Terms<'_>,
    ) -> Result<NewJob, Refusal> {
        let conversation = place.conversation().cloned();
        let held = terms.visibility == Visibility::Unpromised;
        let job = NewJob {
            owner: owner.clone(),
            conversation: Some(conversation.unwrap_or_else(new_conversation)),
            profile: self.profile(place)?,
            workflow: terms.workflow.to_owned(),
            title: title(ask.question()),
            ask: serde_json::to_value(ask).map_err(|_| Refusal::internal())?,
            priority: terms.priority,
            visibility: terms.visibility,
            // Nothing that a caller waits for is submitted twice.
            max_failures: if held { 0 } else { self.options.max_failures },
            attempt_timeout: terms.attempt_timeout,
            life: None,
            // Of a held call, the failure; its report has become a turn of a conversation and stays.
            keep: held.then_some(self.options.keep),
        };
        Ok(job.made_by(terms.tool))
    }

    /// Why a question was not accepted; a busy conversation is named together with where it stands.
    pub(super) async fn refused(
        &self,
        caller: &Caller,
        place: &Place,
        error: StoreError,
    ) -> Refusal {
        let (StoreError::ConversationBusy(job), Some(id)) = (&error, place.conversation()) else {
            return error.into();
        };
        let job = self.engine.job(&caller.scope(), job).await.ok().flatten();
        let status = job.map_or(StatusWord::InProgress, |job| job.state.kind().into());
        tracing::info!(conversation.id = %id, status = status.as_str(), "follow-up refused: the conversation is busy");
        Refusal::because(
            RefusalCode::JobInProgress,
            format!(
                "conversation {id} has an unfinished question (status: {}); use {HISTORY} to see when it has ended, \
                 then ask again",
                status.as_str()
            ),
        )
    }
}

/// The caller has no such conversation; foreign is the same as unknown.
pub(super) fn not_found(given: &str) -> Refusal {
    Refusal::because(
        RefusalCode::ConversationNotFound,
        format!(
            "there is no conversation `{}`; check the id, or find it with {LIST}",
            echoed_id(given)
        ),
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
        RefusalCode::Configuration,
        format!(
            "this conversation belongs to the provider `{provider}`, which is not configured on this server, and is \
             sent to no other; tell the user to {how} and restart outlast, or begin a new conversation"
        ),
    )
}

fn new_conversation() -> ConversationId {
    ConversationId::new(uuid::Uuid::new_v4().simple().to_string())
}
