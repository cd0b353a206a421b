//! Opens files of the library relative to the descriptor of their folder. No symbolic link is followed, not
//! even one that replaced a directory after the walk, and no open waits for the other end of a FIFO. An opened
//! file is checked by its descriptor, because its name may refer to another file a moment later.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Component, Path};

use rustix::fs::{CWD, Mode, OFlags, openat};

use super::walk::FileFormat;

/// Opens a folder of the library. Its path contains no links.
pub(super) fn open_folder(path: &Path) -> io::Result<OwnedFd> {
    open_directory(CWD, path)
}

/// Opens a regular file below a folder for reading. Fails if the file exceeds the size limit of its format.
pub(super) fn open_file(folder: &OwnedFd, relative: &Path, format: FileFormat) -> io::Result<File> {
    let mut directory = None;
    let mut components = relative.components().peekable();
    while let Some(Component::Normal(name)) = components.next() {
        let parent = directory.as_ref().unwrap_or(folder).as_fd();
        if components.peek().is_some() {
            directory = Some(open_directory(parent, Path::new(name))?);
            continue;
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = File::from(openat(parent, name, flags | OFlags::NOCTTY, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.len() > format.largest() {
            return Err(io::Error::other("not a regular file, or too long"));
        }
        return Ok(file);
    }
    Err(io::Error::other("not a path below the folder"))
}

fn open_directory(parent: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    Ok(openat(parent, path, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn only_regular_files_below_the_folder_are_opened() {
        let root = tempfile::tempdir().unwrap();
        let books = root.path().join("books");
        fs::create_dir_all(books.join("trees")).unwrap();
        for file in ["plum.md", "books/plum.md", "books/trees/plum.md"] {
            fs::write(root.path().join(file), "plum").unwrap();
        }
        symlink(root.path().join("plum.md"), books.join("link.md")).unwrap();
        symlink(root.path(), books.join("up")).unwrap();
        rustix::fs::mknodat(
            CWD,
            books.join("fifo.md"),
            rustix::fs::FileType::Fifo,
            Mode::RUSR | Mode::WUSR,
            0,
        )
        .unwrap();
        let folder = open_folder(&books).unwrap();
        let opens = |path: &str| open_file(&folder, Path::new(path), FileFormat::Plain).is_ok();
        for path in ["plum.md", "trees/plum.md"] {
            assert!(opens(path), "{path}");
        }
        let outside = ["../plum.md", "up/plum.md", "trees/../../plum.md", "/etc/passwd", "", "."];
        for path in outside.into_iter().chain(["link.md", "fifo.md", "trees", "plum.md/x"]) {
            assert!(!opens(path), "{path}");
        }
        fs::File::create(books.join("long.md")).unwrap().set_len(9 << 20).unwrap();
        assert!(!opens("long.md"));
        assert!(open_folder(&books.join("up")).is_err());
    }
}
