//! From the provider's terminal object to our output.

use std::collections::BTreeMap;

use outlast_core::{Body, Cost, NanoUsd, Output, Source, Step, Usage};

use super::wire::{Response, Status};

/// The step that ends a run which came to an end of its own; `None` when there is no report.
pub(super) fn finished(status: Status, response: &Response, raw: Vec<u8>) -> Option<Step> {
    let mut text = response.text();
    if text.trim().is_empty() {
        return None;
    }
    if status == Status::Incomplete {
        let reason =
            response.incomplete_details.as_ref().and_then(|details| details.reason.as_deref());
        let reason = reason
            .filter(|reason| reason.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        text.push_str(&format!(
            "\n\n*The provider ended this report early ({}).*",
            reason.unwrap_or("no reason given")
        ));
    }
    let output = Output {
        body: Body::report(text, sources(response)),
        model: response.model.clone(),
        usage: usage(response),
        cost: cost(response),
    };
    Some(Step::Done { output: Box::new(output), raw: Some(raw) })
}

/// What was found, by citation number; a page found twice keeps its first number.
fn sources(response: &Response) -> Vec<Source> {
    let mut sources = BTreeMap::new();
    for result in response.results() {
        let (Some(number), Some(url)) = (result.id, result.url.as_ref()) else { continue };
        sources.entry(number).or_insert_with(|| Source {
            number,
            url: url.clone(),
            title: result.title.clone(),
            date: result.date.clone(),
            snippet: None,
        });
    }
    sources.into_values().collect()
}

fn usage(response: &Response) -> Usage {
    let Some(usage) = &response.usage else { return Usage::default() };
    let input_tokens = usage.input_tokens.unwrap_or(0);
    let output_tokens = usage.output_tokens.unwrap_or(0);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: usage.total_tokens.unwrap_or(input_tokens + output_tokens),
        reasoning_tokens: usage
            .output_tokens_details
            .as_ref()
            .and_then(|details| details.reasoning_tokens)
            .unwrap_or(0),
        citation_tokens: 0,
        searches: usage
            .tool_calls_details
            .as_ref()
            .and_then(|details| details.search_web.as_ref()?.invocation)
            .unwrap_or(0),
    }
}

fn cost(response: &Response) -> Cost {
    let reported = response.usage.as_ref().and_then(|usage| usage.cost.as_ref()?.total_cost);
    reported.and_then(NanoUsd::from_usd).map_or(Cost::Unknown, Cost::Reported)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DONE: &str = r##"{"id":"resp_1","status":"completed","model":"openai/gpt-6-sol","output":[
        {"type":"search_results","queries":["q"],"results":[
            {"id":3,"url":"https://b.example","title":"B"},{"id":1,"url":"https://a.example","title":"A","date":"2026-06-10"}]},
        {"type":"message","content":[{"type":"output_text","text":"# Report [1][3]"}]}],
        "usage":{"input_tokens":10,"output_tokens":20,"output_tokens_details":{"reasoning_tokens":5},
            "tool_calls_details":{"search_web":{"invocation":2}},"cost":{"total_cost":0.00105}}}"##;

    #[test]
    fn a_finished_run_becomes_a_report_with_numbered_sources_usage_and_cost() {
        let step =
            finished(Status::Completed, &Response::parse(DONE.as_bytes()).unwrap(), DONE.into())
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
    fn a_cut_report_says_so_and_an_empty_one_is_none() {
        let cut = r#"{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},
            "output":[{"type":"message","content":[{"type":"output_text","text":"half"}]}]}"#;
        let Step::Done { output, .. } =
            finished(Status::Incomplete, &Response::parse(cut.as_bytes()).unwrap(), Vec::new())
                .unwrap()
        else {
            panic!("not done")
        };
        let Body::Report { text, .. } = output.body else { panic!("no report") };
        assert_eq!(text, "half\n\n*The provider ended this report early (max_output_tokens).*");
        let empty = r#"{"id":"r","status":"incomplete","output":[]}"#;
        let empty = Response::parse(empty.as_bytes()).unwrap();
        assert!(finished(Status::Incomplete, &empty, Vec::new()).is_none());
    }
}
