//! `outlast config`: every setting, its value and its source.

use serde_json::{Value, json};

use crate::cli::{ConfigCommand, Global};
use crate::config::{ShownConfig, ShownSetting, Source};
use crate::error::{CommandResult, DONE};
use crate::ui::{self, Cell};

pub(super) fn run(global: &Global, command: ConfigCommand) -> CommandResult {
    let ConfigCommand::Show { json } = command;
    let showing = ShownConfig::read(super::flags_of(global, &[])?).map_err(super::misconfigured)?;
    if json {
        ui::json(&as_json(&showing));
    } else if ui::is_terminal() {
        grouped(&showing);
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
    let config = showing.config.map_err(super::misconfigured)?;
    config.warnings.iter().for_each(|warning| ui::remark(&format!("warning: {warning}")));
    DONE
}

/// Prints the settings table by table, as in the file: three columns would not fit a terminal. Only values other than
/// the default show their source.
fn grouped(showing: &ShownConfig) {
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
        let is_default = shown.source == Source::Default;
        let from = if is_default { String::new() } else { format!("  ({})", source(shown)) };
        ui::entry(&format!("  {key:<26}  {value}{from}"), 6);
    }
}

/// Returns the source of the value, in a word or a name.
fn source(shown: &ShownSetting) -> &'static str {
    let kind = if shown.source == Source::Default { "default" } else { "file" };
    shown.source.name().unwrap_or(kind)
}

fn as_json(showing: &ShownConfig) -> Value {
    let settings = showing.settings.iter().map(|shown| {
        let (kind, name) = match &shown.source {
            Source::Flag(name) => ("flag", Some((*name).to_owned())),
            Source::Variable(name) => ("environment", Some((*name).to_owned())),
            Source::File(path) => ("file", Some(path.display().to_string())),
            Source::Default => ("default", None),
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
