//! The key stays out of every error, even if the provider repeats it.

use outlast_core::{Provider, ProviderError};

use super::bench::Bench;
use crate::bench::{KEY, follow};

#[track_caller]
fn keeps_the_key(case: &str, error: &ProviderError) {
    let text = format!("{error} {error:?} {}", error.detail.as_deref().unwrap_or_default());
    assert!(!text.contains(KEY), "{case}: {text}");
    assert!(text.contains("[redacted]"), "{case}: upstream's words are kept: {text}");
}

/// G3: the key is never in an error.
#[tokio::test]
async fn g3_no_error_contains_the_key_even_when_the_provider_repeats_it() {
    let bench = Bench::new().await;
    for status in [400, 401, 403, 422, 429, 500, 503] {
        for body in ["json", "html"] {
            let fault = format!("http;status={status};body={body};secret={KEY}");
            let Err(error) = bench.try_begin(&format!("q [[sim:{fault}]]")).await else {
                panic!("{fault} began a run")
            };
            let text = format!("{error} {error:?}");
            assert!(!text.contains(KEY) && text.contains("[redacted]"), "{fault}: {text}");
        }
    }
    let scenarios = [
        format!("fail;delay_ms=0;code={KEY}"),
        format!("http;on=poll;status=401;secret={KEY}|ok;delay_ms=0"),
    ];
    for scenario in scenarios {
        let followed = follow(&mut *bench.begin(&format!("q [[sim:{scenario}]]")).await).await;
        keeps_the_key(&scenario, followed.error());
    }
    let run = bench.begin(&format!("q [[sim:http;on=poll;status=500;secret={KEY}|stuck]]")).await;
    keeps_the_key("stop", &bench.gemini.stop(&run.remote()).await.unwrap_err());
    let seen =
        format!("{:?}", bench.sim.requests().iter().map(|seen| &seen.path).collect::<Vec<_>>());
    assert!(!seen.contains(KEY), "never in an address: {seen}");
}
