//! Ids, names and numbers. Each has its own type, so that an owner can never be passed for a worker.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The id of a job: 32 lower-case hex digits, unguessable (a version 4 UUID).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(Uuid);

/// The text is not a job id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a job id is 32 lower-case hexadecimal digits")]
pub struct NotAJobId;

impl JobId {
    /// Creates an id from a random UUID. The caller provides the randomness.
    pub fn new(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl FromStr for JobId {
    type Err = NotAJobId;

    /// Accepts exactly the output of [`fmt::Display`], so that each job has only one spelling.
    fn from_str(text: &str) -> Result<Self, NotAJobId> {
        let one_spelling =
            text.len() == 32 && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if !one_spelling {
            return Err(NotAJobId);
        }
        Uuid::try_parse(text).map(Self).map_err(|_| NotAJobId)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.simple().fmt(f)
    }
}

impl fmt::Debug for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobId({self})")
    }
}

macro_rules! text_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Creates the name from text.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_name! {
    /// The principal that a job belongs to.
    OwnerId
}
text_name! {
    /// The name of a chain of jobs.
    ConversationId
}
text_name! {
    /// The id of a process that runs jobs; fresh at every start, never a host name.
    WorkerId
}
text_name! {
    /// The capabilities that a worker needs to run a job: provider, base URL and key fingerprint, or a workflow's
    /// name.
    Profile
}

impl Profile {
    /// The provider that answers from documents on this machine.
    pub const LIBRARY: &str = "library";
    /// The provider that answers if no other is named.
    pub const PERPLEXITY: &str = "perplexity";

    /// The word that takes the place of the provider for a workflow.
    pub const WORKFLOW: &str = "workflow";
    /// The word that takes the place of the provider for a call of a wrapped server.
    pub const WRAP: &str = "wrap";

    /// The provider that researches step by step, with any model and any search service.
    pub const RESEARCHER: &str = "researcher";

    /// The provider that compares reports with the pages that they cite.
    pub const CITATIONS: &str = "citations";

    /// The first part of the profile of a researcher that searches folders of documents with a model of this machine:
    /// nothing leaves it (K9).
    pub const LOCAL_RESEARCHER: &str = "researcher/local-library";
    /// The same with a model that is not the user's own: text of the documents is sent to it.
    pub const SHARING_RESEARCHER: &str = "researcher/remote-library";

    /// Returns whether its jobs read documents of this machine.
    pub fn reads_documents(&self) -> bool {
        self.provider() == Self::LIBRARY || self.keeps_text() || self.shares_documents()
    }

    /// Returns whether its research sends text of documents of this machine to another one.
    pub fn shares_documents(&self) -> bool {
        self.dialect() == Self::SHARING_RESEARCHER
    }

    /// Returns whether its jobs send nothing to another machine.
    pub fn keeps_text(&self) -> bool {
        matches!(self.dialect(), Self::LIBRARY | Self::LOCAL_RESEARCHER)
    }

    fn dialect(&self) -> &str {
        self.as_str().split(' ').next().unwrap_or_default()
    }

    /// Returns the provider, which is the first word: `perplexity` in every dialect, `library`; for a workflow,
    /// `workflow`.
    pub fn provider(&self) -> &str {
        self.as_str().split([' ', '/']).next().unwrap_or_default()
    }
}

/// The number of a job's claim. It rises with each claim, so that a worker that lost its lease cannot write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Fence(pub u64);

impl Fence {
    /// The number of a job that was never claimed.
    pub const NONE: Self = Self(0);

    /// Returns the number of the next claim.
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// The number of a change in a store. Every change of a job gets a higher one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rev(pub u64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_names_its_provider_in_whatever_dialect() {
        let cases = [
            ("perplexity/agent https://api.example 01234567", Profile::PERPLEXITY),
            ("perplexity/sonar https://api.example/library 01234567", Profile::PERPLEXITY),
            ("library 0123456789abcdef", Profile::LIBRARY),
            ("workflow library", Profile::WORKFLOW),
        ];
        for (profile, provider) in cases {
            assert_eq!(Profile::new(profile).provider(), provider);
        }
    }

    #[test]
    fn a_job_id_has_exactly_one_spelling() {
        let good = "0f8fad5bd9cb469fa16570867728950e";
        assert_eq!(good.parse::<JobId>().map(|id| id.to_string()), Ok(good.to_owned()));
        let bad = [
            "",
            "a",
            "0F8FAD5BD9CB469FA16570867728950E",
            "0f8fad5b-d9cb-469f-a165-70867728950e",
            "{0f8fad5bd9cb469fa16570867728950e}",
            "0f8fad5bd9cb469fa16570867728950",
            "0f8fad5bd9cb469fa16570867728950e0",
            "' OR 1=1 --",
            "../../etc/passwd",
            "0f8fad5bd9cb469fa16570867728950\u{e9}",
        ];
        for text in bad {
            assert_eq!(text.parse::<JobId>(), Err(NotAJobId), "{text:?}");
        }
    }
}
