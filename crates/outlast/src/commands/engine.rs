//! An engine for as long as a command needs one; whatever comes of the command, the store is closed after it.

use outlast_engine::{Providers, Shutdown};

use crate::config::Config;
use crate::error::CommandResult;
use crate::open_store::{OpenEngine, OpenStore, check_owner};

/// Runs a command on an engine over this store.
pub(super) async fn with_engine(
    store: OpenStore,
    config: &Config,
    providers: Providers,
    command: impl AsyncFnOnce(&OpenEngine, &Shutdown) -> CommandResult,
) -> CommandResult {
    check_owner(config)?;
    let stop = Shutdown::new();
    let opened = store.engine(config, providers, stop.clone()).await?;
    let done = command(&opened, &stop).await;
    stop.ask();
    drop(opened.follower.await);
    store.close().await;
    done
}
