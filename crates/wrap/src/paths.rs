//! The sockets of host processes: one file each, in a folder that only the user can enter.

use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::net::{UnixListener, UnixStream};

use outlast_platform::with_socket_path;

use crate::frame::{ToFront, ToHost};

/// The time within which a process must answer.
const ANSWER_WAIT: Duration = Duration::from_secs(1);

/// Returns the folder of the sockets, below the data directory.
pub(crate) fn folder(data_dir: &Path) -> PathBuf {
    data_dir.join("wrap")
}

/// Returns the files of this kind whose names begin with the prefix. The names of an identity begin with it and a dot.
pub(crate) fn files(data_dir: &Path, prefix: &str, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder(data_dir)) else { return Vec::new() };
    let names = entries.filter_map(Result::ok).map(|entry| entry.path());
    let is_one = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(prefix) && name.ends_with(end)
    };
    names.filter(is_one).collect()
}

/// Returns a new file path for a host process.
pub(crate) fn new_file(data_dir: &Path, identity: &str, end: &str) -> PathBuf {
    let own = uuid::Uuid::new_v4().simple().to_string();
    folder(data_dir).join(format!("{identity}.{}.{end}", own.get(..8).unwrap_or_default()))
}

/// Binds a new socket for a host process.
pub(crate) fn bind(data_dir: &Path, identity: &str) -> io::Result<(UnixListener, PathBuf)> {
    let folder = folder(data_dir);
    DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
    let path = new_file(data_dir, identity, "sock");
    let listener = with_socket_path(&path, |short| UnixListener::bind(short))?;
    std::fs::set_permissions(&path, Permissions::from_mode(0o600))?;
    Ok((listener, path))
}

/// Connects to a host process.
pub(crate) async fn connect(path: &Path) -> Option<UnixStream> {
    let stream = reach(path)?;
    stream.set_nonblocking(true).ok()?;
    UnixStream::from_std(stream).ok()
}

/// Returns true if a process is at the other end of a socket. A killed process answers nothing, though a connection to
/// it may still succeed.
pub(crate) async fn has_host(path: &Path) -> bool {
    let asked = async {
        let mut stream = connect(path).await?;
        ToHost::AreYouThere.write(&mut stream).await.ok()?;
        ToFront::read(&mut stream).await.ok()?
    };
    tokio::time::timeout(ANSWER_WAIT, asked).await.is_ok_and(|answer| answer.is_some())
}

/// Removes the sockets of host processes that were killed.
pub(crate) fn sweep(data_dir: &Path) {
    for path in files(data_dir, "", ".sock") {
        drop(reach(&path));
    }
}

/// Connects to the other end of a socket. Removes the file of a host process that was killed.
fn reach(path: &Path) -> Option<std::os::unix::net::UnixStream> {
    let connected = with_socket_path(path, |short| std::os::unix::net::UnixStream::connect(short));
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if connected.as_ref().is_err_and(refused) {
        drop(std::fs::remove_file(path));
    }
    connected.ok()
}
