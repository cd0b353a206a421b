//! An engine for as long as a command needs one; whatever comes of the command, the store is closed after it.

use std::process::ExitCode;

use outlast_engine::{Engine, Providers, Shutdown};

use crate::config::Config;
use crate::error::CommandError;
use crate::wire::OpenStore;

/// Runs a command on an engine over this store.
pub(super) async fn with_engine(
    store: OpenStore,
    config: &Config,
    providers: Providers,
    command: impl AsyncFnOnce(&Engine, &Shutdown) -> Result<ExitCode, CommandError>,
) -> Result<ExitCode, CommandError> {
    let stop = Shutdown::new();
    let (engine, follower) = store.engine(config, providers, stop.clone()).await?;
    let done = command(&engine, &stop).await;
    stop.ask();
    drop(follower.await);
    store.close().await;
    done
}
