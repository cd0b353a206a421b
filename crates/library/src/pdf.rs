//! The text of a PDF: page by page in reading order, with its paragraphs put together again.
//!
//! A small reader of our own: no other could be kept within a memory and a time (`CONTRIBUTING.md`).
//! It reads what text needs, pays for every step out of one budget, and at worst leaves the file out. It does not open
//! encrypted files, read pictures, turn text that runs from right to left, or guess at codes that no map explains.

mod content;
mod canvas;
mod pieces;
mod lines;
mod prose;
mod setting;
mod pages;
mod file;
mod object;
mod reader;
mod filter;
mod font;
mod cmap;
mod encoding;
mod matrix;
mod budget;

use self::budget::Budget;
use self::content::Reading;
use self::encoding::Encoding;
use self::file::File;
use self::lines::Line;
use self::object::Object;
use super::document::Document;

/// Why a PDF is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// It is not a PDF, or hardly one.
    Damaged,
    /// It is encrypted.
    Encrypted,
    /// It has no text, only pictures of it, or text that cannot be told.
    NoText,
    /// Reading it would take more memory or time than any honest file needs.
    TooMuch,
    /// Nobody waits for it any more.
    Stopped,
}

/// Takes a PDF apart; `go_on` is asked now and then.
pub(super) fn parse(bytes: &[u8], go_on: &dyn Fn() -> bool) -> Result<Document, Trouble> {
    read(bytes, &Budget::new(go_on))
}

fn read(bytes: &[u8], budget: &Budget<'_>) -> Result<Document, Trouble> {
    let file = File::open(bytes, budget)?;
    if *file.trailer.get("Encrypt") != Object::Null {
        return Err(Trouble::Encrypted);
    }
    let pages = pages::pages(&file)?;
    if pages.is_empty() {
        return Err(Trouble::Damaged);
    }
    let mut reading = Reading::new(&file);
    let mut lines: Vec<Line> = Vec::new();
    for (number, page) in (1..).zip(&pages) {
        lines.extend(lines::lines(number, reading.page(*page)?));
    }
    let document = prose::document(lines, pages.len(), title(&file)?);
    if document.passages.is_empty() { Err(Trouble::NoText) } else { Ok(document) }
}

/// What the file calls itself, if that is a title and not the name of another file.
fn title(file: &File<'_>) -> Result<Option<String>, Trouble> {
    let about = file.get(&file.trailer, "Info")?;
    let Some(about) = about.dict() else { return Ok(None) };
    let title = match &*file.get(about, "Title")? {
        Object::Text(bytes) => super::clean::line(&text_of(bytes)),
        _ => return Ok(None),
    };
    let is_file = title.starts_with("Microsoft ") || title.contains(['/', '\\']);
    let ending = title.rsplit_once('.').is_some_and(|(_, ending)| ending.len() <= 4);
    let is_title = title.contains(' ') && !is_file && !ending && title.chars().count() <= 200;
    Ok(is_title.then_some(title))
}

/// A text outside the pages: UTF-16 or UTF-8 if it says so, or else single bytes.
fn text_of(bytes: &[u8]) -> String {
    match bytes {
        [0xfe, 0xff, rest @ ..] => {
            let units = rest.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
            String::from_utf16_lossy(&units.collect::<Vec<_>>())
        }
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => bytes.iter().filter_map(|byte| Encoding::Windows.sign(*byte)).collect(),
    }
}

#[cfg(test)]
mod tests;
