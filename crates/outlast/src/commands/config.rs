//! `outlast config`: the configuration file, and every setting with its value and its source.

use std::fs::DirBuilder;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::cli::{ConfigCommand, Global};
use crate::config::{Config, ShownConfig, ShownSetting, ValueSource, example_file};
use crate::error::{CommandResult, DONE, OrUsage as _, refuse};
use crate::ui::{self, Cell};

pub(super) fn run(global: &Global, command: ConfigCommand) -> CommandResult {
    match command {
        ConfigCommand::Init => init(&file_path(global)?),
        ConfigCommand::Path => {
            path(&file_path(global)?);
            DONE
        }
        ConfigCommand::Show { json } => show(global, json),
    }
}

fn file_path(global: &Global) -> CommandResult<PathBuf> {
    let path = Config::file_path(global.config.clone());
    let path = path.context("there is no home directory");
    path.or_usage("set HOME to an absolute path, or give --config")
}

/// Writes a new file that only the user can read, because keys belong into it.
fn init(path: &Path) -> CommandResult {
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        created.with_context(|| format!("create {}", folder.display()))?;
    }
    let mut options = std::fs::File::options();
    let mut file = match options.create_new(true).write(true).mode(0o600).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let why = format!("{} exists; it was not changed", path.display());
            return refuse(why, "edit it, or give another path with --config");
        }
        Err(error) => {
            return Err(error).with_context(|| format!("create {}", path.display()))?;
        }
    };
    let written = file.write_all(example_file().as_bytes()).and_then(|()| file.sync_all());
    written.with_context(|| format!("write {}", path.display()))?;
    ui::line(&path.display().to_string());
    ui::remark(
        "Every setting is in it, commented out; `outlast config show` shows what is in effect.",
    );
    DONE
}

fn path(path: &Path) {
    ui::line(&path.display().to_string());
    if !path.exists() {
        ui::remark("There is no such file yet; `outlast config init` writes it.");
    }
}

fn show(global: &Global, json: bool) -> CommandResult {
    let showing =
        ShownConfig::read(super::flags_of(global, &[])?).map_err(super::explain_config_error)?;
    if json {
        ui::json(&as_json(&showing));
    } else if ui::is_terminal() {
        print_by_group(&showing);
    } else {
        let rows = showing.settings.iter().map(|shown| {
            let value = if shown.value.is_empty() { "-" } else { &shown.value };
            vec![Cell::plain(shown.setting.key), Cell::plain(value), Cell::plain(source(shown))]
        });
        ui::table(&["SETTING", "VALUE", "FROM"], rows.collect());
    }
    if !json {
        match &showing.file {
            Some(file) => ui::remark(&format!("\nFile: {}", file.display())),
            None => ui::remark("\nThere is no configuration file."),
        }
    }
    // Printed before the error: a person who looks wants to find the mistake.
    let config = showing.config.map_err(super::explain_config_error)?;
    config.warnings.iter().for_each(|warning| ui::remark(&format!("warning: {warning}")));
    DONE
}

/// Prints the settings table by table, as in the file: three columns would not fit a terminal. Only values other than
/// the default show their source.
fn print_by_group(showing: &ShownConfig) {
    let mut table = "";
    for shown in &showing.settings {
        let (group, key) = shown.setting.key.split_once('.').unwrap_or(("", shown.setting.key));
        if group != table {
            if !table.is_empty() {
                ui::line("");
            }
            ui::title(&format!("[{group}]"));
            table = group;
        }
        let value = if shown.value.is_empty() { "-" } else { &shown.value };
        let is_default = shown.source == ValueSource::Default;
        let from = if is_default { String::new() } else { format!("  ({})", source(shown)) };
        ui::entry(&format!("  {key:<26}  {value}{from}"), 6);
    }
}

/// Returns the source of the value, in a word or a name.
fn source(shown: &ShownSetting) -> &'static str {
    let kind = if shown.source == ValueSource::Default { "default" } else { "file" };
    shown.source.name().unwrap_or(kind)
}

fn as_json(showing: &ShownConfig) -> Value {
    let settings = showing.settings.iter().map(|shown| {
        let (kind, name) = match &shown.source {
            ValueSource::Flag(name) => ("flag", Some((*name).to_owned())),
            ValueSource::Variable(name) => ("environment", Some((*name).to_owned())),
            ValueSource::File(path) => ("file", Some(path.display().to_string())),
            ValueSource::Default => ("default", None),
        };
        let value = (!shown.value.is_empty()).then_some(&shown.value);
        json!({ "key": shown.setting.key, "value": value, "source": { "kind": kind, "name": name }, "about": shown.setting.description })
    });
    json!({
        "file": showing.file.as_ref().map(|file| file.display().to_string()),
        "settings": settings.collect::<Vec<_>>(),
        "error": showing.config.as_ref().err().map(ToString::to_string),
    })
}
