//! The first command of a newcomer.

use crate::support::World;

#[tokio::test]
async fn the_demo_kills_its_server_and_pays_once() {
    let world = World::new().await;
    let demo = world.run(&["demo"]).await;
    assert_eq!(demo.code, Some(0), "{demo:?}");
    assert!(demo.stderr.contains("kill -9"), "{}", demo.stderr);
    assert!(demo.stderr.contains("server started again"), "{}", demo.stderr);
    assert!(demo.stderr.contains("1 submit seen by the provider"), "{}", demo.stderr);
    assert!(demo.stdout.starts_with("# "), "standard output is the report: {}", demo.stdout);
    assert!(demo.stdout.contains("\nCitations:\n["), "{}", demo.stdout);
    assert_eq!(world.submits(), 0, "the demo brings its own provider and touches no other");
    assert!(!world.data_dir().exists(), "and leaves no trace in the data directory");
}
