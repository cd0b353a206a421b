//! `outlast store`: what one does to the file jobs live in.

use std::process::ExitCode;

use anyhow::Context as _;

use crate::cli::{Global, StoreCommand};
use crate::failed::Failed;
use crate::ui;
use crate::wire::OpenStore;

pub(super) async fn run(global: &Global, command: StoreCommand) -> Result<ExitCode, Failed> {
    let config = super::configured(global, Vec::new())?;
    let store = OpenStore::open(&config.store)?;
    let Some(sqlite) = store.sqlite() else {
        let error = anyhow::anyhow!("a memory store has no file");
        return Err(Failed::usage(error, "name one with --store sqlite:FILE"));
    };
    let done = match command {
        StoreCommand::Backup { file } => {
            let copied = sqlite.backup(&file).await;
            copied.with_context(|| format!("back up the job store to {}", file.display()))?;
            ui::line(&file.display().to_string());
            ExitCode::SUCCESS
        }
        StoreCommand::Check => {
            let damages = sqlite.check().await.context("check the job store")?;
            damages.iter().for_each(|damage| ui::text(damage));
            if damages.is_empty() {
                ui::remark("The job store is sound.");
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
    };
    store.close().await;
    Ok(done)
}
