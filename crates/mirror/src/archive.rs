//! Folders that the store does not know: conversations of older servers, or of a store that is gone. Read tolerantly,
//! never written, and nothing outside of the directory is ever opened.

mod tolerant;

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outlast_core::{ConversationId, OwnerId, Scope, StoreError, Timestamp};

use crate::documents::{ConversationFile, StatusFile};
use crate::folder::{CONVERSATION, STATUS, if_there};
use crate::folder_name::FolderName;
use crate::mirror::Mirror;

/// A file larger than this is not read.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// Lists show no more folders than this, the newest.
const MAX_LISTED: usize = 10_000;

/// A conversation that only its files know.
#[derive(Clone, Debug, PartialEq)]
pub struct ArchivedConversation {
    /// Where it is.
    pub folder: PathBuf,
    /// What was said.
    pub conversation: ConversationFile,
    /// Where it stood when it was left, if anything says so. No worker has it: an unfinished one stays as it is.
    pub status: Option<StatusFile>,
}

/// A folder that an older server left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFolder {
    /// Its name.
    pub id: ConversationId,
    /// The moment that lists sort it by: the one in its name, otherwise the last change of its file.
    pub at: Timestamp,
}

/// Why an archived conversation cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The file does not hold what it should; only a person can repair it.
    #[error("{file} is damaged: {why}")]
    Corrupted {
        /// Which of its files.
        file: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The file cannot be read just now.
    #[error("{file} cannot be read")]
    Unreadable {
        /// Which of its files.
        file: &'static str,
        /// Why.
        source: io::Error,
    },
    /// The store cannot be asked whether it knows the conversation.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Mirror {
    /// A conversation of an older server, or of a store that is gone, from its files; `None` when the store knows the
    /// conversation, when there is no such folder, and for every owner but the mirror's.
    pub async fn archived(
        self: &Arc<Self>,
        owner: &OwnerId,
        id: &ConversationId,
    ) -> Result<Option<ArchivedConversation>, ArchiveError> {
        // Asked for any owner: the files of another owner's conversation are no archive.
        if *owner != self.owner || !self.store.turns(&Scope::Operator, id).await?.is_empty() {
            return Ok(None);
        }
        let (mirror, id) = (Arc::clone(self), id.clone());
        let reading = tokio::task::spawn_blocking(move || mirror.read_archived(&id));
        reading.await.map_err(|error| StoreError::Unavailable(error.into()))?
    }

    /// The folders of older servers that the store does not know, newest first; none for every owner but the mirror's.
    ///
    /// Folders whose names have the form of our own ids are left out: there is one for each conversation of the store, and
    /// asking the store about each would be slow.
    pub async fn archived_folders(
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

    /// The folders with a conversation whose names we did not make, newest first. A directory that cannot be read has none.
    fn foreign_folders(&self) -> Vec<ArchivedFolder> {
        let Ok(entries) = fs::read_dir(&self.logs_dir) else { return Vec::new() };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let ids = names.map(ConversationId::new).filter(|id| !is_own_form(id.as_str()));
        let folder = |id: ConversationId| {
            let name = FolderName::of(&id).filter(|name| !self.is_being_deleted(name))?;
            let file = fs::metadata(self.logs_dir.join(name.as_str()).join(CONVERSATION)).ok()?;
            let at = moment_in_name(name.as_str()).or_else(|| modified(&file).ok())?;
            Some(ArchivedFolder { id, at })
        };
        let mut folders: Vec<_> = ids.filter_map(folder).collect();
        folders.sort_by(|one, other| other.sort_key().cmp(&one.sort_key()));
        folders.truncate(MAX_LISTED);
        folders
    }

    fn read_archived(
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
        let read = if_there(read(&self.logs_dir, &folder.join(file)));
        let read = read.map_err(|source| ArchiveError::Unreadable { file, source })?.flatten();
        if read.as_ref().is_some_and(|read| read.bytes.len() as u64 > MAX_FILE_BYTES) {
            let why = format!("it is larger than {} MiB", MAX_FILE_BYTES / 1024 / 1024);
            return Err(ArchiveError::Corrupted { file, why });
        }
        Ok(read)
    }
}

impl ArchivedFolder {
    /// What orders a list; unique, so that a page can end after any folder.
    pub fn sort_key(&self) -> (i64, &str) {
        (self.at.as_millis(), self.id.as_str())
    }
}

/// Returns whether a name has the form of the ids that we make: 32 lower-case hexadecimal digits.
fn is_own_form(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The milliseconds in a name such as `20251031-1761930000000`.
fn moment_in_name(name: &str) -> Option<Timestamp> {
    let (day, millis) = name.split_once('-')?;
    let is_it = |text: &str, digits: usize| {
        text.len() == digits && text.bytes().all(|byte| byte.is_ascii_digit())
    };
    (is_it(day, 8) && is_it(millis, 13)).then(|| millis.parse().ok())?.map(Timestamp::from_millis)
}

fn modified(file: &fs::Metadata) -> io::Result<Timestamp> {
    let since = file.modified()?.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

/// A file that was read.
struct FileRead {
    bytes: Vec<u8>,
    /// Stands in for moments that the file does not name.
    modified: Timestamp,
}

/// Reads a plain file below `logs_dir`, one byte over the limit at most; `None` when it is not a plain file, or lies
/// elsewhere once links are followed.
fn read(logs_dir: &Path, path: &Path) -> io::Result<Option<FileRead>> {
    let path = path.canonicalize()?;
    if !path.starts_with(logs_dir.canonicalize()?) {
        return Ok(None);
    }
    // Looked at before it is opened: to open a pipe would wait for a writer.
    let found = fs::metadata(&path)?;
    if !found.is_file() {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    File::open(&path)?.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    Ok(Some(FileRead { bytes, modified: modified(&found)? }))
}
