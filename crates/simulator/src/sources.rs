//! The invented searches of a run and their results.

use std::ops::RangeInclusive;

use serde_json::{Value, json};

use crate::hostile;
use crate::phrases::{QUERIES, SENTENCES, TITLES, fill};
use crate::scenario::{Dates, Markers, Shape};
use crate::topic::Topic;

/// One web search: a query and its results.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    pub(crate) query: String,
    pub(crate) results: Vec<Source>,
}

#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// The number in `[n]` markers: counted from 1, unique in the run, with gaps between searches as in real
    /// runs.
    pub(crate) id: u32,
    pub(crate) url: String,
    pub(crate) title: String,
    pub(crate) snippet: String,
    pub(crate) date: String,
    /// Absent in about every fourth result, as in real runs.
    pub(crate) last_updated: Option<String>,
    /// The dates that are shown.
    dates: Dates,
}

impl Source {
    /// Applies the dates and the hostile text that the scenario asks for.
    pub(crate) fn apply(&mut self, shape: &Shape, hostile: Option<usize>) {
        self.dates = match (shape.dates, self.id % 3) {
            (Dates::Mixed, 1) => Dates::Null,
            (Dates::Mixed, 2) => Dates::Absent,
            (Dates::Mixed, _) => Dates::Given,
            (dates, _) => dates,
        };
        if let Some(line) = hostile
            && self.id == 1
        {
            self.title = hostile::TITLE.to_owned();
            self.snippet = hostile::text(line);
        }
    }

    /// The citation of this source in the text.
    pub(crate) fn marker(&self, markers: Markers) -> String {
        match markers {
            Markers::Number => format!("[{}]", self.id),
            Markers::Web => format!("[web:{}]", self.id - 1),
            Markers::Link => format!("[{}]({})", self.id, self.url),
            Markers::Cited => format!("([{}]({}))", self.site(), self.url),
        }
    }

    /// The name of the site it is from.
    fn site(&self) -> &str {
        let rest = self.url.split_once("://").map_or(self.url.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// The fields that every API shows, with `date` and `last_updated` if they are known.
    pub(crate) fn json(&self) -> Value {
        let mut result = json!({"title": self.title, "url": self.url, "snippet": self.snippet});
        match self.dates {
            Dates::Absent => {}
            Dates::Null => {
                result["date"] = Value::Null;
                result["last_updated"] = Value::Null;
            }
            Dates::Given | Dates::Mixed => {
                result["date"] = self.date.as_str().into();
                if let Some(date) = &self.last_updated {
                    result["last_updated"] = date.as_str().into();
                }
            }
        }
        result
    }
}

/// Distributes `sources` results over `searches` searches; the first ones get the remainder. `gaps` is the
/// number of ids skipped between two searches.
pub(crate) fn search(
    topic: &Topic,
    searches: usize,
    sources: usize,
    gaps: RangeInclusive<u32>,
    rng: &mut fastrand::Rng,
) -> Vec<Search> {
    // Sources need a search that found them.
    let searches = if sources > 0 { searches.max(1) } else { searches };
    let mut next_id = 1;
    (0..searches)
        .map(|nth| {
            let count = sources / searches + usize::from(nth < sources % searches);
            let query = fill(QUERIES[nth % QUERIES.len()], topic, rng);
            let results =
                (0..count).map(|place| source(topic, next_id + place as u32, rng)).collect();
            next_id += count as u32 + rng.u32(gaps.clone());
            Search { query, results }
        })
        .collect()
}

fn source(topic: &Topic, id: u32, rng: &mut fastrand::Rng) -> Source {
    let title = fill(TITLES[rng.usize(..TITLES.len())], topic, rng);
    let mut snippet = String::new();
    while snippet.len() < 200 {
        let sentence = fill(SENTENCES[rng.usize(..SENTENCES.len())], topic, rng);
        snippet.push_str(if snippet.is_empty() { "" } else { " " });
        snippet.push_str(&sentence);
    }
    Source {
        id,
        url: format!("https://src{id}.example/{}", slug(&title)),
        title,
        snippet,
        date: format!("2026-0{}-{}", rng.u32(1..=6), rng.u32(10..=28)),
        last_updated: (rng.u32(..4) > 0).then(|| format!("2026-0{}-15", rng.u32(7..=9))),
        dates: Dates::Given,
    }
}

fn slug(title: &str) -> String {
    let words = title.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_start_at_one_rise_and_leave_gaps_between_searches() {
        let mut rng = fastrand::Rng::with_seed(1);
        let topic = Topic::of("wind power");
        let searches = search(&topic, 3, 8, 1..=3, &mut rng);
        let ids: Vec<Vec<u32>> =
            searches.iter().map(|search| search.results.iter().map(|s| s.id).collect()).collect();
        assert_eq!(ids[0], [1, 2, 3]);
        assert_eq!(ids.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 2]);
        assert!(ids[1][0] > 4 && ids[2][0] > ids[1][2] + 1, "{ids:?}");
    }
}
