//! The sentences of simulated reports and snippets.

use crate::topic::{Topic, capitalised};

/// Sentences about two terms, `{a}` and `{b}`, with a percentage `{n}` and a year `{y}`. A term is used only
/// where its number and article do not matter, because it may be any words of the question.
pub(crate) const SENTENCES: &[&str] = &[
    "The strongest evidence on {a} comes from long-running field studies rather than from announcements.",
    "Reported figures for {a} differ by about {n} percent between sources, mostly because they count different things.",
    "Independent measurements of {a} became common only after {y}, so older comparisons need care.",
    "Several authors link progress on {a} to changes in {b}, although none of them isolates the effect.",
    "Costs connected with {a} fell in most of the reviewed material, and the decline slowed after {y}.",
    "Where {a} and {b} are examined together, the joint effect is smaller than the sum of both.",
    "Public data on {a} cover roughly {n} percent of the cases of interest.",
    "Practitioners treat {a} as a matter of planning first and of technology second.",
    "The debate about {a} has moved from whether results are possible to where they pay off.",
    "Two reviews reach opposite conclusions about {a} because they start from different baselines.",
    "A recurring theme is the lack of shared definitions for {a} across regions.",
    "Smaller organisations report better results with {a} when they can build on experience with {b}.",
    "Rules concerning {a} are uneven, and {n} percent of the sampled ones were revised within five years.",
    "No source offers a reliable way to predict the pace of change in {b}.",
    "About {n} percent of the reviewed cases mention {b} as the main constraint on {a}.",
    "Roughly {n} percent of the claims about {a} could be traced to a primary source.",
];

/// Headings between the summary and the open questions, in order.
pub(crate) const HEADINGS: [&str; 8] = [
    "Background and scope",
    "What the evidence says",
    "Costs and incentives",
    "Where sources disagree",
    "Practice and experience",
    "Regional differences",
    "Risks and limits",
    "Outlook",
];

/// Titles of invented sources.
pub(crate) const TITLES: &[&str] = &[
    "{a}: a field survey",
    "Trends in {a} and {b}",
    "What we know about {a}",
    "{a} in practice: lessons from twelve cases",
    "The economics of {a}",
    "Ten years of {a}",
];

/// Queries of invented searches.
pub(crate) const QUERIES: &[&str] =
    &["{a} overview", "{a} {b} evidence", "{a} costs and limits", "{b} long-term studies"];

/// Fills the placeholders of a phrase from the topic and at random; the main term is the most frequent.
pub(crate) fn fill(phrase: &str, topic: &Topic, rng: &mut fastrand::Rng) -> String {
    let terms = &topic.terms;
    let first = if rng.bool() { 0 } else { rng.usize(..terms.len()) };
    let second = match terms.len() {
        0 | 1 => "related fields",
        many => &terms[(first + rng.usize(1..many)) % many],
    };
    let filled = phrase
        .replace("{n}", &rng.u32(8..=64).to_string())
        .replace("{y}", &rng.u32(2012..=2024).to_string())
        .replace("{b}", second)
        .replace("{a}", &terms[first]);
    capitalised(&filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_remains() {
        let mut rng = fastrand::Rng::with_seed(7);
        for question in ["", "wind", "How do heat pumps age in cold climates?"] {
            for phrase in SENTENCES.iter().chain(TITLES).chain(QUERIES) {
                let text = fill(phrase, &Topic::of(question), &mut rng);
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
    }
}
