//! Converters: programs that turn a PDF (`pdftotext`) or an office file (`pandoc`) into text.
//!
//! A converter is a child in its own process group. It is started through a launcher that limits its memory and
//! processor time. The library limits the elapsed time and the length of the output, and ends the whole group
//! when the converter exits, exceeds a limit, or the run is cancelled.

mod child;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use self::child::{ConversionEnd, run_child};
use super::clean;
use super::reporter::{Reporter, ReporterGone};
use super::skip::Skip;
use super::walk::FileFormat;

/// The converters that a library may run, and their limits.
#[derive(Clone, Debug)]
pub struct Converters {
    /// A program and its first arguments. It receives the bytes of memory and the seconds of processor time
    /// that a converter may use, then the converter and its arguments; it limits itself and executes the
    /// converter. If empty, converters are started directly, without these two limits.
    pub launcher: Vec<OsString>,
    /// The search path for programs that are not named by a path; also the `PATH` of the converters.
    pub search_path: OsString,
    /// The program for PDF files: a name or a path.
    pub pdftotext: PathBuf,
    /// The program for docx, odt, epub and rtf files: a name or a path.
    pub pandoc: PathBuf,
    /// The limits of one conversion.
    pub limits: ConvertLimits,
}

/// The limits of one conversion.
#[derive(Clone, Copy, Debug)]
pub struct ConvertLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Processor time. Unlike elapsed time, it does not depend on how busy the machine is.
    pub processor_time: Duration,
    /// Elapsed time, for a converter that hangs.
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

/// The maximum length of text that is read from one file; the message of [`Skip::TooMuchText`] names it.
const MAX_CONVERTED_BYTES: usize = 16 << 20;
/// The path by which a converter reopens its standard input, to read it in any order.
const STDIN: &str = "/dev/stdin";
/// The exit code of the launcher if it could not execute the converter.
const CANNOT_START: i32 = 126;

/// The converters that are installed, looked up once per question.
pub(super) struct InstalledConverters<'a> {
    converters: &'a Converters,
    pdftotext: Option<ConverterProgram>,
    pandoc: Option<ConverterProgram>,
}

struct ConverterProgram {
    file: PathBuf,
    /// Identifies the version: a program with another path, size or date is another version.
    stamp: String,
}

/// The reasons a file was not converted.
pub(super) enum ConvertError {
    /// A retry would have the same result.
    LeftOut(Skip),
    /// The converter could not be started; a retry may succeed.
    NotStarted,
    /// The file was replaced after the walk; the next walk may find it again.
    NotOpened,
    /// The run was cancelled.
    Stopped,
}

impl From<ReporterGone> for ConvertError {
    fn from(_: ReporterGone) -> Self {
        Self::Stopped
    }
}

impl Converters {
    /// Looks up the programs.
    pub(super) fn find_installed(&self) -> InstalledConverters<'_> {
        let found = |program: &Path| ConverterProgram::new(self.locate(program)?);
        InstalledConverters {
            converters: self,
            pdftotext: found(&self.pdftotext),
            pandoc: found(&self.pandoc),
        }
    }

    /// Returns the paragraphs of a PDF, or `None` if it cannot be converted.
    pub fn pdf_paragraphs(&self, file: File) -> Option<Vec<String>> {
        // No run can be cancelled here: the limits end the conversion.
        let text = self.find_installed().pdf(file, &Reporter::unheard()).ok()?;
        let passages = super::pages::parse(&text).passages;
        Some(passages.into_iter().map(|passage| passage.text).collect())
    }

    /// Returns the path of a program, if it exists and is executable.
    pub fn locate(&self, program: &Path) -> Option<PathBuf> {
        if program.is_absolute() {
            return is_program(program).then(|| program.to_owned());
        }
        // A relative folder would depend on the directory in which the server was started.
        let folders =
            std::env::split_paths(&self.search_path).filter(|folder| folder.is_absolute());
        folders.map(|folder| folder.join(program)).find(|file| is_program(file))
    }
}

impl InstalledConverters<'_> {
    /// Returns the version of the converter for this format, or `None` if the format needs no converter or has
    /// none.
    pub(super) fn stamp(&self, format: FileFormat) -> Option<&str> {
        let program = match format {
            FileFormat::Pdf => self.pdftotext.as_ref(),
            FileFormat::Office(_) => self.pandoc.as_ref(),
            _ => None,
        };
        program.map(|program| program.stamp.as_str())
    }

    /// Returns the text of a PDF, with a form feed at the end of each page.
    pub(super) fn pdf(&self, file: File, reporter: &Reporter) -> Result<String, ConvertError> {
        let missing = ConvertError::LeftOut(Skip::NoPdftotext);
        let program = self.pdftotext.as_ref().ok_or(missing)?;
        // In most files the drawing order is the reading order; the other modes mix the lines of two columns.
        let options = ["-raw", "-htmlmeta", "-enc", "UTF-8", "-eol", "unix"].map(OsStr::new);
        // By path, because pdftotext copies its input into memory if it is given as `-`.
        let arguments = options.into_iter().chain([STDIN, "-"].map(OsStr::new));
        let ended = self.run(program, arguments, file, reporter)?;
        if ended.code == Some(0) {
            return Ok(ended.text);
        }
        let said = ended.stderr.to_lowercase();
        let is_locked = said.contains("password") || said.contains("security handler");
        // pdftotext exits with 3 if the file forbids copying.
        let is_locked = is_locked || ended.code == Some(3);
        let skip = if is_locked { Skip::EncryptedPdf } else { Skip::DamagedPdf };
        Err(ConvertError::LeftOut(skip))
    }

    /// Returns the text of an office file as Markdown; `reader` is pandoc's name of the format.
    pub(super) fn office(
        &self,
        reader: &str,
        file: File,
        reporter: &Reporter,
    ) -> Result<String, ConvertError> {
        let missing = ConvertError::LeftOut(Skip::NoPandoc);
        let program = self.pandoc.as_ref().ok_or(missing)?;
        // In its sandbox, pandoc reads no other file and contacts no server.
        let options = ["--sandbox", "--from", reader, "--to", "gfm-raw_html", "--wrap", "none"];
        let ended = self.run(program, options.iter().map(OsStr::new), file, reporter)?;
        if ended.code == Some(0) {
            return Ok(ended.text);
        }
        Err(ConvertError::LeftOut(Skip::Unreadable))
    }

    /// Runs a converter with the file as its standard input. The name is not passed on, because it may belong
    /// to another file by now.
    fn run<'a>(
        &self,
        program: &ConverterProgram,
        arguments: impl Iterator<Item = &'a OsStr>,
        file: File,
        reporter: &Reporter,
    ) -> Result<ConversionEnd, ConvertError> {
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
        // The rest of our environment may contain keys.
        command.args(arguments).env_clear().env("PATH", search_path).env("LC_ALL", "C.UTF-8");
        let ended = run_child(command.current_dir("/").stdin(file), limits, reporter)?;
        if ended.code != Some(0) {
            let (code, stderr) = (ended.code, clean::line(&ended.stderr));
            tracing::debug!(code, stderr, program = %program.file.display(), "converter failed");
        }
        if !launcher.is_empty() && ended.code == Some(CANNOT_START) {
            return Err(ConvertError::NotStarted);
        }
        Ok(ended)
    }
}

impl ConverterProgram {
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
