//! Asks a question, or a follow-up in a conversation. Anything that costs money needs a confirmation first (I4).

use axum::body::Body;
use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use outlast_core::conversation::Conversation;
use outlast_core::{
    ConversationId, Cost, Effort, Job, Key, NanoUsd, NewJob, Profile, ResearchRequest, StoreError,
};
use sha2::{Digest, Sha256};

use super::confirm::{CONFIRMED, Confirm, about_question, asks_to_share, describe_sharing};
use super::form::Fields;
use super::layout::{self, Tab, View, see_job};
use super::options::{PageOptions, PageResearch};
use super::request::{PageRequest, PageResult, Replacement};
use crate::reply::Refusal;
use crate::tools::instructions::{new_conversation, research_job, research_messages};
use crate::tools::recipient::how_to_configure;

const MAX_QUESTION_CHARS: usize = 10_000;

/// Shows the form for a new question.
pub(super) async fn view(asked: PageRequest) -> Response {
    let body = html! {
        h1 { "Ask" }
        @match &asked.options().research {
            None => div .notice.bad {
                p { "No provider is configured, so nothing can be asked here." }
                p {
                    "Set a key (" code { "PERPLEXITY_API_KEY" } ") or a library (" code { "OUTLAST_LIBRARY" }
                    "), and start the server again."
                }
            },
            Some(research) => (form(research, FormUse::NewConversation)),
        }
    };
    let view = View { title: "Ask", tab: Tab::Ask, live: None, body };
    layout::keep_for_back(view.answer(&asked.visitor))
}

/// Returns the form for a follow-up in this conversation, below the answer; empty while the job `shown` is unfinished. The
/// form is never replaced while it is open, so that the text being written is not lost.
pub(super) fn follow_up_form(
    options: &PageOptions,
    shown: &Job,
    conversation: Option<&Conversation>,
) -> Markup {
    html! {
        section .noprint #ask-on data-part data-once {
            @if let (Some(research), Some(conversation), true) =
                (&options.research, conversation, shown.state.kind().is_terminal())
            {
                h2 #follow-up { "Ask on" }
                (form(research, FormUse::FollowUp(conversation)))
            }
        }
    }
}

/// The conversation that a form belongs to.
#[derive(Clone, Copy)]
enum FormUse<'a> {
    NewConversation,
    FollowUp(&'a Conversation),
}

fn form(research: &PageResearch, used_for: FormUse<'_>) -> Markup {
    let configured = research.profiles.iter().map(Profile::provider);
    let (providers, conversation) = match used_for {
        FormUse::NewConversation => (configured.collect::<Vec<_>>(), None),
        FormUse::FollowUp(conversation) => {
            // The conversation's own provider comes first. Any other provider moves the conversation, which needs a
            // confirmation.
            let own = conversation.provider();
            let others = configured.filter(|provider| *provider != own);
            (std::iter::once(own).chain(others).collect(), Some(conversation.id.as_str()))
        }
    };
    // Created with the form, so that sending the form twice asks once.
    let key = uuid::Uuid::new_v4().simple().to_string();
    html! {
        form .form method="post" action="/ui/ask" {
            @if let Some(id) = conversation { input type="hidden" name="conversation" value=(id); }
            input type="hidden" name="key" value=(key);
            label {
                "Question"
                textarea #question name="question" required maxlength=(MAX_QUESTION_CHARS)
                    autofocus[conversation.is_none()] {}
            }
            div .pair {
                label {
                    "Effort"
                    select name="effort" {
                        option { "low" }
                        option selected { "medium" }
                        option { "high" }
                    }
                }
                label {
                    "Provider"
                    select name="provider" { @for provider in providers { option { (provider) } } }
                }
                label {
                    "Budget in US dollars, if any"
                    input name="budget" inputmode="decimal" autocomplete="off";
                }
            }
            div { button .go { "Ask" } }
        }
    }
}

/// Handles the submitted form.
pub(super) async fn ask(asked: PageRequest, body: Body) -> PageResult {
    let fields = &asked.form(body).await?;
    let Some(research) = &asked.options().research else {
        return Err(not_asked(&asked, "No provider is configured."));
    };
    let engine = asked.engine();
    let new = new_job(&asked, research, fields).await.map_err(|why| not_asked(&asked, &why))?;
    let expected = engine.expects(&new.profile, &new.request);
    let is_free = expected.cost.amount() == Some(NanoUsd(0)) || !new.may_be_charged();
    let needs_consent = asks_to_share(&new, fields).is_some();
    if needs_consent || (!is_free && fields.get(CONFIRMED).is_none()) {
        let confirm = confirm(&new, expected.cost, expected.budget_note, fields);
        return Ok(confirm.answer(&asked.visitor));
    }
    let key = fields.get("key").map(|key| Key::from_caller(&format!("page:{key}"), hash(&new)));
    let started = engine.start(new, key).await;
    let started = started.map_err(|error| not_asked(&asked, &refusal(&error)))?;
    let id = started.job.id;
    if !started.existed {
        (research.carry)(started.job).await;
    }
    Ok(see_job(&id))
}

/// Explains that nothing was asked, and what to do about it.
fn not_asked(asked: &PageRequest, why: &str) -> Replacement {
    asked.refuse(StatusCode::BAD_REQUEST, "Not asked", why, &html! { a href="/ui/ask" { "Ask" } })
}

fn confirm<'a>(new: &NewJob, cost: Cost, note: Option<String>, fields: &'a Fields) -> Confirm<'a> {
    let provider = new.profile.provider();
    let note = note.map(|note| format!(" {note}")).unwrap_or_default();
    Confirm {
        title: "Ask this?",
        about: about_question(new, cost),
        text: format!("The question goes to {provider}.{note}{}", describe_sharing(new)),
        button: "Ask",
        needs_word: false,
        shares_with: new.sends_library_text().then(|| provider.to_owned()),
        back: "/ui/ask".to_owned(),
        fields,
    }
}

/// Builds the requested job, or returns the reason that it cannot be built.
async fn new_job(
    asked: &PageRequest,
    research: &PageResearch,
    fields: &Fields,
) -> Result<NewJob, String> {
    let owner = &asked.visitor.owner;
    let question = fields.get("question").ok_or("The question is empty.")?;
    let length = question.chars().count();
    if length > MAX_QUESTION_CHARS {
        return Err(format!(
            "The question has {length} characters; ask in {MAX_QUESTION_CHARS} at most."
        ));
    }
    let effort = match fields.get("effort") {
        Some("low") => Effort::Low,
        Some("high") => Effort::High,
        _ => Effort::Medium,
    };
    let budget = fields.get("budget").map(|budget| {
        let usd: Option<f64> = budget.parse().ok();
        let why = || format!("{budget:?} is no amount of US dollars.");
        usd.and_then(NanoUsd::budget).ok_or_else(why)
    });
    let earlier = match fields.get("conversation") {
        None => None,
        Some(id) => {
            let found = asked.engine().conversation(owner, &ConversationId::new(id)).await;
            let found = found.map_err(|error| refusal(&error))?;
            Some(found.ok_or("There is no such conversation.")?)
        }
    };
    // A conversation keeps its provider unless another one is chosen (P1).
    let own = earlier.as_ref().map(|earlier| earlier.provider().to_owned());
    let wanted = fields.get("provider").or(own.as_deref());
    let profile = match wanted {
        None => research.profiles.first(),
        Some(wanted) => research.profiles.iter().find(|profile| profile.provider() == wanted),
    };
    let profile = profile.ok_or_else(|| {
        let wanted = wanted.unwrap_or("none");
        format!("The provider {wanted} is not configured here; {}.", how_to_configure(wanted))
    })?;
    let said = earlier.as_ref().map(|earlier| earlier.context()).unwrap_or_default();
    let holds_documents = earlier.as_ref().is_some_and(|earlier| earlier.holds_library_text());
    let ask = ResearchRequest {
        messages: research_messages(effort, said, question.to_owned()),
        effort: Some(effort),
        budget: budget.transpose()?,
        ..ResearchRequest::default()
    };
    let job = research_job(owner, profile.clone(), &ask, research.attempt_timeout);
    let job = NewJob {
        conversation: Some(earlier.map_or_else(new_conversation, |earlier| earlier.id)),
        max_failures: research.max_failures,
        ..job.map_err(Refusal::into_sentence)?
    };
    let job = job.with_tool("the page");
    let profile = job.profile.clone();
    Ok(match own.as_deref().and_then(|own| profile.moves_from(own, holds_documents)) {
        Some(own) => job.with_moved_from(own),
        None => job,
    })
}

/// Returns the digest of the request, independent of the conversation's id.
fn hash(new: &NewJob) -> [u8; 32] {
    Sha256::digest(new.request.json().to_string()).into()
}

/// Explains in a sentence why a job was not accepted, with a next step.
pub(super) fn refusal(error: &StoreError) -> String {
    let next = match error {
        StoreError::ConversationBusy(job) => {
            format!("wait until job {job} has ended, or cancel it")
        }
        StoreError::TooManyJobs => "wait for some of your jobs, or cancel them".to_owned(),
        StoreError::TooManyBytes => "delete conversations that are not needed any more".to_owned(),
        StoreError::BudgetExceeded(refused) => refused.next_step(),
        StoreError::Full => "make room on the disk".to_owned(),
        _ => "try again; the log of the server may say more".to_owned(),
    };
    format!("{error}; {next}.")
}
