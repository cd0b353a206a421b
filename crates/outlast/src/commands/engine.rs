//! An engine for the duration of a command; the store is closed after the command, whatever its result.

use std::sync::Arc;

use outlast_core::Scope;
use outlast_engine::{Engine, Providers, Shutdown};
use outlast_mirror::Mirror;

use crate::cli::Global;
use crate::config::Config;
use crate::error::CommandResult;
use crate::open_store::{OpenEngine, OpenStore, check_owner, options};

/// The parts that a command works with.
pub(super) struct CommandSession<'a> {
    pub(super) global: &'a Global,
    pub(super) config: &'a Config,
    pub(super) engine: Engine,
    /// The files of the owner's conversations, if they are written.
    pub(super) mirror: Option<Arc<Mirror>>,
    /// Ends the engine's work.
    pub(super) stop: Shutdown,
}

impl CommandSession<'_> {
    /// Returns the scope of the owner's own jobs.
    pub(super) fn own(&self) -> Scope {
        Scope::Owner(self.config.owner.clone())
    }
}

/// Runs a command on an engine over this store.
pub(super) async fn with_engine(
    global: &Global,
    config: &Config,
    store: OpenStore,
    providers: Providers,
    command: impl AsyncFnOnce(&CommandSession<'_>) -> CommandResult,
) -> CommandResult {
    check_owner(config)?;
    let stop = Shutdown::new();
    let opened = store.engine(config, options(config), providers, stop.clone()).await?;
    let OpenEngine { engine, follower, mirror, .. } = opened;
    let done =
        command(&CommandSession { global, config, engine, mirror, stop: stop.clone() }).await;
    stop.ask();
    drop(follower.await);
    store.close().await;
    done
}
