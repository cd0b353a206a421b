//! Which files a library has: as git sees the folders, without hidden files and without following links. What a link
//! names is read under its own name if it is in the library; a link to anything else is left out and counted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ignore::WalkBuilder;

use super::clean;
use super::reporter::{Reporter, Stopped};
use super::skip::{LeftOut, Skip};

/// Longer files are left out: they are data, not reading matter.
const MAX_TEXT_BYTES: u64 = 8 * 1024 * 1024;
/// Pictures make a document large that is still reading matter.
const MAX_DOCUMENT_BYTES: u64 = 64 * 1024 * 1024;

/// One folder of the library.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Before every path of this folder, where there are several.
    pub(super) prefix: String,
}

impl Folder {
    /// Gives folders the names that tell them apart: none for a single one.
    pub(super) fn named(paths: Vec<PathBuf>) -> Vec<Self> {
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

/// How a file's text is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Markdown,
    Plain,
    ReStructuredText,
    AsciiDoc,
    Html,
    Pdf,
    /// Named as pandoc names it.
    Office(&'static str),
}

impl Format {
    /// How long a file may be.
    pub(super) fn largest(self) -> u64 {
        match self {
            Self::Pdf | Self::Office(_) => MAX_DOCUMENT_BYTES,
            _ => MAX_TEXT_BYTES,
        }
    }
}

/// One file that can be read.
#[derive(Clone, Debug)]
pub(super) struct FoundFile {
    pub(super) path: PathBuf,
    /// What reports call it: relative, with `/`, with the folder's name before it where there are several.
    pub(super) name: String,
    pub(super) format: Format,
    pub(super) size: i64,
    pub(super) modified: i64,
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// By name.
    pub(super) files: Vec<FoundFile>,
    pub(super) left_out: LeftOut,
    /// Folders that were there when the library was opened.
    pub(super) gone: Vec<PathBuf>,
}

/// Lists every folder.
pub(super) fn walk(folders: &[Folder], reporter: &Reporter) -> Result<Walked, Stopped> {
    let mut walked = Walked::default();
    let mut links = Vec::new();
    for folder in folders {
        if !folder.path.is_dir() {
            walked.gone.push(folder.path.clone());
            continue;
        }
        list(folder, &mut walked, &mut links, reporter)?;
    }
    let read: BTreeSet<_> = walked.files.iter().map(|file| file.path.clone()).collect();
    for (name, path) in links {
        reporter.go_on()?;
        if let Some(skip) = unread_link(folders, &read, &path) {
            walked.left_out.add(skip, name);
        }
    }
    walked.files.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(walked)
}

/// Why what a link names is not read; none if it is read under its own name.
fn unread_link(folders: &[Folder], read: &BTreeSet<PathBuf>, link: &Path) -> Option<Skip> {
    let Ok(target) = link.canonicalize() else { return Some(Skip::BrokenLink) };
    if !folders.iter().any(|folder| target.starts_with(&folder.path)) {
        return Some(Skip::OutsideLink);
    }
    // The file itself, or the first one in the folder.
    let is_read = read.range(target.clone()..).next().is_some_and(|file| file.starts_with(&target));
    (!is_read).then_some(Skip::UnreadLink)
}

fn list(
    folder: &Folder,
    walked: &mut Walked,
    links: &mut Vec<(String, PathBuf)>,
    reporter: &Reporter,
) -> Result<(), Stopped> {
    // Inside a repository its own rules count, from its root; elsewhere only those in the folder itself, so that a
    // stray file further up cannot empty a library.
    let in_git = folder.path.ancestors().any(|path| path.join(".git").exists());
    let walker = WalkBuilder::new(&folder.path)
        .follow_links(false)
        .git_global(false)
        .require_git(in_git)
        .parents(in_git)
        .build();
    for entry in walker {
        reporter.go_on()?;
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
        match look(name.clone(), entry.path()) {
            Ok(found) => walked.files.push(found),
            Err(skip) => walked.left_out.add(skip, name),
        }
    }
    Ok(())
}

/// What reports call a file.
fn name(folder: &Folder, path: &Path) -> String {
    let relative = path.strip_prefix(&folder.path).unwrap_or(path);
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    clean::line(&format!("{}{}", folder.prefix, parts.join("/")))
}

fn look(name: String, path: &Path) -> Result<FoundFile, Skip> {
    let format = format_of(path)?;
    let metadata = path.symlink_metadata().map_err(|_| Skip::Unreadable)?;
    if !metadata.is_file() {
        return Err(Skip::OtherKind);
    }
    if metadata.len() > format.largest() {
        let is_text = format.largest() == MAX_TEXT_BYTES;
        return Err(if is_text { Skip::TooLarge } else { Skip::TooLargeDocument });
    }
    let modified = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(FoundFile {
        path: path.to_owned(),
        name,
        format,
        size: i64::try_from(metadata.len()).unwrap_or(i64::MAX),
        modified: modified.map_or(0, |since| i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)),
    })
}

fn format_of(path: &Path) -> Result<Format, Skip> {
    let Some(ending) = path.extension() else {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_uppercase());
        let known = ["README", "CHANGELOG", "CONTRIBUTING", "INSTALL", "NEWS", "NOTES", "TODO"];
        let plain = name.is_some_and(|name| known.contains(&name.as_str()));
        return if plain { Ok(Format::Plain) } else { Err(Skip::OtherKind) };
    };
    match ending.to_string_lossy().to_ascii_lowercase().as_str() {
        "md" | "markdown" | "mdown" | "mkd" | "mdx" => Ok(Format::Markdown),
        "txt" | "text" => Ok(Format::Plain),
        "rst" | "rest" => Ok(Format::ReStructuredText),
        "adoc" | "asciidoc" | "asc" => Ok(Format::AsciiDoc),
        "html" | "htm" | "xhtml" => Ok(Format::Html),
        "pdf" => Ok(Format::Pdf),
        "docx" => Ok(Format::Office("docx")),
        "odt" => Ok(Format::Office("odt")),
        "epub" => Ok(Format::Office("epub")),
        "rtf" => Ok(Format::Office("rtf")),
        _ => Err(Skip::OtherKind),
    }
}
