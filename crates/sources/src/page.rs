//! The text of a page, and the signs that its text is not what a reader would see.

mod html;

use std::sync::Arc;

use super::fetch::FetchedPage;
use super::language::Language;
use super::text::{self, count_words, normalize, squeeze};

/// The text of a page that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The title.
    pub title: Option<String>,
    /// The summary that the page gives of itself.
    pub description: Option<String>,
    /// The parts in reading order, the main content first.
    pub blocks: Vec<Block>,
    /// True if the page goes on after this text.
    pub truncated: bool,
    /// The reason this text may not be what a reader sees.
    pub obstacle: Option<Obstacle>,
    pub(crate) language: Option<Language>,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The headings above it.
    pub headings: Arc<str>,
    /// The text on one line; the cells of a table's row are separated by ` | `.
    pub text: String,
    /// The role of the part.
    pub kind: BlockKind,
    /// The head of the table, cell by cell, for a row.
    pub header: Option<Arc<[String]>>,
}

/// The role of a part in its page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Running text.
    Paragraph,
    /// An item of a list.
    Item,
    /// A row of a table.
    Row,
}

/// The reason the text of a page may not be what a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// Only subscribers can read the whole page.
    Paywall,
    /// The page waits for consent to cookies.
    CookieWall,
    /// Scripts produce the text.
    ScriptShell,
    /// The page states that it does not exist.
    SoftNotFound,
    /// The server wants proof of a human reader.
    Captcha,
}

/// The reasons a body cannot be read as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unreadable {
    /// The media type is not text.
    MediaType,
    /// The PDF cannot be converted, or no converter is installed.
    Pdf,
    /// The character encoding is unknown.
    Encoding,
    /// There is no text.
    Empty,
}

/// Converts a PDF into paragraphs.
pub type PdfReader = Arc<dyn Fn(&[u8]) -> Option<Vec<String>> + Send + Sync>;

/// Longer texts are cut; in bytes.
const MAX_TEXT: usize = 256 << 10;
/// Pages with more parts are cut: each part costs more than its few words.
const MAX_BLOCKS: usize = 20_000;
/// Pages with fewer words are judged by their phrases.
const SHORT_PAGE: usize = 250;

impl Page {
    /// Reads the body of a page.
    pub fn read(fetched: &FetchedPage, pdf: Option<&PdfReader>) -> Result<Self, Unreadable> {
        let media_type = fetched.content_type.split(';').next().unwrap_or("").trim();
        let media_type = media_type.to_ascii_lowercase();
        let is_pdf = fetched.body.starts_with(b"%PDF-");
        let mut page = match media_type.as_str() {
            _ if is_pdf => {
                let paragraphs = pdf.and_then(|read| read(&fetched.body)).ok_or(Unreadable::Pdf)?;
                Self::from_paragraphs(paragraphs.iter().map(String::as_str))
            }
            "application/pdf" => return Err(Unreadable::Pdf),
            "text/html" | "application/xhtml+xml" => html::read(&decode(fetched)?),
            "" | "application/octet-stream" if is_binary(&fetched.body) => {
                return Err(Unreadable::MediaType);
            }
            "" if fetched.body.trim_ascii_start().starts_with(b"<") => {
                html::read(&decode(fetched)?)
            }
            "" | "application/octet-stream" | "application/json" | "application/xml" => {
                Self::from_text(&decode(fetched)?)
            }
            _ if media_type.starts_with("text/") || media_type.ends_with("+json") => {
                Self::from_text(&decode(fetched)?)
            }
            _ => return Err(Unreadable::MediaType),
        };
        page.truncated |= fetched.truncated;
        if fetched.is_challenge {
            page.obstacle = Some(Obstacle::Captcha);
        }
        page.finish();
        match page.blocks.is_empty() && page.obstacle.is_none() {
            true => Err(Unreadable::Empty),
            false => Ok(page),
        }
    }

    /// Reads plain text or Markdown: blank lines separate paragraphs.
    pub fn from_text(text: &str) -> Self {
        // Markup and spaces take some of it, so this is more than what is compared.
        let fits = text.floor_char_boundary(4 * MAX_TEXT);
        let mut page = Self { truncated: fits < text.len(), ..Self::default() };
        let text = &text[..fits];
        let mut headings: Arc<str> = "".into();
        let mut path = Vec::new();
        for paragraph in normalize(text).split("\n\n") {
            let lines: Vec<_> =
                paragraph.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
            let mut running = String::new();
            let mut header: Option<Arc<[String]>> = None;
            for line in lines {
                let bare = line.trim_start_matches(['-', '*', '+', '•']);
                let is_item = bare.len() < line.len() && bare.starts_with(' ');
                let is_row = line.contains('|') && line.matches('|').count() > 1;
                let is_rule = line.len() > 2
                    && (line.bytes().all(|b| b == b'=') || line.bytes().all(|b| b == b'-'));
                let hashes = line.len() - line.trim_start_matches('#').len();
                let heading = match (hashes, is_rule && !running.is_empty()) {
                    (1..=6, _) => Some((hashes, line.trim_matches(['#', ' ']).to_owned())),
                    (_, true) => {
                        let level = if line.starts_with('=') { 1 } else { 2 };
                        Some((level, squeeze(&std::mem::take(&mut running))))
                    }
                    _ => None,
                };
                if let Some((level, heading)) = heading {
                    page.push(&headings, std::mem::take(&mut running), BlockKind::Paragraph);
                    page.title.get_or_insert_with(|| text::shorten(&heading, 200));
                    path.retain(|(above, _): &(usize, String)| *above < level);
                    path.push((level, text::shorten(&heading, 200)));
                    let texts: Vec<_> = path.iter().map(|(_, text)| text.as_str()).collect();
                    headings = texts.join(" > ").into();
                    continue;
                }
                if is_item || is_row {
                    page.push(&headings, std::mem::take(&mut running), BlockKind::Paragraph);
                }
                if is_row {
                    let cells = line.strip_prefix('|').unwrap_or(line);
                    let cells = cells.strip_suffix('|').unwrap_or(cells);
                    let cells: Vec<_> = cells.split('|').map(squeeze).collect();
                    // The row above a rule is the head of the table.
                    if header.is_none() && cells.iter().all(|cell| is_table_rule(cell)) {
                        header = page.pop_row();
                        continue;
                    }
                    page.push(&headings, cells.join(" | "), BlockKind::Row);
                    if let Some(row) = page.blocks.last_mut() {
                        row.header.clone_from(&header);
                    }
                } else if is_item {
                    running = bare.trim().to_owned();
                } else {
                    running.push(' ');
                    running.push_str(line);
                }
            }
            page.push(&headings, running, BlockKind::Paragraph);
        }
        if page.title.is_none() {
            let first = page.blocks.first().map(|block| block.text.clone());
            page.title = first.filter(|title| title.len() < 100);
        }
        page
    }

    fn from_paragraphs<'a>(paragraphs: impl Iterator<Item = &'a str>) -> Self {
        let mut page = Self::default();
        for paragraph in paragraphs {
            page.push(&"".into(), normalize(paragraph), BlockKind::Paragraph);
        }
        page
    }

    /// Creates a page from the text of a local file.
    pub(crate) fn from_blocks(title: Option<String>, blocks: Vec<Block>) -> Self {
        let normal = |block: Block| Block { text: squeeze(&normalize(&block.text)), ..block };
        let blocks = blocks.into_iter().map(normal).collect();
        let mut page = Self { title, blocks, ..Self::default() };
        page.cut();
        page.find_language();
        page
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.blocks.iter().map(|block| count_words(&block.text)).sum()
    }

    pub(crate) fn push(&mut self, headings: &Arc<str>, text: String, kind: BlockKind) {
        let text = squeeze(&text);
        if !text.is_empty() {
            self.blocks.push(Block { headings: Arc::clone(headings), text, kind, header: None });
        }
    }

    /// Removes the last block if it is a row, and returns its cells.
    fn pop_row(&mut self) -> Option<Arc<[String]>> {
        let row = self.blocks.pop_if(|block| block.kind == BlockKind::Row)?;
        Some(row.text.split('|').map(|cell| cell.trim().to_owned()).collect())
    }

    /// Cuts the text at its limit and looks for obstacles.
    pub(crate) fn finish(&mut self) {
        self.cut();
        self.find_language();
        if self.obstacle.is_none() {
            self.obstacle = self.find_obstacle();
        }
    }

    fn cut(&mut self) {
        let mut room = MAX_TEXT;
        for (at, block) in self.blocks.iter_mut().enumerate() {
            if block.text.len() > room {
                block.text.truncate(block.text.floor_char_boundary(room));
                self.blocks.truncate(at + 1);
                self.truncated = true;
                break;
            }
            room -= block.text.len();
        }
        self.truncated |= self.blocks.len() > MAX_BLOCKS;
        self.blocks.truncate(MAX_BLOCKS);
    }

    fn find_language(&mut self) {
        if self.language.is_none() {
            let sample: Vec<_> =
                self.blocks.iter().take(60).map(|block| block.text.as_str()).collect();
            self.language = Language::of(&sample.join(" "));
        }
    }

    fn find_obstacle(&self) -> Option<Obstacle> {
        const NOT_FOUND: &[&str] = &[
            "404",
            "page not found",
            "not found",
            "page doesn't exist",
            "page does not exist",
            "no longer available",
            "seite nicht gefunden",
            "page introuvable",
            "página no encontrada",
        ];
        const CAPTCHA: &[&str] = &[
            "verify you are human",
            "verify that you are",
            "are you a robot",
            "checking your browser",
            "unusual traffic",
            "enable javascript and cookies to continue",
            "captcha",
            "just a moment",
        ];
        const PAYWALL: &[&str] = &[
            "subscribe to continue",
            "subscribe to read",
            "to continue reading",
            "to keep reading",
            "already a subscriber",
            "subscribers only",
            "for subscribers",
            "create a free account to",
            "sign in to read",
            "log in to read",
            "register to read",
            "purchase access",
            "institutional access",
            "weiterlesen mit",
        ];
        const COOKIES: &[&str] = &[
            "before you continue",
            "accept all cookies",
            "accept cookies",
            "cookie consent",
            "consent to the use of cookies",
            "manage cookies",
            "alle akzeptieren",
            "cookies zustimmen",
            "accepter les cookies",
        ];
        let words = self.words();
        let title = self.title.as_deref().unwrap_or("").to_lowercase();
        let first =
            self.blocks.iter().take(3).map(|block| format!("{} {}", block.headings, block.text));
        let first = first.collect::<Vec<_>>().join(" ").to_lowercase();
        let has = |text: &str, phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
        let first_start = text::shorten(&first, 80);
        if words < SHORT_PAGE && (has(&title, NOT_FOUND) || has(&first_start, NOT_FOUND)) {
            return Some(Obstacle::SoftNotFound);
        }
        let all = || {
            let texts: Vec<_> = self.blocks.iter().map(|block| block.text.as_str()).collect();
            texts.join(" ").to_lowercase()
        };
        if words < SHORT_PAGE && (has(&title, CAPTCHA) || has(&all(), CAPTCHA)) {
            return Some(Obstacle::Captcha);
        }
        if words < 2 * SHORT_PAGE && has(&all(), PAYWALL) {
            return Some(Obstacle::Paywall);
        }
        (words < SHORT_PAGE && has(&all(), COOKIES)).then_some(Obstacle::CookieWall)
    }
}

/// Decodes the body, without the characters that no text has. The tokenizer of HTML would keep an error for each.
fn decode(fetched: &FetchedPage) -> Result<String, Unreadable> {
    let mut text = decode_bytes(fetched)?;
    let is_odd = |sign: char| {
        (sign.is_control() && !sign.is_ascii_whitespace())
            || matches!(sign, '\u{fdd0}'..='\u{fdef}')
            || u32::from(sign) & 0xfffe == 0xfffe
    };
    text.retain(|sign| !is_odd(sign));
    Ok(text)
}

/// Decodes the body by its byte order mark, the header, or the page's own statement. Only the encodings that are still
/// in use on the web of Europe and America are known; a guess would make correct claims look unsupported.
fn decode_bytes(fetched: &FetchedPage) -> Result<String, Unreadable> {
    let body = fetched.body.as_slice();
    if let Some(body) = body.strip_prefix(b"\xef\xbb\xbf") {
        return Ok(String::from_utf8_lossy(body).into_owned());
    }
    for (mark, read) in [
        (b"\xff\xfe", u16::from_le_bytes as fn([u8; 2]) -> u16),
        (b"\xfe\xff", u16::from_be_bytes as fn([u8; 2]) -> u16),
    ] {
        if let Some(body) = body.strip_prefix(mark.as_slice()) {
            let units = body.chunks_exact(2).map(|pair| read([pair[0], pair[1]]));
            return Ok(char::decode_utf16(units).map(|sign| sign.unwrap_or('\u{fffd}')).collect());
        }
    }
    let label = |text: &str| {
        let text = text.to_ascii_lowercase();
        let at = text.find("charset=")? + "charset=".len();
        let label = text[at..].trim_start_matches(['"', '\'']);
        let end = label.find(|c: char| !c.is_ascii_alphanumeric() && !"-_:.".contains(c));
        Some(label[..end.unwrap_or(label.len())].to_owned())
    };
    let head = String::from_utf8_lossy(&body[..body.len().min(2_048)]);
    let label = label(&fetched.content_type).or_else(|| label(&head)).unwrap_or_default();
    match label.as_str() {
        "" | "utf-8" | "utf8" | "us-ascii" | "ascii" => {
            Ok(String::from_utf8_lossy(body).into_owned())
        }
        "iso-8859-1" | "latin1" | "latin-1" | "windows-1252" | "cp1252" | "iso-8859-15" => {
            Ok(body.iter().map(|byte| windows_1252(*byte)).collect())
        }
        _ => Err(Unreadable::Encoding),
    }
}

fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', ' ', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', ' ', 'Ž', ' ', ' ', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', ' ', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9f => HIGH[usize::from(byte - 0x80)],
        _ => char::from(byte),
    }
}

/// Returns true for a cell of the line between the head of a Markdown table and its rows.
fn is_table_rule(cell: &str) -> bool {
    cell.contains('-') && cell.bytes().all(|byte| matches!(byte, b'-' | b':'))
}

fn is_binary(body: &[u8]) -> bool {
    body.iter().take(1_024).any(|byte| *byte == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fetched(content_type: &str, body: &[u8]) -> FetchedPage {
        FetchedPage {
            url: url::Url::parse("https://example.org/a").unwrap(),
            status: 200,
            content_type: content_type.to_owned(),
            is_challenge: false,
            body: body.to_vec(),
            truncated: false,
        }
    }

    fn obstacle(page: &str) -> Option<Obstacle> {
        Page::read(&fetched("text/html", page.as_bytes()), None).unwrap().obstacle
    }

    /// J2
    #[test]
    fn pages_that_hide_their_text_are_recognised() {
        let long = "<p>Some words of a long page that is really there.</p>".repeat(80);
        assert_eq!(obstacle(&format!("<title>404 methods</title>{long}")), None);
        assert_eq!(
            obstacle("<title>Page not found</title><p>Sorry."),
            Some(Obstacle::SoftNotFound)
        );
        assert_eq!(obstacle("<p>Please verify you are human.</p>"), Some(Obstacle::Captcha));
        assert_eq!(
            obstacle("<p>The first lines. Subscribe to continue reading.</p>"),
            Some(Obstacle::Paywall)
        );
        assert_eq!(obstacle("<p>We value you. Accept all cookies</p>"), Some(Obstacle::CookieWall));
        assert_eq!(
            obstacle("<div id=root></div><script src=a.js></script>"),
            Some(Obstacle::ScriptShell)
        );
        let ld = r#"<script type="application/ld+json">{"isAccessibleForFree": false}</script>"#;
        assert_eq!(obstacle(&format!("{ld}{long}")), Some(Obstacle::Paywall));
    }

    /// J7
    #[test]
    fn bytes_that_are_not_text_break_nothing() {
        assert_eq!(Page::read(&fetched("", b"\0\0\0"), None), Err(Unreadable::MediaType));
        assert_eq!(Page::read(&fetched("image/png", b"x"), None), Err(Unreadable::MediaType));
        assert_eq!(Page::read(&fetched("text/html", b""), None), Err(Unreadable::Empty));
        assert_eq!(Page::read(&fetched("text/html", b"%PDF-1.7"), None), Err(Unreadable::Pdf));
        let odd = Page::read(&fetched("text/html", b"<p>a\xff\xfe b\0c &#0; d</p>"), None).unwrap();
        assert!(!odd.blocks[0].text.contains('\0'), "{odd:?}");
        let latin =
            Page::read(&fetched("text/html; charset=iso-8859-1", b"<p>caf\xe9</p>"), None).unwrap();
        assert_eq!(latin.blocks[0].text, "café");
    }

    /// J7
    #[test]
    fn a_long_text_is_cut_and_marked() {
        let text = "words and words. ".repeat(40_000);
        let page = Page::read(&fetched("text/plain", text.as_bytes()), None).unwrap();
        assert!(page.truncated && page.blocks[0].text.len() <= MAX_TEXT);
    }

    /// J7
    #[test]
    fn a_page_of_many_small_parts_is_cut_and_marked() {
        let rows = "<tr><td>1<td>2".repeat(300_000);
        let page = format!("<table>{rows}</table>");
        let page = Page::read(&fetched("text/html", page.as_bytes()), None).unwrap();
        assert!(page.truncated);
        assert_eq!(page.blocks.len(), MAX_BLOCKS);
    }
}
