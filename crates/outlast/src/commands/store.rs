//! `outlast store`: what one does to the file jobs live in.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context as _;
use outlast_core::StoreError;
use outlast_core::rules::Fate;
use outlast_store::{Restore, RestoreError, Restored, RestoredJob, SystemClock};
use serde_json::{Value, json};

use crate::cli::{BackupArgs, CheckArgs, Global, RestoreArgs, StoreCommand};
use crate::config::{Config, StoreUrl};
use crate::error::CommandError;
use crate::open_store::{OpenStore, store_hint};
use crate::ui;
use crate::wire::natures;

/// How every database of SQLite begins.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

const GIVE_A_BACKUP: &str = "give the file that `outlast store backup FILE` made";

pub(super) async fn run(global: &Global, command: StoreCommand) -> Result<ExitCode, CommandError> {
    let config = super::configured(global, &[])?;
    super::start_quiet_log(global, &config)?;
    let StoreUrl::Sqlite(path) = &config.store else {
        let error = anyhow::anyhow!("a memory store has no file");
        return Err(CommandError::usage(error, "name one with --store sqlite:FILE"));
    };
    match command {
        StoreCommand::Backup(args) => backup(&config, path, args).await,
        StoreCommand::Restore(args) => restore(&config, path, &args),
        StoreCommand::Check(args) => check(&config, path, args).await,
    }
}

async fn backup(config: &Config, path: &Path, args: BackupArgs) -> Result<ExitCode, CommandError> {
    let store = OpenStore::to_read(&config.store).await?;
    let Some(sqlite) = store.sqlite() else { return Err(no_store(path)) };
    let copied = sqlite.backup(&args.file).await;
    store.close().await;
    copied.with_context(|| format!("back up the job store to {}", args.file.display()))?;
    let file = args.file.display().to_string();
    match args.json {
        true => ui::json(&json!({ "file": file })),
        false => ui::line(&file),
    }
    Ok(ExitCode::SUCCESS)
}

async fn check(config: &Config, path: &Path, args: CheckArgs) -> Result<ExitCode, CommandError> {
    let store = OpenStore::to_read(&config.store).await?;
    let Some(sqlite) = store.sqlite() else { return Err(no_store(path)) };
    let damages = sqlite.check().await;
    store.close().await;
    let damages = damages.context("check the job store")?;
    match args.json {
        true => ui::json(&json!({ "damages": damages })),
        false => damages.iter().for_each(|damage| ui::text(damage)),
    }
    if !damages.is_empty() {
        return Ok(ExitCode::FAILURE);
    }
    ui::remark("The job store is sound.");
    Ok(ExitCode::SUCCESS)
}

fn no_store(path: &Path) -> CommandError {
    let error = anyhow::anyhow!("there is no job store at {}", path.display());
    CommandError::from(error).hint("`outlast config show` says where it is looked for")
}

fn restore(config: &Config, path: &Path, args: &RestoreArgs) -> Result<ExitCode, CommandError> {
    let providers = natures(config)?;
    let restore = Restore {
        path,
        clock: &SystemClock,
        nature: &|profile, ask| Some(providers.get(profile)?.nature(ask)),
        force: args.force,
    };
    let restored = match &args.file {
        Some(file) if is_same(file, path) => {
            let error = anyhow::anyhow!("{} is the store itself", file.display());
            return Err(CommandError::usage(error, "give --in-place instead of a file"));
        }
        Some(file) => {
            refuse_no_backup(file)?;
            restore.from_backup(file)
        }
        None => restore.in_place(),
    };
    let restored = restored.map_err(|error| not_restored(error, path, args.file.as_deref()))?;
    if args.json {
        ui::json(&as_json(path, &restored));
        return Ok(ExitCode::SUCCESS);
    }
    if !restored.jobs.is_empty() {
        let rows = restored.jobs.iter().map(|RestoredJob { job, fate }| {
            vec![
                ui::Cell::id(&job.id.to_string()),
                ui::Cell::plain(word(*fate)),
                ui::Cell::plain(&job.new.title),
            ]
        });
        ui::table(&["ID", "NOW", "QUESTION"], rows.collect());
    }
    if args.in_place && restored.jobs.is_empty() {
        let path = path.display();
        ui::mark(
            ui::Mark::Good,
            &format!("no job had to be changed; the store can be used: {path}"),
        );
        return Ok(ExitCode::SUCCESS);
    }
    tell(path, &restored);
    Ok(ExitCode::SUCCESS)
}

fn is_same(file: &Path, path: &Path) -> bool {
    matches!((file.canonicalize(), path.canonicalize()), (Ok(file), Ok(path)) if file == path)
}

/// Whether the file can be a backup at all; what is wrong inside it is found by the store.
fn refuse_no_backup(file: &Path) -> Result<(), CommandError> {
    let mut start = [0; SQLITE.len()];
    let read = File::open(file).and_then(|mut file| file.read_exact(&mut start));
    let error = match read {
        Ok(()) if start == *SQLITE => return Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            anyhow::anyhow!("there is no {}", file.display())
        }
        Err(error) if error.kind() != ErrorKind::UnexpectedEof => {
            anyhow::Error::new(error).context(format!("read the backup {}", file.display()))
        }
        Ok(()) | Err(_) => anyhow::anyhow!("{} is no backup of outlast", file.display()),
    };
    Err(CommandError::from(error).hint(GIVE_A_BACKUP))
}

fn word(fate: Fate) -> &'static str {
    match fate {
        Fate::Ended => "ended",
        Fate::Resumes => "resumes",
        Fate::RunsOn => "queued",
    }
}

fn tell(path: &Path, restored: &Restored) {
    ui::mark(ui::Mark::Good, &format!("restored: {}", path.display()));
    if let Some(kept) = &restored.kept {
        ui::remark(&format!("  the store that was there: {}", kept.display()));
    }
    let count = |fate| restored.jobs.iter().filter(|job| job.fate == fate).count();
    match count(Fate::Ended) {
        0 => {}
        ended => {
            ui::remark(&format!(
                "  {ended} ended with SUBMIT_UNKNOWN: they may have been run and paid for since the backup"
            ));
            ui::remark("  `outlast jobs retry ID --again` begins one anew, on your word");
        }
    }
    match count(Fate::Resumes) {
        0 => {}
        resumes => ui::remark(&format!("  {resumes} resume at the provider; nothing new is begun")),
    }
    match count(Fate::RunsOn) {
        0 => {}
        queued => ui::remark(&format!("  {queued} stay queued: running them twice costs nothing")),
    }
}

fn as_json(path: &Path, restored: &Restored) -> Value {
    let of = |fate| {
        let jobs = restored.jobs.iter().filter(|job| job.fate == fate).map(told);
        jobs.collect::<Vec<_>>()
    };
    json!({
        "store": path.display().to_string(),
        "kept": restored.kept.as_ref().map(|kept| kept.display().to_string()),
        "ended": of(Fate::Ended),
        "resumed": of(Fate::Resumes),
        "queued": of(Fate::RunsOn),
    })
}

fn told(RestoredJob { job, .. }: &RestoredJob) -> Value {
    json!({
        "id": job.id.to_string(),
        "owner": job.new.owner.as_str(),
        "conversation": job.new.conversation_id(),
        "workflow": job.new.workflow,
        "title": job.new.title,
    })
}

fn not_restored(error: RestoreError, path: &Path, file: Option<&Path>) -> CommandError {
    // A damaged store is no reason: it is replaced. So it is the backup.
    if let (RestoreError::Store(StoreError::Corrupt { at }), Some(file)) = (&error, file) {
        let error = anyhow::anyhow!("the backup {} is damaged at {at}", file.display());
        return CommandError::from(error).hint("give another backup");
    }
    let hint = match &error {
        RestoreError::InUse => "stop every server and worker that uses it, then try again",
        RestoreError::Exists { .. } => {
            "--force replaces it; it is kept beside the restored one, under another name"
        }
        RestoreError::Current { .. } => {
            "give the backup's FILE, or --force if this store is an older copy all the same"
        }
        RestoreError::Store(StoreError::Unavailable(_)) if file.is_some() => {
            "check that the file is a backup of outlast, and that the store's directory can be written"
        }
        RestoreError::Store(error) => store_hint(error, &StoreUrl::Sqlite(path.to_owned())),
    };
    let is_usage = matches!(error, RestoreError::Exists { .. } | RestoreError::Current { .. });
    let error = anyhow::Error::new(error).context(format!("restore {}", path.display()));
    match is_usage {
        true => CommandError::usage(error, hint),
        false => CommandError::from(error).hint(hint),
    }
}
