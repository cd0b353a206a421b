//! The sockets of the processes on one store, in a folder next to it that only the user can enter. Each datagram is one
//! message. A socket whose process is gone refuses datagrams, which identifies a dead worker.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use outlast_core::JobId;
use tokio::net::UnixDatagram;

use super::identity::{FRONT_PREFIX, SOCKET_SUFFIX, WORKER_PREFIX};
use super::log_relay::MAX_DATAGRAM;
use crate::config::{Config, PartsDigest, Secret, StoreUrl};

/// A message between processes on one store, in one datagram: it announces that there is something to look at. A lost
/// message loses nothing, because the store holds the same information.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The store has changed.
    Look,
    /// Run this held call.
    Carry(JobId),
    /// Release the jobs and exit.
    Stop,
}

/// The maximum length of these messages.
#[cfg(test)]
const MAX_MESSAGE_BYTES: usize = 64;

impl Message {
    fn to_text(self) -> String {
        match self {
            Self::Look => "look".to_owned(),
            Self::Carry(id) => format!("carry {id}"),
            Self::Stop => "stop".to_owned(),
        }
    }

    /// Parses a message; `None` for a message of another version.
    fn parse(bytes: &[u8]) -> Option<Self> {
        match std::str::from_utf8(bytes).ok()? {
            "look" => Some(Self::Look),
            "stop" => Some(Self::Stop),
            text => text.strip_prefix("carry ")?.parse().ok().map(Self::Carry),
        }
    }
}

/// The folder of the sockets of one store.
#[derive(Clone, Debug)]
pub(crate) struct SocketFolder {
    path: PathBuf,
    /// True if the store is a file, which does not notify its processes of changes.
    pub(crate) is_beside_a_file: bool,
}

/// A socket of this process; removed when this is dropped.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    socket: UnixDatagram,
    path: PathBuf,
    inode: u64,
}

/// The reason why a socket cannot be bound to a name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    /// Another process has it.
    #[error("another process has this socket")]
    Taken,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SocketFolder {
    /// Returns the folder for the processes on the configured store; `None` for a store that has one process.
    pub(crate) fn of(config: &Config) -> Option<Self> {
        let (path, is_beside_a_file) = match &config.store {
            StoreUrl::Memory => return None,
            StoreUrl::Sqlite(database) => (database.with_added_extension("sockets"), true),
            StoreUrl::Postgres(Secret(address)) => {
                let mut digest = PartsDigest::default();
                digest.add(address);
                let digest: String = digest.text().chars().take(8).collect();
                (config.data_dir.join(format!("{digest}.sockets")), false)
            }
        };
        Some(Self { path, is_beside_a_file })
    }

    /// Binds a socket to this name, replacing that of a dead process.
    pub(crate) fn bind(&self, name: &str) -> Result<OwnSocket, BindError> {
        self.make()?;
        if self.send(name, Message::Look).is_ok() {
            return Err(BindError::Taken);
        }
        // Bound under another name first: a socket must be complete when its name appears.
        let partial = format!("{}.{name}", std::process::id());
        drop(fs::remove_file(self.path.join(&partial)));
        let socket = self.at(&partial, |path| UnixDatagram::bind(path))?;
        let (partial, path) = (self.path.join(partial), self.path.join(name));
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o600))?;
        let inode = fs::symlink_metadata(&partial)?.ino();
        fs::rename(partial, &path)?;
        Ok(OwnSocket { socket, path, inode })
    }

    /// Locks a name for as long as the file is open; `None` if another process has the lock.
    pub(crate) fn lock(&self, name: &str) -> io::Result<Option<File>> {
        self.make()?;
        let path = self.beside(name, ".lock");
        let file = File::options().create(true).append(true).mode(0o600).open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Removes the file of a lock that this process holds.
    pub(crate) fn remove_lock(&self, name: &str) {
        drop(fs::remove_file(self.beside(name, ".lock")));
    }

    /// Creates the folder.
    fn make(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700)),
        }
    }

    /// Sends a message to the process that has the socket of this name; fails if there is none.
    pub(crate) fn send(&self, name: &str, message: Message) -> io::Result<()> {
        let socket = std::os::unix::net::UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let text = message.to_text();
        match self.at(name, |path| socket.send_to(text.as_bytes(), path)) {
            Ok(_) => Ok(()),
            // It is running and has not yet read many other messages, each of which makes it look.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Sends a message, or removes the socket if its process was killed.
    pub(crate) fn send_or_remove(&self, name: &str, message: Message) -> io::Result<()> {
        let sent = self.send(name, message);
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            drop(fs::remove_file(self.path.join(name)));
        }
        sent
    }

    /// Removes the sockets of all killed processes.
    pub(crate) fn remove_dead(&self) {
        for name in self.names() {
            // A running process looks at the store, which does no harm.
            drop(self.send_or_remove(&name, Message::Look));
        }
    }

    /// Returns the socket name of this process as a front.
    pub(crate) fn front_name() -> String {
        format!("{FRONT_PREFIX}{}{SOCKET_SUFFIX}", std::process::id())
    }

    /// Returns the socket names of all processes that are not detached workers.
    pub(crate) fn front_names(&self) -> impl Iterator<Item = String> + use<> {
        self.names().filter(|name| name.starts_with(FRONT_PREFIX))
    }

    /// Sends bytes to the process that has the socket of this name.
    pub(super) fn send_bytes(
        &self,
        socket: &std::os::unix::net::UnixDatagram,
        name: &str,
        bytes: &[u8],
    ) -> io::Result<()> {
        self.at(name, |path| socket.send_to(bytes, path)).map(drop)
    }

    /// Returns true if the folder exists.
    pub(crate) fn is_there(&self) -> bool {
        self.path.is_dir()
    }

    /// Returns the names of all sockets in the folder.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_whole =
            |name: &str| [WORKER_PREFIX, FRONT_PREFIX].iter().any(|it| name.starts_with(it));
        names.filter(move |name| name.ends_with(SOCKET_SUFFIX) && is_whole(name))
    }

    /// Returns the path of a file next to a socket.
    pub(crate) fn beside(&self, name: &str, suffix: &str) -> PathBuf {
        self.path.join(format!("{}{suffix}", name.trim_end_matches(SOCKET_SUFFIX)))
    }

    /// Uses the path of a socket; if it is too long, by a shorter one through the open folder.
    fn at<T>(&self, name: &str, operate: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        outlast_platform::with_socket_path(&self.path.join(name), operate)
    }
}

impl OwnSocket {
    /// Receives the messages of other processes until the socket fails. Anything that is not a message goes to
    /// `relayed`.
    pub(crate) async fn listen(&self, hear: impl Fn(Message), relayed: impl Fn(&[u8])) {
        let mut bytes = vec![0; MAX_DATAGRAM];
        loop {
            match self.socket.recv(&mut bytes).await {
                Ok(length) => {
                    let received = bytes.get(..length).unwrap_or_default();
                    match Message::parse(received) {
                        Some(message) => hear(message),
                        None => relayed(received),
                    }
                }
                Err(error) => {
                    tracing::warn!(%error, "messages cannot be read; the store is looked at instead");
                    return;
                }
            }
        }
    }

    /// Returns true if others still find this socket.
    pub(crate) fn is_found(&self) -> bool {
        fs::symlink_metadata(&self.path).is_ok_and(|found| found.ino() == self.inode)
    }
}

impl Drop for OwnSocket {
    fn drop(&mut self) {
        if self.is_found() {
            drop(fs::remove_file(&self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let id = "0190b0a0000040008000000000000001".parse().unwrap();
        for message in [Message::Look, Message::Carry(id), Message::Stop] {
            let text = message.to_text();
            assert!(text.len() <= MAX_MESSAGE_BYTES, "{text}");
            assert_eq!(Message::parse(text.as_bytes()), Some(message));
        }
        assert_eq!(Message::Look.to_text(), "look", "processes of other versions read it");
        assert_eq!(Message::parse(b"carry on"), None);
        assert_eq!(Message::parse(&[0xff]), None);
    }
}
