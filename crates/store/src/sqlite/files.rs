//! Creates files and directories that only their owner can read, whatever the umask.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use outlast_core::StoreError;

use super::fault::file_error;

/// Returns the path of a companion of the file at `path`: its name followed by `suffix`.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// The directory that contains a file.
pub(super) fn directory_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        Some(_) | None => PathBuf::from("."),
    }
}

/// Creates a directory, or leaves an existing one unchanged.
pub(crate) fn make_private_dir(dir: &Path) -> Result<(), StoreError> {
    if dir.is_dir() {
        return Ok(());
    }
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
    made.and_then(|()| restrict(dir, 0o700)).map_err(file_error(dir))
}

/// Creates a file; fails if it exists.
pub(super) fn make_private_file(path: &Path) -> io::Result<fs::File> {
    let file = private_options().create_new(true).open(path)?;
    restrict(path, 0o600)?;
    Ok(file)
}

/// Opens a file, and creates it if it does not exist.
pub(crate) fn open_private_file(path: &Path) -> io::Result<fs::File> {
    private_options().create(true).truncate(false).open(path)
}

fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    options
}

/// Renames `from` to `to`. When this returns, the new name survives a crash.
pub(super) fn rename_durably(from: &Path, to: &Path) -> Result<(), StoreError> {
    fs::rename(from, to)
        .and_then(|()| fs::File::open(directory_of(to)))
        .and_then(|directory| directory.sync_all())
        .map_err(file_error(to))
}

fn restrict(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, Permissions::from_mode(mode))
}
