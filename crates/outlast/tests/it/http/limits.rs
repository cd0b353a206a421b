//! E8 over HTTP: the request rate of an owner, and the rate of attempts of a client without a token.

use super::client::{ANN, BOB, Served};
use crate::support::World;

/// E8: over the limit the owner must wait, and only that owner.
#[tokio::test]
async fn e8_an_owner_who_asks_too_often_is_answered_with_the_time_to_wait() {
    let mut world = World::new().await;
    world.set("OUTLAST_RATE_PER_MINUTE", "5");
    let served = Served::start(&mut world, &[]).await;
    let (ann, bob) = (served.client(ANN), served.client(BOB));
    for (asked, expected) in [404, 404, 404, 404, 404, 429, 429].into_iter().enumerate() {
        let reply = ann.send("GET /nothing", &[], "").await;
        assert_eq!(reply.status, expected, "request {asked}");
        if expected == 429 {
            let wait: u64 = reply.header("retry-after").expect("a wait").parse().unwrap();
            assert!((1..=12).contains(&wait), "{wait}");
            let body = reply.body().await;
            assert!(body.contains("RATE_LIMITED"), "{body}");
        }
    }
    assert_eq!(bob.send("GET /nothing", &[], "").await.status, 404, "another owner");
    assert_eq!(ann.send("GET /health", &[], "").await.status, 200, "health is free");
}

/// E8: wrong tokens are limited, and do not delay owners with right ones.
#[tokio::test]
async fn e8_strangers_are_limited_and_owners_are_not_hurt_by_it() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let stranger = served.client("wrong-0123456789abcdef");
    let mut refused = 0;
    while stranger.send("GET /mcp", &[], "").await.status == 401 {
        refused += 1;
        assert!(refused < 100, "never asked to wait");
    }
    assert!((60..=65).contains(&refused), "{refused}");
    let reply = stranger.send("GET /mcp", &[], "").await;
    assert!(reply.header("retry-after").is_some(), "{}", reply.head);
    assert_eq!(served.client(ANN).send("GET /nothing", &[], "").await.status, 404);
}

/// E8: clients look for an authorization server before they send a token; that is not an attempt with a wrong one.
#[tokio::test]
async fn e8_a_look_for_oauth_metadata_is_answered_and_not_counted() {
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let paths = [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
    ];
    for number in 0..100 {
        let request =
            format!("GET {} HTTP/1.1\r\nHost: {}\r\n\r\n", paths[number % 4], served.address);
        let reply = served.say(request.as_bytes()).await.unwrap();
        assert_eq!(reply.status, 404, "{number}");
    }
    let stranger = served.client("wrong-0123456789abcdef");
    assert_eq!(stranger.send("GET /mcp", &[], "").await.status, 401, "not limited yet");
    let other = b"GET /.well-known/oauth-protected-resource HTTP/1.1\r\nHost: evil.example\r\n\r\n";
    assert_eq!(served.say(other).await.unwrap().status, 421);
}
