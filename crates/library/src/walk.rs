//! Lists the files of a library as git sees the folders, without hidden files and without following links. The
//! target of a link is read under its own name if it is in the library; other links are left out and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;

use super::clean;
use super::open::{open_file, open_folder};
use super::reporter::{Reporter, ReporterGone};
use super::skip::{LeftOut, Skip};

/// Longer files are left out: they are data, not text for readers.
const MAX_TEXT_BYTES: u64 = 8 * 1024 * 1024;
/// A readable document can be large because of its pictures.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;

#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// The prefix of every path in this folder if there are several folders.
    pub(super) prefix: String,
}

impl Folder {
    /// Names folders so that reports can distinguish them; a single folder gets no name.
    pub(super) fn with_names(paths: Vec<PathBuf>) -> Vec<Self> {
        if let [_] = paths.as_slice() {
            return paths.into_iter().map(|path| Self { path, prefix: String::new() }).collect();
        }
        let mut taken: BTreeMap<String, u32> = BTreeMap::new();
        let name = |path: PathBuf| {
            let last =
                path.file_name().map_or_else(|| "root".into(), |name| name.to_string_lossy());
            let last = clean::line(&last);
            let times = taken.entry(last.clone()).and_modify(|times| *times += 1).or_insert(1);
            let prefix = if *times == 1 { format!("{last}/") } else { format!("{last}-{times}/") };
            Self { path, prefix }
        };
        paths.into_iter().map(name).collect()
    }
}

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileFormat {
    Markdown,
    Plain,
    ReStructuredText,
    AsciiDoc,
    Html,
    Pdf,
    /// The value is pandoc's name of the format.
    Office(&'static str),
}

impl FileFormat {
    /// The maximum size of a file.
    pub(super) fn largest(self) -> u64 {
        match self {
            Self::Pdf | Self::Office(_) => MAX_DOCUMENT_BYTES,
            _ => MAX_TEXT_BYTES,
        }
    }
}

/// A file that can be read.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    path: PathBuf,
    /// The index of its folder in [`WalkResult::folders`].
    folder: usize,
    relative: PathBuf,
    /// The name in reports: relative, with `/`, prefixed with the folder's name if there are several folders.
    pub(super) name: String,
    pub(super) format: FileFormat,
    pub(super) size: i64,
    pub(super) modified: i64,
}

impl FoundFile {
    /// Returns true if an opened file is the one that the walk found.
    pub(super) fn is_unchanged(&self, open: &Metadata) -> bool {
        (self.size, self.modified) == (size(open), modified(open))
    }
}

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct WalkResult {
    /// The descriptors of the folders that exist.
    folders: Vec<OwnedFd>,
    /// Sorted by name.
    pub(super) files: Vec<FoundFile>,
    pub(super) left_out: LeftOut,
    /// Folders that existed when the library was opened and are now missing.
    pub(super) gone: Vec<PathBuf>,
}

impl WalkResult {
    /// Opens a file for reading. Fails if it is no longer a regular file or exceeds its size limit.
    pub(super) fn open(&self, file: &FoundFile) -> io::Result<File> {
        let folder = self.folders.get(file.folder).ok_or(io::ErrorKind::NotFound)?;
        open_file(folder, &file.relative, file.format)
    }
}

pub(super) fn walk(folders: &[Folder], reporter: &Reporter) -> Result<WalkResult, ReporterGone> {
    let mut walked = WalkResult::default();
    let mut links = Vec::new();
    for folder in folders {
        let Ok(open) = open_folder(&folder.path) else {
            walked.gone.push(folder.path.clone());
            continue;
        };
        walked.folders.push(open);
        list(folder, &mut walked, &mut links, reporter)?;
    }
    let read: BTreeSet<_> = walked.files.iter().map(|file| file.path.clone()).collect();
    for (name, path) in links {
        reporter.check()?;
        if let Some(skip) = unread_link(folders, &read, &path) {
            walked.left_out.add(skip, name);
        }
    }
    walked.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(walked)
}

/// Returns the reason the target of a link is not read, or `None` if it is read under its own name.
fn unread_link(folders: &[Folder], read: &BTreeSet<PathBuf>, link: &Path) -> Option<Skip> {
    let Ok(target) = link.canonicalize() else { return Some(Skip::BrokenLink) };
    if !folders.iter().any(|folder| target.starts_with(&folder.path)) {
        return Some(Skip::OutsideLink);
    }
    // The target itself, or the first file in it.
    let is_read = read.range(target.clone()..).next().is_some_and(|file| file.starts_with(&target));
    (!is_read).then_some(Skip::UnreadLink)
}

fn list(
    folder: &Folder,
    walked: &mut WalkResult,
    links: &mut Vec<(String, PathBuf)>,
    reporter: &Reporter,
) -> Result<(), ReporterGone> {
    // Inside a repository its own rules apply, from its root. Elsewhere only the rules in the folder itself
    // apply, so that a stray file further up cannot empty a library.
    let in_git = folder.path.ancestors().any(|path| path.join(".git").exists());
    if !has_readable_rules(&folder.path) {
        walked.left_out.add(Skip::Unreadable, name(folder, &folder.path));
        return Ok(());
    }
    let walker = WalkBuilder::new(&folder.path)
        .follow_links(false)
        .git_global(false)
        .require_git(in_git)
        .parents(in_git && folder.path.ancestors().all(has_readable_rules))
        .filter_entry(|entry| {
            !entry.file_type().is_some_and(|kind| kind.is_dir()) || has_readable_rules(entry.path())
        })
        .build();
    let open = walked.folders.len() - 1;
    for entry in walker {
        reporter.check()?;
        let entry = match entry {
            Ok(entry) => entry,
            Err(error) => {
                walked.left_out.add(Skip::Unreadable, clean::line(&error.to_string()));
                continue;
            }
        };
        let Some(kind) = entry.file_type().filter(|kind| !kind.is_dir()) else { continue };
        let name = name(folder, entry.path());
        if kind.is_symlink() {
            links.push((name, entry.into_path()));
            continue;
        }
        match look(name.clone(), folder, open, entry.path()) {
            Ok(found) => walked.files.push(found),
            Err(skip) => walked.left_out.add(skip, name),
        }
    }
    Ok(())
}

/// Returns the name of a file in reports.
fn name(folder: &Folder, path: &Path) -> String {
    let relative = path.strip_prefix(&folder.path).unwrap_or(path);
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    clean::line(&format!("{}{}", folder.prefix, parts.join("/")))
}

/// Returns true if the walker can read the ignore rules of a directory. It would wait forever for rules in a
/// FIFO.
fn has_readable_rules(directory: &Path) -> bool {
    let rules = [".gitignore", ".ignore", ".git/info/exclude"];
    let is_readable = |rules| match directory.join(rules).metadata() {
        Ok(metadata) => metadata.is_file() || metadata.is_dir(),
        Err(_) => true,
    };
    rules.into_iter().all(is_readable)
}

fn look(name: String, folder: &Folder, open: usize, path: &Path) -> Result<FoundFile, Skip> {
    let format = format_of(path)?;
    let metadata = path.symlink_metadata().map_err(|_| Skip::Unreadable)?;
    if !metadata.is_file() {
        return Err(Skip::OtherKind);
    }
    if metadata.len() > format.largest() {
        let is_text = format.largest() == MAX_TEXT_BYTES;
        return Err(if is_text { Skip::TooLarge } else { Skip::TooLargeDocument });
    }
    Ok(FoundFile {
        path: path.to_owned(),
        folder: open,
        relative: path.strip_prefix(&folder.path).map_err(|_| Skip::Unreadable)?.to_owned(),
        name,
        format,
        size: size(&metadata),
        modified: modified(&metadata),
    })
}

fn size(metadata: &Metadata) -> i64 {
    i64::try_from(metadata.len()).unwrap_or(i64::MAX)
}

/// Returns the nanoseconds from the epoch to the last modification.
fn modified(metadata: &Metadata) -> i64 {
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    modified.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
}

fn format_of(path: &Path) -> Result<FileFormat, Skip> {
    let Some(ending) = path.extension() else {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_uppercase());
        let known = ["README", "CHANGELOG", "CONTRIBUTING", "INSTALL", "NEWS", "NOTES", "TODO"];
        let plain = name.is_some_and(|name| known.contains(&name.as_str()));
        return if plain { Ok(FileFormat::Plain) } else { Err(Skip::OtherKind) };
    };
    match ending.to_string_lossy().to_ascii_lowercase().as_str() {
        "md" | "markdown" | "mdown" | "mkd" | "mdx" => Ok(FileFormat::Markdown),
        "txt" | "text" => Ok(FileFormat::Plain),
        "rst" | "rest" => Ok(FileFormat::ReStructuredText),
        "adoc" | "asciidoc" | "asc" => Ok(FileFormat::AsciiDoc),
        "html" | "htm" | "xhtml" => Ok(FileFormat::Html),
        "pdf" => Ok(FileFormat::Pdf),
        "docx" => Ok(FileFormat::Office("docx")),
        "odt" => Ok(FileFormat::Office("odt")),
        "epub" => Ok(FileFormat::Office("epub")),
        "rtf" => Ok(FileFormat::Office("rtf")),
        _ => Err(Skip::OtherKind),
    }
}
