//! A connected client and the server it talks to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use outlast_client::{
    CallOptions, Client, ClientError, ConnectOptions, Era, Progress, TimedOut, ToolAnswer,
};
use outlast_testkit::peer::Peer;
use serde_json::json;
use tokio::task::JoinHandle;

pub(crate) type Called = Result<ToolAnswer, ClientError>;

pub(crate) fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Both sides, connected in the initialize era.
pub(crate) async fn greeted() -> (Arc<Client>, Peer) {
    let (mut peer, read, write) = Peer::new();
    let options = ConnectOptions { era: Era::Initialize, ..ConnectOptions::default() };
    let (client, ()) = tokio::join!(Client::connect(read, write, options), peer.greet());
    (Arc::new(client.unwrap()), peer)
}

/// Both sides, connected in the stateless era.
pub(crate) async fn greeted_stateless() -> (Arc<Client>, Peer) {
    let (mut peer, read, write) = Peer::new();
    let (client, ()) = tokio::join!(
        Client::connect(read, write, ConnectOptions::default()),
        peer.greet_stateless()
    );
    let client = client.unwrap();
    assert_eq!(client.protocol().as_deref(), Some("2026-07-28"));
    (Arc::new(client), peer)
}

/// Calls a tool in the background.
pub(crate) fn calling(client: &Arc<Client>, options: CallOptions) -> JoinHandle<Called> {
    let client = client.clone();
    tokio::spawn(async move { client.call_tool("slow", json!({}), options).await })
}

/// Options that record the reported progress.
pub(crate) fn remembering(options: CallOptions) -> (CallOptions, Arc<Mutex<Vec<Progress>>>) {
    let told = Arc::new(Mutex::new(Vec::new()));
    let telling = told.clone();
    (options.on_progress(move |progress| telling.lock().unwrap().push(progress.clone())), told)
}

/// Unwraps a call that ended at a limit.
pub(crate) fn timed_out(called: Called) -> TimedOut {
    match called {
        Err(ClientError::TimedOut(timed_out)) => timed_out,
        other => panic!("not timed out: {other:?}"),
    }
}
