//! M1 and M2: access tokens of an OAuth issuer, on the real binary.

use std::time::Duration;

use outlast_core::Clock as _;
use outlast_store::SystemClock;
use outlast_testkit::issuer::{Answer, JWKS, SigningKey, TestIssuer, sign_with_secret, unsigned};
use serde_json::{Value, json};

use super::client::{ANN, Client, JSON, Served, call};
use crate::support::{CANCEL, POLL, START, World, eventually, question};

const PUBLIC: &str = "https://research.example";
const METADATA: &str = "/.well-known/oauth-protected-resource";
const CHALLENGE: &str = "Bearer resource_metadata=\"https://research.example/.well-known/oauth-protected-resource/mcp\", \
                         scope=\"outlast:read outlast:run\"";

fn now() -> i64 {
    SystemClock.now().as_millis() / 1000
}

/// A server that trusts an issuer, and knows the static token of Ann.
struct Trust {
    world: World,
    key: SigningKey,
    issuer: TestIssuer,
}

impl Trust {
    async fn new() -> Self {
        let key = SigningKey::rsa("one", "RS256");
        let issuer = TestIssuer::start(&[&key]).await;
        let mut world = World::new().await;
        world.set("OUTLAST_PUBLIC_URL", PUBLIC);
        world.set("OUTLAST_OAUTH_ISSUER", issuer.url());
        Self { world, key, issuer }
    }

    async fn serve(&mut self) -> Served {
        Served::start(&mut self.world, &["--key-refetch-ms", "200"]).await
    }

    /// Returns a token for this person with these scopes.
    fn token(&self, subject: &str, scope: &str) -> String {
        self.token_with(subject, json!({ "scope": scope }))
    }

    fn token_with(&self, subject: &str, changes: Value) -> String {
        self.key.token(&self.claims(subject, changes))
    }

    fn claims(&self, subject: &str, changes: Value) -> Value {
        let mut claims = self.issuer.claims(subject, &format!("{PUBLIC}/mcp"), now());
        claims.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        claims
    }
}

fn ping() -> Value {
    json!({ "jsonrpc": "2.0", "id": 3, "method": "ping" })
}

async fn start_job(client: &Client, scenario: &str) -> String {
    client.call(START, question(scenario)).await["jobId"].as_str().unwrap().to_owned()
}

/// M1: the metadata is at every path that clients try, for pages of any origin, and only if an issuer is configured.
#[tokio::test]
async fn m1_the_metadata_is_where_clients_look() {
    let mut trust = Trust::new().await;
    let served = trust.serve().await;
    let host = served.address;
    for path in ["", "/", "/mcp", "/mcp/"] {
        let request = format!(
            "GET {METADATA}{path} HTTP/1.1\r\nHost: {host}\r\nOrigin: https://inspector.example\r\n\r\n"
        );
        let reply = served.say(request.as_bytes()).await.unwrap();
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"));
        assert_eq!(reply.header("access-control-expose-headers"), Some("WWW-Authenticate"));
        let document: Value = serde_json::from_str(&reply.body().await).unwrap();
        assert_eq!(document["resource"], "https://research.example/mcp", "{path}");
        assert_eq!(document["authorization_servers"], json!([trust.issuer.url()]));
        assert_eq!(document["scopes_supported"], json!(["outlast:read", "outlast:run"]));
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
    }
    for path in [METADATA, "/mcp"] {
        let preflight = format!(
            "OPTIONS {path} HTTP/1.1\r\nHost: {host}\r\nOrigin: https://inspector.example\r\n\
             Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n\r\n"
        );
        let reply = served.say(preflight.as_bytes()).await.unwrap();
        assert_eq!(reply.status, 204, "{path}");
        assert_eq!(reply.header("access-control-allow-origin"), Some("*"), "{path}");
    }
    for (request, status) in [
        (format!("GET {METADATA}/other HTTP/1.1\r\nHost: {host}\r\n\r\n"), 404),
        (format!("POST {METADATA} HTTP/1.1\r\nHost: {host}\r\n\r\n"), 405),
        (format!("GET {METADATA} HTTP/1.1\r\nHost: evil.example\r\n\r\n"), 421),
    ] {
        assert_eq!(served.say(request.as_bytes()).await.unwrap().status, status, "{request}");
    }
    let mut without = World::new().await;
    let served = Served::start(&mut without, &[]).await;
    let request = format!("GET {METADATA} HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
    assert_eq!(served.say(request.as_bytes()).await.unwrap().status, 404);
}

/// M1: the challenge names the metadata and both scopes of people; a reason comes only with a token.
#[tokio::test]
async fn m1_a_refusal_says_where_to_sign_in() {
    let mut trust = Trust::new().await;
    let served = trust.serve().await;
    for path in ["/mcp", "/mcp/"] {
        let request = format!("POST {path} HTTP/1.1\r\nHost: {}\r\n\r\n", served.address);
        let reply = served.say(request.as_bytes()).await.unwrap();
        assert_eq!(reply.status, 401, "{path}");
        assert_eq!(reply.header("www-authenticate"), Some(CHALLENGE), "{path}");
    }
    let other = trust.token_with("ann", json!({ "aud": "https://other.example/mcp" }));
    for (token, reason) in [("gho_opaque0123456789", "opaque"), (&other, "another audience")] {
        let reply = served.client(token).post(None, &ping()).await;
        assert_eq!(reply.status, 401);
        let challenge = reply.header("www-authenticate").unwrap().to_owned();
        assert!(challenge.starts_with(CHALLENGE), "{challenge}");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(challenge.contains(reason), "{challenge}");
        let body: Value = serde_json::from_str(&reply.body().await).unwrap();
        assert_eq!(body["error"]["code"], "UNAUTHORIZED");
        assert!(body["error"]["message"].as_str().unwrap().contains(reason), "{body}");
    }
    assert!(!served.process.log().contains("gho_opaque"), "{}", served.process.log());
}

/// M1: both eras, at both paths; static tokens keep working; owners are apart, and no static token has the name of such an owner.
#[tokio::test]
async fn m1_people_with_access_tokens_own_their_jobs() {
    let mut trust = Trust::new().await;
    trust.world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    let served = trust.serve().await;
    let clients = ["ann", "ben"].map(|subject| trust.token(subject, "outlast:run"));
    let [ann, ben] = clients.map(|token| served.client(&token));
    let local = served.client(ANN);
    let id = start_job(&ann, "stuck").await;
    for stranger in [&ben, &local] {
        let seen = stranger.call(POLL, json!({ "jobId": id })).await;
        assert_eq!(seen["status"], "NOT_FOUND", "{seen}");
    }
    let session = ann.initialize().await;
    let poll = call(POLL, &json!({ "jobId": id }), &json!({}));
    let seen = ann.post(Some(&session), &poll).await.result().await;
    assert_ne!(seen["result"]["structuredContent"]["status"], "NOT_FOUND", "{seen}");
    // The same person with another token, at the path with a slash.
    let again = served.client(&trust.token("ann", "outlast:admin"));
    let headers = [JSON[0], JSON[1], ("Mcp-Session-Id", session.as_str())];
    let seen = again.send("POST /mcp/", &headers, &poll.to_string()).await.result().await;
    assert_ne!(seen["result"]["structuredContent"]["status"], "NOT_FOUND", "{seen}");
    let listed = trust.world.run(&["jobs", "list", "--all", "--json"]).await.stdout;
    let issuer = trust.issuer.url();
    assert!(!listed.contains(issuer), "{listed}");
    trust.world.set("OUTLAST_TOKENS", "oauth:0123=abcdef-0123456789");
    let refused = trust.world.run(&["serve", "--http", "127.0.0.1:0"]).await;
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
}

/// M1: the attack list over HTTP. Each attempt is refused with 401 before any message is read.
#[tokio::test]
async fn m1_forged_and_foreign_tokens_are_refused() {
    let mut trust = Trust::new().await;
    let served = trust.serve().await;
    let good = trust.claims("ann", json!({}));
    let mallory = SigningKey::p256("one");
    let header = trust.key.header();
    let mut none = header.clone();
    none["alg"] = json!("none");
    let mut path = mallory.header();
    path["kid"] = json!("../../../../dev/null");
    let mut brings_key = mallory.header();
    brings_key["jwk"] = mallory.jwk();
    let mut id_token = header.clone();
    id_token["typ"] = json!("JWT");
    let mut mac = header.clone();
    mac["alg"] = json!("HS256");
    let changed = |changes| trust.token_with("ann", changes);
    let attempts = [
        ("none", format!("{}.", unsigned(&none, &good))),
        ("no signature", format!("{}.", unsigned(&header, &good))),
        (
            "a MAC with the public key",
            sign_with_secret(&mac, &good, trust.key.jwk().to_string().as_bytes()),
        ),
        ("another key under the same id", mallory.token(&good)),
        ("a path as key id", mallory.sign(&path, &good)),
        ("its own key", mallory.sign(&brings_key, &good)),
        ("another issuer", changed(json!({ "iss": "https://evil.example" }))),
        ("a slash at the issuer", changed(json!({ "iss": format!("{}/", trust.issuer.url()) }))),
        ("another server", changed(json!({ "aud": "https://other.example/mcp" }))),
        ("expired", changed(json!({ "exp": now() - 61 }))),
        ("not yet valid", changed(json!({ "nbf": now() + 120 }))),
        ("no expiry", changed(json!({ "exp": null }))),
        ("no owner", changed(json!({ "sub": "" }))),
        (
            "an ID token",
            trust
                .key
                .sign(&id_token, &trust.claims("ann", json!({ "nonce": "n", "at_hash": "x" }))),
        ),
        ("bound to a key", changed(json!({ "cnf": { "jkt": "x" } }))),
        ("oversized", changed(json!({ "pad": "x".repeat(17 * 1024) }))),
    ];
    for (attempt, token) in attempts {
        let reply = served.client(&token).post(None, &ping()).await;
        assert_eq!(reply.status, 401, "{attempt}");
        assert!(reply.header("www-authenticate").unwrap().starts_with(CHALLENGE), "{attempt}");
    }
    // In the address, as a cookie, or twice, a good token counts for nothing.
    let token = trust.key.token(&good);
    let host = served.address;
    for request in [
        format!("GET /mcp?access_token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n"),
        format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nCookie: token={token}\r\n\r\n"),
        format!("GET /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Basic {token}\r\n\r\n"),
        format!(
            "GET /mcp HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nAuthorization: Bearer {token}\r\n\r\n"
        ),
    ] {
        assert_eq!(served.say(request.as_bytes()).await.unwrap().status, 401);
    }
    served.client(&token).initialize().await;
}

/// M1: a request without the scope it needs is refused with the scope; the page and static tokens are as before.
#[tokio::test]
async fn m2_scopes_decide_what_a_token_may_do() {
    let mut trust = Trust::new().await;
    trust.world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    let served = trust.serve().await;
    let with = |scope: &str| served.client(&trust.token("ann", scope));
    let (nothing, reader, runner, admin) =
        (with("openid email"), with("outlast:read"), with("outlast:run"), with("outlast:admin"));
    let id = start_job(&runner, "stuck").await;
    let start =
        |client: Client| async move { client.ask(START, question("stuck"), json!({})).await };
    let cancel = || call(CANCEL, &json!({ "jobId": id }), &json!({}));
    let scoped = |scope: &str| {
        format!(
            "Bearer resource_metadata=\"{PUBLIC}{METADATA}/mcp\", scope=\"{scope}\", error=\"insufficient_scope\""
        )
    };
    let session = reader.initialize().await;
    let refused = [
        (nothing.post(None, &ping()).await, "outlast:read"),
        (start(reader.clone()).await, "outlast:run"),
        (reader.post(Some(&session), &cancel()).await, "outlast:run"),
        (reader.post(None, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/cancel", "params": { "taskId": id } })).await, "outlast:run"),
        (reader.send("GET /metrics", &[], "").await, "outlast:admin"),
        (runner.send("GET /metrics", &[], "").await, "outlast:admin"),
    ];
    for (number, (reply, scope)) in refused.into_iter().enumerate() {
        assert_eq!(reply.status, 403, "{number}");
        let challenge = reply.header("www-authenticate").unwrap();
        assert!(challenge.starts_with(&scoped(scope)), "{number}: {challenge}");
        let body: Value = serde_json::from_str(&reply.body().await).unwrap();
        assert_eq!(body["error"]["code"], "INSUFFICIENT_SCOPE", "{number}");
    }
    // Not by a message that two parsers read in two ways.
    let twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"perplexity_research_start","arguments":{"messages":[{"role":"user","content":"x"}]}}}"#;
    let named_twice = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"perplexity_research_poll","name":"perplexity_research_start","arguments":{"messages":[{"role":"user","content":"x"}]}}}"#;
    eventually("the job is submitted", || trust.world.submits() == 1).await;
    for text in [twice, named_twice] {
        drop(reader.post_text(Some(&session), text).await);
    }
    let listed = runner.modern("resources/list", "", json!({}), &json!({})).await.result().await;
    let listed = listed["result"]["resources"].as_array().unwrap().len();
    assert_eq!((listed, trust.world.submits()), (1, 1), "no other job");
    let jobs = runner.call(POLL, json!({ "jobId": id })).await;
    assert_ne!(jobs["status"], "CANCELLED", "{jobs}");
    let seen = reader.call(POLL, json!({ "jobId": id })).await;
    assert!(matches!(seen["status"].as_str(), Some("CREATED" | "IN_PROGRESS")), "{seen}");
    assert_eq!(admin.send("GET /metrics", &[], "").await.status, 200);
    assert_eq!(runner.call(CANCEL, json!({ "jobId": id })).await["status"], "CANCELLED");
    let local = served.client(ANN);
    assert_eq!(local.send("GET /metrics", &[], "").await.status, 200);
    assert_eq!(local.send("GET /ui", &[], "").await.status, 200);
    assert_eq!(
        runner.send("GET /ui", &[], "").await.status,
        401,
        "the page is for the server's own tokens"
    );
}

/// M2: a session belongs to the principal that opened it.
#[tokio::test]
async fn m2_a_session_of_another_principal_is_an_unknown_one() {
    let mut trust = Trust::new().await;
    let served = trust.serve().await;
    let [ann, ben] =
        ["ann", "ben"].map(|subject| served.client(&trust.token(subject, "outlast:run")));
    let session = ann.initialize().await;
    let refreshed = served.client(&trust.token_with("ann", json!({ "jti": "2" })));
    assert_eq!(refreshed.post(Some(&session), &ping()).await.status, 200);
    for other in [ben, served.client(ANN)] {
        assert_eq!(other.post(Some(&session), &ping()).await.status, 404);
        let headers = [("Mcp-Session-Id", session.as_str()), JSON[1]];
        assert_eq!(other.send("GET /mcp", &headers, "").await.status, 404);
        assert_eq!(other.send("DELETE /mcp", &headers, "").await.status, 404);
    }
}

/// M2: an accepted request is answered after its token has expired; endless streams end with the token.
#[tokio::test]
async fn m2_a_token_that_expires_in_the_middle() {
    let mut trust = Trust::new().await;
    trust.world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "3600000");
    let served = trust.serve().await;
    let lasting = served.client(&trust.token("ann", "outlast:run"));
    let id = start_job(&lasting, "ok;words=60;hold=true").await;
    eventually("the job is submitted", || trust.world.submits() == 1).await;
    let brief = served.client(&trust.token_with("ann", json!({ "exp": now() + 3 })));
    let session = lasting.initialize().await;
    let mut poll = brief.ask(POLL, json!({ "jobId": id }), json!({ "progressToken": 1 })).await;
    assert_eq!(poll.event().await.unwrap()["method"], "notifications/progress");
    let stream = brief.send("GET /mcp", &[("Mcp-Session-Id", &session), JSON[1]], "").await;
    assert_eq!(stream.status, 200);
    let filter = json!({ "notifications": { "resourceSubscriptions": [] } });
    let listening = brief.modern("subscriptions/listen", "", filter, &json!({})).await;
    assert_eq!(listening.status, 200, "{}", listening.head);
    let ended = tokio::time::timeout(Duration::from_secs(20), async {
        let mut stream = stream;
        while stream.event().await.is_some() {}
        let mut listening = listening;
        while listening.event().await.is_some() {}
    });
    ended.await.expect("streams end with the token");
    trust.world.simulator.release();
    assert_eq!(poll.result().await["result"]["structuredContent"]["status"], "COMPLETED");
}

/// M2: rotated keys are found; while the issuer is down, known keys count and no person has to sign in again.
#[tokio::test]
async fn m2_keys_rotate_and_the_issuer_may_be_down() {
    let mut trust = Trust::new().await;
    let served = trust.serve().await;
    trust.issuer.answer(JWKS, Answer::Status(503, None));
    let token = trust.token("ann", "outlast:run");
    let reply = served.client(&token).post(None, &ping()).await;
    assert_eq!((reply.status, reply.header("retry-after")), (503, Some("5")));
    trust.issuer.publish(&[&trust.key]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    served.client(&token).initialize().await;
    let new = SigningKey::ed25519("two");
    trust.issuer.publish(&[&trust.key, &new]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let rotated = new.token(&trust.claims("ann", json!({})));
    served.client(&rotated).initialize().await;
    trust.issuer.answer(JWKS, Answer::Status(503, None));
    for token in [&token, &rotated] {
        served.client(token).initialize().await;
    }
    assert!(trust.issuer.requests(JWKS) <= 4, "{}", trust.issuer.requests(JWKS));
}

/// M1: several replicas accept the same tokens and share the jobs.
#[tokio::test]
async fn m1_replicas_need_only_the_same_issuer() {
    let mut trust = Trust::new().await;
    trust.world.set("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", "50");
    let replicas = [trust.serve().await, trust.serve().await];
    let token = trust.token("ann", "outlast:run");
    let id = start_job(&replicas[0].client(&token), "stuck").await;
    let seen = replicas[1].client(&token).call(POLL, json!({ "jobId": id })).await;
    assert!(matches!(seen["status"].as_str(), Some("CREATED" | "IN_PROGRESS")), "{seen}");
    let session = replicas[0].client(&token).initialize().await;
    assert_eq!(replicas[1].client(&token).post(Some(&session), &ping()).await.status, 200);
}

/// M1: a configuration that cannot work is refused at the start.
#[tokio::test]
async fn m1_an_issuer_without_a_public_address_is_refused() {
    let issuer = ("OUTLAST_OAUTH_ISSUER", "https://id.example");
    let public = ("OUTLAST_PUBLIC_URL", PUBLIC);
    for (environment, flags, expected) in [
        (&[issuer][..], &[][..], "server.public_url"),
        (&[("OUTLAST_OAUTH_ISSUER", "http://id.example"), public], &[], "https"),
        (&[issuer, public], &["--no-auth"], "--no-auth"),
    ] {
        let mut world = World::new().await;
        for (name, value) in environment {
            world.set(name, value);
        }
        let arguments: Vec<_> =
            ["serve", "--http", "127.0.0.1:0"].iter().chain(flags).copied().collect();
        let limit = Duration::from_secs(30);
        let ran = tokio::time::timeout(limit, world.run(&arguments)).await.expect("it is refused");
        assert_eq!(ran.code, Some(2), "{}", ran.stderr);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}
