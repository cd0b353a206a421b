//! The calls that no client has received yet, in a file next to the socket, so that they are known after a kill -9 of
//! the host process (H4, H5). The next host process with the same command, folder and environment takes the file over
//! before it reads a line of its client, so that a repeated call is not made a second time. The file holds only digests
//! and ids. Writes do not wait for the disk: they survive the death of a process, not that of the machine.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::paths;

/// The time for which the calls of an earlier host process are reported.
const KEPT: Duration = Duration::from_secs(24 * 3600);
/// A file of this size is replaced by a new one with the calls that are still open.
const MAX_BYTES: u64 = 1024 * 1024;
/// The time for which a process that was killed, or is exiting, may hold the lock of its file.
const DYING: Duration = Duration::from_secs(10);
/// The interval between attempts to take that lock.
const LOCK_LOOK: Duration = Duration::from_millis(10);

/// A call that no client has received.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct UndeliveredCall {
    /// The digest of the tool and its arguments.
    pub(crate) digest: String,
    /// The digest of the answers that it brought to questions of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) input: Option<String>,
    /// The short name of its client's greeting.
    pub(crate) greeting: String,
    /// The name of its client's front.
    pub(crate) front: String,
    /// True if its caller was notified that it continues, or has left: nobody else reports its outcome.
    #[serde(default)]
    pub(crate) goes_on: bool,
    /// The id of its row.
    #[serde(default)]
    pub(crate) job: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct JournalEntry {
    call: u64,
    /// `None` if a client has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    is: Option<UndeliveredCall>,
}

/// The file of one host process. Calls continue without one if it cannot be written.
#[derive(Debug)]
pub(crate) struct Journal {
    path: PathBuf,
    file: Option<File>,
    bytes: u64,
    pub(crate) unreceived: BTreeMap<u64, UndeliveredCall>,
    /// The calls among them that other host processes left.
    pub(crate) left: BTreeSet<u64>,
}

/// The file of a host process that is gone. It is locked, so that no other host process takes it over as well.
#[derive(Debug)]
pub(crate) struct LeftJournal {
    path: PathBuf,
    _lock: File,
    calls: Vec<UndeliveredCall>,
}

impl Journal {
    /// Opens the journal of a new host process with this socket.
    pub(crate) fn open(socket: &Path) -> Self {
        let path = socket.with_extension("calls");
        let file = create(&path)
            .inspect_err(|error| tracing::error!(%error, "calls cannot be noted"))
            .ok();
        Self { path, file, bytes: 0, unreceived: BTreeMap::new(), left: BTreeSet::new() }
    }

    /// Returns the files of other host processes of this identity.
    pub(crate) fn others(&self, data_dir: &Path, identity: &str) -> Vec<PathBuf> {
        let mut files = paths::files(data_dir, &format!("{identity}."), ".calls");
        files.retain(|path| *path != self.path);
        files
    }

    /// Adds the calls of a host process that is gone, numbered from `last` on; returns the last number.
    pub(crate) fn add_left(&mut self, left: LeftJournal, mut last: u64) -> u64 {
        for call in left.calls {
            last += 1;
            self.note(last, Some(call));
            self.left.insert(last);
        }
        // Removed only now: after a kill in between, both files have the calls.
        drop(std::fs::remove_file(&left.path));
        last
    }

    pub(crate) fn record_begin(&mut self, call: u64, is: UndeliveredCall) {
        self.note(call, Some(is));
    }

    /// Records that its caller was notified that it continues, or has left.
    pub(crate) fn goes_on(&mut self, call: u64, job: Option<String>) {
        if let Some(is) = self.unreceived.get(&call) {
            let is = UndeliveredCall { goes_on: true, job, ..is.clone() };
            self.note(call, Some(is));
        }
    }

    pub(crate) fn record_received(&mut self, call: u64) {
        if self.unreceived.contains_key(&call) {
            self.note(call, None);
        }
    }

    /// Removes the file when the host process ends, unless it still has open calls.
    pub(crate) fn close(mut self) {
        if self.unreceived.is_empty() && self.file.take().is_some() {
            drop(std::fs::remove_file(&self.path));
        }
    }

    fn note(&mut self, call: u64, is: Option<UndeliveredCall>) {
        let entry = line(&JournalEntry { call, is: is.clone() });
        match is {
            Some(is) => drop(self.unreceived.insert(call, is)),
            None => {
                self.unreceived.remove(&call);
                self.left.remove(&call);
            }
        }
        let noted = match self.bytes + entry.len() as u64 > MAX_BYTES {
            true => self.rewrite(),
            false => self.write(&entry),
        };
        if let Err(error) = noted {
            tracing::error!(%error, "a call cannot be noted");
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        self.bytes += bytes.len() as u64;
        file.write_all(bytes)
    }

    /// Replaces the old file with a new one that holds the open calls.
    fn rewrite(&mut self) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let file = create(&new)?;
        let old = self.file.replace(file);
        self.bytes = 0;
        let open = self.unreceived.iter();
        let lines =
            open.map(|(call, is)| line(&JournalEntry { call: *call, is: Some(is.clone()) }));
        let lines: Vec<u8> = lines.flatten().collect();
        self.write(&lines)?;
        std::fs::rename(&new, &self.path)?;
        drop(old);
        Ok(())
    }
}

/// Removes the files of any identity that are too old to be reported.
pub(crate) fn sweep(data_dir: &Path) {
    let left = paths::files(data_dir, "", ".calls").into_iter();
    for path in left.chain(paths::files(data_dir, "", ".new")) {
        let is_old = File::open(&path).is_ok_and(|file| {
            let changed = file.metadata().and_then(|known| known.modified());
            let age = changed.ok().and_then(|at| at.elapsed().ok());
            age.is_some_and(|age| age > KEPT) && file.try_lock().is_ok()
        });
        if is_old {
            drop(std::fs::remove_file(&path));
        }
    }
}

fn line(entry: &JournalEntry) -> Vec<u8> {
    let mut line = serde_json::to_vec(entry).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Creates a file that is locked as long as its host process is running.
fn create(path: &Path) -> io::Result<File> {
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    file.try_lock()?;
    Ok(file)
}

/// Takes over the files whose host processes are gone. Waits for the locks of those that are about to exit: the kernel
/// may close the connections of a killed process some time before it frees its locks.
pub(crate) async fn take_over(files: Vec<PathBuf>) -> Vec<LeftJournal> {
    let mut taken = Vec::new();
    for path in files {
        let limit = Instant::now() + DYING;
        loop {
            match try_to_take_over(&path) {
                Ok(Some(left)) => {
                    taken.push(left);
                    break;
                }
                Ok(None) => {}
                Err(error) => {
                    if error.kind() != io::ErrorKind::NotFound {
                        tracing::warn!(%error, "failed to read what a host process left");
                    }
                    break;
                }
            }
            if !has_open_calls(&path) || paths::has_host(&path.with_extension("sock")).await {
                break;
            }
            if Instant::now() > limit {
                tracing::error!("a host process that does not answer holds the lock of its calls");
                break;
            }
            tokio::time::sleep(LOCK_LOOK).await;
        }
    }
    taken
}

/// Returns true if this file has open calls.
fn has_open_calls(path: &Path) -> bool {
    std::fs::read_to_string(path).is_ok_and(|text| !still_open(&text).is_empty())
}

/// Returns the file of a host process that is gone; `None` if it is locked.
fn try_to_take_over(path: &Path) -> io::Result<Option<LeftJournal>> {
    let mut file = File::open(path)?;
    if file.try_lock().is_err() || std::fs::metadata(path)?.ino() != file.metadata()?.ino() {
        return Ok(None);
    }
    let age = file.metadata()?.modified()?.elapsed().unwrap_or_default();
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    let calls = if age > KEPT { Vec::new() } else { still_open(&text) };
    Ok(Some(LeftJournal { path: path.to_owned(), _lock: file, calls }))
}

/// Returns the calls without an end. The last line of a host process that was killed may be half a line.
fn still_open(text: &str) -> Vec<UndeliveredCall> {
    let mut open = BTreeMap::new();
    for entry in text.lines().filter_map(|line| serde_json::from_str::<JournalEntry>(line).ok()) {
        match entry.is {
            Some(is) => drop(open.insert(entry.call, is)),
            None => drop(open.remove(&entry.call)),
        }
    }
    open.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(digest: &str) -> UndeliveredCall {
        let (digest, text) = (digest.to_owned(), || "x".to_owned());
        UndeliveredCall {
            digest,
            input: None,
            greeting: text(),
            front: text(),
            goes_on: false,
            job: None,
        }
    }

    fn digests(journal: &Journal) -> Vec<&str> {
        journal.unreceived.values().map(|call| call.digest.as_str()).collect()
    }

    /// Opens a journal with the calls that others left.
    async fn open(folder: &Path, identity: &str) -> Journal {
        let mut journal = Journal::open(&paths::new_file(folder, identity, "sock"));
        let mut last = 0;
        for left in take_over(journal.others(folder, identity)).await {
            last = journal.add_left(left, last);
        }
        journal
    }

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(paths::folder(folder.path())).unwrap();
        folder
    }

    #[tokio::test]
    async fn h5_what_no_client_received_is_known_to_the_next_host_process_and_to_no_second_one() {
        let folder = folder();
        let open = || open(folder.path(), "i");
        let mut first = open().await;
        for number in 1..4 {
            first.record_begin(number, call(&number.to_string()));
        }
        first.record_received(2);
        first.goes_on(3, Some("j".to_owned()));
        // After a kill there is only the end of its files.
        drop(first);
        let second = open().await;
        assert_eq!(digests(&second), ["1", "3"]);
        assert_eq!(second.left.len(), 2);
        assert_eq!(second.unreceived[&2].job.as_deref(), Some("j"));
        assert!(second.unreceived[&2].goes_on && !second.unreceived[&1].goes_on);
        drop(second);
        let mut third = open().await;
        third.record_received(1);
        third.record_received(2);
        assert!(third.left.is_empty());
        third.close();
        drop(open().await);
        open().await.close();
        assert!(paths::files(folder.path(), "i.", ".calls").is_empty());
    }

    /// A killed process may hold its locks longer than its connections.
    #[tokio::test]
    async fn h4_the_calls_of_a_host_process_that_is_dying_are_waited_for() {
        let folder = folder();
        let mut dying = open(folder.path(), "i").await;
        dying.record_begin(1, call("x"));
        let opening = open(folder.path(), "i");
        tokio::pin!(opening);
        let waited = tokio::time::timeout(LOCK_LOOK * 10, &mut opening).await;
        assert!(waited.is_err(), "it does not wait");
        drop(dying);
        assert_eq!(digests(&opening.await), ["x"]);
    }

    #[test]
    fn h5_what_is_old_is_removed() {
        let folder = folder();
        let new = |identity| Journal::open(&paths::new_file(folder.path(), identity, "sock"));
        let mut files = ["a", "b", "c"].map(new);
        for journal in &mut files {
            journal.record_begin(1, call("x"));
        }
        for journal in &files[..2] {
            let file = journal.file.as_ref().unwrap();
            let now = file.metadata().unwrap().modified().unwrap();
            file.set_modified(now - KEPT * 2).unwrap();
        }
        let [killed, _lives, _new] = files;
        drop(killed);
        sweep(folder.path());
        let left = ["a", "b", "c"]
            .map(|identity| paths::files(folder.path(), &format!("{identity}."), ".calls").len());
        assert_eq!(left, [0, 1, 1]);
    }

    #[tokio::test]
    async fn h5_a_long_file_is_begun_again() {
        let folder = folder();
        let mut journal = open(folder.path(), "i").await;
        journal.record_begin(1, call("stays"));
        for number in 2..10_000 {
            journal.record_begin(number, call("goes"));
            journal.record_received(number);
        }
        let size = std::fs::metadata(&journal.path).unwrap().len();
        assert!(size < MAX_BYTES, "{size}");
        drop(journal);
        assert_eq!(digests(&open(folder.path(), "i").await), ["stays"]);
    }
}
