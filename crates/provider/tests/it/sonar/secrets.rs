//! The key stays out of everything a person, a log or a store may see.

use outlast_core::{Provider, ProviderError};

use super::bench::{agent, answered, ask, not_begun, sonar};
use crate::bench::{KEY, PATIENCE};
use crate::canned::{Canned, Then, reply, stream};

#[track_caller]
fn keeps_the_key(case: &str, error: &ProviderError) {
    let text = format!("{error} {error:?}");
    assert!(!text.contains(KEY), "{case}: {text}");
    assert!(text.contains("[redacted]"), "{case}: upstream's words are kept: {text}");
}

#[tokio::test]
async fn no_error_carries_the_key_even_when_the_provider_repeats_it() {
    let envelope = format!(r#"{{"error":{{"message":"bad {KEY}","type":"t","code":0}}}}"#);
    let statuses = [200, 400, 401, 403, 409, 422, 429, 500, 503];
    let said = envelope.clone();
    let server = Canned::serve(move |_, nth| reply(statuses[nth % statuses.len()], &said)).await;
    let (sonar_here, agent_here) = (sonar(&server.url, PATIENCE), agent(&server.url, PATIENCE));
    let asks: [(&dyn Provider, &str); 4] = [
        (&sonar_here, "research"),
        (&sonar_here, "ask"),
        (&sonar_here, "results"),
        (&agent_here, "results"),
    ];
    for (provider, kind) in asks {
        for status in statuses {
            let error = not_begun(provider, &ask(kind)).await;
            let text = format!("{error} {error:?}");
            assert!(!text.contains(KEY), "{status} {kind}: {text}");
            // "no job id" repeats nothing.
            let repeated = (status, kind) != (200, "research");
            assert_eq!(text.contains("[redacted]"), repeated, "{status} {kind}: {text}");
        }
    }
    let failed = format!(r#"{{"id":"j","status":"FAILED","error_message":"bad {KEY}"}}"#);
    let empty = format!(r#"{{"id":"j","status":"COMPLETED","error_message":"bad {KEY}"}}"#);
    for body in [failed, empty] {
        let server = Canned::always(reply(200, &body)).await;
        let followed = answered(&sonar(&server.url, PATIENCE), &ask("research")).await;
        keeps_the_key(&body, followed.error());
    }
    let chunk = r#"{"id":"c","choices":[{"delta":{"content":"a"}}]}"#;
    let server = Canned::always(stream(&[chunk, &envelope], Then::Hold)).await;
    keeps_the_key("stream", answered(&sonar(&server.url, PATIENCE), &ask("ask")).await.error());
}

/// Profiles tell keys apart and show none.
#[test]
fn a_profile_names_dialect_service_and_key_without_showing_it() {
    let sonar = sonar("https://gateway.example/", PATIENCE);
    let profile = sonar.profile().to_string();
    assert!(profile.starts_with("perplexity/sonar https://gateway.example "), "{profile}");
    assert!(!profile.contains(KEY), "{profile}");
}
