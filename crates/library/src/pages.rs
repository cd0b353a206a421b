//! The text of a PDF in the format of `pdftotext -htmlmeta`: an HTML head with the title, then lines in drawing
//! order between `<pre>` and `</pre>`, which are plain text in spite of the tags, with a form feed at the end
//! of each page. Lines become paragraphs, headings and items; words that were hyphenated at a line's end are
//! joined; headers and footers that repeat on most pages are removed.

use std::collections::{HashMap, HashSet};

use unicode_normalization::UnicodeNormalization as _;

use super::document::{Builder, Document, Unit};
use super::{clean, entities};

/// More lines than this are a list or a table, not a paragraph.
const MAX_PARAGRAPH_LINES: usize = 200;
/// Longer words are not looked up among the hyphenated ones, so that a file of hyphens takes no longer than
/// others.
const MAX_WORD: usize = 400;
/// The number of lines at the top and at the bottom of a page that may be a running title or a page number.
const EDGE: usize = 2;
/// Longer lines are not headings; in characters.
const MAX_HEADING: usize = 80;
/// Longer paragraphs are prose even without a full stop; in characters.
const PROSE: usize = 60;

/// Lines that belong together, and the page of the first one.
struct Paragraph {
    page: u32,
    lines: Vec<String>,
}

/// Parses the text of a PDF.
pub(super) fn parse(output: &str) -> Document {
    let (head, text) = output.split_once("<pre>\n").unwrap_or(("", output));
    let text = text.rsplit_once("</pre>").map_or(text, |(text, _)| text);
    let mut pages: Vec<Vec<String>> = text.split('\u{c}').map(lines_of).collect();
    drop_running_lines(&mut pages);
    let hyphenated = hyphenated_words(&pages);
    let paragraphs = paragraphs(pages);
    let texts: Vec<_> =
        paragraphs.iter().map(|paragraph| join_lines(paragraph, &hyphenated)).collect();
    let mut builder = Builder::counting(Unit::Page);
    builder.title(&title(head));
    for (at, (paragraph, text)) in paragraphs.iter().zip(&texts).enumerate() {
        if is_mostly_unknown(text) {
            continue;
        }
        let next = texts.get(at + 1).map_or("", String::as_str);
        if let Some(item) = item(text) {
            builder.item("-", item, paragraph.page);
        } else if paragraph.lines.len() == 1
            && could_be_heading(text)
            && (at == 0 || is_prose(next))
        {
            builder.heading(if at == 0 { 1 } else { 2 }, text);
        } else {
            builder.paragraph(text, paragraph.page);
        }
    }
    builder.finish()
}

/// Returns the title from the file's metadata, unless it is the name of another file.
fn title(head: &str) -> String {
    let title = head.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>"));
    let title = clean::line(&entities::decode(title.map_or("", |(title, _)| title)));
    let is_file = title.starts_with("Microsoft ") || title.contains(['/', '\\']);
    let has_ending = title.rsplit_once('.').is_some_and(|(_, ending)| ending.len() <= 4);
    if title.contains(' ') && !is_file && !has_ending { title } else { String::new() }
}

fn lines_of(page: &str) -> Vec<String> {
    let page = clean::text(page);
    // TeX puts accents over a dotless i; people search for composed letters.
    let dotted = page.replace("ı\u{308}", "ï").replace("ı\u{301}", "í");
    let composed = dotted.nfc().collect::<String>();
    let lines = composed.lines().map(clean::squeeze);
    lines.filter(|line| !line.is_empty()).collect()
}

/// Removes running titles and page numbers from the edges of pages.
fn drop_running_lines(pages: &mut [Vec<String>]) {
    let mut counts: HashMap<String, usize> = HashMap::new();
    for page in &*pages {
        let edges = page.iter().enumerate().filter(|(at, _)| is_edge(*at, page.len()));
        let keys: HashSet<_> = edges.map(|(_, line)| without_digits(line)).collect();
        for key in keys {
            *counts.entry(key).or_default() += 1;
        }
    }
    let all = pages.iter().filter(|page| !page.is_empty()).count();
    for page in pages {
        let length = page.len();
        let mut at = 0;
        page.retain(|line| {
            at += 1;
            let key = without_digits(line);
            let times = counts.get(&key).copied().unwrap_or(0);
            let is_number = key.contains('#') && !key.contains(char::is_alphabetic);
            let is_repeated = times >= 3 && times * 3 >= all;
            let is_running = is_repeated || is_number && times >= 2 && times * 2 >= all;
            !(is_edge(at - 1, length) && is_running)
        });
    }
}

fn is_edge(at: usize, lines: usize) -> bool {
    at < EDGE || at + EDGE >= lines
}

fn without_digits(line: &str) -> String {
    let digits_as_one = line.split(|c: char| c.is_ascii_digit());
    digits_as_one.collect::<Vec<_>>().join("#")
}

/// Returns the words that contain a hyphen in the middle of a line.
fn hyphenated_words(pages: &[Vec<String>]) -> HashSet<String> {
    let words = pages.iter().flatten().flat_map(|line| line.split(' '));
    words.filter(|word| word.trim_matches('-').contains('-')).map(bare).collect()
}

/// Strips punctuation around a word.
fn bare(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn paragraphs(pages: Vec<Vec<String>>) -> Vec<Paragraph> {
    let mut paragraphs: Vec<Paragraph> = Vec::new();
    for (page, lines) in (1..).zip(pages) {
        let width = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
        for line in lines {
            match paragraphs.last_mut().filter(|paragraph| continues(paragraph, page, &line, width))
            {
                Some(paragraph) => paragraph.lines.push(line),
                None => paragraphs.push(Paragraph { page, lines: vec![line] }),
            }
        }
    }
    paragraphs
}

/// Returns true if a line continues the lines before it: the last of them had no room for its first word.
fn continues(paragraph: &Paragraph, page: u32, line: &str, width: usize) -> bool {
    let Some(last) = paragraph.lines.last() else { return false };
    if paragraph.lines.len() >= MAX_PARAGRAPH_LINES || item(line).is_some() {
        return false;
    }
    let ends = last.trim_end_matches(['"', '”', '’', ')', '»']).ends_with(['.', '!', '?', ':']);
    if page != paragraph.page {
        return !ends && line.starts_with(char::is_lowercase);
    }
    let word = line.split(' ').next().unwrap_or("").chars().count();
    let had_room = (last.chars().count() + 1 + word) * 20 < width * 17;
    let opens = line.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    let is_heading = ends && could_be_heading(line) && line.chars().count() * 2 < width;
    !(is_heading || had_room && (ends || opens))
}

/// Joins the lines of a paragraph. A hyphen at a line's end is removed unless the file writes the same word
/// with a hyphen elsewhere.
fn join_lines(paragraph: &Paragraph, hyphenated: &HashSet<String>) -> String {
    let mut text = String::new();
    for line in &paragraph.lines {
        let word = text.rsplit(' ').next().unwrap_or("");
        let broken = word.strip_suffix(['-', '‐']).filter(|head| {
            head.ends_with(char::is_alphabetic) && line.starts_with(char::is_lowercase)
        });
        match broken {
            Some(head) => {
                let tail = line.split(' ').next().unwrap_or("");
                let is_short = head.len() + tail.len() <= MAX_WORD;
                let is_compound = is_short && hyphenated.contains(&bare(&format!("{head}-{tail}")));
                // `state-of-the-` contains hyphens itself.
                if !is_compound && !head.contains('-') {
                    text.pop();
                }
            }
            None if text.is_empty() => {}
            None => text.push(' '),
        }
        text.push_str(line);
    }
    text
}

/// Returns true if the converter could not decode more than a tenth of a text.
fn is_mostly_unknown(text: &str) -> bool {
    let unknown = |c: &char| matches!(c, '\u{fffd}' | '\u{e000}'..='\u{f8ff}');
    text.chars().filter(unknown).count() * 10 > text.chars().count()
}

fn could_be_heading(text: &str) -> bool {
    let opens = text.starts_with(|c: char| c.is_uppercase() || c.is_numeric());
    let letters = text.chars().filter(|c| c.is_alphabetic()).count();
    let is_open = text.ends_with(['.', ',', ';', '-', ':']);
    opens && letters >= 3 && text.chars().count() <= MAX_HEADING && !is_open
}

fn is_prose(text: &str) -> bool {
    text.ends_with(['.', '!', '?', ':']) || text.chars().count() >= PROSE
}

/// Returns the text of a list item.
fn item(text: &str) -> Option<&str> {
    let rest = text.strip_prefix(['•', '◦', '‣', '∙', '·', '▪', '■', '–', '*', '-'])?;
    let item = rest.trim_start();
    (rest.len() > item.len() && !item.is_empty() || text.starts_with('•')).then_some(item)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passages(text: &str) -> Vec<(u32, String, String)> {
        let passages = parse(text).passages.into_iter();
        passages.map(|found| (found.line, found.headings.to_string(), found.text)).collect()
    }

    #[test]
    fn lines_become_paragraphs_under_their_headings_with_their_pages() {
        let text = "The boiler\nThe boiler of the office is a small unit that was fit-\nted in the cellar; it is well-known and well-\nknown still, as all of the people who use it say.\nF28 No gas\nF75 No water\n\u{c}Inspection\nThe inspection takes place in October and goes\n\u{c}on until March.\n• Bring a lamp.\n";
        let document = parse(text);
        assert_eq!(document.title.as_deref(), Some("The boiler"));
        let expected = [
            (
                1,
                "",
                "The boiler of the office is a small unit that was fitted in the cellar; it is well-known and well-known still, as all of the people who use it say.",
            ),
            (1, "", "F28 No gas"),
            (1, "", "F75 No water"),
            (2, "Inspection", "The inspection takes place in October and goes on until March."),
            (3, "Inspection", "- Bring a lamp."),
        ];
        let expected =
            expected.map(|(page, headings, text)| (page, headings.to_owned(), text.to_owned()));
        assert_eq!(passages(text), expected);
    }

    #[test]
    fn lines_that_repeat_at_page_edges_are_removed_and_others_stay() {
        let page = |number: u32| {
            format!(
                "Running title\nThe same words.\nText {number} ends here.\nMore.\nPage {number}\n\u{c}"
            )
        };
        let seen: String = passages(&(1..=4).map(page).collect::<String>())
            .into_iter()
            .map(|(.., text)| text)
            .collect();
        assert!(!seen.contains("Running") && !seen.contains("Page"), "{seen}");
        assert_eq!(seen.matches("ends here").count(), 4, "{seen}");
    }

    #[test]
    fn the_title_of_the_file_is_used_if_it_is_a_real_title() {
        for (title, expected) in [
            ("Care &amp; repair", Some("Care & repair")),
            ("coffee.dvi", Some("Coffee")),
            ("Microsoft Word - a b", Some("Coffee")),
            ("", Some("Coffee")),
        ] {
            let page = format!(
                "<head><title>{title}</title></head><pre>\nCoffee\nText &amp; such.\n\u{c}</pre>\n"
            );
            let document = parse(&page);
            assert_eq!(document.title.as_deref(), expected);
            assert_eq!(document.passages[0].text, "Text &amp; such.");
        }
    }

    #[test]
    fn accents_are_composed_and_undecodable_text_is_left_out() {
        assert_eq!(passages("Nai\u{308}ve ı\u{308} Zu\u{308}rich.\n")[0].2, "Naïve ï Zürich.");
        assert!(passages("\u{fffd}\u{fffd}\u{fffd} ab\n\u{e001}\u{e002}\n").is_empty());
        assert!(passages("\u{c}\n \u{c}").is_empty());
    }

    #[test]
    fn text_of_one_character_breaks_nothing() {
        for text in [
            "a-\n".repeat(100_000),
            "-".repeat(1 << 20),
            "x ".repeat(100_000),
            "\u{c}".repeat(100_000),
        ] {
            parse(&text);
        }
    }
}
