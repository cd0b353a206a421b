//! Another program's file: read whole, replaced in one step with its mode kept, copied before it is changed.

use std::fs::{self, Permissions};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// A file that may not exist, as it was when it was read.
pub(crate) struct Document {
    /// Its path; the end of the chain if the name is a symbolic link.
    pub(crate) path: PathBuf,
    pub(crate) text: Option<String>,
}

impl Document {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        // People keep such files in another place and link them; the link must stay a link.
        let path = match fs::canonicalize(path) {
            Ok(path) => path,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound && !path.is_symlink() => {
                path.to_owned()
            }
            Err(error) => return Err(error).with_context(|| format!("find {}", path.display())),
        };
        let text = read(&path)?;
        Ok(Self { path, text })
    }

    /// Returns the path of the backup.
    pub(crate) fn backup_path(&self) -> PathBuf {
        self.path.with_added_extension("outlast-backup")
    }

    /// Returns the backup, if there is one.
    pub(crate) fn backup(&self) -> anyhow::Result<Option<String>> {
        read(&self.backup_path())
    }

    /// Makes the backup, with the same mode.
    pub(crate) fn back_up(&self) -> anyhow::Result<()> {
        let Some(text) = &self.text else { return Ok(()) };
        self.place(&self.backup_path(), text)
    }

    /// Removes the backup.
    pub(crate) fn forget_backup(&self) -> anyhow::Result<()> {
        let path = self.backup_path();
        fs::remove_file(&path).with_context(|| format!("remove {}", path.display()))
    }

    /// Replaces the file, unless another program has changed it since it was read.
    pub(crate) fn replace(&self, text: &str) -> anyhow::Result<()> {
        self.unchanged()?;
        self.place(&self.path, text)
    }

    /// Removes the file.
    pub(crate) fn delete(&self) -> anyhow::Result<()> {
        self.unchanged()?;
        fs::remove_file(&self.path).with_context(|| format!("remove {}", self.path.display()))
    }

    fn unchanged(&self) -> anyhow::Result<()> {
        if read(&self.path)? != self.text {
            bail!(
                "{} was changed by another program just now; nothing was written",
                self.path.display()
            );
        }
        Ok(())
    }

    /// Writes a file with the mode of this one.
    fn place(&self, path: &Path, text: &str) -> anyhow::Result<()> {
        let mode = fs::metadata(&self.path).ok().map(|found| found.permissions());
        place(path, text.as_bytes(), mode)
    }
}

/// Writes a file in one step: a reader sees the old one or the new one. Without a mode, only its owner can read it.
pub(crate) fn place(path: &Path, bytes: &[u8], mode: Option<Permissions>) -> anyhow::Result<()> {
    let place = || {
        let dir = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(bytes)?;
        mode.map_or(Ok(()), |mode| file.as_file().set_permissions(mode))?;
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        std::io::Result::Ok(())
    };
    place().with_context(|| format!("write {}", path.display()))
}

fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read(path) {
        Ok(bytes) => match String::from_utf8(bytes) {
            Ok(text) => Ok(Some(text)),
            Err(_) => bail!("{} is not UTF-8 text", path.display()),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("read {}", path.display())),
    }
}
