//! The data directory: created for its user alone, and not written while other users can change its content.
//!
//! Only the directory itself and the entries that outlast creates in it are checked, never its parents: a sticky `/tmp`
//! is fine.

use std::fmt;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::{CommandError, CommandResult};

/// The directories that outlast creates in the data directory for sockets and locks.
const SUBDIRECTORIES: [&str; 2] = ["wrap", "workers"];

/// The reason why a directory is not written.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnsafeDirectory {
    path: PathBuf,
    problem: DataDirProblem,
}

#[derive(Debug, PartialEq, Eq)]
enum DataDirProblem {
    /// It belongs to another user: its owner, and the user of this process.
    Foreign { owner: u32, user: u32 },
    /// Other users may write to it: its permissions.
    Writable { mode: u32 },
}

impl UnsafeDirectory {
    /// Returns the next step for a person.
    pub(crate) fn fix(&self) -> String {
        let path = self.path.display();
        match self.problem {
            DataDirProblem::Foreign { owner, user } => format!(
                "run outlast as uid {owner}, give --data-dir another directory, or, if all of it is yours, `chown -R {user} {path}`"
            ),
            DataDirProblem::Writable { .. } => format!("chmod go-w {path}"),
        }
    }
}

impl fmt::Display for UnsafeDirectory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.problem {
            DataDirProblem::Foreign { owner, user } => {
                write!(
                    f,
                    "the directory {path} belongs to uid {owner}, and outlast runs as uid {user}"
                )
            }
            DataDirProblem::Writable { mode } => {
                write!(f, "other users can write the directory {path} (mode {mode:04o})")
            }
        }
    }
}

/// Creates the data directory with mode 0700, if it does not exist, and refuses one that other users can change.
pub(crate) fn prepare(data_dir: &Path) -> CommandResult<()> {
    if let Err(error) = DirBuilder::new().recursive(true).mode(0o700).create(data_dir) {
        let why = format!("the data directory {} cannot be made: {error}", data_dir.display());
        return Err(CommandError::wrong(why, "give --data-dir a directory that can be written"));
    }
    check(data_dir)
}

/// Creates a directory in the data directory, if it does not exist, and refuses one in which no file can be created.
pub(crate) fn prepare_below(data_dir: &Path, name: &str) -> CommandResult<()> {
    let path = data_dir.join(name);
    let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
    // Its permissions alone are not enough: the file system may be read-only, or full.
    made.and_then(|()| tempfile::Builder::new().prefix(".trial").tempfile_in(&path))
        .map(drop)
        .map_err(|error| {
            let why = format!("no file can be made in {}: {error}", path.display());
            CommandError::wrong(
                why,
                "make it a directory that can be written, or give --data-dir another one",
            )
        })
}

/// Refuses a data directory that other users can change. A missing one is fine.
pub(crate) fn check(data_dir: &Path) -> CommandResult<()> {
    judge(data_dir).map_err(|found| CommandError::wrong(found.to_string(), found.fix()))
}

/// Checks that other users cannot change the data directory or the entries that outlast created in it.
pub(crate) fn judge(data_dir: &Path) -> Result<(), UnsafeDirectory> {
    let user = rustix::process::geteuid().as_raw();
    let below = SUBDIRECTORIES.iter().map(|name| data_dir.join(name));
    for path in std::iter::once(data_dir.to_owned()).chain(below) {
        let Ok(metadata) = std::fs::metadata(&path) else { continue };
        if let Some(problem) = problem_of(&metadata, user) {
            return Err(UnsafeDirectory { path, problem });
        }
    }
    Ok(())
}

fn problem_of(directory: &Metadata, user: u32) -> Option<DataDirProblem> {
    let (owner, mode) = (directory.uid(), directory.mode() & 0o7777);
    if owner != user {
        // Also for root: another user's directory can be changed by that user at any time.
        return Some(DataDirProblem::Foreign { owner, user });
    }
    (mode & 0o022 != 0).then_some(DataDirProblem::Writable { mode })
}

/// Opens a log for appending; creates it with mode 0600. Does not follow a symbolic link, and does not block on a FIFO.
pub(crate) fn open_log(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file =
        File::options().create(true).append(true).mode(0o600).custom_flags(flags).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other("it is not a regular file")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_directory_that_others_can_write_is_refused_with_the_way_out() {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        assert!(judge(&data).is_ok(), "one that is not there");
        prepare(&data).unwrap();
        assert_eq!(std::fs::metadata(&data).unwrap().mode() & 0o777, 0o700);
        for (mode, is_fine) in [
            (0o700, true),
            (0o755, true),
            (0o750, true),
            (0o770, false),
            (0o702, false),
            (0o1777, false),
        ] {
            set_mode(&data, mode);
            assert_eq!(judge(&data).is_ok(), is_fine, "{mode:o}");
            assert_eq!(prepare(&data).is_ok(), is_fine, "{mode:o}");
        }
        let refused = judge(&data).unwrap_err();
        assert!(refused.to_string().contains("(mode 1777)"), "{refused}");
        assert_eq!(refused.fix(), format!("chmod go-w {}", data.display()));
        set_mode(&data, 0o700);
        std::fs::create_dir(data.join("wrap")).unwrap();
        set_mode(&data.join("wrap"), 0o777);
        assert!(judge(&data).unwrap_err().to_string().contains("wrap"));
        // A parent that everyone may write is not checked.
        set_mode(&data.join("wrap"), 0o700);
        set_mode(root.path(), 0o1777);
        assert!(judge(&data).is_ok());
    }

    #[test]
    fn a_directory_of_another_user_is_refused_for_root_too() {
        let root = tempfile::tempdir().unwrap();
        let metadata = std::fs::metadata(root.path()).unwrap();
        let other = metadata.uid() + 1;
        let foreign = problem_of(&metadata, other).unwrap();
        assert_eq!(foreign, DataDirProblem::Foreign { owner: metadata.uid(), user: other });
        assert_eq!(problem_of(&metadata, metadata.uid()), None);
    }

    #[test]
    fn a_log_is_not_opened_through_a_link_and_a_fifo_does_not_block() {
        let root = tempfile::tempdir().unwrap();
        let (target, link, fifo) =
            (root.path().join("target"), root.path().join("link"), root.path().join("fifo"));
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let made = rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        );
        made.unwrap();
        assert!(open_log(&link).is_err() && open_log(&fifo).is_err());
        assert!(!target.exists());
        drop(open_log(&target).unwrap());
        assert_eq!(std::fs::metadata(&target).unwrap().mode() & 0o777, 0o600);
    }
}
