//! Folders that are not in the store: conversations of older servers, or of a lost store. They are read
//! tolerantly and never written, and nothing outside the directory is ever opened.

mod tolerant;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_core::{ConversationId, OwnerId, Scope, StoreError, Timestamp};

use crate::documents::{ConversationFile, StatusFile};
use crate::folder::{CONVERSATION, STATUS, ignore_not_found};
use crate::folder_name::FolderName;
use crate::mirror::Mirror;

/// Larger files are not read.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// The maximum number of folders in a list; the newest are kept.
const MAX_LISTED: usize = 10_000;

/// A conversation that exists only as files.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedConversation {
    /// The path of the folder.
    pub folder: PathBuf,
    /// The messages.
    pub conversation: ConversationFile,
    /// The last known status, if there is one. No worker owns the conversation, so an unfinished one never
    /// changes.
    pub status: Option<StatusFile>,
}

/// A folder of an older server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFolder {
    /// The name of the folder.
    pub id: ConversationId,
    /// The time by which lists are sorted: the one in the name, otherwise the modification time of the file.
    pub at: Timestamp,
}

/// The reasons an archived conversation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The content of a file is invalid; only a person can repair it.
    #[error("{file} is damaged: {why}")]
    Corrupted {
        /// The name of the file.
        file: &'static str,
        /// The problem with its content.
        why: String,
    },
    /// A file cannot be read at the moment.
    #[error("{file} cannot be read")]
    Unreadable {
        /// The name of the file.
        file: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// The store cannot report whether it contains the conversation.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Mirror {
    /// Reads a conversation of an older server, or of a lost store, from its files. Returns `None` if the
    /// conversation is in the store, if there is no such folder, or if the owner is not the mirror's.
    pub async fn read_archived(
        self: &Arc<Self>,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<ArchivedConversation>, ArchiveError> {
        // Checked for all owners: the files of another owner's conversation are not an archive.
        if *owner != self.owner || !self.store.turns(&Scope::Operator, id).await?.is_empty() {
            return Ok(None);
        }
        let (mirror, id) = (Arc::clone(self), id.clone());
        let reading = tokio::task::spawn_blocking(move || mirror.read_folder(&id));
        reading.await.map_err(|error| StoreError::Unavailable(error.into()))?
    }

    /// Lists the folders of older servers that are not in the store, newest first; other owners than the
    /// mirror's have none.
    ///
    /// Folders whose names look like our own ids are left out: there is one for each conversation in the store,
    /// and checking each of them against the store would be slow.
    pub async fn list_archived(
        self: &Arc<Self>,
        owner: &OwnerId,
    ) -> Result<Vec<ArchivedFolder>, StoreError> {
        if *owner != self.owner {
            return Ok(Vec::new());
        }
        let mirror = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || mirror.foreign_folders());
        let found = reading.await.map_err(|error| StoreError::Unavailable(error.into()))?;
        let mut archived = Vec::new();
        for folder in found {
            if self.store.turns(&Scope::Operator, &folder.id).await?.is_empty() {
                archived.push(folder);
            }
        }
        Ok(archived)
    }

    /// Lists the folders with a conversation whose names are not our ids, newest first. An unreadable directory
    /// has none.
    fn foreign_folders(&self) -> Vec<ArchivedFolder> {
        let Ok(entries) = fs::read_dir(&self.logs_dir) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let ids = names.map(ConversationId::new).filter(|id| !is_own_form(id.as_str()));
        let folder = |id: ConversationId| {
            let name = FolderName::of(&id).filter(|name| !self.is_being_deleted(name))?;
            let file = fs::metadata(self.logs_dir.join(name.as_str()).join(CONVERSATION)).ok()?;
            let at = moment_in_name(name.as_str()).or_else(|| modification_time(&file).ok())?;
            Some(ArchivedFolder { id, at })
        };
        let mut folders: Vec<_> = ids.filter_map(folder).collect();
        folders.sort_by(|one, other| other.sort_key().cmp(&one.sort_key()));
        folders.truncate(MAX_LISTED);
        folders
    }

    fn read_folder(
        &self,
        id: &ConversationId,
    ) -> Result<Option<ArchivedConversation>, ArchiveError> {
        let Some(name) = FolderName::of(id) else { return Ok(None) };
        if self.is_being_deleted(&name) {
            return Ok(None);
        }
        let folder = self.logs_dir.join(name.as_str());
        let Some(said) = self.read_file(&folder, CONVERSATION)? else { return Ok(None) };
        let conversation = tolerant::conversation(id, &said.bytes, said.modified)
            .map_err(|why| ArchiveError::Corrupted { file: CONVERSATION, why })?;
        let status = match self.read_file(&folder, STATUS)? {
            Some(status) => tolerant::status(id, &status.bytes, status.modified)
                .map_err(|why| ArchiveError::Corrupted { file: STATUS, why })?,
            None => None,
        };
        Ok(Some(ArchivedConversation { folder, conversation, status }))
    }

    fn read_file(
        &self,
        folder: &Path,
        file: &'static str,
    ) -> Result<Option<FileRead>, ArchiveError> {
        let read = ignore_not_found(read(&self.logs_dir, &folder.join(file)));
        let read = read.map_err(|source| ArchiveError::Unreadable { file, source })?.flatten();
        if read.as_ref().is_some_and(|read| read.bytes.len() as u64 > MAX_FILE_BYTES) {
            let why = format!("it is larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024);
            return Err(ArchiveError::Corrupted { file, why });
        }
        Ok(read)
    }
}

impl ArchivedFolder {
    /// The sort key of a list; unique, so that a page can end after any folder.
    pub fn sort_key(&self) -> (i64, &str) {
        (self.at.as_millis(), self.id.as_str())
    }
}

/// Returns true if a name looks like our own ids: 32 lower-case hexadecimal digits.
fn is_own_form(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Parses the milliseconds in a name such as `20251031-1761930000000`.
fn moment_in_name(name: &str) -> Option<Timestamp> {
    let (day, millis) = name.split_once('-')?;
    let is_it = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    (is_it(day, 8) && is_it(millis, 13)).then(|| millis.parse().ok())?.map(Timestamp::from_millis)
}

fn modification_time(file: &fs::Metadata) -> io::Result<Timestamp> {
    let since = file.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

struct FileRead {
    bytes: Vec<u8>,
    /// Replaces times that are missing in the file.
    modified: Timestamp,
}

/// Reads a regular file below `logs_dir`, at most one byte over the limit. Returns `None` if it is not a
/// regular file, or is outside the directory once links are resolved.
fn read(logs_dir: &Path, path: &Path) -> io::Result<Option<FileRead>> {
    let path = path.canonicalize()?;
    if !path.starts_with(logs_dir.canonicalize()?) {
        return Ok(None);
    }
    // Checked before opening, because opening a pipe would wait for a writer.
    let found = fs::metadata(&path)?;
    if !found.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(&path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(FileRead { bytes, modified: modification_time(&found)? }))
}
