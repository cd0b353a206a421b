//! Upstreams that authenticate us.

use serde_json::json;

use super::ran;
use super::resuming::{Two, known_to};
use crate::http::client::BOB;

/// Access to an upstream: a token from the environment or a header, and the owner of the jobs there.
#[tokio::test]
async fn e12_an_upstream_by_url_is_shown_our_token() {
    let two = Two::new("").await;
    for (access, owner) in [
        ("bearer_env = \"INNER_TOKEN\"".to_owned(), "ann"),
        (format!("headers = {{ Authorization = \"Bearer {BOB}\" }}"), "bob"),
    ] {
        two.configure(&access, "");
        let mut server = two.outer.serve().await;
        let got = ran(&mut server, "script", "echo hello").await;
        assert_eq!(got["result"]["content"][0]["text"], "hello\n", "{got}");
        let newest = known_to(&two.inner).await[0].clone();
        assert_eq!(newest["owner"], owner, "{newest}");
    }
}

/// A refused token is a clear failure, and is shown nowhere.
#[tokio::test]
async fn e12_a_wrong_token_is_a_clear_failure_that_never_shows_it() {
    let mut two = Two::new("").await;
    let secret = "wrong-0123456789-secret";
    two.outer.world.set("INNER_TOKEN", secret);
    two.outer.world.set("OUTLAST_LOG", "debug");
    let mut server = two.outer.serve().await;
    let got = ran(&mut server, "script", "echo hello").await;
    assert_eq!((&got["status"], &got["error"]["code"]), (&json!("failed"), &json!("UNAUTHORIZED")));
    let message = got["error"]["message"].as_str().unwrap();
    assert!(message.contains("token") && message.contains("[upstream]"), "{message}");
    let id = got["job_id"].as_str().unwrap();
    let shown = two.outer.world.run(&["jobs", "show", id]).await;
    let configured =
        two.outer.world.run(&["config", "show", "--config", &two.outer.config()]).await;
    for text in [got.to_string(), server.log(), shown.stdout, configured.stdout, configured.stderr]
    {
        assert!(!text.contains(secret), "{text}");
    }
    assert_eq!(known_to(&two.inner).await.len(), 0);
}
