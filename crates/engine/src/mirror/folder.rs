//! A conversation's folder on disk. Every file is written whole under another name, flushed, and renamed into place.
//!
//! Flushed before the rename, so that no crash leaves a name with half a file behind it. The folder itself is not
//! flushed: a power cut may lose the last rename, and then the older file is there, whole. The store has the truth.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use super::documents::Documents;
use super::name::FolderName;

pub(super) const CONVERSATION: &str = "conversation.json";
pub(super) const STATUS: &str = "status.json";
pub(super) const JOB: &str = "job.json";

/// Makes the folder hold these documents; what it holds already is not written again. Only for whoever has the
/// conversation's turn.
pub(super) fn write(logs_dir: &Path, name: &FolderName, documents: &Documents) -> io::Result<()> {
    make_private_dir(logs_dir)?;
    let folder = logs_dir.join(name.as_str());
    match fs::symlink_metadata(&folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(io::Error::other("there is something else where the folder should be"));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => make_private_dir(&folder)?,
        Err(error) => return Err(error),
    }
    // In this order: whoever sees that it is completed can read the report, and whoever sees no job left can read
    // how it ended.
    put(&folder, CONVERSATION, &documents.conversation)?;
    if let Some(status) = &documents.status {
        put(&folder, STATUS, status)?;
    }
    match &documents.job {
        Some(job) => put(&folder, JOB, job),
        None => take_away(&folder, JOB),
    }
}

/// Removes the three files, and the folder if nothing else is in it.
pub(super) fn remove(logs_dir: &Path, name: &FolderName) -> io::Result<()> {
    let folder = logs_dir.join(name.as_str());
    match fs::symlink_metadata(&folder) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    }
    for file in [JOB, STATUS, CONVERSATION] {
        take_away(&folder, file)?;
    }
    match fs::remove_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done,
    }
}

/// Makes a directory only its owner can enter; one that is there is left as it is.
pub(super) fn make_private_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// How to open a file only its owner can read.
pub(super) fn private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Removes a file; none is fine.
pub(super) fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

fn put(folder: &Path, file: &str, bytes: &[u8]) -> io::Result<()> {
    let (path, unborn) = (folder.join(file), folder.join(unborn(file)));
    // One that a crash left behind. There is one writer at a time, so it is nobody's.
    remove_file(&unborn)?;
    if holds(&path, bytes)? {
        return Ok(());
    }
    let written = write_whole(&unborn, bytes).and_then(|()| fs::rename(&unborn, &path));
    if written.is_err() {
        // Half a file on a full disk is room that somebody else needs.
        drop(remove_file(&unborn));
    }
    written
}

fn take_away(folder: &Path, file: &str) -> io::Result<()> {
    remove_file(&folder.join(unborn(file)))?;
    remove_file(&folder.join(file))
}

fn unborn(file: &str) -> String {
    format!(".{file}.tmp")
}

/// Whether this is what the file holds.
fn holds(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() == bytes.len() as u64 => {
            Ok(fs::read(path)? == bytes)
        }
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = private().create_new(true).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use outlast_core::ConversationId;
    use tempfile::TempDir;

    use super::*;

    fn name() -> FolderName {
        FolderName::of(&ConversationId::new("conversation-1")).unwrap()
    }

    fn documents(job: Option<&str>) -> Documents {
        let bytes = |text: &str| text.as_bytes().to_vec();
        Documents { conversation: bytes("{}"), status: Some(bytes("{}")), job: job.map(bytes) }
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_a_crash_left_behind_goes_with_the_next_write() {
        let dir = TempDir::new().unwrap();
        write(dir.path(), &name(), &documents(Some("{}"))).unwrap();
        let folder = dir.path().join("conversation-1");
        for file in [CONVERSATION, STATUS, JOB] {
            fs::write(folder.join(unborn(file)), "half a f").unwrap();
        }
        write(dir.path(), &name(), &documents(None)).unwrap();
        assert_eq!(files(&folder), [CONVERSATION, STATUS]);
        remove(dir.path(), &name()).unwrap();
        assert_eq!(files(dir.path()), [""; 0]);
        remove(dir.path(), &name()).unwrap();
    }

    #[test]
    fn what_is_there_already_is_not_written_again() {
        use std::os::unix::fs::MetadataExt;

        let dir = TempDir::new().unwrap();
        let inodes = || {
            write(dir.path(), &name(), &documents(Some("{}"))).unwrap();
            let folder = dir.path().join("conversation-1");
            [CONVERSATION, STATUS, JOB].map(|file| fs::metadata(folder.join(file)).unwrap().ino())
        };
        assert_eq!(inodes(), inodes());
    }

    #[test]
    fn a_folder_that_holds_more_is_left_with_it() {
        let dir = TempDir::new().unwrap();
        write(dir.path(), &name(), &documents(None)).unwrap();
        fs::write(dir.path().join("conversation-1/notes.md"), "mine").unwrap();
        remove(dir.path(), &name()).unwrap();
        assert_eq!(files(&dir.path().join("conversation-1")), ["notes.md"]);
    }

    #[test]
    fn a_link_in_place_of_the_folder_is_not_followed() {
        let dir = TempDir::new().unwrap();
        let elsewhere = TempDir::new().unwrap();
        fs::write(elsewhere.path().join(JOB), "theirs").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("conversation-1")).unwrap();
        assert!(write(dir.path(), &name(), &documents(None)).is_err());
        remove(dir.path(), &name()).unwrap();
        assert_eq!(files(elsewhere.path()), [JOB]);
    }

    #[test]
    fn files_and_folders_are_for_their_owner_alone() {
        use std::os::unix::fs::PermissionsExt;

        let dir = TempDir::new().unwrap();
        let logs_dir = dir.path().join("logs");
        write(&logs_dir, &name(), &documents(Some("{}"))).unwrap();
        let folder = logs_dir.join("conversation-1");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs_dir), mode(&folder)), (0o700, 0o700));
        for file in [CONVERSATION, STATUS, JOB] {
            assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
        }
    }
}
