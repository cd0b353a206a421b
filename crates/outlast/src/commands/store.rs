//! `outlast store`: operations on the store itself.

mod copy;
mod restore;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use outlast_store::PostgresStore;
use serde_json::json;

use crate::cli::{BackupArgs, Global, StoreCommand};
use crate::config::{Config, Secret, StoreUrl};
use crate::error::{CommandError, CommandResult, DONE, refuse};
use crate::open_store::{Backend, OpenStore, unusable};
use crate::ui;

pub(super) async fn run(global: &Global, command: StoreCommand) -> CommandResult {
    let config = super::load_config(global, &[])?;
    super::start_quiet_log(global, &config)?;
    match command {
        StoreCommand::Backup(args) => backup(&config, args).await,
        StoreCommand::Restore(args) => restore::run(&config, &args).await,
        StoreCommand::Check { json } => check(&config, json).await,
        StoreCommand::Migrate { json } => migrate(&config, json).await,
        StoreCommand::Copy(args) => copy::run(&config, &args).await,
    }
}

async fn backup(config: &Config, args: BackupArgs) -> CommandResult {
    match &config.store {
        StoreUrl::Sqlite(_) => {}
        StoreUrl::Postgres(address) => {
            let file = quote(&args.file.display().to_string());
            let address = quote(&address.without_password());
            let hint = format!("pg_dump --format=custom --file={file} {address}");
            return refuse("PostgreSQL's own programs back up a database", hint);
        }
        StoreUrl::Memory => return Err(no_file()),
    }
    let store = OpenStore::to_read(config).await?;
    let Backend::Sqlite(sqlite) = &store.backend else { return Err(no_store(&config.store)) };
    let copied = sqlite.backup(&args.file).await;
    store.close().await;
    copied.map_err(|error| {
        let error = anyhow::Error::new(error)
            .context(format!("back up the job store to {}", args.file.display()));
        CommandError::from(error).hint(backup_hint(&args.file))
    })?;
    let file = args.file.display().to_string();
    match args.json {
        true => ui::json(&json!({ "file": file })),
        false => ui::line(&file),
    }
    DONE
}

fn backup_hint(file: &Path) -> String {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty());
    match folder {
        _ if file.exists() => {
            "name a file that does not exist yet; a backup replaces none".to_owned()
        }
        Some(folder) if !folder.is_dir() => {
            format!("make the folder first: mkdir -p {}", quote(&folder.display().to_string()))
        }
        _ => "name a file in a folder that you can write to and that has room".to_owned(),
    }
}

async fn check(config: &Config, as_json: bool) -> CommandResult {
    if config.store == StoreUrl::Memory {
        return Err(no_file());
    }
    let store = OpenStore::to_read(config).await?;
    let damages = match &store.backend {
        Backend::Sqlite(store) => store.check().await,
        Backend::Postgres(store) => store.check().await,
        Backend::Memory => return Err(no_store(&config.store)),
    };
    store.close().await;
    let damages = damages.context("check the job store")?;
    match as_json {
        true => ui::json(&json!({ "damages": damages })),
        false => damages.iter().for_each(|damage| ui::text(damage)),
    }
    if !damages.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    ui::remark("The job store is sound.");
    DONE
}

async fn migrate(config: &Config, as_json: bool) -> CommandResult {
    let before = schema(&config.store).await?;
    OpenStore::open(config).await?.close().await;
    let now = schema(&config.store).await?;
    if as_json {
        ui::json(&json!({ "store": config.store.to_string(), "schema": now, "before": before }));
        return DONE;
    }
    ui::line(&format!("schema {}", now.unwrap_or_default()));
    ui::remark(&match before {
        None => format!("The tables were made: {}", config.store),
        Some(_) if before == now => format!("It was up to date: {}", config.store),
        Some(before) => format!("It was brought up to date from schema {before}: {}", config.store),
    });
    DONE
}

/// Returns the schema of the tables, if there are any.
async fn schema(url: &StoreUrl) -> CommandResult<Option<u32>> {
    let found = match url {
        StoreUrl::Memory => return Err(no_file()),
        StoreUrl::Sqlite(path) => {
            outlast_store::inspect(path).map(|found| found.map(|found| found.schema))
        }
        StoreUrl::Postgres(Secret(address)) => {
            PostgresStore::inspect(address, None).await.map(|found| found.schema)
        }
    };
    let attempt = format!("look at the job store at {url}");
    let schema = found.map_err(|error| unusable(error, attempt, url))?;
    // A file without a table is a store that is still to be created.
    Ok(schema.filter(|schema| *schema > 0))
}

fn no_file() -> CommandError {
    CommandError::wrong("a memory store has no file", "name one with --store sqlite:FILE")
}

fn no_store(url: &StoreUrl) -> CommandError {
    let hint = "`outlast config show` says where it is looked for";
    CommandError::failed(format!("there is no job store at {url}"), hint)
}

/// Quotes a word of a command line so that a shell leaves it unchanged.
fn quote(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "/._-:@%,=+".contains(sign);
    match word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}
