//! The launcher: our process that becomes the command. It is started first, put into the guard's hands and recorded;
//! only then is it sent the message, and only with the whole of that does it become the command. A server that crashes before
//! leaves nothing that runs, and a command never takes half a message for the whole: its standard input is a file.

use std::ffi::OsString;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program;

/// The prefix on standard error from a launcher that could not become its program.
pub const CANNOT_START: &str = "outlast: the program cannot be started: ";
/// Its exit code in that case.
pub const CANNOT_START_CODE: u8 = 126;

/// The program that a launcher becomes.
#[derive(Debug)]
pub struct LaunchedProgram {
    /// The directory that holds the message while the command reads it.
    pub scratch: PathBuf,
    /// The program's file.
    pub program: PathBuf,
    /// Its `argv[0]`.
    pub name: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// Waits for the whole message and becomes the program; returns when it did not.
///
/// An error of kind `UnexpectedEof` means that the message did not come: the server is gone.
pub fn launch(input: impl Read, launched: LaunchedProgram) -> io::Error {
    let message = match message(input, &launched.scratch) {
        Ok(message) => message,
        Err(error) => return error,
    };
    let LaunchedProgram { program, name, arguments, .. } = launched;
    // Else `execvp` would give text without an interpreter to a shell.
    if let Err(error) = program::check(&program) {
        return error;
    }
    Command::new(program).arg0(name).args(arguments).stdin(message).exec()
}

/// The message as it is sent to a launcher: how many bytes it has, and then those.
pub(super) fn frame(message: &str) -> Vec<u8> {
    let length = (message.len() as u64).to_le_bytes();
    [&length, message.as_bytes()].concat()
}

/// The message as a file without a name.
fn message(mut input: impl Read, scratch: &Path) -> io::Result<File> {
    let mut length = [0; 8];
    input.read_exact(&mut length)?;
    let length = u64::from_le_bytes(length);
    DirBuilder::new().recursive(true).mode(0o700).create(scratch)?;
    let path = scratch.join(format!("stdin.{}", uuid::Uuid::new_v4().simple()));
    let mut file =
        File::options().create_new(true).read(true).write(true).mode(0o600).open(&path)?;
    std::fs::remove_file(&path)?;
    if io::copy(&mut input.take(length), &mut file)? < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    file.flush()?;
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let whole = frame("Why?\n");
        for cut in 0..whole.len() {
            let error = message(&whole[..cut], dir.path()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
        let mut read = String::new();
        message(&whole[..], dir.path()).unwrap().read_to_string(&mut read).unwrap();
        assert_eq!(read, "Why?\n");
        let left = std::fs::read_dir(dir.path()).unwrap().count();
        assert_eq!(left, 0, "no file has a name");
    }
}
