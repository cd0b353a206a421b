//! The content that an install replaced, stored next to the client's file so that an uninstall restores the same bytes.
//! It may contain everything the file held, including keys, so only its owner may read it.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::client_files::document::place;

/// One entry before and after its install.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ReplacedEntry {
    /// The objects that contain the entry, and its name.
    pub(super) path: Vec<String>,
    pub(super) was: String,
    pub(super) is: String,
}

/// The entries of one client's file that were replaced.
#[derive(Debug)]
pub(super) struct InstallRecord {
    path: PathBuf,
    replaced: Vec<ReplacedEntry>,
}

impl InstallRecord {
    /// Reads the record next to this file. One that cannot be read counts as empty: entries are then restored by their
    /// meaning.
    pub(super) fn beside(file: &Path) -> Self {
        let path = file.with_added_extension("outlast-wrap");
        let replaced = fs::read(&path).ok().and_then(|text| serde_json::from_slice(&text).ok());
        Self { path, replaced: replaced.unwrap_or_default() }
    }

    /// Returns the record of the entry at this path, which has this text now.
    pub(super) fn of(&self, path: &[String], is: &str) -> Option<&ReplacedEntry> {
        let at_path = self.replaced.iter().find(|replaced| replaced.path == path);
        at_path.or_else(|| self.replaced.iter().find(|replaced| replaced.is == is))
    }

    /// Records an entry, replacing an earlier record of it.
    pub(super) fn keep(&mut self, replaced: ReplacedEntry) -> anyhow::Result<()> {
        self.replaced.retain(|known| known.path != replaced.path);
        self.replaced.push(replaced);
        self.write()
    }

    /// Forgets an entry.
    pub(super) fn forget(&mut self, forgotten: &ReplacedEntry) -> anyhow::Result<()> {
        self.replaced.retain(|known| known != forgotten);
        self.write()
    }

    /// Forgets the server with this name; returns true if it was known.
    pub(super) fn forget_name(&mut self, name: &str) -> anyhow::Result<bool> {
        let before = self.replaced.len();
        self.replaced.retain(|known| known.path.last().is_none_or(|last| last != name));
        if self.replaced.len() == before {
            return Ok(false);
        }
        self.write().map(|()| true)
    }

    fn write(&self) -> anyhow::Result<()> {
        if !self.replaced.is_empty() {
            return place(&self.path, &serde_json::to_vec_pretty(&self.replaced)?, None);
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(error).with_context(|| format!("remove {}", self.path.display()))
            }
            Ok(()) | Err(_) => Ok(()),
        }
    }
}
