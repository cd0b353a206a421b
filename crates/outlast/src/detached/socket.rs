//! The sockets of the processes on one store, in a folder beside it that is the user's alone. Datagrams: each is one message, and
//! a socket whose process is gone refuses them, which is how a dead worker is known.

use std::fs::{self, File, TryLockError};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use outlast_core::JobId;
use tokio::net::UnixDatagram;

use super::identity::{FRONT_PREFIX, SOCKET_SUFFIX, WORKER_PREFIX};
use super::log_relay::MAX_DATAGRAM;
use crate::config::{Config, PartsDigest, Secret, StoreUrl};

/// Systems take no longer path of a socket than about this.
const MAX_PATH_BYTES: usize = 100;

/// What processes on one store tell one another, in one datagram: that there is something to look at. Nothing is lost with a
/// lost message, which the store does not say too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The store has changed.
    Look,
    /// Carry this held call.
    Carry(JobId),
    /// Give the jobs back and leave.
    Stop,
}

/// As long as any of them.
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

    /// `None` for what another version may say.
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
    /// Whether the store is a file, which tells its processes of no change by itself.
    pub(crate) is_beside_a_file: bool,
}

/// A socket of this process; removed with the value.
#[derive(Debug)]
pub(crate) struct OwnSocket {
    socket: UnixDatagram,
    path: PathBuf,
    inode: u64,
}

/// Why a socket cannot be had under a name.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BindError {
    /// Another process has it.
    #[error("another process has this socket")]
    Taken,
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl SocketFolder {
    /// Where the processes on the configured store meet; `None` for a store that has one process.
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

    /// Listens under this name, in the place of a process that has died.
    pub(crate) fn bind(&self, name: &str) -> Result<OwnSocket, BindError> {
        self.make()?;
        if self.send(name, Message::Look).is_ok() {
            return Err(BindError::Taken);
        }
        // Under another name first: a socket is there from the moment that its name is.
        let partial = format!("{}.{name}", std::process::id());
        drop(fs::remove_file(self.path.join(&partial)));
        let socket = self.at(&partial, |path| UnixDatagram::bind(path))?;
        let (partial, path) = (self.path.join(partial), self.path.join(name));
        fs::set_permissions(&partial, fs::Permissions::from_mode(0o600))?;
        let inode = fs::symlink_metadata(&partial)?.ino();
        fs::rename(partial, &path)?;
        Ok(OwnSocket { socket, path, inode })
    }

    /// A lock on a name, held as long as the file is open; `None` if another process has it.
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

    /// Makes the folder.
    fn make(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            Ok(()) | Err(_) => fs::set_permissions(&self.path, fs::Permissions::from_mode(0o700)),
        }
    }

    /// Tells the process that has the socket of this name; fails if there is none.
    pub(crate) fn send(&self, name: &str, message: Message) -> io::Result<()> {
        let socket = std::os::unix::net::UnixDatagram::unbound()?;
        socket.set_nonblocking(true)?;
        let text = message.to_text();
        match self.at(name, |path| socket.send_to(text.as_bytes(), path)) {
            Ok(_) => Ok(()),
            // It lives and has not read so many others yet, each of which makes it look.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// The same; the socket that a killed process left is removed.
    pub(crate) fn send_or_remove(&self, name: &str, message: Message) -> io::Result<()> {
        let sent = self.send(name, message);
        if sent.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            drop(fs::remove_file(self.path.join(name)));
        }
        sent
    }

    /// Removes the sockets of all processes that were killed.
    pub(crate) fn remove_dead(&self) {
        for name in self.names() {
            // A process that lives looks at the store, which does no harm.
            drop(self.send_or_remove(&name, Message::Look));
        }
    }

    /// The name for the socket of this process as a front.
    pub(crate) fn front_name() -> String {
        format!("{FRONT_PREFIX}{}{SOCKET_SUFFIX}", std::process::id())
    }

    /// The names of the sockets of all processes that are not detached workers.
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

    /// Whether the folder is there.
    pub(crate) fn is_there(&self) -> bool {
        self.path.is_dir()
    }

    /// The names of all sockets here.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> + use<> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let is_whole =
            |name: &str| [WORKER_PREFIX, FRONT_PREFIX].iter().any(|it| name.starts_with(it));
        names.filter(move |name| name.ends_with(SOCKET_SUFFIX) && is_whole(name))
    }

    /// The path of what stands here beside a socket.
    pub(crate) fn beside(&self, name: &str, suffix: &str) -> PathBuf {
        self.path.join(format!("{}{suffix}", name.trim_end_matches(SOCKET_SUFFIX)))
    }

    /// Uses the path of a socket, by a shorter one through the open folder where it is too long.
    fn at<T>(&self, name: &str, operate: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
        let path = self.path.join(name);
        if path.as_os_str().len() <= MAX_PATH_BYTES || !cfg!(target_os = "linux") {
            return operate(&path);
        }
        let folder = File::open(&self.path)?;
        operate(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
    }
}

impl OwnSocket {
    /// Hears what other processes tell, until it cannot. What is no message goes to `relayed`.
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

    /// Whether others still find this socket.
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
        assert_eq!(Message::parse(b"carry on"), None);
        assert_eq!(Message::parse(&[0xff]), None);
    }
}
