//! Updates the index: reads files that are new or have changed, and removes files that no longer exist.

use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::{Transaction, TransactionBehavior, params};

use super::convert::{ConvertError, InstalledConverters};
use super::document::{Document, PassageKind};
use super::index::Index;
use super::reporter::{Reporter, ReporterGone};
use super::skip::{LeftOut, Skip};
use super::walk::{FileFormat, FoundFile, WalkResult};
use super::{clean, html, markdown, pages, plain, words};

/// The length of text that may wait for its transaction; more text is split into several transactions.
const BATCH: usize = 64 * 1024 * 1024;
/// The number of converted files that may wait for their transaction; a cancel or a crash repeats no more
/// conversions than these.
const CONVERTED_BATCH: usize = 16;
/// A file with a zero byte in its first bytes is not text.
const SNIFFED: usize = 8 * 1024;

/// The reasons a refresh did not finish.
pub(super) enum SearchError {
    Stopped,
    Index(rusqlite::Error),
}

impl From<ReporterGone> for SearchError {
    fn from(_: ReporterGone) -> Self {
        Self::Stopped
    }
}

impl From<rusqlite::Error> for SearchError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

/// Updates the index to match the walk; adds the files that were left out while reading.
pub(super) fn refresh(
    index: &mut Index,
    walked: &WalkResult,
    converters: &InstalledConverters<'_>,
    left_out: &mut LeftOut,
    reporter: &mut Reporter,
) -> Result<(), SearchError> {
    let known = indexed_files(index)?;
    let is_new = |file: &&FoundFile| {
        let Some(known) = known.get(&file.name) else { return true };
        // If the converter is no longer installed, the text it produced earlier is kept.
        let converter = converters.stamp(file.format).unwrap_or(&known.converter);
        (known.size, known.modified, known.converter.as_str())
            != (file.size, file.modified, converter)
    };
    let changed: Vec<_> = walked.files.iter().filter(is_new).collect();
    let mut vanished: Vec<_> = {
        let names = walked.files.iter().map(|file| file.name.as_str());
        let names: std::collections::HashSet<_> = names.collect();
        known.keys().filter(|name| !names.contains(name.as_str())).collect()
    };
    let mut batch = Vec::new();
    let mut waiting = 0;
    for (done, file) in changed.iter().enumerate() {
        let number = done + 1;
        reporter.count((26, 70), (number, changed.len()), || {
            format!("Reading {} of {} files", group_digits(number), group_digits(changed.len()))
        })?;
        let converter = converters.stamp(file.format).unwrap_or_default();
        let read = match read(walked, file, converters, reporter) {
            Ok(document) => Ok(document),
            Err(ConvertError::LeftOut(skip)) => Err(skip),
            Err(ConvertError::NotStarted | ConvertError::NotOpened) => {
                left_out.add(Skip::Unreadable, file.name.clone());
                continue;
            }
            Err(ConvertError::Stopped) => return Err(SearchError::Stopped),
        };
        waiting += match converter {
            "" => usize::try_from(file.size).unwrap_or(0),
            _ => BATCH / CONVERTED_BATCH,
        };
        batch.push(ReadFile { file, converter, read });
        if waiting >= BATCH {
            write(index, &mut batch, &mut vanished, reporter)?;
            waiting = 0;
        }
    }
    if !batch.is_empty() || !vanished.is_empty() {
        write(index, &mut batch, &mut vanished, reporter)?;
    }
    left_out_before(index, left_out)
}

/// A file as stored in the index.
struct IndexedFile {
    size: i64,
    modified: i64,
    converter: String,
}

/// The result of reading a file, and the version of the converter that read it.
struct ReadFile<'a> {
    file: &'a FoundFile,
    converter: &'a str,
    read: Result<Document, Skip>,
}

fn indexed_files(index: &Index) -> rusqlite::Result<HashMap<String, IndexedFile>> {
    let sql = "SELECT name, size, modified, converter FROM files";
    let mut statement = index.connection.prepare(sql)?;
    let row = |row: &rusqlite::Row<'_>| {
        let known =
            IndexedFile { size: row.get(1)?, modified: row.get(2)?, converter: row.get(3)? };
        Ok((row.get(0)?, known))
    };
    statement.query_map([], row)?.collect()
}

fn left_out_before(index: &Index, left_out: &mut LeftOut) -> Result<(), SearchError> {
    let mut statement = index
        .connection
        .prepare("SELECT name, skipped FROM files WHERE skipped > 0 ORDER BY name")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        left_out.add(Skip::from_code(row.get(1)?), row.get(0)?);
    }
    Ok(())
}

/// Reads and parses a file.
pub(super) fn read(
    walked: &WalkResult,
    file: &FoundFile,
    converters: &InstalledConverters<'_>,
    reporter: &Reporter,
) -> Result<Document, ConvertError> {
    let open = match walked.open(file) {
        Ok(open) => open,
        // Unless permission is missing, the file was replaced after the walk. The next walk finds the new one.
        Err(error) => {
            tracing::debug!(file = file.name, %error, "failed to open a file of the library");
            return Err(match error.kind() {
                ErrorKind::PermissionDenied => ConvertError::LeftOut(Skip::Unreadable),
                _ => ConvertError::NotOpened,
            });
        }
    };
    let text = match file.format {
        FileFormat::Pdf => converters.pdf(open, reporter)?,
        FileFormat::Office(reader) => converters.office(reader, open, reporter)?,
        _ => text(open, file.format).map_err(ConvertError::LeftOut)?,
    };
    // No file is known to break a parser. If one does, the others are still read.
    match catch_unwind(AssertUnwindSafe(|| parse(file.format, &text))) {
        Ok(document) if document.passages.is_empty() && file.format == FileFormat::Pdf => {
            Err(ConvertError::LeftOut(Skip::PdfWithoutText))
        }
        Ok(document) => Ok(document),
        Err(_) => Err(ConvertError::LeftOut(Skip::Unreadable)),
    }
}

/// Reads a text file.
fn text(file: File, format: FileFormat) -> Result<String, Skip> {
    let mut bytes = Vec::new();
    match file.take(format.largest()).read_to_end(&mut bytes) {
        Ok(_) if bytes.iter().take(SNIFFED).any(|byte| *byte == 0) => Err(Skip::Binary),
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(_) => Err(Skip::Unreadable),
    }
}

fn parse(format: FileFormat, text: &str) -> Document {
    match format {
        FileFormat::Markdown | FileFormat::Office(_) => markdown::parse(&clean::text(text)),
        FileFormat::Plain => plain::parse_text(&clean::text(text)),
        FileFormat::ReStructuredText => plain::parse_rst(&clean::text(text)),
        FileFormat::AsciiDoc => plain::parse_asciidoc(&clean::text(text)),
        FileFormat::Html => html::parse(&clean::text(text)),
        // Cleaned page by page, because cleaning removes the separators.
        FileFormat::Pdf => pages::parse(text),
    }
}

/// Writes in one transaction, so that no other process sees half a file.
fn write(
    index: &mut Index,
    batch: &mut Vec<ReadFile<'_>>,
    vanished: &mut Vec<&String>,
    reporter: &Reporter,
) -> Result<(), SearchError> {
    let transaction = index.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for name in vanished.drain(..) {
        reporter.check()?;
        forget(&transaction, name)?;
    }
    for read in batch.drain(..) {
        reporter.check()?;
        forget(&transaction, &read.file.name)?;
        insert(&transaction, read)?;
    }
    transaction.commit()?;
    Ok(())
}

fn forget(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    let file = "(SELECT id FROM files WHERE name = ?1)";
    for sql in [
        format!("DELETE FROM words WHERE rowid IN (SELECT id FROM passages WHERE file = {file})"),
        format!("DELETE FROM passages WHERE file = {file}"),
        "DELETE FROM files WHERE name = ?1".to_owned(),
    ] {
        transaction.prepare_cached(&sql)?.execute(params![name])?;
    }
    Ok(())
}

fn insert(
    transaction: &Transaction<'_>,
    ReadFile { file, converter, read }: ReadFile<'_>,
) -> rusqlite::Result<()> {
    let (document, skipped) = match read {
        Ok(document) => (document, 0),
        Err(skip) => (Document::default(), skip as u8),
    };
    let stamp = FileStamp { size: file.size, modified: file.modified, converter };
    insert_document(transaction, &file.name, stamp, &document, skipped)
}

/// The facts by which a changed file is recognized.
#[derive(Clone, Copy, Default)]
pub(super) struct FileStamp<'a> {
    size: i64,
    modified: i64,
    converter: &'a str,
}

/// Inserts a document and its searchable words.
pub(super) fn insert_document(
    transaction: &Transaction<'_>,
    file_name: &str,
    FileStamp { size, modified, converter }: FileStamp<'_>,
    document: &Document,
    skipped: u8,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO files (name, size, modified, converter, title, unit, skipped)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            file_name,
            size,
            modified,
            converter,
            document.title,
            document.unit as u8,
            skipped
        ])?;
    let id = transaction.last_insert_rowid();
    let mut passage = transaction.prepare_cached(
        "INSERT INTO passages (file, section, block, line, kind, headings, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut words = transaction.prepare_cached(
        "INSERT INTO words (rowid, name, title, headings, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let name = words::with_parts(file_name);
    let (mut section, mut headings) = (None, String::new());
    let mut head = String::new();
    for found in &document.passages {
        passage.execute(params![
            id,
            found.section,
            found.block,
            found.line,
            found.kind as u8,
            found.headings,
            found.text
        ])?;
        let row = transaction.last_insert_rowid();
        let body = words::with_parts(&found.text);
        let body = match found.kind {
            // A header row is shown and found with its rows; alone it says nothing.
            PassageKind::Head => {
                head = body;
                continue;
            }
            PassageKind::Row => format!("{body} {head}"),
            _ => {
                head.clear();
                body
            }
        };
        if found.is_navigation {
            continue;
        }
        if section.replace(found.section) != Some(found.section) {
            headings = words::with_parts(&found.headings);
        }
        words.execute(params![row, name, document.title, headings, body])?;
    }
    Ok(())
}

/// Formats 12345 as "12,345".
pub(super) fn group_digits(number: usize) -> String {
    let digits = number.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_numbers_are_grouped() {
        let seen: Vec<_> = [0, 999, 1_000, 1_234_567].into_iter().map(group_digits).collect();
        assert_eq!(seen, ["0", "999", "1,000", "1,234,567"]);
    }
}
