//! From the provider's completion to our output.

use outlast_core::{Body, Cost, NanoUsd, Output, Source, Usage, split_thinking};

use super::wire::{self, Citation, Completion};
use crate::prices::{Extras, Prices};
use crate::responses::wire::OpenedPage;

/// The output of a whole completion; `None` if it has no text.
pub(super) fn output(completion: Completion) -> Option<Box<Output>> {
    let text = completion.message()?.to_owned();
    output_with_text(text, completion)
}

/// The output with this text and everything else of the completion; `None` when there is no text.
pub(super) fn output_with_text(text: String, completion: Completion) -> Option<Box<Output>> {
    let (mut text, thinking) = split_thinking(text);
    // Thoughts alone are no report.
    if text.trim().is_empty() {
        return None;
    }
    if completion.finish_reason() == Some("length") {
        text.push_str("\n\n*The provider ended this report early (length).*");
    }
    let sources = sources(&completion);
    let usage = completion.usage.as_ref().map(|billed| usage(billed)).unwrap_or_default();
    let cost = cost(&completion, &usage);
    let related = completion.related_questions.0.unwrap_or_default();
    let body = Body::Report { text, sources, thinking, related };
    Some(Box::new(Output { body, model: completion.model.0, usage, cost }))
}

/// The cost that a completion states, with a report or without.
pub(super) fn stated_cost(completion: &Completion) -> Cost {
    let usage = completion.usage.as_ref().map(|billed| usage(billed)).unwrap_or_default();
    cost(completion, &usage)
}

/// The sources that the numbers in the text cite: the citations if there are any, otherwise the search results in their order.
fn sources(completion: &Completion) -> Vec<Source> {
    let results = completion.search_results.as_deref().unwrap_or_default();
    let citations = completion.citations.as_deref().unwrap_or_default();
    if citations.is_empty() {
        let found = (1..).zip(results);
        return found
            .filter_map(|(number, result)| source(number, result.url.as_deref()?, Some(result)))
            .collect();
    }
    let cited = (1..).zip(citations).zip(0..);
    cited
        .filter_map(|((number, citation), place): ((u32, &Citation), usize)| {
            let url = citation.url.as_deref()?;
            // Usually at the same place; searched for if the two lists differ.
            let same = |result: &&OpenedPage| result.url.as_deref() == Some(url);
            let result = results.get(place).filter(same).or_else(|| results.iter().find(same));
            source(number, url, result)
        })
        .collect()
}

fn source(number: u32, url: &str, result: Option<&OpenedPage>) -> Option<Source> {
    if url.is_empty() {
        return None;
    }
    let title = result.and_then(|result| result.title.0.clone());
    let date = result.and_then(|result| result.date.0.clone());
    Some(Source { number, url: url.to_owned(), title, date, ..Source::default() })
}

/// Deep research counts and bills its reasoning apart from what it writes.
fn usage(usage: &wire::Usage) -> Usage {
    let input_tokens = usage.prompt_tokens.unwrap_or(0);
    let output_tokens = usage.completion_tokens.unwrap_or(0);
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: usage.total_tokens.unwrap_or(input_tokens.saturating_add(output_tokens)),
        reasoning_tokens: usage.reasoning_tokens.unwrap_or(0),
        citation_tokens: usage.citation_tokens.unwrap_or(0),
        searches: usage.num_search_queries.unwrap_or(0),
    }
}

/// The reported cost first (C9). A cost of nothing is the placeholder that streams have until their end, not a
/// gift.
fn cost(completion: &Completion, consumed: &Usage) -> Cost {
    let Some(usage) = completion.usage.as_ref().filter(|billed| !billed.is_odd) else {
        return Cost::Unknown;
    };
    let reported =
        usage.cost.as_ref().and_then(|cost| *cost.total_cost).and_then(NanoUsd::from_usd);
    if let Some(reported) = reported.filter(|cost| *cost > NanoUsd(0)) {
        return Cost::Reported(reported);
    }
    let extras = Extras { context: *usage.search_context_size, ..Extras::default() };
    let model = completion.model.as_deref().unwrap_or_default();
    Prices::current().bill(model, consumed, &extras)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::object;

    fn report(json: &str) -> (Output, String, Vec<Source>) {
        let output = *output(object::<Completion>(json.as_bytes()).unwrap()).unwrap();
        let Body::Report { text, sources, .. } = output.body.clone() else { panic!("no report") };
        (output, text, sources)
    }

    const DONE: &str = r##"{"id":"u","model":"sonar-deep-research","choices":[{"finish_reason":"stop",
        "message":{"role":"assistant","content":"<think>hm</think># Report [1][2]"}}],
        "citations":["https://a.example","https://b.example"],
        "search_results":[{"title":"B","url":"https://b.example","date":null},
            {"title":"A","url":"https://a.example","date":"2025-06-10","snippet":"s"}],
        "usage":{"prompt_tokens":21,"completion_tokens":7163,"total_tokens":7184,"citation_tokens":19028,
            "num_search_queries":21,"reasoning_tokens":193653,"cost":{"total_cost":0.781}},
        "related_questions":["And then?"]}"##;

    #[test]
    fn a_completion_becomes_a_report_with_numbered_sources_usage_and_cost() {
        let (output, text, sources) = report(DONE);
        assert_eq!(text, "# Report [1][2]");
        assert_eq!(output.model.as_deref(), Some("sonar-deep-research"));
        assert_eq!(output.cost, Cost::Reported(NanoUsd(781_000_000)));
        let expected = Usage {
            input_tokens: 21,
            output_tokens: 7163,
            total_tokens: 7184,
            reasoning_tokens: 193_653,
            citation_tokens: 19_028,
            searches: 21,
        };
        assert_eq!(output.usage, expected);
        let shown: Vec<_> = sources
            .iter()
            .map(|source| {
                (
                    source.number,
                    source.url.as_str(),
                    source.title.as_deref(),
                    source.date.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                (1, "https://a.example", Some("A"), Some("2025-06-10")),
                (2, "https://b.example", Some("B"), None)
            ]
        );
        let Body::Report { thinking, related, .. } = output.body else { panic!("no report") };
        assert_eq!((thinking.as_deref(), related), (Some("hm"), vec!["And then?".to_owned()]));
    }

    #[test]
    fn a_source_that_cannot_be_read_does_not_move_the_numbers_of_others() {
        let said = r#""choices":[{"message":{"content":"x"}}]"#;
        let numbers = |rest: &str| -> Vec<(u32, String)> {
            let (_, _, sources) = report(&format!("{{{said},{rest}}}"));
            sources.into_iter().map(|source| (source.number, source.url)).collect()
        };
        let kept = vec![(1, "a".to_owned()), (3, "c".to_owned())];
        assert_eq!(numbers(r#""citations":["a",null,{"url":"c"}]"#), kept);
        assert_eq!(
            numbers(r#""search_results":[{"url":"a"},{"url":7},{"url":"c","title":null}]"#),
            kept
        );
        assert_eq!(
            numbers(r#""citations":[],"search_results":[{"url":"a"},null,{"url":"c"}]"#),
            kept
        );
        assert_eq!(numbers(r#""citations":"none","search_results":null"#), []);
    }

    #[test]
    fn a_cut_text_notes_it_and_an_empty_one_is_not_a_report() {
        let (output, text, _) = report(
            r#"{"choices":[{"finish_reason":"length","message":{"content":"half"}}],
                "usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
        );
        assert_eq!(output.usage.total_tokens, 3);
        assert_eq!(text, "half\n\n*The provider ended this report early (length).*");
        let thoughts =
            r#"{"choices":[{"finish_reason":"length","message":{"content":"<think>hm</think>"}}]}"#;
        let blank = r#"{"choices":[{"message":{"content":" "}}]}"#;
        for nothing in [r#"{"choices":[]}"#, blank, thoughts, "{}"] {
            assert!(super::output(object::<Completion>(nothing.as_bytes()).unwrap()).is_none());
        }
    }
    /// C9: reported first, else computed with reasoning next to the output, else an estimate, else nothing.
    #[test]
    fn c9_a_cost_that_is_not_reported_comes_from_the_table() {
        let cost = |model: &str, usage: &str| {
            let said = r#""choices":[{"message":{"content":"x"}}]"#;
            report(&format!(r#"{{"model":{model},"usage":{usage},{said}}}"#)).0.cost
        };
        let deep = |cost: &str| {
            format!(
                r#"{{"prompt_tokens":1001,"completion_tokens":2373,"total_tokens":3374,"citation_tokens":8834,
                "num_search_queries":19,"reasoning_tokens":220303,"cost":{cost}}}"#
            )
        };
        let research = r#""sonar-deep-research""#;
        let pro = r#""sonar-pro""#;
        let short =
            r#"{"prompt_tokens":1000,"completion_tokens":1000,"search_context_size":"high"}"#;
        let skeleton = r#"{"prompt_tokens":0,"completion_tokens":0,"cost":{"total_cost":0}}"#;
        let cases = [
            (
                cost(research, &deep(r#"{"total_cost":0.781}"#)),
                Cost::Reported(NanoUsd(781_000_000)),
            ),
            (cost(research, &deep(r#"{"total_cost":0}"#)), Cost::Computed(NanoUsd(794_563_000))),
            (cost(research, &deep("null")), Cost::Computed(NanoUsd(794_563_000))),
            (cost(pro, short), Cost::Computed(NanoUsd(32_000_000))),
            (cost("null", short), Cost::Estimate(NanoUsd(10_000_000))),
            (cost(pro, skeleton), Cost::Unknown),
            (cost(pro, "null"), Cost::Unknown),
            (cost(pro, r#"{"prompt_tokens":-10,"completion_tokens":20}"#), Cost::Unknown),
            (cost(research, &deep(r#"{"total_cost":-0.781}"#)), Cost::Unknown),
            (cost(research, &deep(r#"{"total_cost":0.781,"currency":"EUR"}"#)), Cost::Unknown),
        ];
        for (cost, expected) in cases {
            assert_eq!(cost, expected);
        }
    }
}
