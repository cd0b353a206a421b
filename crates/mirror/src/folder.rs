//! A conversation's folder on disk. Every file is written completely under another name, flushed, and renamed
//! into place.
//!
//! The flush precedes the rename, so that no crash leaves a half-written file under the final name. The folder
//! itself is not flushed: a power failure may lose the last rename, but then the older file is there, complete.
//! The store is authoritative.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

use crate::file_bytes::FileBytes;
use crate::folder_name::FolderName;

pub(crate) const CONVERSATION: &str = "conversation.json";
pub(crate) const STATUS: &str = "status.json";
pub(crate) const JOB: &str = "job.json";

/// Makes the folder contain these bytes; files that are already correct are not rewritten. The caller holds the
/// conversation's lock.
pub(crate) fn write(logs_dir: &Path, name: &FolderName, bytes: &FileBytes) -> io::Result<()> {
    make_private_dir(logs_dir)?;
    let folder = logs_dir.join(name.as_str());
    match ignore_not_found(fs::symlink_metadata(&folder))? {
        Some(found) if found.is_dir() => {}
        Some(_) => {
            return Err(io::Error::other("the path of the folder is not a directory"));
        }
        None => make_private_dir(&folder)?,
    }
    let conversation = Some((CONVERSATION, &bytes.conversation));
    let status = bytes.status.as_ref().map(|status| (STATUS, status));
    let job = bytes.job.as_ref().map(|job| (JOB, job));
    let wanted: Vec<(&str, &Vec<u8>)> = [conversation, status, job].into_iter().flatten().collect();
    replace_files(&folder, &wanted)?;
    if bytes.job.is_none() { remove_with_temporary(&folder, JOB) } else { Ok(()) }
}

/// Removes the three files, and the folder if it is empty then.
pub(crate) fn remove(logs_dir: &Path, name: &FolderName) -> io::Result<()> {
    let folder = logs_dir.join(name.as_str());
    let found = ignore_not_found(fs::symlink_metadata(&folder))?;
    if !found.is_some_and(|found| found.is_dir()) {
        return Ok(());
    }
    for file in [JOB, STATUS, CONVERSATION] {
        remove_with_temporary(&folder, file)?;
    }
    match fs::remove_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
        done => done,
    }
}

/// Creates a directory that only its owner can enter; an existing one is left unchanged.
pub(crate) fn make_private_dir(dir: &Path) -> io::Result<()> {
    if dir.is_dir() {
        return Ok(());
    }
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir)
}

/// Returns options to open a file for writing that only its owner can read.
pub(crate) fn open_private() -> OpenOptions {
    let mut options = File::options();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Removes a file if it exists.
pub(crate) fn remove_file(path: &Path) -> io::Result<()> {
    ignore_not_found(fs::remove_file(path)).map(drop)
}

/// Turns "not found" into `None`.
pub(crate) fn ignore_not_found<T>(looked: io::Result<T>) -> io::Result<Option<T>> {
    match looked {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Moves files into place, in this order: a reader that sees a completed status finds the report, and a reader
/// that finds no job file finds the result of the job.
fn replace_files(folder: &Path, wanted: &[(&str, &Vec<u8>)]) -> io::Result<()> {
    let mut changed = Vec::new();
    for (file, bytes) in wanted {
        // Left over from a crash: there is only one writer at a time.
        remove_file(&folder.join(temporary(file)))?;
        if !has_contents(&folder.join(file), bytes)? {
            changed.push((*file, bytes.as_slice()));
        }
    }
    let written = write_temporaries(folder, &changed).and_then(|()| {
        changed
            .iter()
            .try_for_each(|(file, _)| fs::rename(folder.join(temporary(file)), folder.join(file)))
    });
    if written.is_err() {
        // A half-written file on a full disk takes space that others need.
        changed.iter().for_each(|(file, _)| drop(remove_file(&folder.join(temporary(file)))));
    }
    written
}

fn remove_with_temporary(folder: &Path, file: &str) -> io::Result<()> {
    remove_file(&folder.join(temporary(file)))?;
    remove_file(&folder.join(file))
}

fn temporary(file: &str) -> String {
    format!(".{file}.tmp")
}

/// Returns true if the file contains these bytes.
fn has_contents(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let Some(found) = ignore_not_found(fs::symlink_metadata(path))? else { return Ok(false) };
    Ok(found.is_file() && found.len() == bytes.len() as u64 && fs::read(path)? == bytes)
}

/// Writes files under their temporary names. They are flushed in parallel, because a flush is mostly waiting
/// and a caller waits for all of them.
fn write_temporaries(folder: &Path, files: &[(&str, &[u8])]) -> io::Result<()> {
    let write = |(file, bytes): &(&str, &[u8])| {
        let mut temporary = open_private().create_new(true).open(folder.join(temporary(file)))?;
        temporary.write_all(bytes)?;
        temporary.sync_all()
    };
    let Some((first, others)) = files.split_first() else { return Ok(()) };
    std::thread::scope(|scope| {
        let spawn = |file| std::thread::Builder::new().spawn_scoped(scope, move || write(file));
        let others: Vec<_> = others.iter().map(spawn).collect::<io::Result<_>>()?;
        let written = write(first);
        let panicked = |_| Err(io::Error::other("a writer panicked"));
        others
            .into_iter()
            .fold(written, |written, other| written.and(other.join().unwrap_or_else(panicked)))
    })
}

#[cfg(test)]
mod tests {
    use outlast_core::ConversationId;
    use tempfile::TempDir;

    use super::*;

    fn name() -> FolderName {
        FolderName::of(&ConversationId::new("conversation-1")).unwrap()
    }

    fn bytes(job: Option<&str>) -> FileBytes {
        let bytes = |text: &str| text.as_bytes().to_vec();
        FileBytes { conversation: bytes("{}"), status: Some(bytes("{}")), job: job.map(bytes) }
    }

    fn files(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn leftovers_of_a_crash_are_removed_by_the_next_write() {
        let dir = TempDir::new().unwrap();
        write(dir.path(), &name(), &bytes(Some("{}"))).unwrap();
        let folder = dir.path().join("conversation-1");
        for file in [CONVERSATION, STATUS, JOB] {
            fs::write(folder.join(temporary(file)), "half a f").unwrap();
        }
        write(dir.path(), &name(), &bytes(None)).unwrap();
        assert_eq!(files(&folder), [CONVERSATION, STATUS]);
        remove(dir.path(), &name()).unwrap();
        assert_eq!(files(dir.path()), [""; 0]);
        remove(dir.path(), &name()).unwrap();
    }

    #[test]
    fn correct_files_are_not_rewritten() {
        use std::os::unix::fs::MetadataExt;

        let dir = TempDir::new().unwrap();
        let inodes = || {
            write(dir.path(), &name(), &bytes(Some("{}"))).unwrap();
            let folder = dir.path().join("conversation-1");
            [CONVERSATION, STATUS, JOB].map(|file| fs::metadata(folder.join(file)).unwrap().ino())
        };
        assert_eq!(inodes(), inodes());
    }

    #[test]
    fn a_folder_with_other_files_keeps_them() {
        let dir = TempDir::new().unwrap();
        write(dir.path(), &name(), &bytes(None)).unwrap();
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
        assert!(write(dir.path(), &name(), &bytes(None)).is_err());
        remove(dir.path(), &name()).unwrap();
        assert_eq!(files(elsewhere.path()), [JOB]);
    }

    #[test]
    fn files_and_folders_are_accessible_only_to_their_owner() {
        use std::os::unix::fs::PermissionsExt;

        let dir = TempDir::new().unwrap();
        let logs_dir = dir.path().join("logs");
        write(&logs_dir, &name(), &bytes(Some("{}"))).unwrap();
        let folder = logs_dir.join("conversation-1");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&logs_dir), mode(&folder)), (0o700, 0o700));
        for file in [CONVERSATION, STATUS, JOB] {
            assert_eq!(mode(&folder.join(file)), 0o600, "{file}");
        }
    }
}
