//! Brings the index up to date: files that are new or have changed are read, files that vanished are forgotten.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};

use rusqlite::{Transaction, TransactionBehavior, params};

use super::document::{Document, Kind};
use super::index::Index;
use super::reporter::{Reporter, Stopped};
use super::skip::Skip;
use super::walk::{Format, Found, Walked};
use super::{clean, html, markdown, pdf, plain};

/// Read text that may wait for its transaction; beyond that there is more than one.
const BATCH: usize = 64 * 1024 * 1024;
/// Files with a zero byte this early are not text.
const SNIFFED: usize = 8 * 1024;

/// Why a refresh did not come to its end.
pub(super) enum Trouble {
    Stopped,
    Index(rusqlite::Error),
}

impl From<Stopped> for Trouble {
    fn from(_: Stopped) -> Self {
        Self::Stopped
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Index(error)
    }
}

/// Makes the index show what was walked; says how many files were left out while reading, by reason.
pub(super) fn refresh(
    index: &mut Index,
    walked: &Walked,
    reporter: &mut Reporter,
) -> Result<BTreeMap<Skip, usize>, Trouble> {
    let known = known(index)?;
    let is_new = |file: &&Found| {
        known
            .get(&file.name)
            .is_none_or(|known| (known.size, known.modified) != (file.size, file.modified))
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
            format!("Reading {} of {} files", grouped(number), grouped(changed.len()))
        })?;
        let read = read(file, reporter)?;
        waiting += usize::try_from(file.size).unwrap_or(0);
        batch.push((*file, read));
        if waiting > BATCH {
            write(index, &mut batch, &mut vanished, reporter)?;
            waiting = 0;
        }
    }
    if !batch.is_empty() || !vanished.is_empty() {
        write(index, &mut batch, &mut vanished, reporter)?;
    }
    skipped(index)
}

struct Known {
    size: i64,
    modified: i64,
}

fn known(index: &Index) -> rusqlite::Result<HashMap<String, Known>> {
    let mut statement = index.connection.prepare("SELECT name, size, modified FROM files")?;
    let row = |row: &rusqlite::Row<'_>| {
        Ok((row.get(0)?, Known { size: row.get(1)?, modified: row.get(2)? }))
    };
    statement.query_map([], row)?.collect()
}

fn skipped(index: &Index) -> Result<BTreeMap<Skip, usize>, Trouble> {
    let mut counts = BTreeMap::new();
    let mut statement = index
        .connection
        .prepare("SELECT name, skipped FROM files WHERE skipped > 0 ORDER BY name")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let skip = Skip::from_code(row.get(1)?);
        skip.log(&row.get::<_, String>(0)?);
        *counts.entry(skip).or_default() += 1;
    }
    Ok(counts)
}

fn read(file: &Found, reporter: &Reporter) -> Result<Result<Document, Skip>, Stopped> {
    let Ok(bytes) = bytes(file) else { return Ok(Err(Skip::Unreadable)) };
    let parse = || match file.format {
        Format::Pdf => pdf::parse(&bytes, &|| reporter.go_on().is_ok()).map_err(Some),
        Format::Markdown
        | Format::Plain
        | Format::ReStructuredText
        | Format::AsciiDoc
        | Format::Html => text(file.format, &bytes).ok_or(None),
    };
    // No file is known to break a parser; should one do so, the others are still read.
    let Ok(parsed) = catch_unwind(AssertUnwindSafe(parse)) else {
        return Ok(Err(Skip::Unreadable));
    };
    match parsed {
        Ok(document) => Ok(Ok(document)),
        Err(None) => Ok(Err(Skip::Binary)),
        Err(Some(pdf::Trouble::Damaged | pdf::Trouble::TooMuch)) => Ok(Err(Skip::DamagedPdf)),
        Err(Some(pdf::Trouble::Encrypted)) => Ok(Err(Skip::EncryptedPdf)),
        Err(Some(pdf::Trouble::NoText)) => Ok(Err(Skip::PdfWithoutText)),
        Err(Some(pdf::Trouble::Stopped)) => Err(Stopped),
    }
}

fn bytes(file: &Found) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(&file.path)?.take(file.format.largest()).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// What is written as text; none if it is something else.
fn text(format: Format, bytes: &[u8]) -> Option<Document> {
    if bytes.iter().take(SNIFFED).any(|byte| *byte == 0) {
        return None;
    }
    let text = clean::text(&String::from_utf8_lossy(bytes));
    match format {
        Format::Markdown => Some(markdown::parse(&text)),
        Format::Plain => Some(plain::parse_text(&text)),
        Format::ReStructuredText => Some(plain::parse_rst(&text)),
        Format::AsciiDoc => Some(plain::parse_asciidoc(&text)),
        Format::Html => Some(html::parse(&text)),
        Format::Pdf => None,
    }
}

/// One transaction: nobody sees a file half read.
fn write(
    index: &mut Index,
    batch: &mut Vec<(&Found, Result<Document, Skip>)>,
    vanished: &mut Vec<&String>,
    reporter: &Reporter,
) -> Result<(), Trouble> {
    let transaction = index.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for name in vanished.drain(..) {
        reporter.go_on()?;
        forget(&transaction, name)?;
    }
    for (file, read) in batch.drain(..) {
        reporter.go_on()?;
        forget(&transaction, &file.name)?;
        insert(&transaction, file, read)?;
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
    file: &Found,
    read: Result<Document, Skip>,
) -> rusqlite::Result<()> {
    let (document, skipped) = match read {
        Ok(document) => (document, 0),
        Err(skip) => (Document::default(), skip.code()),
    };
    transaction
        .prepare_cached(
            "INSERT INTO files (name, size, modified, title, unit, skipped) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            file.name,
            file.size,
            file.modified,
            document.title,
            document.unit.code(),
            skipped
        ])?;
    let id = transaction.last_insert_rowid();
    let mut passage = transaction.prepare_cached(
        "INSERT INTO passages (file, section, block, line, kind, headings, text) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let mut words = transaction.prepare_cached(
        "INSERT INTO words (rowid, name, title, headings, body) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    let mut head = String::new();
    for found in &document.passages {
        passage.execute(params![
            id,
            found.section,
            found.block,
            found.line,
            found.kind.code(),
            found.headings,
            found.text
        ])?;
        let row = transaction.last_insert_rowid();
        let body = body(&found.text);
        let body = match found.kind {
            // Shown with its rows, and found by them; alone it says nothing.
            Kind::Head => {
                head = body;
                continue;
            }
            Kind::Row => format!("{body} {head}"),
            Kind::Paragraph | Kind::Line | Kind::Item | Kind::Code => {
                head.clear();
                body
            }
        };
        words.execute(params![row, file.name, document.title, found.headings, body])?;
    }
    Ok(())
}

/// The text to be found by: `SubmitUnknown` also by its parts.
fn body(text: &str) -> String {
    let mut body = text.to_owned();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        let humps: Vec<usize> = word
            .char_indices()
            .zip(word.chars().skip(1))
            .filter(|((_, a), b)| a.is_lowercase() && b.is_uppercase())
            .map(|((at, a), _)| at + a.len_utf8())
            .collect();
        let mut from = 0;
        for &to in &humps {
            body.push(' ');
            body.push_str(&word[from..to]);
            from = to;
        }
        if from > 0 {
            body.push(' ');
            body.push_str(&word[from..]);
        }
    }
    body
}

/// 12,345 as people write it.
pub(super) fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn big_numbers_are_grouped() {
        let seen: Vec<_> = [0, 999, 1_000, 1_234_567].into_iter().map(grouped).collect();
        assert_eq!(seen, ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn humps_are_found_by_their_parts() {
        assert_eq!(body("a SubmitUnknown b"), "a SubmitUnknown b Submit Unknown");
    }
}
