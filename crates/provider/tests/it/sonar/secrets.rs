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
async fn no_error_contains_the_key_even_when_the_provider_repeats_it() {
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
            assert!(text.contains("[redacted]"), "{status} {kind}: its words are kept: {text}");
        }
    }
    let failed = format!(r#"{{"id":"j","status":"FAILED","error_message":"bad {KEY}"}}"#);
    let empty = format!(r#"{{"id":"j","status":"COMPLETED","error":"bad {KEY}"}}"#);
    for body in [failed, empty] {
        let server = Canned::always(reply(200, &body)).await;
        let followed = answered(&sonar(&server.url, PATIENCE), &ask("research")).await;
        keeps_the_key(&body, followed.error());
    }
    let chunk = r#"{"id":"c","choices":[{"delta":{"content":"a"}}]}"#;
    let server = Canned::always(stream(&[chunk, &envelope], Then::Hold)).await;
    keeps_the_key("stream", answered(&sonar(&server.url, PATIENCE), &ask("ask")).await.error());
}

/// A success that cannot be used may be a report: it is described, not shown.
#[tokio::test]
async fn no_error_contains_the_body_of_a_success() {
    const REPORT: &str = "canary-report";
    let odd = format!(r#"{{"choices":"{REPORT}","results":"{REPORT}","{REPORT}":1}}"#);
    let (sonar_at, agent_at) = (|url: &str| sonar(url, PATIENCE), |url: &str| agent(url, PATIENCE));
    for body in [odd.clone(), format!("<html>{REPORT}"), format!(r#"["{REPORT}"]"#)] {
        let server = Canned::always(reply(200, &body)).await;
        let (sonar, agent) = (sonar_at(&server.url), agent_at(&server.url));
        let asks: [(&dyn Provider, &str); 5] = [
            (&sonar, "research"),
            (&sonar, "ask"),
            (&sonar, "results"),
            (&agent, "research"),
            (&agent, "results"),
        ];
        for (provider, kind) in asks {
            let text = format!("{:?}", not_begun(provider, &ask(kind)).await);
            assert!(!text.contains(REPORT), "{kind}: {text}");
            assert!(text.contains(&format!("{} bytes, ", body.len())), "{kind}: {text}");
        }
    }
    let late = format!(r#"{{"id":"j","status":"COMPLETED","response":{odd}}}"#);
    let server = Canned::always(reply(200, &late)).await;
    let followed = answered(&sonar_at(&server.url), &ask("research")).await;
    let text = format!("{:?}", followed.error());
    assert!(!text.contains(REPORT) && text.contains("status string"), "{text}");
    let server =
        Canned::always(stream(&[format!(r#"{{"error":null,"x":"{REPORT}"}}"#)], Then::Close)).await;
    let text = format!("{:?}", not_begun(&sonar_at(&server.url), &ask("ask")).await);
    assert!(!text.contains(REPORT), "{text}");
}

/// Profiles distinguish keys and show none.
#[test]
fn a_profile_names_dialect_service_and_key_without_showing_it() {
    let sonar = sonar("https://gateway.example/", PATIENCE);
    let profile = sonar.profile().to_string();
    assert!(profile.starts_with("perplexity/sonar https://gateway.example "), "{profile}");
    assert!(!profile.contains(KEY), "{profile}");
}
