//! Converters: programs that turn a PDF (`pdftotext`) or an office file (`pandoc`) into text.
//!
//! A converter is a child in a process group of its own, started through a launcher that limits its memory and its
//! processor time. The library limits the time it may take and the text it may write, and ends the whole group when the
//! converter has ended, went over a limit, or the run was cancelled.

mod child;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use self::child::{Ended, run_child};
use super::clean;
use super::reporter::{Reporter, Stopped};
use super::skip::Skip;
use super::walk::Format;

/// Which converters a library may run, and within which limits.
#[derive(Clone, Debug)]
pub struct Converters {
    /// A program and its first arguments. It is given the bytes of memory and the seconds of processor time that a
    /// converter may use, then the converter and its arguments; it limits itself and becomes the converter. Where it is
    /// empty a converter is started as it is, without these two limits.
    pub launcher: Vec<OsString>,
    /// Where programs are looked for that are not named by a path; also the `PATH` of the converters.
    pub search_path: OsString,
    /// The program for PDF: a name or a path.
    pub pdftotext: PathBuf,
    /// The program for docx, odt, epub and rtf: a name or a path.
    pub pandoc: PathBuf,
    /// What one conversion may take.
    pub limits: ConvertLimits,
}

/// What one conversion may take.
#[derive(Clone, Copy, Debug)]
pub struct ConvertLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Time of the processor. A file that needs more does so on every machine, however busy.
    pub processor_time: Duration,
    /// Time altogether, for a converter that hangs.
    pub time: Duration,
    /// Bytes of text.
    pub text: usize,
}

impl Default for ConvertLimits {
    fn default() -> Self {
        Self {
            memory: 1 << 30,
            processor_time: Duration::from_secs(30),
            time: Duration::from_secs(60),
            text: MAX_CONVERTED_BYTES,
        }
    }
}

/// How much text of one file is read; [`Skip::TooMuchText`] says it in words.
const MAX_CONVERTED_BYTES: usize = 16 << 20;
/// The path by which a converter opens its standard input again, to read it in any order.
const STDIN: &str = "/dev/stdin";
/// What the launcher exits with when it could not become the converter.
const CANNOT_START: i32 = 126;

/// The converters that are installed, as they were found for one question.
pub(super) struct InstalledConverters<'a> {
    converters: &'a Converters,
    pdftotext: Option<Program>,
    pandoc: Option<Program>,
}

/// A program that was found.
struct Program {
    file: PathBuf,
    /// Says which version it is: another file, size or date is another program.
    stamp: String,
}

/// Why a file was not converted.
pub(super) enum ConvertError {
    /// The same would come of it the next time.
    LeftOut(Skip),
    /// The converter could not be started; it may be possible the next time.
    NotStarted,
    /// The file was replaced after the walk; the next walk may find a file again.
    NotOpened,
    /// The run was cancelled.
    Stopped,
}

impl From<Stopped> for ConvertError {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl Converters {
    /// Looks for the programs.
    pub(super) fn installed(&self) -> InstalledConverters<'_> {
        let found = |program: &Path| Program::new(self.locate(program)?);
        InstalledConverters {
            converters: self,
            pdftotext: found(&self.pdftotext),
            pandoc: found(&self.pandoc),
        }
    }

    /// The file of a program, if there is one that can be run.
    pub fn locate(&self, program: &Path) -> Option<PathBuf> {
        if program.is_absolute() {
            return is_program(program).then(|| program.to_owned());
        }
        // A folder that is not absolute would depend on where the server was started.
        let folders =
            std::env::split_paths(&self.search_path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(program)).find(|file| is_program(file))
    }
}

impl InstalledConverters<'_> {
    /// Which version of its converter reads files of this format; none where they need no converter or have none.
    pub(super) fn stamp(&self, format: Format) -> Option<&str> {
        let program = match format {
            Format::Pdf => self.pdftotext.as_ref(),
            Format::Office(_) => self.pandoc.as_ref(),
            _ => None,
        };
        program.map(|program| program.stamp.as_str())
    }

    /// The text of a PDF, with a form feed at the end of each page.
    pub(super) fn pdf(&self, file: File, reporter: &Reporter) -> Result<String, ConvertError> {
        let missing = ConvertError::LeftOut(Skip::NoPdftotext);
        let program = self.pdftotext.as_ref().ok_or(missing)?;
        // The order of drawing is the order of reading in most files; the other orders mix the lines of two columns.
        let options = ["-raw", "-htmlmeta", "-enc", "UTF-8", "-eol", "unix"].map(OsStr::new);
        // By path, because pdftotext would copy what it reads as `-` into memory.
        let arguments = options.into_iter().chain([STDIN, "-"].map(OsStr::new));
        let ended = self.run(program, arguments, file, reporter)?;
        if ended.code == Some(0) {
            return Ok(ended.text);
        }
        let said = ended.stderr.to_lowercase();
        let is_locked = said.contains("password") || said.contains("security handler");
        // 3 is pdftotext's code for a file that forbids copying.
        let is_locked = is_locked || ended.code == Some(3);
        let skip = if is_locked { Skip::EncryptedPdf } else { Skip::DamagedPdf };
        Err(ConvertError::LeftOut(skip))
    }

    /// The text of an office file as Markdown; `reader` is what pandoc calls its format.
    pub(super) fn office(
        &self,
        reader: &str,
        file: File,
        reporter: &Reporter,
    ) -> Result<String, ConvertError> {
        let missing = ConvertError::LeftOut(Skip::NoPandoc);
        let program = self.pandoc.as_ref().ok_or(missing)?;
        // In its sandbox pandoc reads no other file and asks no server.
        let options = ["--sandbox", "--from", reader, "--to", "gfm-raw_html", "--wrap", "none"];
        let ended = self.run(program, options.iter().map(OsStr::new), file, reporter)?;
        if ended.code == Some(0) {
            return Ok(ended.text);
        }
        Err(ConvertError::LeftOut(Skip::Unreadable))
    }

    /// Runs a converter with the file as its standard input. It gets no name of the file, which may by now be another file's.
    fn run<'a>(
        &self,
        program: &Program,
        arguments: impl Iterator<Item = &'a OsStr>,
        file: File,
        reporter: &Reporter,
    ) -> Result<Ended, ConvertError> {
        let Converters { launcher, limits, search_path, .. } = self.converters;
        let mut command = match launcher.split_first() {
            Some((launcher, first)) => {
                let mut command = Command::new(launcher);
                command.args(first).arg(limits.memory.to_string());
                command.arg(limits.processor_time.as_secs().to_string()).arg(&program.file);
                command
            }
            None => Command::new(&program.file),
        };
        // Nothing else of our environment, which may hold keys.
        command.args(arguments).env_clear().env("PATH", search_path).env("LC_ALL", "C.UTF-8");
        let ended = run_child(command.current_dir("/").stdin(file), limits, reporter)?;
        if ended.code != Some(0) {
            let (code, stderr) = (ended.code, clean::line(&ended.stderr));
            tracing::debug!(code, stderr, program = %program.file.display(), "a converter failed");
        }
        if !launcher.is_empty() && ended.code == Some(CANNOT_START) {
            return Err(ConvertError::NotStarted);
        }
        Ok(ended)
    }
}

impl Program {
    fn new(file: PathBuf) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let stamp = format!("{} {} {}", file.display(), metadata.len(), modified.as_nanos());
        Some(Self { file, stamp })
    }
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let executable = 0o111;
    file.metadata()
        .is_ok_and(|found| found.is_file() && found.permissions().mode() & executable != 0)
}
