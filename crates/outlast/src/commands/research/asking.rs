//! Creates the job from the arguments: its conversation and its provider (P1).

use outlast_core::{
    ConversationId, Message, NewJob, Profile, ResearchRequest, Role, Visibility, without_hidden,
};
use outlast_server::{how_to_configure, research_instructions};

use crate::cli::ResearchArgs;
use crate::commands::engine::CommandSession;
use crate::commands::find::{self, FoundConversation};
use crate::config::Config;
use crate::error::{CommandResult, refuse};
use crate::ui::{self, LineMark};
use crate::wire::{ProviderWithProfile, library_provider, no_provider, research_providers};

/// Returns the providers that may be asked, in order. The folders of `--library` replace the configured ones and come
/// first.
pub(super) fn providers(
    config: &Config,
    args: &ResearchArgs,
) -> CommandResult<Vec<ProviderWithProfile>> {
    if args.library.is_empty() {
        let providers = research_providers(config)?;
        return match providers.is_empty() && args.follow_up.is_none() {
            true => Err(no_provider()),
            false => Ok(providers),
        };
    }
    if let Some(other) = args.provider.as_deref().filter(|name| *name != Profile::LIBRARY) {
        let why = format!("--library and --provider {other} exclude each other");
        return refuse(why, "leave one of them out: --library asks your documents alone");
    }
    Ok(vec![library_provider(config, args.library.clone())?])
}

/// The earlier turns, and the provider of their conversation.
pub(super) struct EarlierTurns {
    id: ConversationId,
    provider: String,
    /// True if they hold text of local documents.
    holds_documents: bool,
    said: Vec<Message>,
}

impl EarlierTurns {
    /// Returns the provider that a question with this profile moves the conversation from, if it moves it.
    fn moved_from(&self, to: &Profile) -> Option<&str> {
        to.moves_from(&self.provider, self.holds_documents)
    }
}

/// Returns the job for the question; the provider of the first profile is asked first. Reports if earlier turns go to
/// another provider.
pub(super) async fn new_job(
    session: &CommandSession<'_>,
    profiles: &[Profile],
    question: &str,
    args: &ResearchArgs,
) -> CommandResult<NewJob> {
    let earlier = match &args.follow_up {
        Some(given) => Some(earlier(session, given).await?),
        None => None,
    };
    let profile = profile(profiles, args, earlier.as_ref())?;
    let ask = request(question, args, earlier.as_ref());
    let conversation = match &earlier {
        Some(earlier) => earlier.id.clone(),
        None => ConversationId::new(uuid::Uuid::new_v4().simple().to_string()),
    };
    let moved_from = earlier.as_ref().and_then(|it| it.moved_from(&profile)).map(str::to_owned);
    let config = session.config;
    let job = NewJob {
        owner: config.owner.clone(),
        conversation: Some(conversation),
        subject: None,
        profile,
        workflow: NewJob::DEEP_RESEARCH.to_owned(),
        title: ui::short(&without_hidden(question), 200),
        request: serde_json::to_value(&ask)?.into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: None,
        keep: None,
    };
    let job = job.with_tool("outlast research").with_traceparent(config.trace.as_ref());
    let Some(own) = moved_from else { return Ok(job) };
    let job = job.with_moved_from(&own);
    if let Some(text) = job.move_text() {
        ui::mark(LineMark::Step, &text);
    }
    Ok(job)
}

/// Returns the request for the question, after these earlier turns.
pub(super) fn request(
    question: &str,
    args: &ResearchArgs,
    earlier: Option<&EarlierTurns>,
) -> ResearchRequest {
    let (effort, budget) = (args.effort, args.budget);
    let question_asked = Message { role: Role::User, content: question.to_owned() };
    let said = earlier.into_iter().flat_map(|earlier| earlier.said.iter().cloned());
    let messages = std::iter::once(research_instructions(effort)).chain(said);
    let messages = messages.chain([question_asked]).collect();
    ResearchRequest { messages, effort: Some(effort), budget, ..ResearchRequest::default() }
}

/// Returns the earlier turns of a conversation.
pub(super) async fn earlier(
    session: &CommandSession<'_>,
    given: &str,
) -> CommandResult<EarlierTurns> {
    Ok(match find::conversation(session, given).await? {
        FoundConversation::Stored(earlier) => EarlierTurns {
            id: earlier.id.clone(),
            provider: earlier.provider().to_owned(),
            holds_documents: earlier.holds_library_text(),
            said: earlier.context(),
        },
        FoundConversation::Archived(earlier) => {
            let file = earlier.conversation;
            let provider = file.provider().to_owned();
            let said = file.messages.into_iter().filter(|said| said.role != Role::System);
            EarlierTurns {
                id: ConversationId::new(file.conversation_id),
                holds_documents: provider == Profile::LIBRARY,
                provider,
                said: said.collect(),
            }
        }
    })
}

/// Returns the provider to ask: the named one, otherwise the conversation's own, otherwise the first in order.
pub(super) fn profile(
    profiles: &[Profile],
    args: &ResearchArgs,
    earlier: Option<&EarlierTurns>,
) -> CommandResult<Profile> {
    let library = (!args.library.is_empty()).then_some(Profile::LIBRARY);
    let named = args.provider.as_deref().or(library);
    let wanted = named.or(earlier.map(|earlier| earlier.provider.as_str()));
    let found = match wanted {
        Some(wanted) => profiles.iter().find(|profile| profile.provider() == wanted),
        None => profiles.first(),
    };
    if let Some(profile) = found {
        // `--provider` is the consent to send text of documents (P1). Settings may have changed since they were read.
        let moves = earlier.filter(|earlier| earlier.moved_from(profile).is_some());
        if let (None, Some(earlier)) = (named, moves) {
            let (id, provider) = (&earlier.id, profile.provider());
            let why = format!(
                "conversation {id} holds text of your documents, and the searches or the model of the {provider} are not on this machine"
            );
            return refuse(
                why,
                format!(
                    "`--provider {provider}` sends it; or set OUTLAST_SEARCH=library and a local model"
                ),
            );
        }
        return Ok(profile.clone());
    }
    let Some(wanted) = wanted else { return Err(no_provider()) };
    let why = match (named, earlier) {
        (None, Some(earlier)) => format!(
            "conversation {} belongs to the provider `{wanted}`, which is not configured",
            earlier.id
        ),
        _ => format!("the provider `{wanted}` is not configured"),
    };
    let mut hint = how_to_configure(wanted);
    if wanted == Profile::LIBRARY {
        hint = format!("give --library FOLDER, or {hint}");
    }
    if let (None, Some(other)) = (named, profiles.first()) {
        let other = other.provider();
        hint.push_str(&format!(
            "; `--provider {other}` would send what was said in the conversation to {other}"
        ));
    }
    refuse(why, hint)
}
