//! The result of a check: verdicts about claims and sources, and what they rest on.

use serde::{Deserialize, Serialize};

/// The verdict about a claim. It states which facts were found in the source, never that a claim is true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ClaimVerdict {
    /// One passage has all facts.
    Supported,
    /// A passage has at least half of the facts, or has them in another sense.
    Partly,
    /// A passage has everything but one fact, and another value in its place.
    Differs,
    /// The sources do not have the facts.
    NotFound,
    /// The claim has nothing that can be compared.
    NoFacts,
    /// The sources cannot be judged.
    Unchecked,
}

impl ClaimVerdict {
    /// Returns the word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Supported => "supported",
            Self::Partly => "partly",
            Self::Differs => "differs",
            Self::NotFound => "not_found",
            Self::NoFacts => "no_facts",
            Self::Unchecked => "unchecked",
        }
    }

    /// Returns true if a reader should look at the claim.
    pub fn is_doubtful(self) -> bool {
        match self {
            Self::Partly | Self::Differs | Self::NotFound | Self::Unchecked => true,
            Self::Supported | Self::NoFacts => false,
        }
    }
}

/// The verdict about a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceVerdict {
    /// The page was read.
    Ok,
    /// The page does not exist.
    Dead,
    /// The page redirects to the beginning of its site.
    Moved,
    /// The site shows the page only to people or members.
    Blocked,
    /// A rule forbids fetching the address.
    Refused,
    /// The local file is not the one that was read.
    Changed,
    /// The page did not answer.
    Unreachable,
    /// The answer is not text that can be read.
    Unreadable,
}

impl SourceVerdict {
    /// Returns the word for it in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Dead => "dead",
            Self::Moved => "moved",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Changed => "changed",
            Self::Unreachable => "unreachable",
            Self::Unreadable => "unreadable",
        }
    }
}

/// The reason a claim was not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The report has no source of that number.
    NoSource,
    /// The page does not exist.
    Dead,
    /// The page redirects to the beginning of its site.
    Moved,
    /// The site refuses robots or visitors without an account.
    Blocked,
    /// A rule forbids fetching the address.
    Refused,
    /// The local file has changed.
    Changed,
    /// The page did not answer.
    Unreachable,
    /// The answer is not text that can be read.
    Unreadable,
    /// The page shows a part of its text to visitors without a subscription.
    Paywall,
    /// The page waits for consent to cookies.
    CookieWall,
    /// Scripts produce the text of the page.
    ScriptShell,
    /// The page states that it does not exist.
    SoftNotFound,
    /// The page has too few words to deny anything.
    TooShort,
    /// The page is longer than what was read.
    Truncated,
    /// The page is in another language.
    OtherLanguage,
    /// The check reached its limit of time or bytes.
    Limit,
}

impl Reason {
    /// Returns the reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::NoSource => "the report has no source of that number",
            Self::Dead => "the page does not exist",
            Self::Moved => "the page redirects to the beginning of its site",
            Self::Blocked => "the site refuses robots or visitors without an account",
            Self::Refused => "a rule forbids fetching the address",
            Self::Changed => "the local file has changed",
            Self::Unreachable => "the page did not answer",
            Self::Unreadable => "the answer is not text that can be read",
            Self::Paywall => "the page shows only a part without a subscription",
            Self::CookieWall => "the page waits for consent to cookies",
            Self::ScriptShell => "scripts produce the text of the page",
            Self::SoftNotFound => "the page states that it does not exist",
            Self::TooShort => "the page has too few words",
            Self::Truncated => "the page is longer than what was read",
            Self::OtherLanguage => "the page is in another language",
            Self::Limit => "the check reached its limit of time or bytes",
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CitationCheck {
    /// The time of the check, as RFC 3339.
    pub checked_at: String,
    /// False if a limit ended the check early.
    pub complete: bool,
    /// The sources by number.
    pub sources: Vec<CheckedSource>,
    /// The claims in reading order.
    pub claims: Vec<CheckedClaim>,
    /// The number of claims of each verdict.
    pub totals: Totals,
}

impl CitationCheck {
    /// Returns the counts of the verdicts in one line.
    pub fn summary(&self) -> String {
        let claims = counted(self.claims.len(), "claim", "claims");
        let sources = counted(self.sources.len(), "source", "sources");
        let counts = self.totals.words();
        let counts = if counts.is_empty() { counts } else { format!(": {counts}") };
        let dead = match self.dead_sources() {
            0 => String::new(),
            dead => format!("; {}", counted(dead, "source does not exist", "sources do not exist")),
        };
        let cut = if self.complete { "" } else { "; a limit ended the check early" };
        format!("{claims} with {sources}{counts}{dead}{cut}")
    }

    /// Returns the number of sources that do not exist.
    pub fn dead_sources(&self) -> usize {
        self.sources.iter().filter(|source| source.verdict == SourceVerdict::Dead).count()
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A source and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedSource {
    /// The number by which claims cite it.
    pub n: u32,
    /// The address.
    pub url: String,
    /// The verdict.
    pub verdict: SourceVerdict,
    /// The address after redirects, if it is another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// The title of the page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_status: Option<u16>,
    /// The reason it was not fetched, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
}

/// A claim and its verdict.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckedClaim {
    /// The text that the citations cover.
    pub text: String,
    /// The numbers of the sources.
    pub citations: Vec<u32>,
    /// The verdict.
    pub verdict: ClaimVerdict,
    /// The passage with the facts, or with the other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub passage: Option<FoundPassage>,
    /// The other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
    /// The facts that the passage does not have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<String>,
    /// True if a number of the source was rounded.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub rounded: bool,
    /// The reason a claim was not checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
}

/// A passage of a source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundPassage {
    /// The number of the source.
    pub n: u32,
    /// The text.
    pub text: String,
}

/// The number of claims of each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Totals {
    /// All facts found.
    pub supported: usize,
    /// Some facts found.
    pub partly: usize,
    /// Another value found.
    pub differs: usize,
    /// No facts found.
    pub not_found: usize,
    /// Nothing to compare.
    pub no_facts: usize,
    /// No judgement possible.
    pub unchecked: usize,
}

impl Totals {
    /// Returns the counts that are not zero, in words.
    pub fn words(&self) -> String {
        let counts = [
            (self.supported, "supported"),
            (self.partly, "partly"),
            (self.differs, "differ"),
            (self.not_found, "not found"),
            (self.no_facts, "without facts"),
            (self.unchecked, "unchecked"),
        ];
        let counts = counts.iter().filter(|(count, _)| *count > 0);
        counts.map(|(count, name)| format!("{count} {name}")).collect::<Vec<_>>().join(", ")
    }
}
