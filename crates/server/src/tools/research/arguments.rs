//! Checks the arguments of callers: every error names its field, so that a model can correct it.

use chrono::{Datelike, NaiveDate};
use outlast_core::{CallMode, ConversationId, Effort, Key, NanoUsd, Recency, SearchFilters};
use rmcp::model::JsonObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ResearchSet;
use crate::arguments::{self, check, check_domains, check_priority, check_query, digest};
use crate::reply::Refusal;
use crate::tool_names::{deep_research, research};

/// A checked question for deep research, from a tool of either set.
pub(super) struct ResearchQuestion {
    pub(super) query: String,
    pub(super) effort: Effort,
    /// The provider that the call names, if any.
    pub(super) provider: Option<String>,
    /// The maximum cost of the run.
    pub(super) budget: Option<NanoUsd>,
    /// Asks for an approval of the plan before the paid part of the run (M4).
    pub(super) approve_plan: bool,
    pub(super) priority: i16,
    /// The key that the caller passed.
    pub(super) key: Option<Key>,
    /// Determines whether the call starts over.
    pub(super) mode: CallMode,
    /// The digest of all arguments. A key with another digest is a conflict (E9), and the previous version recognizes the
    /// call by it.
    pub(super) hash: [u8; 32],
}

impl ResearchQuestion {
    /// Parses the arguments of the set's tool; the conversation was removed from them before.
    pub(super) fn read(
        set: ResearchSet,
        tool: &str,
        conversation: Option<&str>,
        given: JsonObject,
    ) -> Result<Self, Refusal> {
        match set {
            ResearchSet::Perplexity => {
                let given: ResearchArguments = arguments::read(given)?;
                let hash = input_hash(tool, conversation, &given)?;
                let (key, mode) = (given.idempotency_key.as_deref(), mode(given.fresh));
                Self::check(given.query, given.reasoning_effort, given.priority, key, mode, hash)
            }
            ResearchSet::AnyProvider => {
                let given: DeepResearchArguments = arguments::read(given)?;
                let hash = input_hash(tool, conversation, &given)?;
                let budget = given.budget_usd.map(budget).transpose()?;
                let (key, mode) = (given.idempotency_key.as_deref(), mode(given.fresh));
                let question =
                    Self::check(given.query, given.effort, given.priority, key, mode, hash)?;
                let approve_plan = given.approve_plan;
                check(!approve_plan || tool == deep_research::DEEP_RESEARCH, || {
                    "approve_plan works for a new question, not for a follow-up".to_owned()
                })?;
                Ok(Self { provider: given.provider, budget, approve_plan, ..question })
            }
        }
    }

    fn check(
        query: String,
        effort: EffortWord,
        priority: i64,
        key: Option<&str>,
        mode: CallMode,
        hash: [u8; 32],
    ) -> Result<Self, Refusal> {
        check_query("query", &query)?;
        check(key.is_none() || mode == CallMode::Attach, || {
            "fresh cannot be true together with idempotency_key: a new key starts over by itself"
                .to_owned()
        })?;
        let priority = check_priority(priority)?;
        let key = arguments::key(key, hash)?;
        let effort = effort.into();
        Ok(Self {
            query,
            effort,
            provider: None,
            budget: None,
            approve_plan: false,
            priority,
            key,
            mode,
            hash,
        })
    }
}

fn mode(fresh: bool) -> CallMode {
    if fresh { CallMode::Fresh } else { CallMode::Attach }
}

/// Arguments of deep research in the set `research`. The serialized fields are part of the digest of E9, which never
/// changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ResearchArguments {
    query: String,
    #[serde(default)]
    reasoning_effort: EffortWord,
    #[serde(default)]
    priority: i64,
    #[serde(default, skip_serializing)]
    idempotency_key: Option<String>,
    #[serde(default, skip_serializing)]
    fresh: bool,
}

/// Arguments of deep research in the set `deep-research`. The serialized fields are part of the digest of E9, which never
/// changes.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DeepResearchArguments {
    query: String,
    provider: Option<String>,
    #[serde(default)]
    effort: EffortWord,
    budget_usd: Option<f64>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    approve_plan: bool,
    #[serde(default)]
    priority: i64,
    #[serde(default, skip_serializing)]
    idempotency_key: Option<String>,
    #[serde(default, skip_serializing)]
    fresh: bool,
}

/// Converts dollars to whole billionths.
fn budget(usd: f64) -> Result<NanoUsd, Refusal> {
    let why = || {
        let most = NanoUsd::MAX_BUDGET_USD;
        Refusal::validation(format!("budget_usd must be a number above 0, {most} at most"))
    };
    NanoUsd::budget(usd).ok_or_else(why)
}

/// The effort of a run.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum EffortWord {
    Low,
    #[default]
    Medium,
    High,
}

impl From<EffortWord> for Effort {
    fn from(word: EffortWord) -> Self {
        match word {
            EffortWord::Low => Self::Low,
            EffortWord::Medium => Self::Medium,
            EffortWord::High => Self::High,
        }
    }
}

/// Arguments of search. The serialized fields are part of the digest by which the previous version recognizes a call.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArguments {
    pub(super) query: String,
    #[serde(default)]
    return_related_questions: bool,
    search_recency_filter: Option<Recency>,
    #[serde(default)]
    search_domain_filter: Vec<String>,
    search_after_date_filter: Option<String>,
    search_before_date_filter: Option<String>,
    #[serde(default)]
    search_mode: SearchMode,
    #[serde(default, rename = "showThinking", skip_serializing)]
    pub(super) show_thinking: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SearchMode {
    #[default]
    Web,
    Academic,
}

impl SearchArguments {
    /// Checks all fields and returns the search filters.
    pub(super) fn filters(&self) -> Result<SearchFilters, Refusal> {
        check_query("query", &self.query)?;
        check_domains(&self.search_domain_filter)?;
        check_date("search_after_date_filter", self.search_after_date_filter.as_deref())?;
        check_date("search_before_date_filter", self.search_before_date_filter.as_deref())?;
        Ok(SearchFilters {
            recency: self.search_recency_filter,
            domains: self.search_domain_filter.clone(),
            after: self.search_after_date_filter.clone(),
            before: self.search_before_date_filter.clone(),
            academic: self.search_mode == SearchMode::Academic,
            related_questions: self.return_related_questions,
            ..SearchFilters::default()
        })
    }
}

/// Arguments of the tool that reads one conversation, or several.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct HistoryArguments {
    pub(super) conversation_id: OneOrMany,
    pub(super) offset: Option<usize>,
    #[serde(default)]
    pub(super) include_system_prompt: bool,
    #[serde(default)]
    pub(super) show_thinking: bool,
}

#[derive(Debug, Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
pub(super) enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Arguments of the tools that read several.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct HistoriesArguments {
    pub(super) conversation_ids: Vec<String>,
    #[serde(default)]
    pub(super) include_system_prompt: bool,
    #[serde(default)]
    pub(super) show_thinking: bool,
}

/// Arguments of the tool that cancels the research in a conversation.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct CancelArguments {
    pub(super) conversation_id: String,
}

/// Removes the conversation from a follow-up's arguments; the others are parsed like those of a first question.
pub(super) fn take_conversation(
    tool: &str,
    given: &mut JsonObject,
) -> Result<Option<String>, Refusal> {
    let followups = [
        research::DEEP_RESEARCH_FOLLOWUP,
        research::SEARCH_FOLLOWUP,
        deep_research::DEEP_RESEARCH_FOLLOWUP,
    ];
    if !followups.contains(&tool) {
        return Ok(None);
    }
    match given.remove("conversationId") {
        Some(Value::String(id)) => Ok(Some(id)),
        Some(_) => Err(Refusal::validation("conversationId must be a string")),
        None => Err(Refusal::validation("conversationId is missing")),
    }
}

/// Parses the id of a conversation: an invalid id never reaches a store or a file system.
pub(super) fn conversation_id(text: &str) -> Option<ConversationId> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    ((8..=64).contains(&text.len()) && text.bytes().all(allowed)).then(|| ConversationId::new(text))
}

/// Checks that there are 1 to 100 ids.
pub(super) fn check_count(field: &str, ids: &[String]) -> Result<(), Refusal> {
    let count = ids.len();
    check((1..=100).contains(&count), || format!("{field} must have 1 to 100 entries, not {count}"))
}

/// Returns the digest of the tool, the conversation and all arguments, byte for byte that of the previous version.
pub(super) fn input_hash<A: Serialize>(
    tool: &str,
    conversation: Option<&str>,
    arguments: &A,
) -> Result<[u8; 32], Refusal> {
    digest(&(tool, conversation, arguments))
}

fn check_date(field: &str, date: Option<&str>) -> Result<(), Refusal> {
    check(date.is_none_or(is_date), || {
        format!("{field} must be a day that exists, as MM/DD/YYYY, such as 02/28/2026")
    })
}

/// Returns true if the day `MM/DD/YYYY` exists; chrono alone would also accept shorter numbers and signs.
fn is_date(text: &str) -> bool {
    const FORMAT: &str = "%m/%d/%Y";
    let is_it = |day: NaiveDate| day.year() > 0 && day.format(FORMAT).to_string() == text;
    NaiveDate::parse_from_str(text, FORMAT).is_ok_and(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_days_that_exist_are_dates() {
        for good in ["01/31/2026", "02/29/2024", "02/29/2000", "12/01/1999"] {
            assert!(is_date(good), "{good}");
        }
        for bad in [
            "",
            "2026-01-31",
            "1/31/2026",
            "13/01/2026",
            "00/01/2026",
            "01/00/2026",
            "02/29/2026",
            "02/29/1900",
            "04/31/2026",
            "01/31/26",
            "01/31/2026/",
            "+1/31/2026",
            "01/31/0000",
        ] {
            assert!(!is_date(bad), "{bad}");
        }
    }

    #[test]
    fn domains_are_allowed_or_denied_but_not_both() {
        let check = |domains: &[&str]| {
            check_domains(&domains.iter().map(|domain| (*domain).to_owned()).collect::<Vec<_>>())
        };
        assert!(check(&[]).is_ok());
        assert!(check(&["a.example", "b.example"]).is_ok());
        assert!(check(&["-a.example", "-b.example"]).is_ok());
        assert!(check(&["a.example", "-b.example"]).is_err());
        assert!(check(&["-"]).is_err());
        assert!(check(&["a.example"; 20]).is_ok());
        assert!(check(&["a.example"; 21]).is_err());
    }

    /// B15 of the older server: an invalid name never reaches a store.
    #[test]
    fn hostile_names_are_no_conversations() {
        for good in ["0123456789abcdef0123456789abcdef", "20251031-1761930000000", "abcd_efg"] {
            assert!(conversation_id(good).is_some(), "{good}");
        }
        let long = "a".repeat(65);
        for bad in
            ["", "short", &long, "../../etc/passwd", "a.b.c.d.e", "abcdefg\u{e9}", "abc def gh"]
        {
            assert!(conversation_id(bad).is_none(), "{bad}");
        }
    }
}
