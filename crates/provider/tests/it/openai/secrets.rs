//! The key stays out of everything a person, a log or a store may see, whatever header contains it.

use outlast_core::Provider;
use outlast_provider::http::{HttpOptions, ProxyOptions, ProxyScope};
use outlast_provider::openai::OpenAi;
use outlast_provider::vendor::VendorOptions;

use super::bench::{Bench, begun};
use crate::bench::{KEY, PATIENCE, follow, options};
use crate::canned::{Canned, reply};

/// G3: no error contains the key, even when the provider repeats it.
#[tokio::test]
async fn g3_no_error_contains_the_key() {
    let bench = Bench::new().await;
    for status in [400, 401, 403, 404, 422, 429, 500, 503] {
        let error = bench.not_begun(&format!("q [[sim:http;status={status};secret={KEY}]]")).await;
        let text = format!("{error} {error:?}");
        assert!(!text.contains(KEY) && text.contains("[redacted]"), "{status}: {text}");
    }
    for scenario in [
        format!("fail;delay_ms=0;code={KEY}"),
        format!("no_terminal|fail;delay_ms=0;code={KEY}"),
        format!("http;on=poll;status=401;secret={KEY}|no_terminal|ok;delay_ms=0"),
    ] {
        let followed = follow(&mut *bench.begin(&format!("q [[sim:{scenario}]]")).await).await;
        let text = format!("{:?}", followed.error());
        assert!(!text.contains(KEY) && text.contains("[redacted]"), "{scenario}: {text}");
    }
    let run = bench.begin(&format!("q [[sim:http;on=poll;status=500;secret={KEY}|stuck]]")).await;
    let error = bench.openai.stop(&run.remote()).await.unwrap_err();
    assert!(!format!("{error:?}").contains(KEY), "{error:?}");
    for request in bench.sim.requests() {
        assert!(!format!("{:?}", request.headers).contains(KEY), "{request:?}");
    }
}

/// G3: Azure's keys go into its own header, others into `Authorization`, and never both.
#[tokio::test]
async fn g3_azure_has_its_own_header_for_keys() {
    let server = Canned::always(reply(200, r#"{"id":"r","status":"queued"}"#)).await;
    for (base_url, header) in [
        ("http://a.openai.azure.com", "api-key"),
        ("http://a.services.ai.azure.com/openai/v1/", "api-key"),
        ("http://gateway.example/openai/v1", "authorization"),
    ] {
        // Names that do not exist are reached through a proxy, which is the server.
        let proxy = ProxyOptions {
            url: server.url.clone(),
            scope: ProxyScope::Everything,
            except: String::new(),
        };
        let options = options(base_url, KEY, PATIENCE, &server.clock);
        let http = HttpOptions { timeout: PATIENCE, proxy: Some(proxy) };
        begun(&OpenAi::new(VendorOptions { http, ..options }).unwrap()).await;
        let seen = server.seen().pop().unwrap();
        assert!(seen.line.ends_with("/openai/v1/responses"), "{}", seen.line);
        let headers = ["api-key", "authorization"];
        let carrying: Vec<&str> = headers
            .into_iter()
            .filter(|name| seen.head.to_lowercase().contains(&format!("\n{name}: ")))
            .collect();
        assert_eq!(carrying, [header], "{base_url}: {}", seen.head);
    }
}
