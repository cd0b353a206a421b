//! Pages as text that a journal keeps: one block on each line, readable by people and read back as the same blocks. A
//! text that was cut loses only its last line.

use std::sync::Arc;

use super::page::{Block, BlockKind, Obstacle, Page};
use super::text::{is_cjk, normalize, squeeze};
use super::tokens::words_of;

const TITLE: &str = "title: ";
const DESCRIPTION: &str = "description: ";
const OBSTACLE: &str = "obstacle: ";
const HEADINGS: &str = "# ";
const ITEM: &str = "- ";
const ROW: &str = "| ";
const HEAD: &str = "|= ";
const TEXT: &str = "\\";
const CELLS: &str = " | ";

impl Obstacle {
    const ALL: [(Self, &'static str); 5] = [
        (Self::Paywall, "paywall"),
        (Self::CookieWall, "cookie wall"),
        (Self::ScriptShell, "script shell"),
        (Self::SoftNotFound, "not found"),
        (Self::Captcha, "captcha"),
    ];

    /// Returns the word for it in a stored page.
    pub fn as_str(self) -> &'static str {
        Self::ALL.iter().find(|(known, _)| *known == self).map_or("", |(_, word)| word)
    }
}

impl Page {
    /// Returns the page as a text that [`Page::from_stored`] reads.
    pub fn to_stored(&self) -> String {
        let mut text = String::new();
        let mut line = |start: &str, rest: &str| {
            text.push_str(start);
            text.push_str(&squeeze(rest));
            text.push('\n');
        };
        if let Some(title) = &self.title {
            line(TITLE, title);
        }
        if let Some(description) = &self.description {
            line(DESCRIPTION, description);
        }
        if let Some(obstacle) = self.obstacle {
            line(OBSTACLE, obstacle.as_str());
        }
        let (mut headings, mut header) = ("", None);
        for block in &self.blocks {
            if *block.headings != *headings {
                headings = &block.headings;
                line(HEADINGS, headings);
            }
            if block.header != header {
                header.clone_from(&block.header);
                line(HEAD, &header.as_deref().unwrap_or_default().join(CELLS));
            }
            match block.kind {
                BlockKind::Item => line(ITEM, &block.text),
                BlockKind::Row => line(ROW, &block.text),
                BlockKind::Paragraph => {
                    let starts =
                        [TITLE, DESCRIPTION, OBSTACLE, HEADINGS, ITEM, ROW, HEAD, TEXT, "#", "|="];
                    let is_plain = !starts.iter().any(|start| block.text.starts_with(start));
                    line(if is_plain { "" } else { TEXT }, &block.text);
                }
            }
        }
        text
    }

    /// Reads the text of a stored page.
    pub fn from_stored(text: &str, truncated: bool) -> Self {
        let mut page = Self { truncated, ..Self::default() };
        let mut headings: Arc<str> = "".into();
        let mut header: Option<Arc<[String]>> = None;
        for line in text.lines() {
            let is_in_head = page.blocks.is_empty() && headings.is_empty();
            if let Some(title) = line.strip_prefix(TITLE).filter(|_| is_in_head) {
                page.title = Some(title.to_owned());
            } else if let Some(text) = line.strip_prefix(DESCRIPTION).filter(|_| is_in_head) {
                page.description = Some(text.to_owned());
            } else if let Some(word) = line.strip_prefix(OBSTACLE).filter(|_| is_in_head) {
                let known = Obstacle::ALL.iter().find(|(_, known)| *known == word);
                page.obstacle = known.map(|(obstacle, _)| *obstacle);
            } else if let Some(path) = line.strip_prefix('#') {
                headings = path.trim().into();
            } else if let Some(cells) = line.strip_prefix(HEAD.trim_end()) {
                let cells: Vec<String> =
                    cells.trim_start().split(CELLS).map(|cell| cell.trim().to_owned()).collect();
                let is_empty = cells.iter().all(String::is_empty);
                header = (!is_empty).then(|| cells.into());
            } else {
                let (kind, text) = if let Some(item) = line.strip_prefix(ITEM) {
                    (BlockKind::Item, item)
                } else if let Some(row) = line.strip_prefix(ROW) {
                    (BlockKind::Row, row)
                } else {
                    (BlockKind::Paragraph, line.strip_prefix(TEXT).unwrap_or(line))
                };
                if !text.trim().is_empty() {
                    let (text, headings) = (text.to_owned(), Arc::clone(&headings));
                    page.blocks.push(Block { headings, text, kind, header: header.clone() });
                }
            }
        }
        page.finish();
        page
    }
}

/// The words of a page, in which quotations are looked for.
pub struct Quotable {
    words: String,
}

impl Quotable {
    /// Reads the words of a page.
    pub fn new(page: &Page) -> Self {
        let blocks = page.blocks.iter().map(|block| words_of(&block.text));
        Self { words: format!(" {} ", blocks.collect::<Vec<_>>().join(" ")) }
    }

    /// Returns true if the page has these words one after the other. Case, punctuation and spaces do not count; a
    /// quotation of fewer than four words is none.
    pub fn contains(&self, quotation: &str) -> bool {
        let quotation = words_of(&normalize(quotation));
        if quotation.chars().filter(|sign| is_cjk(*sign)).count() >= 8 {
            return self.words.replace(' ', "").contains(&quotation.replace(' ', ""));
        }
        quotation.split(' ').count() >= 4 && self.words.contains(&format!(" {quotation} "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K2: a page that was read back has the same facts as the page that was fetched.
    #[test]
    fn k2_a_stored_page_is_read_back_as_it_was() {
        let text = "# Harbour\n\nIt opened in 1909.\n\n- # 1 of two\n- one | two | three\n\n\
            # Traffic\n\ntitle: not a title\n\n| Year | Ships |\n| 2023 | 1,204 |\n\n\\ a backslash";
        let page = Page::from_text(text);
        let read = Page::from_stored(&page.to_stored(), false);
        assert_eq!(read.blocks, page.blocks);
        assert_eq!(read.title, page.title);
        let header: Arc<[String]> = ["Year".to_owned(), "Ships".to_owned()].into();
        let row = |text: &str, header: Option<&Arc<[String]>>| Block {
            headings: "A > B".into(),
            text: text.to_owned(),
            kind: BlockKind::Row,
            header: header.cloned(),
        };
        let page = Page {
            title: Some("T".to_owned()),
            description: Some("D".to_owned()),
            obstacle: Some(Obstacle::Paywall),
            blocks: vec![row("2023 | 5", Some(&header)), row("x | y", None)],
            truncated: true,
            language: None,
        };
        let read = Page::from_stored(&page.to_stored(), true);
        assert_eq!((read.blocks.len(), read.obstacle), (2, page.obstacle));
        assert_eq!(read.blocks, page.blocks);
        assert_eq!((read.title, read.description), (page.title, page.description));
    }

    /// K7: a quotation is exact in its words, and not in its typography.
    #[test]
    fn k7_a_quotation_is_found_by_its_words() {
        let page = Page::from_text(
            "The harbour\u{2019}s first crane\nlifted 12.5 t, in 1909.\n\nIt was red.",
        );
        let page = Quotable::new(&page);
        for quoted in [
            "the harbour's first crane",
            "\u{201c}first  crane lifted 12.5 t, in\u{201d}",
            "in 1909. It was red.",
        ] {
            assert!(page.contains(quoted), "{quoted}");
        }
        for invented in
            ["first crane lifted 12.6 t", "It was red", "", "rbour's first crane lifted"]
        {
            assert!(!page.contains(invented), "{invented}");
        }
    }
}
