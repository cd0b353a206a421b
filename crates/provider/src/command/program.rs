//! Finds the program of a command: by its path, from its folder, or on its own search path.
//!
//! Looked up here and not left to the system, because a program that is named by its path can be started without a copy of
//! this process: with hundreds of children that is most of what starting one costs.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

/// The search path in the absence of one, as for `execvp`.
const NO_PATH: &str = "/bin:/usr/bin";
/// The part of a script's first line that the system reads.
const MAX_FIRST_LINE: u64 = 256;

/// The program's file; its bare name when there is none, so that starting it reports the error.
pub(crate) fn locate(program: &str, cwd: &Path, environment: &[(String, String)]) -> PathBuf {
    let path = Path::new(program);
    if program.contains('/') {
        // An absolute path stays what it is.
        return cwd.join(path);
    }
    let search = environment.iter().find(|(name, _)| name == "PATH");
    let folders = search.map_or(NO_PATH, |(_, folders)| folders);
    std::env::split_paths(folders)
        .map(|folder| cwd.join(folder).join(path))
        .find(|file| is_program(file))
        .unwrap_or_else(|| path.to_owned())
}

/// Returns the reason why the file cannot be started, as far as that is known beforehand.
pub(super) fn check(file: &Path) -> io::Result<()> {
    std::fs::metadata(file)?;
    if !is_program(file) {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    if is_bare_script(file) {
        return Err(Errno::NOEXEC.into());
    }
    match interpreter(file) {
        Some(interpreter) => std::fs::metadata(interpreter).map(drop),
        None => Ok(()),
    }
}

/// Returns true if this is text without a line that names its interpreter: `execvp` would give it to a shell.
fn is_bare_script(program: &Path) -> bool {
    let mut head = Vec::new();
    // What may be run but not read is left to the system.
    let read = File::open(program).and_then(|file| file.take(64).read_to_end(&mut head));
    read.is_ok() && !head.starts_with(b"#!") && !head.contains(&0)
}

/// The program that a script names in its first line, by its whole path.
fn interpreter(file: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(file).ok()?.take(MAX_FIRST_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    // As the system does: a carriage return before the end of the line is part of the name.
    let named = std::str::from_utf8(line).ok()?.trim_start_matches([' ', '\t']);
    let named = named.split([' ', '\t']).next()?;
    Some(PathBuf::from(named)).filter(|path| path.is_absolute())
}

fn is_program(file: &Path) -> bool {
    let executable = 0o111;
    std::fs::metadata(file)
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & executable != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E12: never through a shell.
    #[test]
    fn e12_text_without_an_interpreter_is_not_a_program() {
        let dir = tempfile::tempdir().unwrap();
        for (text, bare) in [("echo hi\n", true), ("", true), ("#!/bin/sh\n", false)] {
            let file = dir.path().join("program");
            std::fs::write(&file, text).unwrap();
            assert_eq!(is_bare_script(&file), bare, "{text}");
        }
        assert!(!is_bare_script(Path::new("/bin/sh")));
    }

    /// E16: what cannot be started is known before a start is recorded.
    #[test]
    fn e16_a_script_whose_interpreter_is_missing_cannot_be_started() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("script");
        for (text, starts) in [
            ("#!/bin/sh\n", true),
            ("#! /usr/bin/env -S sh\n", true),
            ("#!/no/such/interpreter -x\n", false),
            ("#!/bin/sh\r\necho hi\r\n", false),
            ("echo hi\n", false),
        ] {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(check(&file).is_ok(), starts, "{text}");
        }
        assert!(check(Path::new("/bin/sh")).is_ok());
        assert!(check(&dir.path().join("missing")).is_err());
    }

    #[test]
    fn a_program_is_found_by_its_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path();
        for folder in ["first", "second", "third"] {
            std::fs::create_dir(cwd.join(folder)).unwrap();
        }
        let make = |file: &str, mode: u32| {
            let file = cwd.join(file);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            file
        };
        make("first/audit", 0o644);
        let audit = make("second/audit", 0o755);
        make("third/audit", 0o755);
        std::fs::create_dir(cwd.join("first/folder")).unwrap();
        let search = format!("{0}/first:second:{0}/third", cwd.display());
        let path = [("PATH".to_owned(), search)];
        assert_eq!(locate("audit", cwd, &path), audit, "the first that can be run");
        assert_eq!(locate("folder", cwd, &path), Path::new("folder"));
        assert_eq!(locate("missing", cwd, &path), Path::new("missing"));
        assert_eq!(locate("audit", cwd, &[]), Path::new("audit"));
        assert_eq!(locate("sh", cwd, &[]), Path::new("/bin/sh"), "without a search path");
        assert_eq!(locate("./audit", cwd, &path), cwd.join("./audit"));
        assert_eq!(locate("/bin/true", cwd, &path), Path::new("/bin/true"));
    }
}
