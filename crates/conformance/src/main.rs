//! Runs outlast's HTTP layer, engine, SQLite store and tasks with the tools of the official conformance runner
//! in place of the tool sets. Prints `{"url": ...}` and serves until it is interrupted. Never shipped.
//!
//! The runner tests outlast's own code as far as possible: every fixture is a job that the engine runs, as a
//! held call or as a task. The parts that outlast does not have (a task that asks for input or ends with a
//! protocol error) are in [`asking`] and [`handler`], and are marked as such.

mod tools;
mod work;
mod asking;
mod handler;

use std::io::Write;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use outlast_core::{OwnerId, Profile, SpendLimits};
use outlast_engine::{Engine, LeaveTime, Options, Providers, Shutdown, Worker, WorkerRole};
use outlast_server::{
    Callers, Face, Hosts, HttpOptions, Origins, PageOptions, PageView, Rates, Room, Routes, Server,
    serve_handler,
};
use outlast_store::{SqliteStore, SystemClock};
use tokio::net::TcpListener;

use crate::asking::Asking;
use crate::handler::Fixtures;
use crate::work::Work;

/// The runner sends requests as fast as it can.
const RATE: NonZeroU32 = NonZeroU32::new(1_000_000).unwrap();

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let stop = Shutdown::new();
    let asking = Arc::new(Asking::default());
    let folder = tempfile::tempdir().context("make a folder for the store")?;
    let store = SqliteStore::open(&folder.path().join("jobs.db"), Arc::new(SystemClock))?;
    let store = Arc::new(store);
    let profile = Profile::new("conformance");
    let providers = Providers::from([(profile.clone(), Arc::new(Work::new(&asking)) as Arc<_>)]);
    let (engine, follower) =
        Engine::new(store.clone(), providers, Options::default(), stop.clone()).await?;
    let worker =
        tokio::spawn(Worker::new(&engine, WorkerRole::HeldCallsOnly).run(LeaveTime::Asked));

    let listener = TcpListener::bind("127.0.0.1:0").await.context("listen")?;
    let address = listener.local_addr()?;
    let owner = OwnerId::new("local");
    let options = HttpOptions {
        routes: Routes::All,
        callers: Callers::WithoutToken(owner.clone()),
        oauth: None,
        hosts: Hosts::loopback(),
        // The runner acts as a page of this server.
        origins: Origins::parse(&format!("http://{address},http://localhost:{}", address.port()))?,
        trusted_proxies: outlast_server::TrustedProxies::default(),
        rates: Rates { per_owner: RATE, strangers: RATE },
        session_idle: Duration::from_secs(3600),
        room: Room::default(),
        page: PageOptions {
            research: None,
            checks: None,
            limits: SpendLimits::default(),
            view: PageView::Own,
            entry: None,
        },
    };
    let server = Server::new(Face::new(owner, engine.clone(), Vec::new()));
    let fixtures = Fixtures::new(server.clone(), profile, asking);
    let interrupted = stop.clone();
    tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            interrupted.ask();
        }
    });
    writeln!(
        std::io::stdout(),
        "{}",
        serde_json::json!({ "url": format!("http://{address}/mcp") })
    )?;

    serve_handler(fixtures, server, options, listener, stop.clone()).await;
    stop.ask();
    drop(tokio::time::timeout(Duration::from_secs(2), worker).await);
    follower.await?;
    store.close().await;
    Ok(())
}
