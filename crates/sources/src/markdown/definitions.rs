//! The sources that a document defines: lists, reference definitions and footnotes.

use std::collections::HashMap;

/// The numbers of sources. A link gets the number of a source with the same address, or the next one.
#[derive(Default)]
pub(super) struct Numbers {
    pub(super) urls: HashMap<u32, String>,
    by_url: HashMap<String, u32>,
    pub(super) footnotes: HashMap<String, u32>,
    last: u32,
}

impl Numbers {
    pub(super) fn define(&mut self, number: u32, url: &str) {
        self.by_url.entry(url.to_owned()).or_insert(number);
        self.urls.entry(number).or_insert_with(|| url.to_owned());
        self.last = self.last.max(number);
    }

    pub(super) fn of_url(&mut self, url: &str) -> u32 {
        if let Some(number) = self.by_url.get(url) {
            return *number;
        }
        self.define(self.last + 1, url);
        self.last
    }
}

/// Removes the lists of sources, after their numbers and addresses were recorded.
pub(super) fn without_definitions(markdown: &str, numbers: &mut Numbers) -> String {
    const HEADINGS: [&str; 12] = [
        "sources",
        "references",
        "citations",
        "bibliography",
        "works cited",
        "source list",
        "footnotes",
        "quellen",
        "literatur",
        "références",
        "fuentes",
        "参考文献",
    ];
    let mut body = String::with_capacity(markdown.len());
    let (mut fence, mut in_sources) = (None, false);
    for line in markdown.lines() {
        let trimmed = line.trim();
        if let Some(mark) = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark)) {
            fence = if fence == Some(mark) { None } else { fence.or(Some(mark)) };
        } else if fence.is_none() {
            let bare = trimmed.trim_matches(['#', '*', '_', ':', ' ']).to_lowercase();
            let is_heading =
                trimmed.starts_with('#') || trimmed.ends_with(':') || trimmed.starts_with("**");
            if is_heading && HEADINGS.contains(&bare.as_str()) {
                in_sources = true;
                body.push('\n');
                continue;
            }
            in_sources &= !trimmed.starts_with('#');
            let definition = definition(trimmed, in_sources);
            if let Some((number, url)) = definition {
                numbers.define(number, url);
            } else if let Some((name, url)) = footnote(trimmed) {
                let number = numbers.of_url(url);
                numbers.footnotes.insert(name.to_owned(), number);
            }
            if in_sources || definition.is_some() || footnote(trimmed).is_some() {
                body.push('\n');
                continue;
            }
        }
        body.push_str(line);
        body.push('\n');
    }
    body
}

/// Parses `[1] Title: https://...`, `[1]: https://...` and, in a list of sources, `1. [Title](https://...)`.
fn definition(line: &str, in_sources: bool) -> Option<(u32, &str)> {
    let line = line.trim_start_matches(['-', '*', '+', ' ']);
    let (digits, rest) = match line.strip_prefix('[') {
        Some(inner) => inner.trim_start_matches('^').split_once(']')?,
        None if in_sources => line.split_once(['.', ')'])?,
        None => return None,
    };
    let number = digits.parse().ok().filter(|number| *number < 100_000)?;
    let at = rest.find("https://").or_else(|| rest.find("http://"))?;
    // A sentence may begin with a marker; a definition has little but its title.
    let is_definition = in_sources || rest.starts_with(':') || at < 200;
    is_definition.then(|| (number, url_at(rest, at)))
}

fn footnote(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("[^")?.split_once("]:")?;
    let at = rest.find("https://").or_else(|| rest.find("http://"))?;
    Some((name, url_at(rest, at)))
}

/// Returns the address that begins at a place, without the punctuation after it.
pub(super) fn url_at(text: &str, at: usize) -> &str {
    let rest = &text[at..];
    let end = rest.find(|c: char| c.is_whitespace() || "<>\"`|".contains(c) || c.is_control());
    let mut url = &rest[..end.unwrap_or(rest.len())];
    // In [title](url) the bracket ends the address, wherever it is.
    if text[..at].ends_with("](") {
        let mut depth = 0;
        let close = url.char_indices().find(|(_, sign)| {
            depth += i32::from(*sign == '(') - i32::from(*sign == ')');
            depth < 0
        });
        return close.map_or(url, |(end, _)| &url[..end]);
    }
    loop {
        let shorter =
            url.trim_end_matches(['.', ',', ';', ':', '!', '?', '*', '\'', '_', '。', '、', '，']);
        let count = |sign: char| shorter.matches(sign).count();
        let shorter = match shorter.chars().last() {
            Some(')') if count(')') > count('(') => &shorter[..shorter.len() - 1],
            Some(']') if count(']') > count('[') => &shorter[..shorter.len() - 1],
            _ => shorter,
        };
        if shorter.len() == url.len() {
            return url;
        }
        url = shorter;
    }
}
