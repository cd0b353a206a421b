//! `outlast init`: adds one entry to a client's configuration file, and removes it without a trace.

mod clients;
mod entry;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use outlast_server::{ToolSet, WAYS_TO_A_PROVIDER};

use crate::cli::{Client, Global, InitArgs};
use crate::client_files::diff;
use crate::client_files::document::Document;
use crate::client_files::json::EditRefusal;
use crate::config::{
    Config, Places, REDACTED, ResearchProvider, ShownConfig, ValueSource, VendorName, settings,
};
use crate::error::{CommandError, CommandResult, DONE, OrUsage as _, refuse};
use crate::installed::InstalledProgram;
use crate::ui::{self, LineMark};
use clients::{KeyWay, ProgramEntry};

pub(super) fn run(global: &Global, args: InitArgs) -> CommandResult {
    let InitArgs { client, library, tools, print, dry_run, remove } = args;
    let places = places()?;
    let path = client.file(&places);
    let mut program = program(global, &library)?;
    if let Some(tools) = &tools {
        program.args.extend(["--tools".to_owned(), tool_sets(tools)?]);
    }
    let entry = client.entry(&program);
    let refused = |refusal: EditRefusal| refused(client, &path, refusal);
    if print {
        ui::raw(client.format().put("", &entry).map_err(refused)?.as_bytes());
        ui::remark(&format!("For {}.", places.short(&path)));
        return DONE;
    }
    let document = Document::read(&path)?;
    let before = document.text.as_deref();
    let step = if remove {
        removal(client, &document).map_err(refused)?
    } else {
        let after = client.format().put(before.unwrap_or_default(), &entry).map_err(refused)?;
        if Some(after.as_str()) == before { FileChange::Nothing } else { FileChange::Put(after) }
    };
    if dry_run {
        let after = match &step {
            FileChange::Nothing => before,
            FileChange::Put(text) | FileChange::TakeOut(text) | FileChange::Restore(text) => {
                Some(text.as_str())
            }
            FileChange::Delete => None,
        };
        ui::raw(diff::unified_diff(&path.display().to_string(), before, after).as_bytes());
        if let FileChange::Nothing = step {
            ui::remark("Nothing would change.");
        }
        return DONE;
    }
    let told = InitReport {
        client,
        file: places.short(&path),
        backup: places.short(&document.backup_path()),
    };
    carry_out(client, &document, &step)?;
    if !matches!(step, FileChange::Nothing) {
        ui::line(&path.display().to_string());
    }
    if remove {
        told.removed(&step)
    } else {
        told.put(&step, before.is_some(), &program)
    }
    DONE
}

/// Returns the user's folders.
pub(super) fn places() -> CommandResult<Places> {
    Places::read().context("there is no home directory").or_usage("set HOME to an absolute path")
}

/// The state of a client's file.
pub(super) enum ClientSetup {
    /// There is no file: the client is not used here.
    NoFile,
    /// The file says nothing about this program.
    NotSetUp,
    /// The entry runs this command.
    Runs(String),
    /// The file cannot be read.
    Unreadable(String),
}

/// Reads a client's file.
pub(super) fn look(client: Client, places: &Places) -> ClientSetup {
    let text = match Document::read(&client.file(places)) {
        Ok(Document { text: Some(text), .. }) => text,
        Ok(_) => return ClientSetup::NoFile,
        Err(error) => return ClientSetup::Unreadable(format!("{error:#}")),
    };
    match client.format().command(&text) {
        Ok(Some(command)) => ClientSetup::Runs(command),
        Ok(None) => ClientSetup::NotSetUp,
        Err(refusal) => ClientSetup::Unreadable(refusal.to_string()),
    }
}

/// The change to the file.
enum FileChange {
    Nothing,
    Put(String),
    /// Restore the original bytes.
    Restore(String),
    /// The file was changed since: remove only the entry.
    TakeOut(String),
    /// The file contains nothing else: delete it.
    Delete,
}

fn removal(client: Client, document: &Document) -> Result<FileChange, EditRefusal> {
    let (format, Some(text)) = (client.format(), &document.text) else {
        return Ok(FileChange::Nothing);
    };
    let Some(without) = format.take(text)? else { return Ok(FileChange::Nothing) };
    // A backup that cannot be read restores nothing; the entry is removed all the same.
    let backup = document.backup().ok().flatten();
    Ok(match backup {
        Some(backup) if format.is_only_added(&backup, text) => FileChange::Restore(backup),
        _ if format.is_only_added("", text) => FileChange::Delete,
        _ => FileChange::TakeOut(without),
    })
}

fn carry_out(client: Client, document: &Document, step: &FileChange) -> anyhow::Result<()> {
    match step {
        FileChange::Nothing => Ok(()),
        FileChange::Put(text) => {
            let before = document.text.as_deref().unwrap_or_default();
            let first = !matches!(client.format().command(before), Ok(Some(_)));
            if first || document.backup()?.is_none() {
                document.back_up()?;
            }
            document.replace(text)
        }
        FileChange::Restore(text) => {
            document.replace(text)?;
            document.forget_backup()
        }
        FileChange::TakeOut(text) => document.replace(text),
        FileChange::Delete => document.delete(),
    }
}

fn refused(client: Client, path: &Path, refusal: EditRefusal) -> CommandError {
    let error = anyhow::Error::new(refusal)
        .context(format!("{} cannot be changed; nothing was written", path.display()));
    let hint = format!(
        "fix the file, or put in by hand what `outlast init {} --print` shows",
        client.id()
    );
    CommandError::usage(error, hint)
}

/// Returns the way to run this program from the client.
fn program(global: &Global, library: &[PathBuf]) -> CommandResult<ProgramEntry> {
    let (command, mut args) = InstalledProgram::find()?.command();
    args.push("serve".to_owned());
    args.extend(passed_on(global)?);
    if global.no_mirror {
        args.push("--no-mirror".to_owned());
    }
    let showing =
        ShownConfig::read(super::flags_of(global, &[])?).map_err(super::explain_config_error)?;
    let (mut keys, providers) = inherited_providers(&showing);
    let (values, more_keys) = researcher_variables(&showing);
    keys.extend(more_keys);
    let has_provider = showing.config.as_ref().is_ok_and(Config::has_provider);
    let library_given = !library.is_empty();
    let library = match library {
        [] => inherited_library(&showing),
        folders => folders.to_vec(),
    };
    let library = joined(&library)?;
    let has_provider = has_provider || library.is_some();
    Ok(ProgramEntry {
        command,
        args,
        keys,
        providers,
        values,
        library,
        library_given,
        has_provider,
    })
}

/// Returns the tool sets for the entry; an unknown one is refused here, not when the client starts.
fn tool_sets(list: &str) -> CommandResult<String> {
    let names = list.split(',').map(str::trim).filter(|name| !name.is_empty());
    let sets: Result<Vec<&str>, _> =
        names.map(|name| ToolSet::from_name(name).map(ToolSet::name)).collect();
    let hint = format!("give --tools some of: {}", ToolSet::ALL.map(ToolSet::name).join(", "));
    match sets {
        Ok(sets) if !sets.is_empty() => Ok(sets.join(",")),
        Ok(_) => refuse("--tools names no tool set", hint),
        Err(unknown) => refuse(unknown.to_string(), hint),
    }
}

/// Returns the options of this command line that the entry needs too, because the client runs in another place.
pub(super) fn passed_on(global: &Global) -> CommandResult<Vec<String>> {
    let mut args = Vec::new();
    for (flag, path) in [("--config", &global.config), ("--data-dir", &global.data_dir)] {
        if let Some(path) = path {
            args.extend([flag.to_owned(), absolute(path)?.display().to_string()]);
        }
    }
    if let Some(store) = &global.store {
        args.extend(["--store".to_owned(), store.clone()]);
    }
    Ok(args)
}

/// Returns the variables of the keys that the client is to pass on, and the providers that may be asked if this
/// environment names them.
fn inherited_providers(showing: &ShownConfig) -> (Vec<&'static str>, Option<String>) {
    let source = |setting| showing.setting(setting).map(|setting| &setting.source);
    let named = showing.config.as_ref().ok().filter(|config| config.providers_are_named);
    let vendors = match named {
        None => vec![VendorName::Perplexity],
        Some(config) => config.providers.iter().filter_map(ResearchProvider::vendor_name).collect(),
    };
    let needed = vendors
        .into_iter()
        .filter(|vendor| !matches!(source(vendor.api_key()), Some(ValueSource::File(_))));
    let keys = needed.map(|vendor| vendor.vendor().key_variable).collect();
    let is_variable = matches!(source(settings::SERVER_PROVIDERS), Some(ValueSource::Variable(_)));
    let names = named.filter(|_| is_variable).map(|config| {
        config.providers.iter().map(ResearchProvider::name).collect::<Vec<_>>().join(",")
    });
    (keys, names)
}

/// Returns the variables of the researcher that this environment has: those that are written with their values, and
/// those that hold secrets.
fn researcher_variables(showing: &ShownConfig) -> (Vec<(&'static str, String)>, Vec<&'static str>) {
    let is_researcher = |it: &ResearchProvider| matches!(it, ResearchProvider::Researcher(_));
    let (mut values, mut keys) = (Vec::new(), Vec::new());
    let config = showing.config.as_ref();
    if !config.is_ok_and(|config| config.providers.iter().any(is_researcher)) {
        return (values, keys);
    }
    for setting in [
        settings::RESEARCHER_MODEL_URL,
        settings::RESEARCHER_MODEL,
        settings::RESEARCHER_SEARCH,
        settings::RESEARCHER_SEARCH_URL,
        settings::RESEARCHER_API_KEY,
        settings::RESEARCHER_SEARCH_API_KEY,
    ] {
        let Some(shown) = showing.setting(setting) else { continue };
        if shown.value.is_empty() || !matches!(shown.source, ValueSource::Variable(_)) {
            continue;
        }
        for variable in setting.variables {
            // An address may hold a password.
            match shown.value.contains(REDACTED) {
                true => keys.push(*variable),
                false => values.push((*variable, shown.value.clone())),
            }
        }
    }
    (values, keys)
}

/// Returns the library of this environment, which the client's environment may lack. One in outlast.toml need not be
/// passed on.
fn inherited_library(showing: &ShownConfig) -> Vec<PathBuf> {
    let setting = showing.setting(settings::LIBRARY_FOLDERS);
    let is_variable = setting.is_some_and(|it| matches!(it.source, ValueSource::Variable(_)));
    match &showing.config {
        Ok(config) if is_variable => {
            config.library.iter().filter(|folder| folder.is_dir()).cloned().collect()
        }
        Ok(_) | Err(_) => Vec::new(),
    }
}

/// Returns these folders as one variable, by their whole paths, because the client runs in another place. `None` if
/// there are none.
fn joined(folders: &[PathBuf]) -> CommandResult<Option<String>> {
    let mut paths = Vec::new();
    for folder in folders {
        if !folder.is_dir() {
            let why = format!("the library's folder {} is no directory", folder.display());
            return refuse(why, "give --library (or OUTLAST_LIBRARY) folders that exist");
        }
        paths.push(absolute(folder)?);
    }
    if paths.is_empty() {
        return Ok(None);
    }
    let joined =
        std::env::join_paths(paths).context("put the library's folders into one variable")?;
    let joined = joined.into_string().ok().context("the name of a library's folder is not UTF-8");
    joined.map(Some).or_usage("give a folder whose name is UTF-8")
}

fn absolute(path: &Path) -> CommandResult<PathBuf> {
    Ok(std::path::absolute(path).with_context(|| format!("find {}", path.display()))?)
}

/// The report of the change.
struct InitReport {
    client: Client,
    file: String,
    backup: String,
}

impl InitReport {
    fn put(&self, step: &FileChange, had_file: bool, program: &ProgramEntry) {
        let (client, file) = (self.client.title(), &self.file);
        if matches!(step, FileChange::Nothing) {
            ui::mark(LineMark::Good, &format!("{client} is set up already; nothing was changed."));
            return;
        }
        ui::mark(LineMark::Good, &format!("{client} is set up in {file}."));
        if had_file {
            ui::remark(&format!("  The file as it was: {}", self.backup));
        }
        ui::remark(
            "  Deep research is in the mode `auto`, which suits every client: a report that is ready within 45 s is \
             the answer, a longer one is fetched by its conversation id \
             (OUTLAST_ASYNC_RESEARCH=auto).",
        );
        match (&program.providers, &program.library) {
            (Some(providers), _) => {
                ui::remark(&format!("  Who may be asked, the first by default: {providers}."));
            }
            (None, Some(library)) => ui::remark(&format!(
                "  If a key is set, Perplexity answers; if not, the documents in {library} do."
            )),
            (None, None) => {}
        }
        let keys = program.keys.join(" and ");
        ui::remark(&match self.client.key_way() {
            _ if program.keys.is_empty() => {
                "  Keys stay in outlast.toml; nothing about them was written.".to_owned()
            }
            KeyWay::Reference(..) | KeyWay::Named => format!(
                "  No key is in the file: the client passes {keys} on from its own environment."
            ),
            KeyWay::Inherited => format!(
                "  No key is in the file: start the client where {keys} is set, or put the key into outlast.toml."
            ),
            KeyWay::OwnFile => {
                "  This client passes no variables on: put the key into outlast.toml, readable by you alone."
                    .to_owned()
            }
        });
        if !program.has_provider {
            ui::remark(&format!(
                "  warning: no research provider is configured here, and research is refused until one is: \
                 {WAYS_TO_A_PROVIDER}"
            ));
        }
        ui::remark(&format!(
            "  Start {client} again. To undo: outlast init {} --remove",
            self.client.id()
        ));
    }

    fn removed(&self, step: &FileChange) {
        let (client, file) = (self.client.title(), &self.file);
        let said = match step {
            FileChange::Nothing => format!("{client} was not set up; nothing was changed."),
            FileChange::Restore(_) => format!("{file} is as it was before."),
            FileChange::Delete => format!("{file} is gone; there was nothing else in it."),
            FileChange::Put(_) | FileChange::TakeOut(_) => {
                format!(
                    "The entry was taken out of {file}, which has been changed since; the rest stays."
                )
            }
        };
        ui::mark(LineMark::Good, &said);
    }
}
