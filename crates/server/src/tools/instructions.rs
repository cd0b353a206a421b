//! Deep research for all tool sets: the name of its workflow, its job, and the requirements for a report (C4).

use std::time::Duration;

use outlast_core::{
    ConversationId, Effort, Message, NewJob, OwnerId, Profile, ResearchRequest, Role, Visibility,
};

use crate::arguments::as_json;
use crate::reply::Refusal;
use crate::text::title;

/// The name of the built-in workflow.
pub const DEEP_RESEARCH: &str = "deep_research";

/// Builds a job for this question: promised deep research that is kept forever, unless the caller changes these fields.
pub(crate) fn research_job(
    owner: &OwnerId,
    profile: Profile,
    ask: &ResearchRequest,
    attempt_timeout: Duration,
) -> Result<NewJob, Refusal> {
    Ok(NewJob {
        owner: owner.clone(),
        conversation: None,
        subject: None,
        profile,
        workflow: DEEP_RESEARCH.to_owned(),
        title: title(ask.question()),
        request: as_json(ask)?.into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 0,
        attempt_timeout,
        life: None,
        keep: None,
    })
}

/// Returns the id of a new conversation.
pub(crate) fn new_conversation() -> ConversationId {
    ConversationId::new(uuid::Uuid::new_v4().simple().to_string())
}

/// Builds the messages of a deep research request: the instructions, the earlier messages and the question.
pub(crate) fn research_messages(
    effort: Effort,
    said: impl IntoIterator<Item = Message>,
    question: String,
) -> Vec<Message> {
    let question = Message { role: Role::User, content: question };
    std::iter::once(research_instructions(effort)).chain(said).chain([question]).collect()
}

/// Returns the system message of deep research, exactly as the provider receives it.
pub fn research_instructions(effort: Effort) -> Message {
    let mut content = "You are a careful research analyst. Answer with a research report in Markdown.\n\
        - Begin with an executive summary under a heading of its own.\n\
        - Go on in sections with Markdown headings.\n\
        - Support each factual claim with inline citations such as [1][2] that refer to your sources.\n\
        - Give the URLs of your sources.\n\
        - Prefer credible, primary and recent sources, and say who claims what.\n\
        - Say plainly what is disputed, uncertain or could not be found."
        .to_owned();
    match effort {
        Effort::High => content.push_str("\n- Be exhaustive: write at least 5000 words."),
        Effort::Minimal | Effort::Low | Effort::Medium => {}
    }
    Message { role: Role::System, content }
}
