//! The entry of this program in a client's file: added, updated and removed by the editor of clients' files.

use serde_json::Value;

use super::clients::old_name;
use crate::client_files::clients::ClientFormat;
use crate::client_files::json::{EditRefusal, member, object_at, parse, with_value};
use crate::client_files::layout::EntryField;
use crate::client_files::place::{Change, Place};
use crate::client_files::toml;

/// The name of our entry.
const NAME: &str = "outlast";

/// The entry of this program.
#[derive(Clone, Debug)]
pub(super) struct EntryValue {
    pub(super) value: EntryField,
    /// The variable that was given on the command line: it replaces the existing one.
    pub(super) given: Option<&'static str>,
}

impl EntryValue {
    /// Returns the changes that bring an existing entry up to date. Members that are not ours stay, and so does a variable
    /// that a person set to another value, unless a new value is given.
    fn changes_to(&self, found: &Value) -> Vec<Change> {
        let EntryField::Map(members) = &self.value else { return Vec::new() };
        let mut changes = Vec::new();
        for (name, field) in members {
            let (Some(Value::Object(there)), EntryField::Map(variables)) = (found.get(name), field)
            else {
                changes.push(Change::set(name, field.clone()));
                continue;
            };
            let is_kept = |variable: &str| {
                if there.contains_key(variable) {
                    return self.given != Some(variable);
                }
                old_name(variable).is_some_and(|old| there.contains_key(old))
            };
            let new = variables.iter().filter(|(variable, _)| !is_kept(variable));
            changes.extend(new.map(|(variable, text)| Change {
                within: Some(name),
                ..Change::set(variable, text.clone())
            }));
        }
        changes
    }
}

impl ClientFormat {
    /// Adds the entry, or updates the existing one.
    pub(super) fn put(self, text: &str, entry: &EntryValue) -> Result<String, EditRefusal> {
        let place = Place::of(self, NAME);
        match place.find(text)? {
            Some(found) if found.is_object() => place.change(text, &entry.changes_to(&found)),
            Some(_) | None => self.insert(text, NAME, &entry.value),
        }
    }

    /// Removes the entry; `None` if there is none.
    pub(super) fn take(self, text: &str) -> Result<Option<String>, EditRefusal> {
        let place = Place::of(self, NAME);
        let mut done = None;
        // A JSON object may have several members of the same name.
        loop {
            let before = done.as_deref().unwrap_or(text);
            let after = match place.find(before)? {
                Some(_) => place.remove(before)?,
                None => return Ok(done),
            };
            if after == before {
                return Ok(done);
            }
            done = Some(after);
        }
    }

    /// Returns true if the text is `before` with only our entry added.
    pub(super) fn is_only_added(self, before: &str, text: &str) -> bool {
        match self {
            Self::Json(container) => is_only_added_to_json(before, text, container),
            Self::Toml => is_only_added_to_toml(before, text),
        }
    }

    /// Returns the command of the entry; `None` if there is no entry.
    pub(super) fn command(self, text: &str) -> Result<Option<String>, EditRefusal> {
        let found = Place::of(self, NAME).find(text)?;
        Ok(found.map(|entry| entry["command"].as_str().unwrap_or_default().to_owned()))
    }
}

fn is_only_added_to_json(before: &str, text: &str, container: &'static str) -> bool {
    let format = ClientFormat::Json(container);
    let place = Place::of(format, NAME);
    let had_entry = matches!(place.find(before), Ok(Some(found)) if found.is_object());
    let Ok(new) = parse(text) else { return false };
    let entry = object_at(&new, &[container]).and_then(|servers| member(&servers, NAME));
    let (false, Some(entry)) = (had_entry, entry) else { return false };
    // The entry's content does not matter: the same word replaces it in both.
    let word = EntryField::Text(NAME.to_owned());
    let put = format.insert(before, NAME, &word);
    put.is_ok_and(|put| put == with_value(text, &entry, &word.value().to_string()))
}

fn is_only_added_to_toml(before: &str, text: &str) -> bool {
    let Some(added) = text.strip_prefix(before) else { return false };
    let Ok(added) = toml::meaning(added) else { return false };
    let only = |value: &Value, name: &str| {
        value.as_object().is_some_and(|members| members.len() == 1 && members.contains_key(name))
    };
    only(&added, toml::CONTAINER) && only(&added[toml::CONTAINER], NAME)
}
