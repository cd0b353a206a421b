//! Asks for confirmation before an action that costs money or cannot be undone. Works without JavaScript: the answer is a
//! form.

use axum::response::Response;
use maud::{Markup, html};
use outlast_core::{Cost, NanoUsd, NewJob, ResearchRequest, visible};

use super::form::Fields;
use super::layout::{self, Tab, View, keep_for_back};
use super::session::Visitor;

/// The field that marks a form as confirmed.
pub(super) const CONFIRMED: &str = "confirmed";
/// The field in which a person writes the word that accepts the risk.
pub(super) const WORD: &str = "word";
/// The word itself.
pub(super) const AGAIN: &str = "again";

/// The field that names the provider which may receive text from local documents (P1).
pub(super) const SHARE: &str = "share";

/// A request for confirmation.
pub(super) struct Confirm<'a> {
    pub(super) title: &'a str,
    /// The object of the action.
    pub(super) about: Markup,
    /// The effect of the action.
    pub(super) text: String,
    pub(super) button: &'a str,
    /// True if the person must also write the word.
    pub(super) needs_word: bool,
    /// The provider that receives text from local documents if the person confirms.
    pub(super) shares_with: Option<String>,
    /// The address to return to instead.
    pub(super) back: String,
    /// The fields that were sent and are sent again.
    pub(super) fields: &'a Fields,
}

/// Returns the provider that would receive text from local documents with this job, unless the person has agreed already.
pub(super) fn asks_to_share(new: &NewJob, fields: &Fields) -> Option<String> {
    let provider = new.profile.provider();
    let is_agreed = fields.get(SHARE) == Some(provider);
    (new.sends_library_text() && !is_agreed).then(|| provider.to_owned())
}

/// Returns the sentence that announces this; an empty string if no such text is sent.
pub(super) fn describe_sharing(new: &NewJob) -> String {
    match new.sends_library_text() {
        true => format!(
            " Text from your local documents, which this conversation holds, will be sent to {}.",
            new.profile.provider()
        ),
        false => String::new(),
    }
}

/// Renders the question of a job with its effort, its provider and its usual price.
pub(super) fn about_question(new: &NewJob, price: Cost) -> Markup {
    let research = new.request.research();
    let question = research.map_or("", ResearchRequest::question).trim();
    let effort = research.and_then(|ask| ask.effort);
    let budget = research.and_then(|ask| ask.budget);
    html! {
        div .question dir="auto" { (visible(if question.is_empty() { &new.title } else { question })) }
        dl {
            @if let Some(effort) = effort { dt { "Effort" } dd { (layout::effort(effort)) } }
            dt { "Provider" } dd { (visible(new.profile.provider())) }
            @if let Some(budget) = budget { dt { "Budget" } dd { (budget.to_string()) } }
            dt { "Price" }
            dd {
                @match price.amount() {
                    Some(NanoUsd(0)) => "free",
                    Some(amount) => { "usually " (amount.to_string()) },
                    None => "not known beforehand",
                }
            }
        }
    }
}

impl Confirm<'_> {
    pub(super) fn answer(&self, visitor: &Visitor) -> Response {
        let answers = [CONFIRMED, WORD, SHARE];
        let kept = self.fields.0.iter().filter(|(name, _)| !answers.contains(&name.as_str()));
        let form = html! {
            h1 { (self.title) }
            (self.about)
            div .notice.warn { p { (visible(&self.text)) } }
            // A form without an action is sent to the address of its page.
            form .form method="post" {
                @for (name, value) in kept { input type="hidden" name=(name) value=(value); }
                @if let Some(provider) = &self.shares_with {
                    input type="hidden" name=(SHARE) value=(provider);
                }
                @if self.needs_word {
                    label {
                        "Write " strong { (AGAIN) } " to say that it may be paid for twice"
                        input name=(WORD) required pattern=(AGAIN) autocomplete="off" autofocus;
                    }
                }
                input type="hidden" name=(CONFIRMED) value="yes";
                div .actions {
                    button .go { (self.button) }
                    a .button href=(self.back) data-back { "Back" }
                }
            }
        };
        let body = html! { div .reading { (form) } };
        let view = View { title: self.title, tab: Tab::Other, live: None, body };
        keep_for_back(view.answer(visitor))
    }
}
