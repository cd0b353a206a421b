//! The table of docs/project/cancel-answers.md: each answer of a vendor to a cancel, and what is recorded of the run after it.

use std::sync::Arc;

use outlast_core::{Cost, NanoUsd, Provider, RemoteRun, StopOutcome};
use outlast_provider::anthropic::Anthropic;
use outlast_provider::gemini::Gemini;
use outlast_provider::openai::OpenAi;
use outlast_provider::perplexity::Agent;

use crate::bench::{KEY, PATIENCE, options, patiently};
use crate::canned::{Canned, Reply, reply};

const VENDORS: [&str; 4] = ["agent", "openai", "gemini", "anthropic"];

/// A run as a vendor shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shown {
    Running,
    Completed,
    Stopped,
    Missing,
}

fn provider(vendor: &str, server: &Canned) -> Arc<dyn Provider> {
    let options = options(&server.url, KEY, PATIENCE, &server.clock);
    match vendor {
        "agent" => Arc::new(Agent::new(options).unwrap()),
        "openai" => Arc::new(OpenAi::new(options).unwrap()),
        "gemini" => Arc::new(Gemini::new(options).unwrap()),
        _ => Arc::new(Anthropic::new(options).unwrap()),
    }
}

/// The answer to a look.
fn look(vendor: &str, line: &str, shown: Shown) -> Reply {
    if shown == Shown::Missing {
        return reply(404, r#"{"error":{"type":"not_found_error","message":"no such run"}}"#);
    }
    let is_events = line.contains("/events");
    reply(
        200,
        &match (vendor, shown) {
            ("anthropic", shown) if is_events => {
                let idle = |reason: &str| {
                    format!(
                        r#",{{"type":"session.status_idle","stop_reason":{{"type":"{reason}"}}}}"#
                    )
                };
                let end = match shown {
                    Shown::Completed => format!(
                        r#",{{"type":"agent.message","content":[{{"type":"text","text":"Blue."}}]}}{}"#,
                        idle("end_turn")
                    ),
                    Shown::Stopped => {
                        format!(r#",{{"type":"user.interrupt"}}{}"#, idle("end_turn"))
                    }
                    Shown::Running | Shown::Missing => String::new(),
                };
                format!(
                    r#"{{"data":[{{"type":"user.message"}},{{"type":"session.status_running"}}{end}]}}"#
                )
            }
            ("anthropic", _) => {
                r#"{"id":"r","status":"idle","usage":{"input_tokens":1,"output_tokens":1,
            "list_cost":{"amount":"41","currency":"USD"}}}"#
                    .to_owned()
            }
            ("gemini", Shown::Completed) => {
                r#"{"id":"r","status":"completed","agent":"deep-research-preview-04-2026",
            "steps":[{"type":"model_output","content":[{"type":"text","text":"Blue."}]}],
            "usage":{"total_input_tokens":1000,"total_output_tokens":100}}"#
                    .to_owned()
            }
            (_, Shown::Completed) => {
                r#"{"id":"r","status":"completed","model":"gpt-6-sol","output":[{"type":"message",
            "content":[{"type":"output_text","text":"Blue."}]}],
            "usage":{"input_tokens":1000,"output_tokens":100,"cost":{"total_cost":0.41}}}"#
                    .to_owned()
            }
            (_, Shown::Stopped) => r#"{"id":"r","status":"cancelled"}"#.to_owned(),
            (_, Shown::Running | Shown::Missing) => {
                r#"{"id":"r","status":"in_progress"}"#.to_owned()
            }
        },
    )
}

/// Stops a run whose cancel is answered with `status`, and which is shown so before and after it.
async fn stopped(vendor: &'static str, status: u16, [before, after]: [Shown; 2]) -> Outcome {
    let server = Canned::serve(move |line, number| {
        let is_cancel = line.starts_with("POST") && !line.contains("archive");
        match line {
            _ if is_cancel && status == 204 => reply(200, "{}"),
            _ if is_cancel => {
                reply(status, r#"{"error":{"message":"already terminal","code":400}}"#)
            }
            line if line.starts_with("POST") => reply(200, "{}"),
            // A look at a session is two calls.
            _ if number < if vendor == "anthropic" { 2 } else { 1 } => look(vendor, line, before),
            _ => look(vendor, line, after),
        }
    })
    .await;
    let provider = provider(vendor, &server);
    let begun_at = outlast_core::Clock::now(&*server.clock);
    server.clock.advance(std::time::Duration::from_secs(60));
    let run = RemoteRun {
        provider: String::new(),
        id: "r".to_owned(),
        cursor: Some("sent".to_owned()),
        begun_at,
    };
    let stopped = patiently(provider.stop(&run)).await;
    match stopped {
        Ok(StopOutcome::Ended { .. }) => Outcome::Ended,
        Ok(StopOutcome::Completed { cost }) => Outcome::Completed(cost),
        Ok(StopOutcome::StillRunning) => Outcome::StillRunning,
        Ok(StopOutcome::CannotStop | StopOutcome::Unknown) => Outcome::Unknown,
        Err(error) if error.kind.is_permanent() => Outcome::Unknown,
        Err(_) => Outcome::TryAgain,
    }
}

#[derive(Debug, PartialEq)]
enum Outcome {
    Ended,
    Completed(Cost),
    StillRunning,
    Unknown,
    TryAgain,
}

/// A3: a cancel that is refused is not a stop. Whatever the vendor answers, only a run that was seen to have ended has.
#[tokio::test]
async fn a3_a_refused_cancel_is_a_stop_only_if_the_run_was_seen_to_have_ended() {
    use Shown::{Completed, Missing, Running, Stopped};
    for vendor in VENDORS {
        for status in [400, 404, 409, 429, 500, 503] {
            let outcome = stopped(vendor, status, [Running, Running]).await;
            assert_eq!(outcome, Outcome::StillRunning, "{vendor} {status}");
        }
        for status in [400, 409, 503] {
            let outcome = stopped(vendor, status, [Running, Stopped]).await;
            assert_eq!(outcome, Outcome::Ended, "{vendor} {status}");
            let outcome = stopped(vendor, status, [Running, Completed]).await;
            let Outcome::Completed(cost) = outcome else { panic!("{vendor} {status} {outcome:?}") };
            assert!(cost.is_known(), "{vendor}: {cost:?}");
            if let Cost::Reported(cost) = cost {
                assert_eq!(cost, NanoUsd(410_000_000), "{vendor}");
            }
            let outcome = stopped(vendor, status, [Running, Missing]).await;
            assert_eq!(outcome, Outcome::TryAgain, "{vendor} {status}: it may only be hidden");
            let outcome = stopped(vendor, status, [Missing, Missing]).await;
            assert_eq!(outcome, Outcome::Unknown, "{vendor} {status}");
        }
        let outcome = stopped(vendor, 400, [Completed, Completed]).await;
        assert!(matches!(outcome, Outcome::Completed(_)), "{vendor}: {outcome:?}");
    }
}

/// A3: an accepted cancel is a stop once the run is seen to have ended.
#[tokio::test]
async fn a3_an_accepted_cancel_is_a_stop_once_the_run_was_seen_to_have_ended() {
    use Shown::{Completed, Running, Stopped};
    for vendor in VENDORS {
        assert_eq!(stopped(vendor, 204, [Running, Stopped]).await, Outcome::Ended, "{vendor}");
        let outcome = stopped(vendor, 204, [Running, Completed]).await;
        assert!(matches!(outcome, Outcome::Completed(_)), "{vendor}: {outcome:?}");
    }
}
