//! E8 over HTTP: how often an owner may ask, and how often a client without a token may try.

use super::client::{ANN, BOB, Served};
use crate::support::World;

/// E8: over the limit comes a wait, for that owner alone.
#[tokio::test]
async fn e8_an_owner_who_asks_too_often_is_told_how_long_to_wait() {
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
        assert!(refused < 100, "never told to wait");
    }
    assert!((60..=65).contains(&refused), "{refused}");
    let reply = stranger.send("GET /mcp", &[], "").await;
    assert!(reply.header("retry-after").is_some(), "{}", reply.head);
    assert_eq!(served.client(ANN).send("GET /nothing", &[], "").await.status, 404);
}
