//! The calls that follow and stop a run, and the errors of this API that differ from those of others.

use std::time::Duration;

use outlast_core::{BeginError, ProviderError, ProviderErrorKind, RunStatus};
use reqwest::StatusCode;
use tokio::time::timeout;

use super::wire::{Envelope, Interaction};
use super::{report, wire};
use crate::vendor::{
    self, CheckedAnswer, EventStream, HttpAnswer, RunError, Service, Vendor, refusal, silent,
};

impl Service {
    /// Returns the error of a refused submit.
    pub(super) fn submit_error(&self, answer: &HttpAnswer) -> BeginError {
        refusal(self.vendor(), answer, self.call_error(answer))
    }

    /// Returns the error of any other refused call.
    pub(super) fn call_error(&self, answer: &HttpAnswer) -> ProviderError {
        refine_error(self.vendor(), answer, self.provider_error(answer))
    }

    /// Returns the error of a run that ended without a report, with this key kept out of it.
    pub(super) fn without_report(&self, interaction: &Interaction) -> ProviderError {
        let error = run_ended(self.vendor(), interaction, |said| self.redact(said));
        ProviderError { run: RunStatus::Ended(report::cost(interaction)), ..error }
    }
}

/// A key that is refused is a 400 here, and the wait that a 429 asks for may be in its body alone.
fn refine_error(vendor: &Vendor, answer: &HttpAnswer, error: ProviderError) -> ProviderError {
    let envelope = Envelope::parse(&answer.body);
    match error.kind {
        ProviderErrorKind::Rejected if envelope.refuses_the_key() => ProviderError {
            kind: ProviderErrorKind::Unauthorized,
            sentence: vendor.bad_key(),
            ..error
        },
        ProviderErrorKind::RateLimited { retry_after: None } => {
            let retry_after = envelope.retry_delay();
            ProviderError { kind: ProviderErrorKind::RateLimited { retry_after }, ..error }
        }
        _ => error,
    }
}

/// Returns true if a submit was refused because there is no such agent.
pub(super) fn is_unknown_agent(answer: &HttpAnswer, agent: &str) -> bool {
    let message = Envelope::parse(&answer.body).message();
    let says_so = ["not found", "unknown", "not exist", "not supported", "invalid agent"];
    matches!(answer.status, StatusCode::NOT_FOUND | StatusCode::BAD_REQUEST)
        && message.contains(&agent.to_lowercase())
        && says_so.iter().any(|words| message.contains(words))
}

/// Returns true if the answer says that a run is not there. Some of the vendor's services say so with a 403.
pub(super) fn is_not_found(answer: &HttpAnswer) -> bool {
    answer.status == StatusCode::FORBIDDEN
        && Envelope::parse(&answer.body).message().contains("may not exist")
}

/// A run that ended without a report.
pub(super) fn run_ended(
    vendor: &Vendor,
    interaction: &Interaction,
    redact: impl Fn(&str) -> String,
) -> ProviderError {
    let (status, limit) = (interaction.status(), interaction.limit());
    vendor::run_ended(vendor, status, limit, interaction.error(), cause, redact)
}

/// Failures that a new run would only repeat, by the last part of the provider's code, which is a URI.
fn cause(error: &RunError) -> ProviderErrorKind {
    let code = error.code.as_ref().map(ToString::to_string).unwrap_or_default().to_lowercase();
    let word = code.rsplit('/').next().unwrap_or_default().replace('-', "_");
    let says = |known: &[&str]| known.iter().any(|known| word.contains(known));
    if says(&["billing", "credit", "insufficient_", "payment"]) {
        return ProviderErrorKind::QuotaExhausted;
    }
    if says(&["invalid_", "safety", "policy", "prohibited", "blocked", "too_many_prompt_tokens"]) {
        return ProviderErrorKind::Rejected;
    }
    ProviderErrorKind::RunFailed
}

/// The time a stream may take to open: a check must not wait for something that only shows progress.
const ATTACH_LIMIT: Duration = Duration::from_secs(10);

impl Service {
    /// The run's state; a missing run is a 404, in whatever form the service reports it.
    pub(super) async fn get_run(
        &self,
        id: &str,
        limit: Duration,
    ) -> Result<HttpAnswer, ProviderError> {
        let mut answer = self.get_within(limit, &["interactions", id]).await?;
        if is_not_found(&answer) {
            answer.status = StatusCode::NOT_FOUND;
        }
        Ok(answer)
    }

    /// Reopens a run's event stream after this event, or from its beginning.
    pub(super) async fn attach_after(
        &self,
        id: &str,
        after: Option<&str>,
    ) -> Result<Option<EventStream>, ProviderError> {
        let mut url = self.address(["interactions", id]);
        url.query_pairs_mut().append_pair("stream", "true");
        if let Some(after) = after {
            url.query_pairs_mut().append_pair("last_event_id", after);
        }
        let limit = ATTACH_LIMIT.min(self.timeout());
        timeout(limit, self.attach(url)).await.unwrap_or_else(|_| Err(silent(limit)))
    }

    /// Checks that the service answers and accepts the key; returns the agents that it lists.
    pub(super) async fn check_agents(
        &self,
        limit: Duration,
    ) -> Result<(CheckedAnswer, Vec<String>), ProviderError> {
        let mut list = self.address(["models"]);
        list.query_pairs_mut().append_pair("pageSize", "1000");
        let to_error = |answer: &HttpAnswer| self.call_error(answer);
        let (checked, body) = self.check_list(list, limit, to_error).await?;
        Ok((checked, wire::list_agents(&body)))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::gemini::VENDOR;
    use crate::vendor::object;

    fn answer(status: u16, body: &str) -> HttpAnswer {
        let status = StatusCode::from_u16(status).unwrap();
        HttpAnswer { status, retry_after: None, body: body.into() }
    }

    /// G3: errors by remedy; the vendor's words for them are its own.
    #[test]
    fn g3_a_refused_key_and_a_wait_are_found_in_this_vendors_fields() {
        let refined = |status, body: &str| {
            let answer = answer(status, body);
            let error = crate::vendor::provider_error(&VENDOR, &answer, "k");
            refine_error(&VENDOR, &answer, error)
        };
        let key = r#"{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.",
            "status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}"#;
        let error = refined(400, key);
        assert_eq!(error.kind, ProviderErrorKind::Unauthorized);
        assert!(error.sentence.contains("GEMINI_API_KEY"), "{error:?}");
        let other = r#"{"error":{"code":400,"message":"bad input","status":"INVALID_ARGUMENT"}}"#;
        assert_eq!(refined(400, other).kind, ProviderErrorKind::Rejected);
        let wait = |delay: &str| {
            refined(
                429,
                &format!(
                    r#"{{"error":{{"code":429,"details":[{{}},{{"retryDelay":"{delay}"}}]}}}}"#
                ),
            )
            .kind
            .retry_after()
        };
        assert_eq!(wait("34s"), Some(Duration::from_secs(34)));
        assert_eq!(wait("0.5s"), Some(Duration::from_millis(500)));
        for odd in ["soon", "-3s", "1e300s", "NaNs"] {
            assert_eq!(wait(odd), None, "{odd}");
        }
        assert_eq!(refined(402, "{}").kind, ProviderErrorKind::QuotaExhausted);
        assert_eq!(refined(403, "{}").kind, ProviderErrorKind::Unauthorized);
    }

    #[test]
    fn an_unknown_agent_and_a_hidden_run_differ_from_other_refusals() {
        let said = |message: &str| format!(r#"{{"error":{{"message":"{message}"}}}}"#);
        assert!(is_unknown_agent(&answer(404, &said("Agent 'agents/X-1' not found.")), "x-1"));
        assert!(is_unknown_agent(&answer(400, &said("agent x-1 is not supported")), "x-1"));
        assert!(!is_unknown_agent(&answer(400, &said("x-1 does not take tools")), "x-1"));
        assert!(!is_unknown_agent(&answer(500, &said("agent x-1 not found")), "x-1"));
        assert!(!is_unknown_agent(&answer(404, "<html>"), "x-1"));
        assert!(is_not_found(&answer(403, &said("No permission, or it may not exist."))));
        assert!(!is_not_found(&answer(403, &said("permission denied"))));
    }

    /// B9a, G9: a failed run may be repeated, unless its failure would only be repeated; its reason is kept.
    #[test]
    fn g9_a_failed_run_has_its_reason_and_is_permanent_only_if_another_would_fail_too() {
        let ended = |status: &str, code: &str| {
            let error = serde_json::json!({"code": code, "message": "m 7"});
            let body = serde_json::json!({"status": status, "error": error}).to_string();
            run_ended(&VENDOR, &object::<Interaction>(body.as_bytes()).unwrap(), str::to_owned)
        };
        let cases = [
            ("", ProviderErrorKind::RunFailed),
            ("https://errors.example/internal", ProviderErrorKind::RunFailed),
            ("https://errors.example/invalid/timeout", ProviderErrorKind::RunFailed),
            ("server_error", ProviderErrorKind::RunFailed),
            ("https://errors.example/insufficient-credit", ProviderErrorKind::QuotaExhausted),
            ("https://errors.example/SAFETY", ProviderErrorKind::Rejected),
            ("invalid_argument", ProviderErrorKind::Rejected),
        ];
        for (code, expected) in cases {
            let error = ended("failed", code);
            assert_eq!(error.kind, expected, "{code}");
            assert_eq!(error.detail, Some(format!("{code} m 7")));
        }
        let ends = [
            ("cancelled", ProviderErrorKind::RunStopped),
            ("requires_action", ProviderErrorKind::Rejected),
            ("budget_exceeded", ProviderErrorKind::Rejected),
            ("completed", ProviderErrorKind::Malformed),
        ];
        for (status, expected) in ends {
            assert_eq!(ended(status, "x").kind, expected, "{status:?}");
        }
    }
}
