//! From a run's last state to our output.

mod citations;

use outlast_core::{Body, Cost, Output, Step, Usage, split_thinking};

use super::wire::Interaction;
use crate::prices::{Extras, Prices};

/// The last step of a run that was not stopped; `None` when there is no report.
pub(super) fn final_step(interaction: &mut Interaction, raw: Vec<u8>) -> Option<Step> {
    let (text, sources) = citations::cite(interaction.take_report());
    let (mut text, thinking) = split_thinking(text);
    // Thoughts alone are no report.
    if text.trim().is_empty() {
        return None;
    }
    if let Some(reason) = interaction.limit() {
        text.push_str(&format!("\n\n*The provider ended this report early ({reason}).*"));
    }
    let output = Output {
        body: Body::Report { text, sources, thinking, related: Vec::new() },
        model: interaction.agent().map(str::to_owned),
        cost: cost(interaction),
        usage: usage(interaction),
    };
    Some(Step::Done { output: Box::new(output), raw: Some(raw) })
}

/// Counts the input of tools as input and thoughts as output: they are billed as such.
fn usage(interaction: &Interaction) -> Usage {
    let Some(usage) = &*interaction.usage else { return Usage::default() };
    let (input, tools) = (usage.total_input_tokens, usage.total_tool_use_tokens);
    let (output, thoughts) = (usage.total_output_tokens, usage.total_thought_tokens);
    let input_tokens = input.or_zero() + tools.or_zero();
    let output_tokens = output.or_zero() + thoughts.or_zero();
    Usage {
        input_tokens,
        output_tokens,
        total_tokens: usage.total_tokens.count().unwrap_or(input_tokens + output_tokens),
        reasoning_tokens: thoughts.or_zero(),
        citation_tokens: 0,
        searches: usage.calls().filter(|(tool, _)| *tool == SEARCH).map(|(_, calls)| calls).sum(),
    }
}

/// The tool that is a web search.
const SEARCH: &str = "google_search";

/// Computed: the provider reports none. A number that can be none makes the whole bill unknown.
pub(super) fn cost(interaction: &Interaction) -> Cost {
    let Some(reported) = interaction.usage.as_ref().filter(|usage| !usage.has_invalid_counts())
    else {
        return Cost::Unknown;
    };
    let extras = Extras {
        cached_tokens: reported.total_cached_tokens.or_zero(),
        calls: reported.calls().filter(|(tool, _)| *tool != SEARCH).collect(),
        context: None,
    };
    Prices::current().bill(interaction.agent().unwrap_or_default(), &usage(interaction), &extras)
}

#[cfg(test)]
mod tests {
    use outlast_core::NanoUsd;

    use super::*;
    use crate::vendor::object;

    fn output(body: &str) -> Output {
        let mut interaction = object::<Interaction>(body.as_bytes()).unwrap();
        match final_step(&mut interaction, Vec::new()) {
            Some(Step::Done { output, .. }) => *output,
            other => panic!("{other:?}"),
        }
    }

    fn with_usage(usage: &str) -> Output {
        output(&format!(
            r#"{{"status":"completed","agent":"deep-research-preview-04-2026","usage":{usage},
            "steps":[{{"type":"model_output","content":[{{"type":"text","text":"t"}}]}}]}}"#
        ))
    }

    /// G3: usage, and a cost from the table: tokens at the model's list price, each search at its own.
    #[test]
    fn g3_a_bill_counts_tokens_thoughts_cache_and_searches() {
        let done = with_usage(
            r#"{"total_input_tokens":100000,"total_cached_tokens":50000,"total_tool_use_tokens":10000,
            "total_output_tokens":10000,"total_thought_tokens":20000,"total_tokens":140000,
            "grounding_tool_count":[{"type":"google_search","count":80},{"type":"dowsing","count":3},{"count":1}]}"#,
        );
        let expected = Usage {
            input_tokens: 110_000,
            output_tokens: 30_000,
            total_tokens: 140_000,
            reasoning_tokens: 20_000,
            citation_tokens: 0,
            searches: 80,
        };
        assert_eq!(done.usage, expected);
        // 60,000 at $2 a million, 50,000 from the cache at $0.20, 30,000 at $12, 80 searches at $0.014 each.
        let dollars = 120_000_000 + 10_000_000 + 360_000_000 + 1_120_000_000;
        assert_eq!(done.cost, Cost::Computed(NanoUsd(dollars)));
        assert_eq!(done.model.as_deref(), Some("deep-research-preview-04-2026"));
        // Longer requests are dearer, and which were cannot be seen.
        let long = with_usage(r#"{"total_input_tokens":1000000}"#);
        assert_eq!(long.cost, Cost::Estimate(NanoUsd(2_000_000_000)));
    }

    /// G3: negative or absurd usage makes no bill, and no harm.
    #[test]
    fn g3_absurd_usage_makes_the_cost_unknown() {
        for absurd in ["-5", "1.5", "\"9\"", "1e300", "99999999999999999999", "1000000000001", "[]"]
        {
            let usage = format!(r#"{{"total_input_tokens":{absurd},"total_output_tokens":5}}"#);
            assert_eq!(with_usage(&usage).cost, Cost::Unknown, "{absurd}");
            let calls = format!(
                r#"{{"total_output_tokens":5,"grounding_tool_count":[{{"type":"google_search","count":{absurd}}}]}}"#
            );
            assert_eq!(with_usage(&calls).cost, Cost::Unknown, "{absurd}");
        }
        for none in ["null", "{}", "[]", r#"{"total_input_tokens":null}"#] {
            assert_eq!(with_usage(none).cost, Cost::Unknown, "{none}");
        }
    }

    #[test]
    fn a_report_cut_short_notes_it_and_an_empty_one_is_dropped() {
        let body = |status: &str, text: &str| {
            format!(
                r#"{{"status":"{status}","steps":[{{"type":"thought","summary":[{{"type":"text","text":"hm"}}]}},
                {{"type":"model_output","content":[{{"type":"text","text":"{text}"}}]}}]}}"#
            )
        };
        for status in ["incomplete", "budget_exceeded", "requires_continuation"] {
            let Body::Report { text, sources, thinking, .. } = output(&body(status, "half")).body
            else {
                panic!("no report")
            };
            assert_eq!(text, format!("half\n\n*The provider ended this report early ({status}).*"));
            assert!(
                sources.is_empty() && thinking.is_none(),
                "summaries of thoughts are no part of it"
            );
            for empty in ["", " \\n"] {
                let mut interaction =
                    object::<Interaction>(body(status, empty).as_bytes()).unwrap();
                assert!(final_step(&mut interaction, Vec::new()).is_none());
            }
        }
    }
}
