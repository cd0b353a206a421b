//! Recognizes text that came from documents on this machine. Such text leaves the machine only if a person decides so
//! (P1).

use crate::{Message, NewJob, Profile, Role};

/// The sentence that begins the note under every library report that quotes documents. If nothing else records the
/// source of an answer, conversations are judged by this sentence, so its wording must not change.
pub const LIBRARY_NOTE: &str =
    "*The text above is extracted word for word from the library's own files; no model wrote it.";

impl NewJob {
    /// Returns whether running the job sends text from local documents to a provider outside this machine.
    pub fn sends_library_text(&self) -> bool {
        match self.profile.provider() {
            Profile::LIBRARY | Profile::WORKFLOW => false,
            _ if self.profile.keeps_text() => false,
            _ if self.profile.shares_documents() => true,
            // A researcher takes over its own conversation only if that has such text (`Profile::moves_from`).
            provider => {
                let from = self.former_owner();
                from == Some(Profile::LIBRARY) || from == Some(provider) || self.quotes_library()
            }
        }
    }

    /// Returns whether one of the answers that are sent along quotes the library.
    fn quotes_library(&self) -> bool {
        let quotes = |message: &Message| {
            message.role == Role::Assistant && message.content.contains(LIBRARY_NOTE)
        };
        self.request.research().is_some_and(|ask| ask.messages.iter().any(quotes))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rules::tests::queued;

    /// P1: a job is judged by what it sends, even if no record names the source of that text.
    #[test]
    fn p1_a_job_is_judged_by_the_text_that_it_sends() {
        let quoted = format!("Found.\n\n---\n\n{LIBRARY_NOTE} Searched: 1 passage.*");
        let said = |role: &str| json!({ "messages": [{ "role": role, "content": quoted }] });
        let plain = json!({ "messages": [{ "role": "user", "content": "x" }] });
        let mut moved = plain.clone();
        moved["moved_from"] = json!("library");
        let mut out = plain.clone();
        out["moved_from"] = json!("researcher");
        let cases = [
            ("researcher/local http://127.0.0.1/v1 m", out.clone(), true),
            ("researcher/local-library http://127.0.0.1/v1 m", out.clone(), false),
            ("openai 0", out, false),
            ("openai 0", said("assistant"), true),
            ("perplexity/agent https://api.example 0", moved.clone(), true),
            ("openai 0", plain.clone(), false),
            // Users may send their own words.
            ("openai 0", said("user"), false),
            ("library 0", said("assistant"), false),
            ("library 0", moved, false),
            ("workflow audit", said("assistant"), false),
            // K9: the researcher, by its model and its search service.
            ("researcher/local-library http://127.0.0.1/v1 m", said("assistant"), false),
            ("researcher/local-library http://127.0.0.1/v1 m", plain.clone(), false),
            ("researcher/remote-library https://api.example m", plain.clone(), true),
            ("researcher/remote https://api.example m", plain.clone(), false),
            ("researcher/remote https://api.example m", said("assistant"), true),
            // The words of its searches could reveal the text.
            ("researcher/local http://127.0.0.1/v1 m", said("assistant"), true),
        ];
        for (profile, ask, sends) in cases {
            let mut new = queued().job.new;
            new.profile = Profile::new(profile);
            new.request = ask.into();
            assert_eq!(new.sends_library_text(), sends, "{profile}: {:?}", new.request);
        }
    }
}
