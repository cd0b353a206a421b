//! The files that a report of this library cites: they are found again by their names in a new walk, so that nothing
//! else can be read, whatever a report names.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::sync::{Arc, Mutex, PoisonError};

use outlast_core::{Output, Source, Timestamp};
use sha2::{Digest as _, Sha256};

use super::Library;
use super::convert::Converters;
use super::document::{Document, Passage, PassageKind};
use super::refresh;
use super::reporter::Reporter;
use super::statements::cells;
use super::walk::{FoundFile, WalkResult, walk};

/// The number of bytes that are read at a time.
const PIECE: usize = 64 * 1024;

/// The files of a library, as a walk found them.
pub struct CitedFiles {
    walked: WalkResult,
    converters: Arc<Converters>,
    /// The files that were read, by name: a report cites a file several times.
    read: Mutex<HashMap<String, Option<Arc<ReadFile>>>>,
}

struct ReadFile {
    digest: String,
    modified: Timestamp,
    document: Document,
}

/// The present state of a cited file.
#[derive(Clone, Debug)]
pub struct CitedFile {
    /// The SHA-256 of the file, in hexadecimal digits.
    pub digest: String,
    /// The time of its last modification.
    pub modified: Timestamp,
    /// The title.
    pub title: Option<String>,
    /// The text: the cited place first, then what follows it, then what precedes it. Empty if the file cannot be
    /// converted.
    pub parts: Vec<CitedPart>,
}

/// A part of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CitedPart {
    /// The headings above it.
    pub headings: Arc<str>,
    /// The text.
    pub text: String,
    /// The role of the part.
    pub kind: CitedPartKind,
}

/// The role of a part in its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CitedPartKind {
    /// Running text, or a listing.
    Paragraph,
    /// An item of a list.
    Item,
    /// The cells of a table's first row.
    Head(Vec<String>),
    /// The cells of another row.
    Row(Vec<String>),
}

impl Library {
    /// Lists the files of the folders. Takes a while for a large library.
    pub fn cited_files(&self) -> CitedFiles {
        let walked = walk(&self.folders, &Reporter::unheard()).unwrap_or_default();
        CitedFiles { walked, converters: Arc::clone(&self.converters), read: Mutex::default() }
    }
}

impl CitedFiles {
    /// Reads the file that a source of a report names, `name:line` or `name:pN`; `None` if the library no longer has a
    /// file of that name that can be read.
    pub fn read(&self, place: &str) -> Option<CitedFile> {
        let (name, at) = split(place)?;
        let mut known = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        let file = match known.get(name) {
            Some(read) => read.clone(),
            None => {
                let read = self.read_file(name).map(Arc::new);
                known.insert(name.to_owned(), read.clone());
                read
            }
        }?;
        Some(CitedFile {
            digest: file.digest.clone(),
            modified: file.modified,
            title: file.document.title.clone(),
            parts: parts(&file.document, at),
        })
    }

    fn read_file(&self, name: &str) -> Option<ReadFile> {
        let file = find(&self.walked, name)?;
        let digest = digest(self.walked.open(file).ok()?).ok()?;
        let converters = self.converters.find_installed();
        let read = refresh::read(&self.walked, file, &converters, &Reporter::unheard());
        Some(ReadFile {
            digest,
            modified: Timestamp::from_millis(file.modified / 1_000_000),
            document: read.unwrap_or_default(),
        })
    }
}

/// Records the digest of each cited file, unless it was replaced since it was read.
pub(super) fn record_digests(output: &mut Output, walked: &WalkResult) {
    let outlast_core::Body::Report { sources, .. } = &mut output.body else { return };
    let mut known: Option<(String, Option<String>)> = None;
    for source in sources {
        let Source { url, digest, .. } = source;
        let Some((name, _)) = split(url) else { continue };
        let recorded = match known.take().filter(|(last, _)| last == name) {
            Some((_, digest)) => digest,
            None => find(walked, name).and_then(|file| digest_if_unchanged(walked, file)),
        };
        digest.clone_from(&recorded);
        known = Some((name.to_owned(), recorded));
    }
}

fn digest_if_unchanged(walked: &WalkResult, file: &FoundFile) -> Option<String> {
    let open = walked.open(file).ok()?;
    file.is_unchanged(&open.metadata().ok()?).then(|| digest(open).ok()).flatten()
}

/// Splits `name:12` or `name:p3` into the name and the line or page.
fn split(place: &str) -> Option<(&str, u32)> {
    let (name, at) = place.rsplit_once(':')?;
    let at = at.strip_prefix('p').unwrap_or(at).parse().ok()?;
    Some((name, at))
}

fn find<'a>(walked: &'a WalkResult, name: &str) -> Option<&'a FoundFile> {
    let at = walked.files.binary_search_by(|file| file.name.as_str().cmp(name)).ok()?;
    walked.files.get(at)
}

fn digest(mut file: File) -> io::Result<String> {
    let mut hasher = Sha256::new();
    let mut piece = vec![0; PIECE];
    loop {
        match file.read(&mut piece)? {
            0 => break,
            length => hasher.update(&piece[..length]),
        }
    }
    Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Returns the parts of a document from a line or page to its end, then those before it.
fn parts(document: &Document, at: u32) -> Vec<CitedPart> {
    let first = document.passages.partition_point(|passage| passage.line < at);
    let (before, after) = document.passages.split_at(first);
    after.iter().chain(before).map(part).collect()
}

fn part(passage: &Passage) -> CitedPart {
    let text = match passage.kind {
        // Without the line that names the language.
        PassageKind::Code => passage.text.split_once('\n').map_or("", |(_, code)| code),
        _ => &passage.text,
    };
    let kind = match passage.kind {
        PassageKind::Paragraph | PassageKind::Line | PassageKind::Code => CitedPartKind::Paragraph,
        PassageKind::Item => CitedPartKind::Item,
        PassageKind::Head => CitedPartKind::Head(cells(&passage.text)),
        PassageKind::Row => CitedPartKind::Row(cells(&passage.text)),
    };
    CitedPart { headings: Arc::clone(&passage.headings), text: text.to_owned(), kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_a_name_and_a_number() {
        let cases = [
            ("a/b.md:12", Some(("a/b.md", 12))),
            ("c:d.pdf:p3", Some(("c:d.pdf", 3))),
            ("a.md", None),
            ("https://a.example/", None),
            ("a.md:x", None),
        ];
        for (place, expected) in cases {
            assert_eq!(split(place), expected, "{place}");
        }
    }
}
