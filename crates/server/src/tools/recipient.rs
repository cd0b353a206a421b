//! The recipient of a tool set's questions, for its descriptions: the provider that actually receives them (P2), and the
//! warning about data that leaves this machine (C11).

use outlast_core::Profile;

use crate::reply::{Refusal, RefusalCode};

/// Controls whether descriptions warn against sending sensitive information (C11).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disclaimer {
    /// Descriptions warn.
    Shown,
    /// Descriptions do not warn.
    Off,
}

const WARNING: &str = " Security: the question goes to a third party. Never send passwords, keys, tokens, internal \
                       addresses or personal and proprietary details; generalise or anonymise.";
const RESEARCH_WARNING: &str =
    " Deep research runs long and spreads the question over many searches, so take special care.";

/// Returns the settings that make a provider available.
pub fn how_to_configure(provider: &str) -> String {
    match provider {
        Profile::LIBRARY => {
            "set OUTLAST_LIBRARY to the folders of documents, and name library in OUTLAST_PROVIDERS where that is set"
                .to_owned()
        }
        Profile::PERPLEXITY => {
            "set PERPLEXITY_API_KEY, and name perplexity in OUTLAST_PROVIDERS where that is set".to_owned()
        }
        Profile::RESEARCHER => {
            "set OUTLAST_MODEL_URL, OUTLAST_MODEL and OUTLAST_SEARCH_URL, and name researcher in OUTLAST_PROVIDERS where that is set"
                .to_owned()
        }
        vendor => {
            let key = vendor.to_uppercase();
            format!("set {key}_API_KEY and name {vendor} in OUTLAST_PROVIDERS")
        }
    }
}

/// The ways to get a research provider.
pub const WAYS_TO_A_PROVIDER: &str = "set PERPLEXITY_API_KEY, or OUTLAST_PROVIDERS to openai, anthropic or gemini together \
                                      with its key, or OUTLAST_LIBRARY to a folder of documents, or OUTLAST_MODEL_URL, \
                                      OUTLAST_MODEL and OUTLAST_SEARCH_URL to research on your own model";

/// Returns the refusal of a call that needs a provider on a server that has none.
pub(crate) fn no_provider() -> Refusal {
    let sentence = format!(
        "no research provider is configured on this server; tell the user to {WAYS_TO_A_PROVIDER}, and to restart outlast \
         (`outlast demo` shows research without any of these)"
    );
    Refusal::because(RefusalCode::CONFIGURATION, sentence)
}

/// The recipient of the questions.
#[derive(Clone, Copy)]
pub(crate) struct Recipient<'a> {
    /// The profile of the provider that receives them; `None` if none is configured.
    pub(crate) profile: Option<&'a Profile>,
    pub(crate) disclaimer: Disclaimer,
}

impl Recipient<'_> {
    /// Selects one of two texts: for documents on this machine, or for the web.
    pub(crate) fn either<'a>(self, documents: &'a str, web: &'a str) -> &'a str {
        if self.profile.is_some_and(Profile::reads_documents) { documents } else { web }
    }

    /// Returns the warning of a tool that sends a quick question; empty if it is disabled or if no question leaves this
    /// machine.
    pub(crate) fn warning_text(self) -> &'static str {
        if self.warns() { WARNING } else { "" }
    }

    /// Returns the longer warning of a tool that sends a question for deep research.
    pub(crate) fn long_warning(self) -> String {
        if self.warns() { format!("{WARNING}{RESEARCH_WARNING}") } else { String::new() }
    }

    fn warns(self) -> bool {
        let stays = self.profile.is_some_and(Profile::keeps_text);
        self.disclaimer == Disclaimer::Shown && !stays
    }
}
