//! The sources of a report that are files of the library (J4): they are compared with the files, without any network.

use std::collections::HashMap;
use std::sync::Arc;

use outlast_core::{CheckRequest, Profile, Timestamp};
use outlast_sources::{Block, CitedSource, LocalReader, LocalSource};

/// The library of this process.
#[derive(Clone)]
pub struct LibraryAccess {
    /// Its profile, which names its folders: the files of another library are not read.
    pub profile: Profile,
    /// Lists the files, and returns a reader of single ones by the place that a report cites. The reader returns `None`
    /// for a file that the library does not have.
    pub open: Arc<dyn Fn() -> OpenLibrary + Send + Sync>,
}

/// Reads a file by the place that a report cites.
pub type OpenLibrary = Box<dyn Fn(&str) -> Option<LibraryFile> + Send + Sync>;

/// The present state of a file.
pub struct LibraryFile {
    /// Its SHA-256, in hexadecimal digits.
    pub digest: String,
    /// The time of its last modification.
    pub modified: Timestamp,
    /// Its title.
    pub title: Option<String>,
    /// Its text, the cited place first.
    pub blocks: Vec<Block>,
}

/// Returns the reader of a report's local files; `None` if the report is not one of a library.
///
/// Only the listed sources of such a report are files. An address that its text contains was written by the authors of
/// the documents, and is never read from the disk.
pub(super) fn file_reader(
    request: &CheckRequest,
    library: Option<&LibraryAccess>,
) -> Option<LocalReader> {
    let profile = request.library.as_ref()?;
    let cited: HashMap<u32, (String, Option<String>)> = request
        .sources
        .iter()
        .filter(|source| !is_address(&source.url))
        .map(|source| (source.number, (source.url.clone(), source.digest.clone())))
        .collect();
    let open = library.filter(|library| library.profile == *profile).map(|it| (it.open)());
    let written_at = request.written_at;
    Some(Arc::new(move |source: &CitedSource| {
        let (place, digest) = cited.get(&source.number).filter(|(url, _)| *url == source.url)?;
        Some(match &open {
            Some(read) => compare(read(place), digest.as_deref(), written_at),
            None => LocalSource::Refused(
                "the folders of this report are not the library of this process; set OUTLAST_LIBRARY, or give --library"
                    .to_owned(),
            ),
        })
    }))
}

fn is_address(place: &str) -> bool {
    place.starts_with("https://") || place.starts_with("http://")
}

fn compare(
    file: Option<LibraryFile>,
    digest: Option<&str>,
    written_at: Option<Timestamp>,
) -> LocalSource {
    let Some(file) = file else {
        return LocalSource::Changed("the library no longer has the file".to_owned());
    };
    let is_changed = match digest {
        Some(digest) => digest != file.digest,
        // The report of an earlier version, or a file that was replaced while it was read.
        None => written_at.is_none_or(|written_at| file.modified > written_at),
    };
    match is_changed {
        true => LocalSource::Changed("the file was changed after it was read".to_owned()),
        false => LocalSource::Unchanged { title: file.title, blocks: file.blocks },
    }
}

#[cfg(test)]
mod tests {
    use outlast_core::CheckedAddress;

    use super::*;

    fn request(library: Option<&str>) -> CheckRequest {
        let source = |number, url: &str| CheckedAddress {
            number,
            url: url.to_owned(),
            digest: Some("aa".to_owned()),
        };
        CheckRequest {
            sources: vec![
                source(1, "a.md:1"),
                source(2, "https://a.example/"),
                source(3, "/etc/passwd:1"),
            ],
            library: library.map(Profile::new),
            ..CheckRequest::default()
        }
    }

    fn library(digest: &'static str) -> LibraryAccess {
        let read = move |place: &str| {
            (place == "a.md:1").then(|| LibraryFile {
                digest: digest.to_owned(),
                modified: Timestamp::from_millis(5),
                title: None,
                blocks: Vec::new(),
            })
        };
        LibraryAccess { profile: Profile::new("library 1"), open: Arc::new(move || Box::new(read)) }
    }

    fn source(number: u32, url: &str) -> CitedSource {
        CitedSource { number, url: url.to_owned() }
    }

    /// J4
    #[test]
    fn j4_only_listed_files_of_the_same_library_are_read() {
        let library = library("aa");
        let read = file_reader(&request(Some("library 1")), Some(&library)).unwrap();
        assert!(matches!(read(&source(1, "a.md:1")), Some(LocalSource::Unchanged { .. })));
        assert_eq!(read(&source(2, "https://a.example/")), None);
        assert_eq!(read(&source(4, "a.md:1")), None, "a number that is not listed");
        assert_eq!(read(&source(1, "b.md:1")), None, "another place than the listed one");
        assert!(matches!(read(&source(3, "/etc/passwd:1")), Some(LocalSource::Changed(_))));
        let other = file_reader(&request(Some("library 2")), Some(&library)).unwrap();
        assert!(matches!(other(&source(1, "a.md:1")), Some(LocalSource::Refused(_))));
        let none = file_reader(&request(Some("library 1")), None).unwrap();
        assert!(matches!(none(&source(1, "a.md:1")), Some(LocalSource::Refused(_))));
        assert!(file_reader(&request(None), Some(&library)).is_none(), "a vendor's report");
    }

    /// J4
    #[test]
    fn j4_a_changed_file_is_recognised_by_its_digest_or_its_time() {
        let read = file_reader(&request(Some("library 1")), Some(&library("bb"))).unwrap();
        assert!(matches!(read(&source(1, "a.md:1")), Some(LocalSource::Changed(_))));
        for (written_at, is_changed) in [(None, true), (Some(4), true), (Some(5), false)] {
            let mut request = request(Some("library 1"));
            request.sources[0].digest = None;
            request.written_at = written_at.map(Timestamp::from_millis);
            let read = file_reader(&request, Some(&library("bb"))).unwrap();
            let found = read(&source(1, "a.md:1"));
            assert_eq!(
                matches!(found, Some(LocalSource::Changed(_))),
                is_changed,
                "{written_at:?}"
            );
        }
    }
}
