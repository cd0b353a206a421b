//! From the events of a session that has ended to our output, or to the error of an end without a report.

use std::collections::HashMap;

use outlast_core::{Body, Cost, NanoUsd, Output, ProviderError, ProviderErrorKind, Usage};

use super::links::{FoundPage, number_links};
use super::wire::{AgentSession, Event, SessionError, SessionUsage};
use crate::prices::{Extras, Prices};
use crate::vendor::Vendor;

/// The limit of a session's cost in cents: a larger number is not an amount.
const MAX_CENTS: u64 = 100_000_000;

/// The report of a session that ended this way; `None` when there is none, or its text does not count as one.
pub(super) fn final_report(events: &[Event], session: &AgentSession, end: End) -> Option<Output> {
    let error = events.iter().rev().find_map(Event::session_error);
    let text = text(events).filter(|_| end.keeps_its_text(error))?;
    let (mut text, sources) = number_links(text, &list_found_pages(events));
    if let Some(why) = end.cut_short() {
        text.push_str(&format!("\n\n*The provider ended this report early ({why}).*"));
    }
    let model = session.model().map(str::to_owned);
    let usage = usage(session.usage.as_ref());
    let cost = stated_cost(session);
    Some(Output { body: Body::report(text, sources), model, usage, cost })
}

/// The cost that a session states, with a report or without.
pub(super) fn stated_cost(session: &AgentSession) -> Cost {
    let used = session.usage.as_ref();
    cost(used, session.model().unwrap_or_default(), &usage(used))
}

/// The text that the agent wrote after its last use of a tool; if it wrote nothing then, all that it wrote. Text between
/// its searches is not part of the report.
pub(super) fn text(events: &[Event]) -> Option<String> {
    let last_tool = events.iter().rposition(|event| event.kind == "agent.tool_use");
    let after = last_tool.map_or(0, |at| at + 1);
    join_text(&events[after..]).or_else(|| join_text(events))
}

fn join_text(events: &[Event]) -> Option<String> {
    let messages = events.iter().filter(|event| event.kind == "agent.message");
    let texts = messages.flat_map(Event::blocks).filter_map(|block| block.text.as_deref());
    let texts: Vec<&str> = texts.map(str::trim).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The pages that searches found and that were read.
fn list_found_pages(events: &[Event]) -> Vec<FoundPage<'_>> {
    let fetched: HashMap<&str, &str> = events
        .iter()
        .filter_map(|event| Some((event.id.as_deref()?, event.fetched_url()?)))
        .collect();
    let mut found = Vec::new();
    for event in events.iter().filter(|event| event.kind == "agent.tool_result") {
        let asked = event.tool_use_id.as_deref().and_then(|id| fetched.get(id).copied());
        for block in event.blocks() {
            let url = block.source.as_deref().or(asked.filter(|_| block.is_page()));
            found.extend(url.map(|url| FoundPage { url, title: block.title.as_deref() }));
        }
    }
    found
}

fn usage(usage: Option<&SessionUsage>) -> Usage {
    let Some(usage) = usage else { return Usage::default() };
    let input_tokens = usage.input();
    let output_tokens = usage.output_tokens.unwrap_or(0);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
        searches: usage.searches(),
        ..Usage::default()
    }
}

/// The reported cost first: whole cents of a dollar. Without it an estimate, because what the running time of a
/// session costs is not known.
fn cost(reported: Option<&SessionUsage>, model: &str, consumed: &Usage) -> Cost {
    let Some(reported) = reported else { return Cost::Unknown };
    let Some(amount) = &*reported.list_cost else {
        let cached_tokens = reported.cache_read_input_tokens.unwrap_or(0);
        let extras = Extras { cached_tokens, ..Extras::default() };
        return Prices::current().bill(model, consumed, &extras).as_estimate();
    };
    let cents = amount.cents().filter(|cents| *cents <= MAX_CENTS);
    cents.map_or(Cost::Unknown, |cents| Cost::Reported(NanoUsd(cents * super::CENT)))
}

/// The end of a session's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// The agent has finished its answer.
    Finished,
    /// Its budget was used up.
    BudgetReached,
    /// The model refused.
    Refusal,
    /// It waits for an answer that it will not get.
    RequiresAction,
    /// Errors, again and again.
    RetriesExhausted,
    /// It was ended for good.
    Terminated,
    /// It was interrupted, and not by this system.
    Interrupted,
}

impl End {
    /// The end that the events show; `None` while the session works, or if its words are not known.
    pub(super) fn of(events: &[Event]) -> Option<Self> {
        let last = events.iter().rfind(|event| event.kind.starts_with("session.status_"))?;
        let interrupted = events.iter().any(|event| event.kind == "user.interrupt");
        match (last.kind.as_str(), last.stop_reason()) {
            ("session.status_terminated", _) => Some(Self::Terminated),
            ("session.status_idle", _) if interrupted => Some(Self::Interrupted),
            // A session is idle before it begins, too.
            ("session.status_idle", Some("end_turn")) if has_worked(events) => Some(Self::Finished),
            ("session.status_idle", Some("budget_reached")) => Some(Self::BudgetReached),
            ("session.status_idle", Some("refusal")) => Some(Self::Refusal),
            ("session.status_idle", Some("requires_action")) => Some(Self::RequiresAction),
            ("session.status_idle", Some("retries_exhausted")) => Some(Self::RetriesExhausted),
            _ => None,
        }
    }

    /// The reason why a report with this end is not whole; `None` if it is whole.
    pub(super) fn cut_short(self) -> Option<&'static str> {
        match self {
            Self::Finished => None,
            Self::BudgetReached => Some("its budget was used up"),
            Self::Terminated => Some("the session was terminated"),
            Self::Refusal | Self::RequiresAction | Self::RetriesExhausted | Self::Interrupted => {
                Some("it did not finish")
            }
        }
    }

    /// Returns true if what was written counts as a report.
    pub(super) fn keeps_its_text(self, error: Option<&SessionError>) -> bool {
        match self {
            Self::Finished | Self::BudgetReached => true,
            Self::Terminated => error.is_none(),
            Self::Refusal | Self::RequiresAction | Self::RetriesExhausted | Self::Interrupted => {
                false
            }
        }
    }
}

/// Returns true if any event shows that the question was accepted.
pub(super) fn has_begun(events: &[Event]) -> bool {
    events.iter().any(|event| event.kind == "user.message") || has_worked(events)
}

fn has_worked(events: &[Event]) -> bool {
    let works =
        |event: &Event| event.kind == "session.status_running" || event.kind.starts_with("agent.");
    events.iter().any(works)
}

/// A run that ended without a report. Only one that failed may be repeated: the others were paid for and would end the
/// same way, or were stopped on purpose (B9a).
pub(super) fn without_report(
    vendor: &Vendor,
    end: End,
    error: Option<&SessionError>,
    said: Option<String>,
) -> ProviderError {
    let (kind, sentence) = match (end, error.map(|error| error.kind.as_str())) {
        (_, Some("billing_error")) => (ProviderErrorKind::QuotaExhausted, vendor.no_credit()),
        (End::Finished, _) => (
            ProviderErrorKind::Malformed,
            "Anthropic calls the run finished, but shows no report; ask again in other words"
                .to_owned(),
        ),
        (End::BudgetReached, _) => (
            ProviderErrorKind::Rejected,
            "the run used up its budget before it wrote anything; ask with a larger one".to_owned(),
        ),
        (End::Refusal, _) => {
            (ProviderErrorKind::Rejected, "Anthropic's model refused the question; change it".to_owned())
        }
        (End::RequiresAction, _) => (
            ProviderErrorKind::Rejected,
            "Anthropic asks for an action in the middle of the run, which is not supported; ask in another way"
                .to_owned(),
        ),
        (End::Interrupted, _) => {
            (ProviderErrorKind::RunStopped, "the run was stopped at Anthropic".to_owned())
        }
        (End::RetriesExhausted | End::Terminated, _) => {
            (ProviderErrorKind::RunFailed, "Anthropic's run failed".to_owned())
        }
    };
    ProviderError { reason: said.clone(), detail: said, ..ProviderError::new(kind, sentence) }
}
