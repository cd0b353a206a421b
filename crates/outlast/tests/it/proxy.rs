//! The proxies of the environment apply exactly as configured: the HTTP library, which would read some of these
//! variables by itself, does not.

use outlast_testkit::mcp_process::McpProcess;
use serde_json::json;

use crate::support::World;

/// Asks at a provider whose name cannot be resolved, so that it can be reached only through a proxy.
async fn reached(variables: &[(&str, &str)], base_url: &str) -> (bool, usize) {
    let mut world = World::new().await;
    let simulator = world.simulator.url().to_owned();
    world.set("OUTLAST_TOOLS", "perplexity");
    world.set("PERPLEXITY_BASE_URL", if base_url.is_empty() { &simulator } else { base_url });
    for (name, value) in variables {
        let value = if *value == "proxy" { &simulator } else { *value };
        world.set(name, value);
    }
    let mut server: McpProcess = world.serve().await;
    let answer = server.call("perplexity_search", json!({ "query": "why?" })).await;
    let asked = world.simulator.requests();
    (answer["isError"] != true, asked.len())
}

const NOWHERE: &str = "http://provider.invalid";

#[tokio::test]
async fn a_proxy_of_the_environment_is_used_by_its_name_in_either_case() {
    for name in ["PERPLEXITY_PROXY", "HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"] {
        assert_eq!(reached(&[(name, "proxy")], NOWHERE).await, (true, 1), "{name}");
    }
}

#[tokio::test]
async fn what_is_excepted_goes_past_the_proxy_in_either_case() {
    for name in ["NO_PROXY", "no_proxy"] {
        for list in ["provider.invalid", ".invalid", "*.invalid", "a, provider.invalid:80", "*"] {
            let variables = [("HTTP_PROXY", "proxy"), (name, list)];
            assert_eq!(reached(&variables, NOWHERE).await, (false, 0), "{name}={list}");
        }
        let variables = [("HTTP_PROXY", "proxy"), (name, "provider.invalid:81,10.0.0.0/8")];
        assert_eq!(reached(&variables, NOWHERE).await, (true, 1), "{name}");
    }
}

/// The library would use these, and would use a proxy for this machine.
#[tokio::test]
async fn variables_the_configuration_does_not_know_are_not_read() {
    for name in ["ALL_PROXY", "all_proxy"] {
        assert_eq!(reached(&[(name, "proxy")], NOWHERE).await, (false, 0), "{name}");
    }
    let dead = "http://127.0.0.1:9";
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        assert_eq!(reached(&[(name, dead)], "").await, (true, 1), "{name}");
    }
}
