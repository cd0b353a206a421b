//! The log of detached workers: a file in the data directory that is started again when it is large; the previous one
//! is kept.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use crate::data_dir::open_log;

/// The maximum size of the file.
pub(crate) const MAX_BYTES: u64 = 1 << 20;

/// Returns its path.
pub(crate) fn path(data_dir: &Path) -> PathBuf {
    data_dir.join("worker.log")
}

/// Writes whole lines to the end of the file. Several workers may write to the same one.
#[derive(Debug)]
pub(crate) struct RotatingLog {
    path: PathBuf,
    file: Mutex<File>,
    max_bytes: u64,
}

impl RotatingLog {
    pub(crate) fn open(path: PathBuf, max_bytes: u64) -> io::Result<Self> {
        let file = Mutex::new(open_log(&path)?);
        Ok(Self { path, file, max_bytes })
    }

    /// Starts the file again if it is large, unless another worker has done so.
    fn rotate(&self, file: &mut File) -> io::Result<()> {
        let open = file.metadata()?;
        if open.len() < self.max_bytes {
            return Ok(());
        }
        if std::fs::symlink_metadata(&self.path).is_ok_and(|named| named.ino() == open.ino()) {
            std::fs::rename(&self.path, self.path.with_added_extension("1"))?;
        }
        *file = open_log(&self.path)?;
        Ok(())
    }
}

impl Write for &RotatingLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        self.rotate(&mut file)?;
        file.write(line)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h1_the_log_of_workers_begins_again_when_it_is_large() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("worker.log");
        let logs = [(); 2].map(|()| RotatingLog::open(path.clone(), 100).unwrap());
        for line in 0..200 {
            writeln!(&logs[line % 2], "line {line:03}").unwrap();
        }
        let read = |path: &Path| std::fs::read_to_string(path).unwrap();
        let (new, old) = (read(&path), read(&folder.path().join("worker.log.1")));
        assert!(new.len() < 220 && old.len() < 220, "{new}\n{old}");
        assert!(format!("{old}{new}").contains("line 199"), "{new}\n{old}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
    }
}
