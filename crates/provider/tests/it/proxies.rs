//! The calls that go through a proxy, seen from a real proxy.

use std::time::Duration;

use outlast_core::{BeginError, Provider};
use outlast_provider::http::ProxyScope::{self, Everything, OtherMachines};
use outlast_provider::http::{HttpOptions, ProxyOptions};
use outlast_provider::perplexity::Agent;
use outlast_provider::vendor::VendorOptions;

use crate::bench::{self, KEY, PATIENCE, ask, patiently};
use crate::canned::{Canned, reply};

fn agent(base_url: &str, proxy: ProxyOptions) -> Agent {
    let options = bench::options(base_url, KEY, Duration::from_secs(5), &Default::default());
    let http = HttpOptions { timeout: PATIENCE, proxy: Some(proxy) };
    Agent::new(VendorOptions { http, ..options }).unwrap()
}

async fn not_begun(agent: &Agent) -> BeginError {
    let Err(error) = patiently(agent.begin(&ask("q"), "key")).await else { panic!("it began") };
    error
}

#[tokio::test]
async fn calls_go_through_the_proxy_unless_they_are_excepted() {
    use Way::{Direct, Proxied, Unreached};
    let cases: [(&str, ProxyScope, &str, Way); 23] = [
        ("http://api.invalid", Everything, "", Proxied),
        ("http://api.invalid", OtherMachines, "", Proxied),
        ("http://api.invalid:8080", OtherMachines, "other.invalid, 10.0.0.0/8", Proxied),
        ("http://api.invalid", Everything, "api.invalid", Direct),
        ("http://api.invalid", Everything, "other.invalid, API.invalid", Direct),
        ("http://api.invalid", Everything, "invalid", Direct),
        ("http://api.invalid", Everything, ".invalid", Direct),
        ("http://api.invalid", Everything, "pi.invalid", Proxied),
        ("http://api.invalid", Everything, "*", Direct),
        ("http://api.invalid", Everything, "*.invalid", Direct),
        ("http://api.invalid", Everything, "other.invalid api.invalid", Direct),
        ("http://api.invalid:8080", Everything, "api.invalid:8080", Direct),
        ("http://api.invalid:8080", Everything, "api.invalid:8081", Proxied),
        ("http://192.0.2.7:8080", Everything, "192.0.2.7:8080", Unreached),
        ("http://192.0.2.7:8080", Everything, "192.0.2.0/24", Unreached),
        ("http://192.0.2.7", Everything, "192.0.2.0/24", Unreached),
        ("http://192.0.2.7", Everything, "192.0.2.7", Unreached),
        ("http://192.0.2.7", Everything, "*", Unreached),
        ("http://192.0.2.7", Everything, "192.0.3.0/24", Proxied),
        // This machine: through a proxy only when that was named for this program.
        ("loopback", Everything, "", Proxied),
        ("loopback", Everything, "127.0.0.1", Direct),
        ("loopback", OtherMachines, "", Direct),
        ("http://localhost:9", OtherMachines, "", Direct),
    ];
    for (base_url, scope, except, way) in cases {
        let case = format!("{base_url} {scope:?} except `{except}`");
        let proxy = Canned::serve(|_, _| reply(401, "{}")).await;
        let target = Canned::serve(|_, _| reply(401, "{}")).await;
        let base_url = if base_url == "loopback" { target.url.as_str() } else { base_url };
        let options = ProxyOptions { url: proxy.url.clone(), scope, except: except.to_owned() };
        let agent = agent(base_url, options);
        // A documentation address never answers: the test sees only that the proxy is not asked.
        let limit = if way == Unreached { Duration::from_millis(500) } else { PATIENCE };
        let ask = ask("q");
        drop(tokio::time::timeout(limit, agent.begin(&ask, "key")).await);
        let line = format!("POST {base_url}/v1/agent");
        match way {
            Proxied => assert_eq!(proxy.lines(), [line], "{case}"),
            Direct | Unreached => assert_eq!(proxy.connections(), 0, "{case}"),
        }
        let reached = usize::from(way == Direct && base_url == target.url);
        assert_eq!(target.lines().len(), reached, "{case}");
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    Proxied,
    Direct,
    Unreached,
}

/// Credentials are for the proxy, the key is for the provider.
#[tokio::test]
async fn a_proxy_gets_its_credentials_and_over_tls_never_the_key() {
    let proxy = Canned::serve(|_, _| reply(407, "")).await;
    let url = proxy.url.replace("http://", "http://ann:p%40ss@");
    let options = ProxyOptions { url, scope: Everything, except: String::new() };
    let basic = "proxy-authorization: Basic YW5uOnBAc3M=";

    let error = not_begun(&agent("http://api.invalid", options.clone())).await;
    // Of a status that is not named it cannot be known who gave it, and after what.
    assert!(matches!(error, BeginError::Unknown(_)), "{error:?}");
    let head = proxy.seen().pop().unwrap().head;
    assert!(head.to_lowercase().contains(&basic.to_lowercase()), "{head}");

    let error = not_begun(&agent("https://api.invalid", options)).await;
    assert!(matches!(error, BeginError::NotSent(_)), "{error:?}");
    assert!(!format!("{error:?}").contains("p@ss") && !format!("{error:?}").contains("p%40ss"));
    let head = proxy.seen().pop().unwrap().head;
    assert!(head.starts_with("CONNECT api.invalid:443 "), "{head}");
    assert!(head.to_lowercase().contains(&basic.to_lowercase()), "{head}");
    assert!(!head.contains(KEY), "{head}");
}
