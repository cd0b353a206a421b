//! The position of a server's entry in a client's file, and changes inside it. Every byte outside the entry stays.

use std::ops::Range;

use serde_json::{Map, Value};

use super::clients::ClientFormat;
use super::json::{self, EditRefusal, member, object_at, parse, span};
use super::layout::EntryField;
use super::toml;
use crate::cli::Client;

/// One change to a member of the entry.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The object inside the entry of which it is a member; `None` for the entry itself.
    pub(crate) within: Option<&'static str>,
    pub(crate) name: String,
    /// The new value; `None` removes the member.
    pub(crate) to: Option<EntryField>,
}

impl Change {
    pub(crate) fn set(name: &str, to: EntryField) -> Self {
        Self { within: None, name: name.to_owned(), to: Some(to) }
    }

    pub(crate) fn set_in(member: &'static str, name: &str, to: &str) -> Self {
        Self { within: Some(member), ..Self::set(name, EntryField::Text(to.to_owned())) }
    }

    pub(crate) fn remove(name: &str) -> Self {
        Self { within: None, name: name.to_owned(), to: None }
    }
}

/// The position of one entry: the objects that contain it, and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    is_toml: bool,
    pub(crate) path: Vec<String>,
}

/// Returns the servers of a client's file, by their positions. Those of Claude Code's `project` come first, as it
/// prefers them.
pub(crate) fn servers(
    client: Client,
    text: &str,
    project: Option<&str>,
) -> Result<Vec<(Place, Value)>, EditRefusal> {
    let (all, containers) = match client.format() {
        ClientFormat::Json(container) => {
            let all = parse(text)?.to_serde_value().unwrap_or_default();
            let of_all = vec![container.to_owned()];
            let of_project = project.filter(|_| client == Client::ClaudeCode).map(|project| {
                vec!["projects".to_owned(), project.to_owned(), container.to_owned()]
            });
            (all, of_project.into_iter().chain([of_all]).collect::<Vec<_>>())
        }
        ClientFormat::Toml => (toml::meaning(text)?, vec![vec![toml::CONTAINER.to_owned()]]),
    };
    let is_toml = client.format() == ClientFormat::Toml;
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

impl ClientFormat {
    /// Adds an entry to the user's servers, or replaces one that is not an object.
    pub(crate) fn insert(
        self,
        text: &str,
        name: &'static str,
        entry: &EntryField,
    ) -> Result<String, EditRefusal> {
        match self {
            Self::Json(container) => json::insert(text, container, name, entry),
            Self::Toml => toml::append(text, name, entry),
        }
    }
}

impl Place {
    /// Returns the position of the user's entry of this name.
    pub(crate) fn of(format: ClientFormat, name: &str) -> Self {
        let (container, is_toml) = match format {
            ClientFormat::Json(container) => (container, false),
            ClientFormat::Toml => (toml::CONTAINER, true),
        };
        Self { is_toml, path: vec![container.to_owned(), name.to_owned()] }
    }

    /// Returns the entry; `None` if there is none.
    pub(crate) fn find(&self, text: &str) -> Result<Option<Value>, EditRefusal> {
        let all = if self.is_toml {
            toml::meaning(text)?
        } else {
            parse(text)?.to_serde_value().unwrap_or_default()
        };
        let found = self.path.iter().try_fold(&all, |value, name| value.get(name));
        Ok(found.cloned())
    }

    /// Removes the entry, if it exists.
    pub(crate) fn remove(&self, text: &str) -> Result<String, EditRefusal> {
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let Some((name, above)) = path.split_last() else { return Ok(text.to_owned()) };
        if self.is_toml { toml::remove(text, above, name) } else { json::remove(text, above, name) }
    }

    /// Returns the name of the server.
    pub(crate) fn name(&self) -> &str {
        self.path.last().map_or("", String::as_str)
    }

    /// Returns the folder to which the server belongs, if it is not for all.
    pub(crate) fn project(&self) -> Option<&str> {
        (self.path.first()? == "projects").then(|| self.path.get(1).map(String::as_str))?
    }

    /// Returns the bytes of the entry.
    pub(crate) fn span(&self, text: &str) -> Result<Range<usize>, EditRefusal> {
        let missing = || EditRefusal::at(text, 0, format!("there is no `{}`", self.name()));
        if self.is_toml {
            return toml::span(text, &self.path)?.ok_or_else(missing);
        }
        let path: Vec<&str> = self.path.iter().map(String::as_str).collect();
        let Some((name, above)) = path.split_last() else { return Err(missing()) };
        let root = parse(text)?;
        let object = object_at(&root, above).ok_or_else(missing)?;
        member(&object, name).map(|node| span(&node)).ok_or_else(missing)
    }

    /// Returns the meaning of an entry with this text.
    pub(crate) fn meaning(&self, entry: &str) -> Result<Value, EditRefusal> {
        if self.is_toml {
            let whole = toml::meaning(entry)?;
            let inside = self.path.iter().try_fold(&whole, |value, name| value.get(name));
            return Ok(inside.or_else(|| whole.get(self.name())).cloned().unwrap_or_default());
        }
        Ok(parse(entry)?.to_serde_value().unwrap_or_default())
    }

    /// Returns the text with these changes inside the entry.
    pub(crate) fn change(&self, text: &str, changes: &[Change]) -> Result<String, EditRefusal> {
        if self.is_toml {
            return toml::change(text, &self.path, changes);
        }
        let mut text = text.to_owned();
        for Change { within, name, to } in changes {
            let here = self.path.iter().map(String::as_str);
            let path: Vec<&str> = here.chain(*within).collect();
            text = match to {
                Some(to) => json::set(&text, &path, name, to)?,
                None => json::remove(&text, &path, name)?,
            };
        }
        Ok(text)
    }
}
