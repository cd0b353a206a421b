//! The identity of a held research call (promise 2): the digest of the question, independent of its encoding and spacing.

use outlast_core::{
    CallIdentity, CallMode, Effort, HeldAnswer, KeyLife, Message, NewJob, Role, SearchFilters,
};
use outlast_engine::Engine;
use serde::Serialize;
use unicode_normalization::UnicodeNormalization as _;

use crate::arguments::digest;
use crate::reply::Refusal;

/// Everything that changes the question of a held research call. It excludes the priority, the budget, the caller's key and
/// display options.
pub(crate) struct AskedQuestion<'a> {
    pub(crate) tool: &'a str,
    /// The conversation that the call continues, if any.
    pub(crate) conversation: Option<&'a str>,
    /// The caller's words, without our instructions and without earlier turns of the conversation.
    pub(crate) messages: &'a [Message],
    pub(crate) effort: Option<Effort>,
    pub(crate) filters: &'a SearchFilters,
}

/// The other attributes that identify a call.
pub(crate) struct Recognition {
    /// The provider that the call names.
    pub(crate) named_provider: Option<String>,
    pub(crate) mode: CallMode,
    pub(crate) answer: HeldAnswer,
}

impl AskedQuestion<'_> {
    /// Returns the identity of the call with the job `job`.
    pub(crate) fn identity(
        &self,
        engine: &Engine,
        job: &NewJob,
        Recognition { named_provider, mode, answer }: Recognition,
    ) -> Result<CallIdentity, Refusal> {
        Ok(CallIdentity {
            question: self.digest()?,
            named_provider,
            model: engine.expects(&job.profile, &job.request).model,
            mode,
            life: KeyLife::for_research(answer),
        })
    }

    fn digest(&self) -> Result<[u8; 32], Refusal> {
        #[derive(Serialize)]
        struct FoldedQuestion<'a> {
            tool: &'a str,
            conversation: Option<&'a str>,
            messages: Vec<(Role, String)>,
            effort: Option<Effort>,
            filters: SearchFilters,
        }
        let messages = self.messages.iter();
        let mut filters = self.filters.clone();
        // The order of domains does not matter.
        filters.domains.sort();
        filters.domains.dedup();
        digest(&FoldedQuestion {
            tool: self.tool,
            conversation: self.conversation,
            messages: messages.map(|said| (said.role, fold(&said.content))).collect(),
            effort: self.effort,
            filters,
        })
    }
}

/// Returns the text in Unicode's composed form, with single spaces. Used only for identity: providers receive what the
/// caller wrote.
fn fold(text: &str) -> String {
    let composed: String = text.nfc().collect();
    let words: Vec<&str> = composed.split_whitespace().collect();
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest_of(change: impl FnOnce(&mut AskedQuestion<'_>, &mut Vec<Message>)) -> [u8; 32] {
        let filters = SearchFilters::default();
        let mut said = vec![Message { role: Role::User, content: "caf\u{e9} prices".to_owned() }];
        let mut asked = AskedQuestion {
            tool: "deep_research",
            conversation: None,
            messages: &[],
            effort: Some(Effort::Medium),
            filters: &filters,
        };
        change(&mut asked, &mut said);
        AskedQuestion { messages: &said, ..asked }.digest().unwrap()
    }

    /// Promise 2: the same words in another encoding or spacing are the same question; other words are a different question.
    #[test]
    fn a_question_is_the_same_in_any_encoding_and_spacing() {
        let asked = |text: &str| digest_of(|_, said| text.clone_into(&mut said[0].content));
        let first = digest_of(|_, _| {});
        for same in [
            "cafe\u{301} prices",
            " caf\u{e9}  prices\n",
            "caf\u{e9}\u{a0}prices",
            "cafe\u{301}\t\u{2003}prices",
        ] {
            assert_eq!(asked(same), first, "{same:?}");
        }
        for other in ["cafe prices", "Caf\u{e9} prices", "caf\u{e9}prices", "caf\u{e9} prices?"] {
            assert_ne!(asked(other), first, "{other:?}");
        }
    }

    #[test]
    fn whatever_changes_what_is_asked_is_another_question() {
        let narrowed = SearchFilters { academic: true, ..SearchFilters::default() };
        let digests = [
            digest_of(|_, _| {}),
            digest_of(|asked, _| asked.tool = "perplexity_search"),
            digest_of(|asked, _| asked.conversation = Some("0123456789abcdef")),
            digest_of(|asked, _| asked.effort = Some(Effort::High)),
            digest_of(|asked, _| asked.effort = None),
            digest_of(|_, said| said[0].role = Role::System),
            digest_of(|_, said| said.push(said[0].clone())),
            {
                let said = [Message { role: Role::User, content: "caf\u{e9} prices".to_owned() }];
                let asked = AskedQuestion {
                    tool: "deep_research",
                    conversation: None,
                    messages: &said,
                    effort: Some(Effort::Medium),
                    filters: &narrowed,
                };
                asked.digest().unwrap()
            },
        ];
        for (number, digest) in digests.iter().enumerate() {
            assert!(!digests[..number].contains(digest), "{number}");
        }
    }

    #[test]
    fn the_order_of_domains_does_not_matter() {
        let of = |domains: &[&str]| {
            let domains = domains.iter().map(|domain| (*domain).to_owned()).collect();
            let filters = SearchFilters { domains, ..SearchFilters::default() };
            let asked = AskedQuestion {
                tool: "perplexity_search",
                conversation: None,
                messages: &[],
                effort: None,
                filters: &filters,
            };
            asked.digest().unwrap()
        };
        assert_eq!(of(&["a.example", "b.example"]), of(&["b.example", "a.example", "b.example"]));
        assert_ne!(of(&["a.example"]), of(&["-a.example"]));
    }
}
