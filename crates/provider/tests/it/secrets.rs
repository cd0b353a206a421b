//! The key stays out of everything a person, a log or a store may see.

use outlast_core::{Provider, ProviderError};

use crate::bench::{Bench, KEY, follow};

#[track_caller]
fn keeps_the_key(case: &str, error: &ProviderError) {
    let texts = [error.to_string(), format!("{error:?}"), error.sentence.clone()];
    for text in texts.iter().chain(&error.detail) {
        assert!(!text.contains(KEY), "{case}: {text}");
    }
}

#[tokio::test]
async fn no_error_carries_the_key_even_when_the_provider_repeats_it() {
    let bench = Bench::new().await;
    for status in [400, 401, 403, 422, 429, 500, 503] {
        for body in ["json", "html"] {
            let fault = format!("http;status={status};body={body};secret={KEY}");
            let error = bench.not_begun(&format!("q [[sim:{fault}]]")).await;
            let text = format!("{error} {error:?}");
            assert!(!text.contains(KEY), "{fault}: {text}");
            assert!(text.contains("[redacted]"), "{fault}: upstream's words are kept: {text}");
        }
    }
    let scenarios = [
        format!("fail;delay_ms=0;code={KEY}"),
        format!("no_terminal|fail;delay_ms=0;code={KEY}"),
        format!("http;on=poll;status=401;secret={KEY}|no_terminal|ok;delay_ms=0"),
    ];
    for scenario in scenarios {
        let followed = follow(&mut *bench.begin(&format!("q [[sim:{scenario}]]")).await).await;
        keeps_the_key(&scenario, followed.error());
        assert!(followed.error().detail.as_ref().unwrap().contains("[redacted]"), "{scenario}");
    }
    let run = bench.begin(&format!("q [[sim:http;on=cancel;status=500;secret={KEY}|stuck]]")).await;
    keeps_the_key("stop", &bench.agent.stop(&run.remote()).await.unwrap_err());
}
