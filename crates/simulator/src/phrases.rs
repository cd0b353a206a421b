//! The stock of sentences that simulated reports and snippets are made of.

use crate::topic::{Topic, capitalised};

/// Sentences about two terms, `{a}` and `{b}`, with a share `{n}` and a year `{y}`. A term stands only where number and
/// article do not matter, since it may be any words of the question.
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
    "Most forecasts for {a} assume stable prices, an assumption that has failed at least once since {y}.",
    "Interviews suggest that training and maintenance decide the outcome of {a} more often than the first choice does.",
    "Rules concerning {a} are uneven, and {n} percent of the sampled ones were revised within five years.",
    "Material on {b} is thinner, yet it points in the same direction as the findings on {a}.",
    "Sources close to industry are more optimistic about {a} than academic ones.",
    "No source offers a reliable way to predict the pace of change in {b}.",
    "Early results for {a} were often published without error margins, which limits what can be concluded.",
    "In practice, choices about {a} depend on local conditions that the literature rarely records.",
    "About {n} percent of the reviewed cases mention {b} as the main constraint on {a}.",
    "Recent work shifts attention from the average case of {a} to the spread between good and poor examples.",
    "Comparisons between {a} and {b} are common, but few use the same period or the same region.",
    "The largest data set on {a} ends in {y}, and later updates are partial.",
    "Funding for work on {a} grew faster than the number of published evaluations.",
    "Where follow-up studies exist, they confirm the direction of the early findings on {a} but not their size.",
    "Advice on {a} changes once {b} is taken into account, especially for long horizons.",
    "Roughly {n} percent of the claims about {a} could be traced to a primary source.",
];

/// `ENDINGS[k]` has exactly `k + 1` words: together they fill any gap at the end of a report.
pub(crate) const ENDINGS: [&str; 12] = [
    "Uncertain.",
    "Questions remain.",
    "More data needed.",
    "The picture remains incomplete.",
    "Further measurements would help here.",
    "Better data would sharpen this picture.",
    "These findings should be read with care.",
    "The next review should revisit these open points.",
    "A fuller answer would need data not yet published.",
    "Until then, the cautious reading remains the better supported one.",
    "The main conclusions would survive moderate errors in the underlying figures.",
    "None of these gaps changes the direction, but each widens the margins.",
];

/// Headings between the summary and the open questions, in the order they appear.
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
    "Annual review of {a}",
    "{a} in practice: lessons from twelve cases",
    "Measuring {a}: methods and pitfalls",
    "The economics of {a}",
    "{a} and {b}: an overview",
    "Policy brief: {a}",
    "Ten years of {a}",
];

/// Queries of invented searches.
pub(crate) const QUERIES: &[&str] = &[
    "{a} overview",
    "{a} {b} evidence",
    "{a} costs and limits",
    "{b} long-term studies",
    "{a} recent developments",
    "{a} criticism",
];

/// Second terms for a question that has only one.
const COMPANIONS: [&str; 3] = ["related fields", "public policy", "local practice"];

/// The phrase with its places filled from the topic and by chance; the main term comes most often.
pub(crate) fn fill(phrase: &str, topic: &Topic, rng: &mut fastrand::Rng) -> String {
    let terms = &topic.terms;
    let first = if rng.bool() { 0 } else { rng.usize(..terms.len()) };
    let second = match terms.len() {
        0 | 1 => COMPANIONS[rng.usize(..COMPANIONS.len())],
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
    fn each_ending_has_the_length_of_its_place() {
        for (index, ending) in ENDINGS.iter().enumerate() {
            assert_eq!(ending.split_whitespace().count(), index + 1, "{ending}");
        }
    }

    #[test]
    fn no_place_is_left_open() {
        let mut rng = fastrand::Rng::with_seed(7);
        for question in ["", "wind", "How do heat pumps age in cold climates?"] {
            for phrase in SENTENCES.iter().chain(TITLES).chain(QUERIES) {
                let text = fill(phrase, &Topic::of(question), &mut rng);
                assert!(!text.contains(['{', '}']), "{text}");
            }
        }
    }
}
