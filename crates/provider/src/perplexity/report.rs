//! From the provider's terminal object to our output.

mod citations;

use outlast_core::{Body, Cost, NanoUsd, Output, Step, Usage, split_thinking};

use crate::prices::{Extras, Prices};
use crate::responses::note_early_end;
use crate::responses::wire::Response;
use crate::vendor::Status;

/// The provider's names of presets; the model a run resolved to has another name.
const PRESETS: [&str; 9] = [
    "fast",
    "low",
    "medium",
    "high",
    "xhigh",
    "wide-research",
    "pro-search",
    "deep-research",
    "advanced-deep-research",
];

/// The last step of a run that was not stopped; `None` when there is no report.
pub(super) fn final_step(status: Status, response: &mut Response, raw: Vec<u8>) -> Option<Step> {
    let (text, thinking) = split_thinking(response.take_report().0);
    // Thoughts alone are no report.
    if text.trim().is_empty() {
        return None;
    }
    let (mut text, sources) =
        citations::number_citations(text, response.search_results(), response.read());
    note_early_end(&mut text, status, response);
    let usage = usage(response);
    let output = Output {
        body: Body::Report { text, sources, thinking, related: Vec::new() },
        model: resolved_model(response),
        cost: cost(response, &usage),
        usage,
    };
    Some(Step::Done { output: Box::new(output), raw: Some(raw) })
}

fn resolved_model(response: &Response) -> Option<String> {
    response.model.0.clone().filter(|model| !model.is_empty() && !PRESETS.contains(&model.as_str()))
}

/// The cost that a run's object states, with a report or without.
pub(super) fn stated_cost(response: &Response) -> Cost {
    cost(response, &usage(response))
}

fn usage(response: &Response) -> Usage {
    let Some(usage) = &*response.usage else { return Usage::default() };
    let searches = usage.calls().filter(|(tool, _)| is_web_search(tool));
    usage.to_usage(searches.map(|(_, calls)| calls).sum())
}

/// The bill calls the tool by another name than the request does.
fn is_web_search(tool: &str) -> bool {
    matches!(tool, "search_web" | "web_search")
}

/// The reported cost first (C9).
fn cost(response: &Response, consumed: &Usage) -> Cost {
    let Some(usage) = response.usage.as_ref().filter(|billed| !billed.is_odd) else {
        return Cost::Unknown;
    };
    let reported = usage.cost.as_ref().and_then(|cost| *cost.total_cost);
    if let Some(reported) = reported.and_then(NanoUsd::from_usd) {
        return Cost::Reported(reported);
    }
    let extras = Extras {
        cached_tokens: usage.cached_tokens(),
        calls: usage.calls().filter(|(tool, _)| !is_web_search(tool)).collect(),
        context: None,
    };
    let model = resolved_model(response).unwrap_or_default();
    Prices::current().bill(&model, consumed, &extras)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::object;

    const DONE: &str = r##"{"id":"resp_1","status":"completed","model":"openai/gpt-6-sol","output":[
        {"type":"search_results","queries":["q"],"results":[
            {"id":3,"url":"https://b.example","title":"B"},{"id":1,"url":"https://a.example","title":"A","date":"2026-06-10"}]},
        {"type":"message","content":[{"type":"output_text","text":"# Report [1][3]"}]}],
        "usage":{"input_tokens":10,"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},
            "tool_calls_details":{"search_web":{"invocation":2}},"cost":{"total_cost":0.00105}}}"##;

    #[test]
    fn a_finished_run_becomes_a_report_with_numbered_sources_usage_and_cost() {
        let step = final_step(
            Status::Completed,
            &mut object::<Response>(DONE.as_bytes()).unwrap(),
            DONE.into(),
        )
        .unwrap();
        let Step::Done { output, raw } = step else { panic!("not done") };
        assert_eq!(raw.unwrap(), DONE.as_bytes());
        assert_eq!(output.model.as_deref(), Some("openai/gpt-6-sol"));
        assert_eq!(output.cost, Cost::Reported(NanoUsd(1_050_000)));
        let expected = Usage {
            input_tokens: 10,
            output_tokens: 20,
            total_tokens: 30,
            reasoning_tokens: 5,
            citation_tokens: 0,
            searches: 2,
        };
        assert_eq!(output.usage, expected);
        let Body::Report { text, sources, .. } = output.body else { panic!("no report") };
        assert_eq!(text, "# Report [1][3]");
        let urls: Vec<_> =
            sources.iter().map(|source| (source.number, source.url.as_str())).collect();
        assert_eq!(urls, [(1, "https://a.example"), (3, "https://b.example")]);
    }

    #[test]
    fn a_cut_report_notes_it_and_an_empty_one_is_dropped() {
        let cut = r#"{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
            "output":[{"type":"message","content":[{"type":"output_text","text":"half"}]}]}"#;
        let Step::Done { output, .. } = final_step(
            Status::Incomplete,
            &mut object::<Response>(cut.as_bytes()).unwrap(),
            Vec::new(),
        )
        .unwrap() else {
            panic!("not done")
        };
        let Body::Report { text, .. } = output.body else { panic!("no report") };
        assert_eq!(text, "half\n\n*The provider ended this report early (max_output_tokens).*");
        let empty = r#"{"id":"r","status":"incomplete","output":[]}"#;
        let mut empty = object::<Response>(empty.as_bytes()).unwrap();
        assert!(final_step(Status::Incomplete, &mut empty, Vec::new()).is_none());
    }

    fn output(body: &str) -> Output {
        let mut response = object::<Response>(body.as_bytes()).unwrap();
        match final_step(Status::Completed, &mut response, Vec::new()) {
            Some(Step::Done { output, .. }) => *output,
            other => panic!("{other:?}"),
        }
    }

    /// The preset is what was asked for, not what did the work.
    #[test]
    fn a_preset_is_not_the_name_of_a_model() {
        let text = r#""output":[{"type":"message","content":[{"text":"t"}]}]"#;
        for preset in PRESETS.iter().chain(&[""]) {
            assert_eq!(output(&format!(r#"{{"model":"{preset}",{text}}}"#)).model, None);
        }
        let body = format!(r#"{{"model":"openai/gpt-6-luna",{text}}}"#);
        assert_eq!(output(&body).model.as_deref(), Some("openai/gpt-6-luna"));
    }

    /// P5: the model's thinking is not part of the report, as in the other dialect.
    #[test]
    fn p5_thinking_is_kept_apart_from_the_report() {
        let body = r#"{"output":[{"type":"message","content":[
            {"text":"<think>hm [1]</think># R\nwrite `<think>` and `</think>` <think>so</think>"}]}]}"#;
        let Body::Report { text, thinking, .. } = output(body).body else { panic!("no report") };
        assert_eq!(text, "# R\nwrite `<think>` and `</think>`");
        assert_eq!(thinking.as_deref(), Some("hm [1]\n\nso"));
        let only = r#"{"output":[{"type":"message","content":[{"text":"<think>hm</think>"}]}]}"#;
        let mut only = object::<Response>(only.as_bytes()).unwrap();
        assert!(
            final_step(Status::Completed, &mut only, Vec::new()).is_none(),
            "thoughts alone are none"
        );
    }

    /// C9: reported first, else computed, else an estimate, else nothing.
    #[test]
    fn the_cost_is_as_certain_as_the_providers_report() {
        let cost = |model: &str, usage: &str| {
            let text = r#""output":[{"type":"message","content":[{"text":"t"}]}]"#;
            output(&format!(r#"{{"model":"{model}","usage":{usage},{text}}}"#)).cost
        };
        let tokens = r#""input_tokens":1000000,"output_tokens":1000000"#;
        let calls = r#""input_tokens_details":{"cached_tokens":500000},
            "tool_calls_details":{"search_web":{"invocation":4},"fetch_url":{"invocation":2},
            "odd":{"invocation":9},"null":null}"#;
        let luna = "openai/gpt-6-luna";
        let cases = [
            (
                cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":0.5}}}}"#)),
                Cost::Reported(NanoUsd(500_000_000)),
            ),
            (
                cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":null}}}}"#)),
                Cost::Computed(NanoUsd(600_000_000)),
            ),
            (cost(luna, &format!("{{{tokens},{calls}}}")), Cost::Computed(NanoUsd(566_000_000))),
            (
                cost(
                    luna,
                    &format!("{{{tokens},{calls}}}").replace("cached_", "cache_read_input_"),
                ),
                Cost::Computed(NanoUsd(566_000_000)),
            ),
            (cost("new/model", &format!("{{{tokens}}}")), Cost::Estimate(NanoUsd(10_000_000_000))),
            (cost(luna, "{}"), Cost::Unknown),
            (cost(luna, "null"), Cost::Unknown),
            // G6: what cannot be counted makes no number.
            (cost(luna, r#"{"input_tokens":-1000000,"output_tokens":1000000}"#), Cost::Unknown),
            (cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":"0.5"}}}}"#)), Cost::Unknown),
            (cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":1e300}}}}"#)), Cost::Unknown),
            (cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":1e999}}}}"#)), Cost::Unknown),
            (cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":NaN}}}}"#)), Cost::Unknown),
            (
                cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":-Infinity}}}}"#)),
                Cost::Unknown,
            ),
            (cost(luna, &format!(r#"{{{tokens},"cost":"much"}}"#)), Cost::Unknown),
            (cost(luna, &format!(r#"{{{tokens},"cost":{{"total_cost":-0.5}}}}"#)), Cost::Unknown),
            (
                cost(
                    luna,
                    &format!(r#"{{{tokens},"cost":{{"total_cost":0.5,"currency":"EUR"}}}}"#),
                ),
                Cost::Unknown,
            ),
            (
                cost(
                    luna,
                    &format!(r#"{{{tokens},"cost":{{"total_cost":0.5,"currency":"USD"}}}}"#),
                ),
                Cost::Reported(NanoUsd(500_000_000)),
            ),
        ];
        for (cost, expected) in cases {
            assert_eq!(cost, expected);
        }
    }
}
