//! Numbers for the sources of a report that cites by addresses.

use std::collections::{HashMap, HashSet};

use outlast_core::Source;

/// The numbers of addresses, in the order they are cited.
#[derive(Default)]
pub(crate) struct NumberedSources {
    pub(crate) all: Vec<Source>,
    by_url: HashMap<String, u32>,
    /// Numbers that are in the text already and may mean anything.
    taken: HashSet<u32>,
}

impl NumberedSources {
    /// No sources yet; these numbers will not be given.
    pub(crate) fn beside(taken: HashSet<u32>) -> Self {
        Self { taken, ..Self::default() }
    }

    /// The number of what is at this address, which has one from its first citation on.
    pub(crate) fn number(&mut self, url: &str, title: Option<&str>) -> u32 {
        if let Some(number) = self.by_url.get(url) {
            return *number;
        }
        let last = self.all.last().map_or(0, |source| source.number);
        let next = (last.saturating_add(1)..).find(|number| !self.taken.contains(number));
        let number = next.unwrap_or(u32::MAX);
        self.by_url.insert(url.to_owned(), number);
        let (url, title) = (url.to_owned(), title.map(str::to_owned));
        self.all.push(Source { number, url, title, date: None, snippet: None });
        number
    }
}
