//! Refusals of a submit that the status alone does not explain: a model that does not exist, a server that cannot do what is
//! needed here.

use outlast_core::{BeginError, ProviderError, ProviderErrorKind};

use super::wire::ApiRefusal;
use crate::vendor::HttpAnswer;

/// The number of models to name.
const NAMED_MODELS: usize = 12;

/// The kind of a refusal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RefusalKind {
    NoModel,
    NoBackground,
    NoEndpoint,
    Other,
}

/// The refusal with a better sentence, if there is one.
pub(super) fn of(error: BeginError, answer: &HttpAnswer) -> (BeginError, RefusalKind) {
    let BeginError::Refused(error) = error else { return (error, RefusalKind::Other) };
    if error.kind != ProviderErrorKind::Rejected {
        return (BeginError::Refused(error), RefusalKind::Other);
    }
    let why = why(answer);
    let sentence = match why {
        RefusalKind::NoModel | RefusalKind::Other => error.sentence,
        RefusalKind::NoBackground => "this server does not run requests in the background, without which a run cannot be \
            resumed; use a server that does (vLLM: set VLLM_ENABLE_RESPONSES_API_STORE=1 there), or another provider"
            .to_owned(),
        RefusalKind::NoEndpoint => {
            let status = answer.status.as_u16();
            format!("the server has no Responses API (HTTP {status} for /v1/responses); check OPENAI_BASE_URL")
        }
    };
    (BeginError::Refused(ProviderError { sentence, ..error }), why)
}

fn why(answer: &HttpAnswer) -> RefusalKind {
    let refusal = ApiRefusal::parse(&answer.body);
    if refusal.is_about_the_model() {
        return RefusalKind::NoModel;
    }
    match answer.status.as_u16() {
        400 | 422 if refusal.is_about_the_background() => RefusalKind::NoBackground,
        404 | 405 => RefusalKind::NoEndpoint,
        _ => RefusalKind::Other,
    }
}

/// The sentence about a model that the provider does not have.
pub(super) fn no_model(model: &str, known: &[String]) -> String {
    let change =
        format!("the provider does not serve the model `{model}`; set OUTLAST_OPENAI_MODEL");
    if known.is_empty() {
        return format!("{change} to one that it lists");
    }
    let names = known.iter().take(NAMED_MODELS).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = known.len().saturating_sub(NAMED_MODELS);
    match more {
        0 => format!("{change} to one of: {names}"),
        more => format!("{change} to one of: {names}, or one of {more} others"),
    }
}

#[cfg(test)]
mod tests {
    use reqwest::StatusCode;

    use super::*;

    /// G3: a server without background, and one without the endpoint, are distinguished from a bad request.
    #[test]
    fn g3_refusals_are_classified() {
        let cases = [
            (
                400,
                r#"{"error":{"message":"no such model","code":"model_not_found","param":null}}"#,
                RefusalKind::NoModel,
            ),
            (
                404,
                r#"{"error":{"message":"m","type":"NotFoundError","param":"model","code":404}}"#,
                RefusalKind::NoModel,
            ),
            (
                400,
                r#"{"error":{"message":"m","param":"background","code":400}}"#,
                RefusalKind::NoBackground,
            ),
            (
                400,
                r#"{"error":{"message":"Background mode is not supported","code":400}}"#,
                RefusalKind::NoBackground,
            ),
            (
                400,
                r#"{"object":"error","message":"store is off, so is background","code":400}"#,
                RefusalKind::NoBackground,
            ),
            (
                422,
                r#"{"detail":[{"loc":["body","background"],"msg":"Extra inputs","type":"t"}]}"#,
                RefusalKind::NoBackground,
            ),
            (404, r#"{"detail":"Not Found"}"#, RefusalKind::NoEndpoint),
            (405, "", RefusalKind::NoEndpoint),
            (400, r#"{"error":{"message":"bad","param":"tools"}}"#, RefusalKind::Other),
            (400, r#"{"error":"background"}"#, RefusalKind::Other),
            (413, "<html>", RefusalKind::Other),
        ];
        for (status, body, expected) in cases {
            let status = StatusCode::from_u16(status).unwrap();
            let answer = HttpAnswer { status, retry_after: None, body: body.into() };
            assert_eq!(why(&answer), expected, "{body}");
        }
    }

    #[test]
    fn a_long_list_of_models_is_cut() {
        let known: Vec<String> = (0..20).map(|number| format!("m{number}")).collect();
        let sentence = no_model("x", &known);
        assert!(
            sentence.contains("`x`") && sentence.contains("m11, or one of 8 others"),
            "{sentence}"
        );
        assert!(no_model("x", &known[..2]).ends_with("to one of: m0, m1"));
        assert!(no_model("x", &[]).ends_with("to one that it lists"));
    }
}
