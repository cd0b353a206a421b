//! Asks for confirmation before an action that costs money or cannot be undone. Works without JavaScript: the answer is a
//! form.

use axum::response::Response;
use outlast_core::NewJob;

use super::form::Fields;
use super::layout::{Tab, View, kept_for_back};
use super::session::Visitor;
use crate::export::{escaped, escaped_exactly};

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
        let hidden: String = kept
            .map(|(name, value)| {
                format!(
                    "<input type=\"hidden\" name=\"{}\" value=\"{}\">\n",
                    escaped_exactly(name),
                    escaped_exactly(value)
                )
            })
            .collect();
        let word = match self.needs_word {
            true => format!(
                "<label>Write <strong>{AGAIN}</strong> to say that it may be paid for twice\
                 <input name=\"{WORD}\" required pattern=\"{AGAIN}\" autocomplete=\"off\" autofocus></label>\n"
            ),
            false => String::new(),
        };
        let share = self.shares_with.as_deref().map(|provider| {
            format!("<input type=\"hidden\" name=\"{SHARE}\" value=\"{}\">\n", escaped(provider))
        });
        let share = share.unwrap_or_default();
        // A form without an action is sent to the address of its page.
        let body = format!(
            "<h1>{}</h1>\n<div class=\"notice warn\"><p>{}</p></div>\n\
             <form class=\"form\" method=\"post\">\n{hidden}{share}{word}\
             <input type=\"hidden\" name=\"{CONFIRMED}\" value=\"yes\">\n\
             <div class=\"actions\"><button class=\"go\">{}</button><a class=\"button\" href=\"{}\" data-back>Back</a></div>\n</form>\n",
            escaped(self.title),
            escaped(&self.text),
            escaped(self.button),
            escaped(&self.back),
        );
        let view = View { title: self.title, tab: Tab::Other, live: None, body };
        kept_for_back(view.answer(visitor))
    }
}
