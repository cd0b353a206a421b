//! From the arguments to a job: in which conversation it is asked, and of which provider (P1).

use outlast_core::{ConversationId, Message, NewJob, Profile, ResearchAsk, Role, Visibility};
use outlast_server::research_instructions;

use crate::cli::ResearchArgs;
use crate::commands::find::{self, FoundConversation};
use crate::config::Config;
use crate::error::{CommandError, CommandResult};
use crate::open_store::OpenEngine;
use crate::ui::{self, Mark};
use crate::wire::{Profiled, library_provider, no_provider, research_providers};

/// The providers that may be asked, in line. The folders of `--library` stand for the configured ones and come first.
pub(super) fn providers(config: &Config, args: &ResearchArgs) -> CommandResult<Vec<Profiled>> {
    if args.library.is_empty() {
        let providers = research_providers(config)?;
        return match providers.is_empty() && args.follow_up.is_none() {
            true => Err(no_provider()),
            false => Ok(providers),
        };
    }
    if args.provider.as_deref() == Some(Profile::PERPLEXITY) {
        let error = anyhow::anyhow!("--library and --provider perplexity exclude each other");
        return Err(CommandError::usage(
            error,
            "leave one of them out: --library asks your documents alone",
        ));
    }
    Ok(vec![library_provider(config, args.library.clone())?])
}

/// What was said before, and whose conversation it is.
struct Earlier {
    id: ConversationId,
    provider: String,
    said: Vec<Message>,
}

/// The job for the question; of the profiles, the first is asked first. Says so where what was said before goes to another provider.
pub(super) async fn new_job(
    opened: &OpenEngine,
    config: &Config,
    profiles: &[Profile],
    question: &str,
    args: &ResearchArgs,
) -> CommandResult<NewJob> {
    let earlier = match &args.follow_up {
        Some(given) => Some(earlier(opened, config, given).await?),
        None => None,
    };
    let profile = profile(profiles, args, earlier.as_ref())?;
    let (conversation, said) = match earlier {
        Some(Earlier { id, provider, said }) => {
            if provider != profile.provider() && !said.is_empty() {
                tell_of_the_move(&provider, profile.provider(), said.len());
            }
            (id, said)
        }
        None => (ConversationId::new(uuid::Uuid::new_v4().simple().to_string()), Vec::new()),
    };
    let effort = args.effort;
    let question_asked = Message { role: Role::User, content: question.to_owned() };
    let messages = std::iter::once(research_instructions(effort)).chain(said);
    let messages = messages.chain([question_asked]).collect();
    let ask = ResearchAsk { messages, effort: Some(effort), ..ResearchAsk::default() };
    let job = NewJob {
        owner: config.owner.clone(),
        conversation: Some(conversation),
        profile,
        workflow: NewJob::DEEP_RESEARCH.to_owned(),
        title: ui::short(question, 200),
        ask: serde_json::to_value(&ask)?,
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: config.perplexity.max_job_retries,
        attempt_timeout: config.perplexity.polling_timeout,
        life: None,
        keep: None,
    };
    Ok(job.made_by("outlast research"))
}

async fn earlier(opened: &OpenEngine, config: &Config, given: &str) -> CommandResult<Earlier> {
    Ok(match find::conversation(opened, &config.owner, given).await? {
        FoundConversation::Stored(earlier) => Earlier {
            id: earlier.id.clone(),
            provider: earlier.provider().to_owned(),
            said: earlier.context(),
        },
        FoundConversation::Archived(earlier) => {
            let file = earlier.conversation;
            let provider = file.provider().to_owned();
            let said = file.messages.into_iter().filter(|said| said.role != Role::System);
            Earlier {
                id: ConversationId::new(file.conversation_id),
                provider,
                said: said.collect(),
            }
        }
    })
}

/// Who is asked: the one that was named, else the conversation's own, else the first in line.
fn profile(
    profiles: &[Profile],
    args: &ResearchArgs,
    earlier: Option<&Earlier>,
) -> CommandResult<Profile> {
    let library = (!args.library.is_empty()).then_some(Profile::LIBRARY);
    let named = args.provider.as_deref().or(library);
    let wanted = named.or(earlier.map(|earlier| earlier.provider.as_str()));
    let found = match wanted {
        Some(wanted) => profiles.iter().find(|profile| profile.provider() == wanted),
        None => profiles.first(),
    };
    if let Some(profile) = found {
        return Ok(profile.clone());
    }
    let Some(wanted) = wanted else { return Err(no_provider()) };
    let error = match (named, earlier) {
        (None, Some(earlier)) => anyhow::anyhow!(
            "conversation {} belongs to the provider `{wanted}`, which is not configured",
            earlier.id
        ),
        _ => anyhow::anyhow!("the provider `{wanted}` is not configured"),
    };
    let mut hint = match wanted {
        Profile::LIBRARY => "give --library FOLDER, or set OUTLAST_LIBRARY".to_owned(),
        _ => "set PERPLEXITY_API_KEY".to_owned(),
    };
    if let (None, Some(other)) = (named, profiles.first()) {
        let other = other.provider();
        hint.push_str(&format!(
            "; `--provider {other}` would send what was said in the conversation to {other}"
        ));
    }
    Err(CommandError::usage(error, hint))
}

fn tell_of_the_move(from: &str, to: &str, messages: usize) {
    let count = ui::count(messages, "earlier message", "earlier messages");
    ui::mark(
        Mark::Step,
        &format!(
            "{count} of this conversation, which belongs to {from}: sent to {to} with the question"
        ),
    );
}
