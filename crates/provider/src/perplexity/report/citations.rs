//! Citation markers and what they point at. The provider writes `[3]`, which is the number of a find, or `[web:2]`,
//! which counts from zero; we write `[n]` alone, and every `n` that can be resolved is the number of a source.

use std::collections::{HashMap, HashSet};

use outlast_core::Source;

use crate::responses::wire::OpenedPage;
use crate::vendor::citations::{Marker, links_to, rewrite_markers};

/// The text with our markers, and its sources by number.
pub(super) fn number_citations<'a>(
    text: String,
    found: impl Iterator<Item = &'a OpenedPage>,
    read: impl Iterator<Item = &'a OpenedPage>,
) -> (String, Vec<Source>) {
    let mut numbers = Numbers::of(found.filter(|page| page.has_address()).collect());
    let text = rewrite_markers(text, |marker| numbers.resolve(marker));
    numbers.add_cited(&text, read);
    numbers.sources.sort_by_key(|source| source.number);
    (text, numbers.sources)
}

/// The sources by number.
#[derive(Default)]
struct Numbers {
    /// True if every number of the provider names one page.
    clear: bool,
    /// In the order they were found, each page once.
    sources: Vec<Source>,
    by_url: HashMap<String, u32>,
    /// Further numbers of a page that was found again.
    again: HashMap<u32, u32>,
    cited: HashSet<u32>,
}

impl Numbers {
    /// By the provider's numbers if each names one page, otherwise by position.
    fn of(found: Vec<&OpenedPage>) -> Self {
        let mut urls = HashMap::new();
        let clear = found.iter().copied().all(|page| {
            let Some(id) = page.id.filter(|id| *id > 0) else { return false };
            *urls.entry(id).or_insert(&*page.url) == &*page.url
        });
        let mut numbers = Self { clear, ..Self::default() };
        for page in found {
            let next = u32::try_from(numbers.sources.len() + 1).unwrap_or(u32::MAX);
            let number = page.id.filter(|_| clear).unwrap_or(next);
            numbers.add(number, page);
        }
        numbers
    }

    fn add(&mut self, number: u32, page: &OpenedPage) {
        let Some(url) = &*page.url else { return };
        if let Some(first) = self.by_url.get(url) {
            if self.clear && *first != number {
                self.again.insert(number, *first);
            }
            return;
        }
        self.by_url.insert(url.clone(), number);
        let (title, date) = (page.title.0.clone(), page.date.0.clone());
        self.sources.push(Source { number, url: url.clone(), title, date, ..Source::default() });
    }

    /// Our number for the provider's marker; one that points nowhere stays as it is, and can be seen to.
    fn resolve(&mut self, marker: Marker) -> u32 {
        let number = match marker {
            Marker::Number(number) => self.find_number(number).unwrap_or(number),
            Marker::Web(index) => {
                let number = index.saturating_add(1);
                let by_position = || self.sources.get(index as usize).map(|source| source.number);
                self.find_number(number).or_else(by_position).unwrap_or(number)
            }
        };
        self.cited.insert(number);
        number
    }

    fn find_number(&self, number: u32) -> Option<u32> {
        let first = self.again.get(&number).copied();
        first
            .or_else(|| self.sources.iter().any(|source| source.number == number).then_some(number))
    }

    /// Pages the text names though no search found them: by their number, or by a link.
    fn add_cited<'a>(&mut self, text: &str, read: impl Iterator<Item = &'a OpenedPage>) {
        for page in read {
            let Some(url) = page.url.as_deref().filter(|_| page.has_address()) else { continue };
            if self.by_url.contains_key(url) {
                continue;
            }
            let own =
                page.id.filter(|id| self.find_number(*id).is_none() && self.cited.contains(id));
            if let Some(number) = own {
                self.add(number, page);
            } else if links_to(text, url) {
                // Not a number that is in the text: that marker may mean anything.
                let last = self.sources.iter().map(|source| source.number).max().unwrap_or(0);
                let next = (last.saturating_add(1)..).find(|number| !self.cited.contains(number));
                self.add(next.unwrap_or(u32::MAX), page);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::lenient::Lenient;

    fn page(id: Option<u32>, url: &str) -> OpenedPage {
        OpenedPage { id: Lenient(id), url: Lenient(Some(url.to_owned())), ..OpenedPage::default() }
    }

    type Pages = &'static [(u32, &'static str)];

    /// Number 0 means no number.
    fn pages(pages: Pages) -> Vec<OpenedPage> {
        pages.iter().map(|(id, url)| page((*id > 0).then_some(*id), url)).collect()
    }

    #[test]
    fn every_marker_becomes_the_number_of_a_source() {
        let cases: [(&str, Pages, Pages, &str, Pages); 9] = [
            ("plain", &[], &[], "plain", &[]),
            ("a[1][3].", &[(3, "u3"), (1, "u1")], &[], "a[1][3].", &[(1, "u1"), (3, "u3")]),
            // Counted from zero, while numbers count from one.
            (
                "a[web:0] b[web:1]",
                &[(1, "u1"), (2, "u2")],
                &[],
                "a[1] b[2]",
                &[(1, "u1"), (2, "u2")],
            ),
            // No find has the number: then by position.
            ("a[web:1]", &[(1, "u1"), (7, "u7")], &[], "a[7]", &[(1, "u1"), (7, "u7")]),
            // A page found twice keeps its first number.
            ("a[5][web:4]", &[(2, "u"), (5, "u")], &[], "a[2][2]", &[(2, "u")]),
            // Numbers that are missing or name two pages are not used.
            ("a[2]", &[(0, "u1"), (0, "u1"), (9, "u2")], &[], "a[2]", &[(1, "u1"), (2, "u2")]),
            ("a[2][web:0]", &[(1, "u1"), (1, "u2")], &[], "a[2][1]", &[(1, "u1"), (2, "u2")]),
            // What points nowhere stays, and is seen to.
            ("a[9][web:9]", &[(1, "u1")], &[], "a[9][10]", &[(1, "u1")]),
            // Read pages count when they are cited; a number that is in the text is not given to them.
            (
                "a[2] b[4] [p](https://p)",
                &[(1, "u1")],
                &[
                    (0, "https://p"),
                    (0, "https://q"),
                    (4, "r"),
                    (1, "https://s"),
                    (0, "u1"),
                    (0, "https"),
                ],
                "a[2] b[4] [p](https://p)",
                &[(1, "u1"), (3, "https://p"), (4, "r")],
            ),
        ];
        for (text, found, read, expected, sources) in cases {
            let (given, read) = (pages(found), pages(read));
            let (text, cited) = number_citations(text.to_owned(), given.iter(), read.iter());
            let cited: Vec<_> =
                cited.iter().map(|source| (source.number, source.url.as_str())).collect();
            assert_eq!((text.as_str(), &cited[..]), (expected, sources), "{found:?}");
        }
    }
}
