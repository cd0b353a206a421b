//! The text of a simulated report: the same for the same seed, of exactly the requested length, with every
//! source cited.
//!
//! Words are separated by spaces, as `wc -w` counts them: `##` is a word; a marker such as `[3]` is attached to
//! its sentence and is not.

use crate::phrases::{HEADINGS, SENTENCES, fill};
use crate::topic::Topic;

/// Every kind of Markdown that models write.
pub(crate) const RICH: &str = include_str!("rich.md");

const NOTE: &str =
    "*Simulated report: composed locally for testing; its findings and its sources are invented.*";
const SUMMARY: &str = "## Executive summary";
const OPEN_QUESTIONS: &str = "## Open questions";

/// A longer report has sections between the summary and the open questions.
const SECTIONED: usize = 130;
const WORDS_PER_SECTION: usize = 150;
const SENTENCES_PER_PARAGRAPH: usize = 4;

/// Writes `words` words about `topic` and uses each of the markers in `cited` at least once.
pub(crate) fn write(
    topic: &Topic,
    words: usize,
    cited: &[String],
    rng: &mut fastrand::Rng,
) -> String {
    let title = format!("# {}", topic.title);
    let head: &[&str] = match words {
        0..5 => &[],
        _ if words < count(&title) + count(NOTE) + 12 => &["*Simulated.*"],
        _ => &[&title, NOTE, SUMMARY],
    };
    let sections = (words / WORDS_PER_SECTION).clamp(1, HEADINGS.len());
    let mut headings = Vec::new();
    if words >= SECTIONED {
        headings.extend(HEADINGS[..sections].iter().map(|heading| format!("## {heading}")));
        headings.push(OPEN_QUESTIONS.to_owned());
    }
    let taken: usize =
        head.iter().copied().chain(headings.iter().map(String::as_str)).map(count).sum();
    let left = words.saturating_sub(taken);
    let share = left / (headings.len() + 1);
    let mut blocks: Vec<Vec<String>> = head.iter().map(|line| vec![(*line).to_owned()]).collect();
    blocks.extend(paragraphs(left - share * headings.len(), topic, rng));
    for heading in headings {
        blocks.push(vec![heading]);
        blocks.extend(paragraphs(share, topic, rng));
    }
    cite(&mut blocks, cited, rng);
    blocks.iter().map(|block| block.join(" ")).collect::<Vec<_>>().join("\n\n")
}

/// Sentences with exactly this number of words, the last one cut to fit. None is repeated before all have been
/// used.
fn paragraphs(words: usize, topic: &Topic, rng: &mut fastrand::Rng) -> Vec<Vec<String>> {
    let first = rng.usize(..SENTENCES.len());
    let mut sentences = Vec::new();
    let mut left = words;
    while left > 0 {
        let phrase = SENTENCES[(first + sentences.len()) % SENTENCES.len()];
        let mut sentence = fill(phrase, topic, rng);
        if count(&sentence) > left {
            let kept: Vec<&str> = sentence.split_whitespace().take(left).collect();
            sentence = format!("{}.", kept.join(" ").trim_end_matches(','));
        }
        left -= count(&sentence);
        sentences.push(sentence);
    }
    sentences.chunks(SENTENCES_PER_PARAGRAPH).map(<[String]>::to_vec).collect()
}

/// Distributes the sources evenly, then adds markers to some of the remaining sentences.
fn cite(blocks: &mut [Vec<String>], cited: &[String], rng: &mut fastrand::Rng) {
    let lines = blocks.iter_mut().flatten();
    let mut sentences: Vec<&mut String> =
        lines.filter(|line| !line.starts_with(['#', '*'])).collect();
    if sentences.is_empty() || cited.is_empty() {
        return;
    }
    let total = sentences.len();
    for (nth, marker) in cited.iter().enumerate() {
        sentences[nth * total / cited.len()].push_str(marker);
    }
    for sentence in sentences {
        if sentence.ends_with('.') && rng.bool() {
            sentence.push_str(&cited[rng.usize(..cited.len())]);
        }
    }
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers(ids: &[u32]) -> Vec<String> {
        ids.iter().map(|id| format!("[{id}]")).collect()
    }

    fn report(question: &str, words: usize, cited: &[u32]) -> String {
        write(&Topic::of(question), words, &markers(cited), &mut fastrand::Rng::with_seed(42))
    }

    #[test]
    fn a_report_has_exactly_the_words_asked_for() {
        let wordy = "alpha beta gamma in delta epsilon zeta of eta theta iota ".repeat(3);
        for question in ["wind", &wordy] {
            for words in (0..700).chain([1_500, 4_000, 20_000]) {
                let text = report(question, words, &[1, 2, 5]);
                assert_eq!(count(&text), words, "{text}");
            }
        }
    }

    #[test]
    fn every_source_is_cited_even_in_one_word() {
        for words in [1, 5, 50, 150, 600] {
            let cited = [1, 2, 3, 6, 7, 11, 12, 14];
            let text = report("wind power in Denmark", words, &cited);
            for id in cited {
                assert!(text.contains(&format!("[{id}]")), "{id} in {words} words: {text}");
            }
        }
    }

    #[test]
    fn a_report_says_that_it_is_simulated() {
        for words in [5, 50, 150, 600] {
            assert!(report("wind power", words, &[]).contains("Simulated"), "{words}");
        }
    }

    #[test]
    fn a_long_report_has_a_title_a_summary_and_sections() {
        let text = report("How do heat pumps age?", 600, &[1]);
        assert!(text.starts_with("# How do heat pumps age\n"), "{text}");
        for heading in
            [SUMMARY, "## Background and scope", "## Where sources disagree", OPEN_QUESTIONS]
        {
            assert!(text.contains(heading), "{heading} in {text}");
        }
    }

    #[test]
    fn the_text_depends_on_the_seed_alone() {
        let with = |seed| {
            write(&Topic::of("wind"), 300, &markers(&[1, 2]), &mut fastrand::Rng::with_seed(seed))
        };
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
    }
}
