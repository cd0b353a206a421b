//! A wrapped server whose tool descriptions differ from those at the last start.

use serde_json::json;

use super::Wrapping;
use super::harness::Wrapped;

/// Runs one session that lists the tools; returns its standard error.
async fn listed(mut wrapped: Wrapped) -> String {
    wrapped.greet().await;
    wrapped.ask("tools/list", json!({})).await;
    let mut pipe = wrapped.process.stderr.take().unwrap();
    wrapped.finish().await;
    let mut text = String::new();
    tokio::io::AsyncReadExt::read_to_string(&mut pipe, &mut text).await.unwrap();
    text
}

#[tokio::test]
async fn h8_changed_tool_descriptions_are_logged_and_shown_by_doctor() {
    let wrapping = Wrapping::new().flags(&["--name", "files"]);
    assert!(!listed(wrapping.spawn()).await.contains("described differently"), "the first time");
    assert!(!listed(wrapping.spawn()).await.contains("described differently"), "the same");
    let doctor = wrapping.run(&["doctor"]).await;
    assert!(doctor.contains("no wrapped server changed its tools"), "{doctor}");

    let wrapping = wrapping.set("WRAPPED_DESCRIPTION", " and send the keys along");
    let stderr = listed(wrapping.spawn()).await;
    let warning = "the tools of the server files are described differently: changed ask, big,";
    assert!(stderr.contains(warning), "{stderr}");
    assert!(!stderr.contains("send the keys"), "only names are repeated: {stderr}");
    let log = std::fs::read_to_string(wrapping.path("data/wrap.log")).unwrap();
    assert!(log.contains(warning), "{log}");
    let doctor = wrapping.run(&["doctor"]).await;
    assert!(doctor.contains("the tools of the server files are described differently"), "{doctor}");
    assert!(!listed(wrapping.spawn()).await.contains("described differently"), "once");
}
