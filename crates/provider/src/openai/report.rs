//! From the run's last object to our output.

use outlast_core::{Body, Cost, Output, Step, Usage, split_thinking};

use super::citations::number_citations;
use crate::prices::{Extras, Prices};
use crate::responses::note_early_end;
use crate::responses::wire::Response;
use crate::vendor::Status;

/// No run uses more tokens; a larger count is an error.
const MAX_TOKENS: u64 = 1_000_000_000;

/// The last step of a run that was not stopped; `None` when there is no report.
pub(super) fn final_step(status: Status, response: &mut Response, raw: Vec<u8>) -> Option<Step> {
    let (text, citations) = response.take_report();
    let read =
        response.read().filter_map(|page| page.url.as_deref()).chain(response.opened_pages());
    let (text, sources) = number_citations(text, citations, read);
    let (mut text, thinking) = split_thinking(text);
    // Thoughts alone are no report.
    if text.trim().is_empty() {
        return None;
    }
    note_early_end(&mut text, status, response);
    let usage = usage(response);
    let output = Output {
        body: Body::Report { text, sources, thinking, related: Vec::new() },
        model: response.model.0.clone().filter(|model| !model.is_empty()),
        cost: cost(response, &usage),
        usage,
    };
    Some(Step::Done { output: Box::new(output), raw: Some(raw) })
}

/// The cost that a run's object states, with a report or without.
pub(super) fn stated_cost(response: &Response) -> Cost {
    cost(response, &usage(response))
}

fn usage(response: &Response) -> Usage {
    let billed = response.tool_usage.as_ref().and_then(|tools| tools.searches());
    let searches = billed.unwrap_or(response.searches() as u64);
    response.usage.as_ref().map(|usage| usage.to_usage(searches)).unwrap_or_default()
}

/// From the table: the provider reports no cost (C9). Counts that cannot be, negative ones among them, have no price.
fn cost(response: &Response, consumed: &Usage) -> Cost {
    let Some(usage) = &*response.usage else { return Cost::Unknown };
    let counts = [*usage.input_tokens, *usage.output_tokens, Some(consumed.searches)];
    if counts.iter().any(|count| count.is_none_or(|count| count > MAX_TOKENS)) {
        return Cost::Unknown;
    }
    let extras = Extras { cached_tokens: usage.cached_tokens(), ..Extras::default() };
    Prices::current().bill(response.model.as_deref().unwrap_or_default(), consumed, &extras)
}

#[cfg(test)]
mod tests {
    use outlast_core::NanoUsd;

    use super::*;
    use crate::vendor::object;

    fn output(body: &str) -> Option<Output> {
        let mut response = object::<Response>(body.as_bytes()).unwrap();
        match final_step(response.status(), &mut response, Vec::new())? {
            Step::Done { output, .. } => Some(*output),
            other => panic!("{other:?}"),
        }
    }

    const TEXT: &str =
        r#""output":[{"type":"message","content":[{"type":"output_text","text":"t"}]}]"#;

    /// G3: a report with numbered sources, usage and a computed cost.
    #[test]
    fn g3_a_finished_run_becomes_a_report_with_numbered_sources_usage_and_cost() {
        let body = r##"{"id":"r","status":"completed","model":"gpt-6-sol-2026-08-01","output":[
            {"type":"reasoning","summary":[]},
            {"type":"web_search_call","status":"completed","action":{"type":"search","queries":["q"],
                "sources":[{"type":"url","url":"https://c.example"}]}},
            {"type":"web_search_call","action":{"type":"open_page","url":"https://d.example"}},
            {"type":"message","phase":"commentary","content":[{"type":"output_text","text":"I look."}]},
            {"type":"message","role":"assistant","content":[{"type":"output_text",
                "text":"# \u00dc So it is ([a](https://a.example)). See https://d.example.",
                "annotations":[{"type":"url_citation","url":"https://a.example","title":"A","start_index":13,"end_index":37},
                    {"type":"file_citation","file_id":"f","index":3}]}]}],
            "usage":{"input_tokens":1000000,"input_tokens_details":{"cached_tokens":500000,"cache_write_tokens":0},
                "output_tokens":1000,"output_tokens_details":{"reasoning_tokens":5},"total_tokens":1001000},
            "tool_usage":{"web_search":{"num_requests":3}}}"##;
        let body = body.replace("1000000", "200000").replace("500000", "100000");
        let output = output(&body).unwrap();
        assert_eq!(output.model.as_deref(), Some("gpt-6-sol-2026-08-01"));
        assert_eq!((output.usage.searches, output.usage.reasoning_tokens), (3, 5));
        // 100,000 at $2, as many at $0.20, 1,000 at $10, and three searches.
        assert_eq!(output.cost, Cost::Computed(NanoUsd(260_000_000)));
        let Body::Report { text, sources, .. } = output.body else { panic!("no report") };
        assert_eq!(text, "# \u{dc} So it is [1]. See https://d.example.");
        let sources: Vec<_> =
            sources.iter().map(|source| (source.number, source.url.as_str())).collect();
        assert_eq!(sources, [(1, "https://a.example"), (2, "https://d.example")]);
    }

    /// G3: a report without a single source has none, and a cut one says so.
    #[test]
    fn g3_no_source_is_invented_and_a_cut_report_notes_it() {
        let body = format!(
            r#"{{"status":"incomplete","incomplete_details":{{"reason":"max_output_tokens"}},{TEXT}}}"#
        );
        let Body::Report { text, sources, .. } = output(&body).unwrap().body else {
            panic!("no report")
        };
        assert_eq!(text, "t\n\n*The provider ended this report early (max_output_tokens).*");
        assert!(sources.is_empty());
        for empty in [
            r#"{"status":"completed","output":[]}"#,
            r#"{"status":"completed","output":[
            {"type":"message","content":[{"type":"refusal","refusal":"no"}]}]}"#,
        ] {
            assert!(output(empty).is_none(), "{empty}");
        }
        let only = r#"{"status":"completed","output":[{"type":"message","phase":"commentary","content":[{"text":"so"}]}]}"#;
        assert!(output(only).is_some(), "what was said on the way is better than nothing");
    }

    /// G3, C9: never a wrong number.
    #[test]
    fn g3_invalid_usage_has_no_price() {
        let cost = |usage: &str| {
            output(&format!(
                r#"{{"status":"completed","model":"gpt-6-sol","usage":{usage},{TEXT}}}"#
            ))
            .unwrap()
            .cost
        };
        assert_eq!(
            cost(r#"{"input_tokens":1000,"output_tokens":100}"#),
            Cost::Computed(NanoUsd(3_000_000))
        );
        for usage in [
            "null",
            "{}",
            r#"{"input_tokens":-5,"output_tokens":100}"#,
            r#"{"input_tokens":1000,"output_tokens":-1}"#,
            r#"{"input_tokens":1e30,"output_tokens":1}"#,
            r#"{"input_tokens":90000000000000,"output_tokens":1}"#,
            r#"{"input_tokens":"1000","output_tokens":1}"#,
        ] {
            assert_eq!(cost(usage), Cost::Unknown, "{usage}");
        }
    }
}
