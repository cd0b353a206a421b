//! Asks for confirmation before an action that costs money or cannot be undone. Works without JavaScript: the answer is a
//! form.

use axum::response::Response;
use maud::html;
use outlast_core::{NewJob, visible};

use super::form::Fields;
use super::layout::{Tab, View, kept_for_back};
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
    /// The effect of the action, and its cost.
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
pub(super) fn sharing_text(new: &NewJob) -> String {
    match new.sends_library_text() {
        true => format!(
            " Text from your local documents, which this conversation holds, will be sent to {}.",
            new.profile.provider()
        ),
        false => String::new(),
    }
}

impl Confirm<'_> {
    pub(super) fn answer(&self, visitor: &Visitor) -> Response {
        let answers = [CONFIRMED, WORD, SHARE];
        let kept = self.fields.0.iter().filter(|(name, _)| !answers.contains(&name.as_str()));
        let body = html! {
            h1 { (self.title) }
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
        let view = View { title: self.title, tab: Tab::Other, live: None, body };
        kept_for_back(view.answer(visitor))
    }
}
