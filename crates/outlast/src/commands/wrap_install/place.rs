//! The position of a server's entry in a client's file, and changes inside it. Every byte outside the entry stays.

use std::ops::Range;

use serde_json::{Map, Value};

use super::server::Change;
use super::toml_entry;
use crate::cli::Client;
use crate::commands::init::clients::Format;
use crate::commands::init::codex;
use crate::commands::init::edit;
use crate::commands::init::json::{Refusal, member, parse, span};

/// The position of one entry: the objects that contain it, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    is_toml: bool,
    pub(super) path: Vec<String>,
}

/// Returns the servers of a client's file, by their positions. Those of Claude Code's `project` come first, as it
/// prefers them.
pub(crate) fn servers(
    client: Client,
    text: &str,
    project: Option<&str>,
) -> Result<Vec<(Place, Value)>, Refusal> {
    let (all, containers) = match client.format() {
        Format::Json(container) => {
            let all = parse(text)?.to_serde_value().unwrap_or_default();
            let of_all = vec![container.to_owned()];
            let of_project = project.filter(|_| client == Client::ClaudeCode).map(|project| {
                vec!["projects".to_owned(), project.to_owned(), container.to_owned()]
            });
            (all, of_project.into_iter().chain([of_all]).collect::<Vec<_>>())
        }
        Format::Toml => (toml_entry::meaning(text)?, vec![vec![codex::CONTAINER.to_owned()]]),
    };
    let is_toml = client.format() == Format::Toml;
    let mut found = Vec::new();
    for container in containers {
        let inside = container.iter().try_fold(&all, |value, name| value.get(name));
        for (name, entry) in inside.and_then(Value::as_object).into_iter().flat_map(Map::iter) {
            let path = container.iter().cloned().chain([name.clone()]).collect();
            found.push((Place { is_toml, path }, entry.clone()));
        }
    }
    Ok(found)
}

impl Place {
    /// Returns the name of the server.
    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Returns the folder to which the server belongs, if it is not for all.
    pub(super) fn project(&self) -> Option<&str> {
        (self.path.first()? == "projects").then(|| self.path.get(1).map(String::as_str))?
    }

    /// Returns the bytes of the entry.
    pub(super) fn span(&self, text: &str) -> Result<Range<usize>, Refusal> {
        let missing = || Refusal::at(text, 0, format!("there is no `{}`", self.name()));
        if self.is_toml {
            return toml_entry::span(text, &self.path)?.ok_or_else(missing);
        }
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let Some((name, above)) = path.split_last() else { return Err(missing()) };
        let root = parse(text)?;
        let object = edit::object_at(&root, above).ok_or_else(missing)?;
        member(&object, name).map(|node| span(&node)).ok_or_else(missing)
    }

    /// Returns the meaning of an entry with this text.
    pub(super) fn meaning(&self, entry: &str) -> Result<Value, Refusal> {
        if self.is_toml {
            let whole = toml_entry::meaning(entry)?;
            let inside = self.path.iter().try_fold(&whole, |value, name| value.get(name));
            return Ok(inside.or_else(|| whole.get(self.name())).cloned().unwrap_or_default());
        }
        Ok(parse(entry)?.to_serde_value().unwrap_or_default())
    }

    /// Returns the text with these changes inside the entry.
    pub(super) fn changed(&self, text: &str, changes: &[Change]) -> Result<String, Refusal> {
        if self.is_toml {
            return toml_entry::changed(text, &self.path, changes);
        }
        let mut text = text.to_owned();
        for Change { within, name, to } in changes {
            let here = self.path.iter().map(String::as_str);
            let path: Vec<&str> = here.chain(*within).collect();
            text = match to {
                Some(to) => edit::set(&text, &path, name, to)?,
                None => edit::remove(&text, &path, name)?,
            };
        }
        Ok(text)
    }
}
