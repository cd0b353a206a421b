//! `outlast store restore`: makes a backup the store again.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

use outlast_core::rules::RestoredOutcome;
use outlast_core::{Profile, Request, StoreError};
use outlast_store::{PostgresStore, Restore, RestoreError, Restored, RestoredJob, SystemClock};
use serde_json::{Value, json};

use super::quote;
use crate::cli::RestoreArgs;
use crate::config::{Config, Secret, StoreUrl};
use crate::error::{CommandError, CommandResult, DONE, refuse};
use crate::open_store::{marks_of, store_hint};
use crate::ui;
use crate::wire::providers_for_restore;

/// The first bytes of every SQLite database.
const SQLITE: &[u8; 16] = b"SQLite format 3\0";

const GIVE_A_BACKUP: &str = "give the file that `outlast store backup FILE` made";
pub(super) const IN_USE: &str = "stop every server and worker that uses it (`outlast worker stop` ends those in the background), then try again";

pub(super) async fn run(config: &Config, args: &RestoreArgs) -> CommandResult {
    let restored = match &config.store {
        StoreUrl::Sqlite(path) => of_file(config, path, args)?,
        StoreUrl::Postgres(address) => of_database(config, address, args).await?,
        StoreUrl::Memory => return Err(super::no_file()),
    };
    let store = config.store.to_string();
    if args.json {
        ui::json(&as_json(&store, &restored));
        return DONE;
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
        ui::mark(
            ui::LineMark::Good,
            &format!("no job had to be changed; the store can be used: {store}"),
        );
        return DONE;
    }
    tell(&store, &restored);
    DONE
}

/// Restores a database, after `pg_restore`.
async fn of_database(config: &Config, url: &Secret, args: &RestoreArgs) -> CommandResult<Restored> {
    if let Some(file) = &args.file {
        let file = quote(&file.display().to_string());
        let address = quote(&url.without_password());
        let hint = format!(
            "pg_restore --clean --if-exists --dbname={address} {file}\n      \
             then end what may have been paid for since: outlast store restore --in-place"
        );
        return refuse("PostgreSQL's own programs restore a dump", hint);
    }
    let providers = providers_for_restore(config)?;
    let semantics = |profile: &Profile, request: &Request| {
        Some(providers.get(profile)?.recovery_semantics(request))
    };
    let state_dir = Some(marks_of(config));
    let notices = config.end_notices();
    let restored =
        PostgresStore::restore_in_place(&url.0, state_dir, &semantics, notices, args.force).await;
    restored.map_err(|error| not_restored(error, &config.store, None))
}

fn of_file(config: &Config, path: &Path, args: &RestoreArgs) -> CommandResult<Restored> {
    let providers = providers_for_restore(config)?;
    let restore = Restore {
        path,
        state_dir: config.state_dir.as_deref(),
        clock: &SystemClock,
        semantics: &|profile, request| Some(providers.get(profile)?.recovery_semantics(request)),
        notices: config.end_notices(),
        force: args.force,
    };
    let restored = match &args.file {
        Some(file) if is_same(file, path) => {
            let why = format!("{} is the store itself", file.display());
            return refuse(why, "give --in-place instead of a file");
        }
        Some(file) => {
            refuse_no_backup(file)?;
            restore.from_backup(file)
        }
        None => restore.in_place(),
    };
    restored.map_err(|error| not_restored(error, &config.store, args.file.as_deref()))
}

fn is_same(file: &Path, path: &Path) -> bool {
    matches!((file.canonicalize(), path.canonicalize()), (Ok(file), Ok(path)) if file == path)
}

/// Refuses a file that cannot be a backup; the store finds mistakes inside it.
fn refuse_no_backup(file: &Path) -> CommandResult<()> {
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

fn word(fate: RestoredOutcome) -> &'static str {
    match fate {
        RestoredOutcome::Ended => "ended",
        RestoredOutcome::Resumes => "resumes",
        RestoredOutcome::RunsOn => "queued",
    }
}

fn tell(store: &str, restored: &Restored) {
    ui::mark(ui::LineMark::Good, &format!("restored: {store}"));
    if let Some(kept) = &restored.kept {
        ui::remark(&format!("  the store that was there: {}", kept.display()));
    }
    let count = |fate| restored.jobs.iter().filter(|job| job.fate == fate).count();
    let [ended, resumes, queued] =
        [RestoredOutcome::Ended, RestoredOutcome::Resumes, RestoredOutcome::RunsOn].map(count);
    if ended > 0 {
        ui::remark(&format!(
            "  {ended} ended with SUBMIT_UNKNOWN: they may have been run and paid for since the backup"
        ));
        ui::remark("  `outlast jobs retry ID --again` begins one again, if you decide so");
    }
    if resumes > 0 {
        ui::remark(&format!("  {resumes} resume at the provider; nothing new is begun"));
    }
    if queued > 0 {
        ui::remark(&format!("  {queued} stay queued: running them twice costs nothing"));
    }
}

fn as_json(store: &str, restored: &Restored) -> Value {
    let of = |fate| {
        let jobs = restored.jobs.iter().filter(|job| job.fate == fate).map(report_restored);
        jobs.collect::<Vec<_>>()
    };
    json!({
        "store": store,
        "kept": restored.kept.as_ref().map(|kept| kept.display().to_string()),
        "ended": of(RestoredOutcome::Ended),
        "resumed": of(RestoredOutcome::Resumes),
        "queued": of(RestoredOutcome::RunsOn),
    })
}

fn report_restored(RestoredJob { job, .. }: &RestoredJob) -> Value {
    json!({
        "id": job.id.to_string(),
        "owner": job.new.owner.as_str(),
        "conversation": job.new.conversation_id(),
        "workflow": job.new.workflow,
        "title": job.new.title,
    })
}

fn not_restored(error: RestoreError, store: &StoreUrl, file: Option<&Path>) -> CommandError {
    // A damaged store is not an obstacle, because it is replaced. So the damage is in the backup.
    if let (RestoreError::Store(StoreError::Corrupt { at }), Some(file)) = (&error, file) {
        let why = format!("the backup {} is damaged at {at}", file.display());
        return CommandError::failed(why, "give another backup");
    }
    let hint = match &error {
        RestoreError::InUse => IN_USE,
        RestoreError::Exists { .. } => {
            "--force replaces it; it is kept beside the restored one, under another name"
        }
        RestoreError::Current { .. } if matches!(store, StoreUrl::Postgres(_)) => {
            "nothing shows that this database is an older copy: if a dump was restored to it, add --force"
        }
        RestoreError::Current { .. } => {
            "give the backup's FILE, or --force if this store is an older copy all the same"
        }
        RestoreError::Store(StoreError::Unavailable(_)) if file.is_some() => {
            "check that the file is a backup of outlast, and that the store's directory can be written"
        }
        RestoreError::Store(error) => store_hint(error, store),
    };
    let is_usage = matches!(error, RestoreError::Exists { .. } | RestoreError::Current { .. });
    let error = anyhow::Error::new(error).context(format!("restore {store}"));
    CommandError::from(error).hint(hint).usage_if(is_usage)
}
