//! From the events of a finished session to our output.

use std::collections::HashMap;

use outlast_core::{Body, Cost, NanoUsd, Output, Usage};

use super::ends::End;
use super::links::{Found, numbered};
use super::wire::{Event, Session, SessionUsage};
use crate::prices::{Extras, Prices};

/// The limit of a session's cost in cents: a larger number is not an amount.
const MAX_CENTS: u64 = 100_000_000;

/// The report of a session that ended this way; `None` when there is none, or its text does not count as one.
pub(super) fn kept(events: &[Event], session: &Session, end: End) -> Option<Output> {
    let error = events.iter().rev().find_map(Event::session_error);
    let text = text(events).filter(|_| end.keeps_its_text(error))?;
    let (mut text, sources) = numbered(text, &found(events));
    if let Some(why) = end.cut_short() {
        text.push_str(&format!("\n\n*The provider ended this report early ({why}).*"));
    }
    let model = session.model().map(str::to_owned);
    let usage = usage(session.usage.as_ref());
    let cost = stated_cost(session);
    Some(Output { body: Body::report(text, sources), model, usage, cost })
}

/// The cost that a session states, with a report or without.
pub(super) fn stated_cost(session: &Session) -> Cost {
    let used = session.usage.as_ref();
    cost(used, session.model().unwrap_or_default(), &usage(used))
}

/// The text that the agent wrote after its last use of a tool; if it wrote nothing then, all that it wrote. Text between
/// its searches is not part of the report.
pub(super) fn text(events: &[Event]) -> Option<String> {
    let last_tool = events.iter().rposition(|event| event.kind == "agent.tool_use");
    let after = last_tool.map_or(0, |at| at + 1);
    joined(&events[after..]).or_else(|| joined(events))
}

fn joined(events: &[Event]) -> Option<String> {
    let messages = events.iter().filter(|event| event.kind == "agent.message");
    let texts = messages.flat_map(Event::blocks).filter_map(|block| block.text.as_deref());
    let texts: Vec<&str> = texts.map(str::trim).filter(|text| !text.is_empty()).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The pages that searches found and that were read.
fn found(events: &[Event]) -> Vec<Found<'_>> {
    let fetched: HashMap<&str, &str> =
        events.iter().filter_map(|event| Some((event.id.as_deref()?, event.fetched()?))).collect();
    let mut found = Vec::new();
    for event in events.iter().filter(|event| event.kind == "agent.tool_result") {
        let asked = event.tool_use_id.as_deref().and_then(|id| fetched.get(id).copied());
        for block in event.blocks() {
            let url = block.source.as_deref().or(asked.filter(|_| block.is_page()));
            found.extend(url.map(|url| Found { url, title: block.title.as_deref() }));
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
        return Prices::current().bill(model, consumed, &extras).estimated();
    };
    let cents = amount.cents().filter(|cents| *cents <= MAX_CENTS);
    cents.map_or(Cost::Unknown, |cents| Cost::Reported(NanoUsd(cents * super::CENT)))
}
