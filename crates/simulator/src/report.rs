//! The text of a simulated report: the same for the same seed, of exactly the length asked for, every source cited.
//!
//! A word is what stands between blanks, as `wc -w` counts: `##` is one, a marker such as `[3]` clings to its sentence
//! and is none.

use crate::phrases::{ENDINGS, HEADINGS, SENTENCES, fill};
use crate::topic::Topic;

const NOTE: &str =
    "*Simulated report: composed locally for testing; its findings and its sources are invented.*";
const SUMMARY: &str = "## Executive summary";
const OPEN_QUESTIONS: &str = "## Open questions";

/// From here on there is room for sections between summary and open questions.
const SECTIONED: usize = 130;
const WORDS_PER_SECTION: usize = 150;
const SENTENCES_PER_PARAGRAPH: usize = 4;

/// Writes `words` words about `topic` and puts each of the markers `cited` at least once.
pub(crate) fn write(
    topic: &Topic,
    words: usize,
    cited: &[String],
    rng: &mut fastrand::Rng,
) -> String {
    let mut draft = Draft { topic, deck: Vec::new(), blocks: Vec::new(), left: words, rng };
    draft.compose();
    draft.cite(cited);
    draft.text()
}

enum Block {
    Line(String),
    Paragraph(Vec<String>),
}

struct Draft<'a> {
    topic: &'a Topic,
    /// Sentences not used since the last shuffle: none comes twice until all have come.
    deck: Vec<&'static str>,
    blocks: Vec<Block>,
    left: usize,
    rng: &'a mut fastrand::Rng,
}

impl Draft<'_> {
    fn compose(&mut self) {
        let words = self.left;
        let title = format!("# {}", self.topic.title);
        let head = count(&title) + count(NOTE) + count(SUMMARY);
        if words < head + ENDINGS.len() {
            if words > 4 {
                self.line("*Simulated.*");
            }
            return self.fill_up();
        }
        self.line(&title);
        self.line(NOTE);
        self.line(SUMMARY);
        if words < SECTIONED {
            return self.fill_up();
        }
        self.paragraphs(words / 5);
        let sections = (words / WORDS_PER_SECTION).clamp(1, HEADINGS.len());
        // The open questions get a share too, as one section more.
        let share = self.left / (sections + 1);
        for heading in &HEADINGS[..sections] {
            let heading = format!("## {heading}");
            self.line(&heading);
            self.paragraphs(share.saturating_sub(count(&heading)));
        }
        self.line(OPEN_QUESTIONS);
        self.fill_up();
    }

    fn line(&mut self, line: &str) {
        self.left = self.left.saturating_sub(count(line));
        self.blocks.push(Block::Line(line.to_owned()));
    }

    /// Writes whole sentences, at most `budget` words of them but one at least.
    fn paragraphs(&mut self, budget: usize) {
        let mut sentences = vec![self.sentence()];
        let mut used = count(&sentences[0]);
        loop {
            let sentence = self.sentence();
            if used + count(&sentence) > budget {
                break;
            }
            used += count(&sentence);
            sentences.push(sentence);
        }
        self.add(sentences);
    }

    /// Writes exactly the words that are left.
    fn fill_up(&mut self) {
        let mut sentences = Vec::new();
        let mut left = self.left;
        while left > ENDINGS.len() {
            let fitting = (0..8).map(|_| self.sentence()).find(|sentence| count(sentence) <= left);
            let sentence = fitting.unwrap_or_else(|| ENDINGS[9].to_owned());
            left -= count(&sentence);
            sentences.push(sentence);
        }
        if left > 0 {
            sentences.push(ENDINGS[left - 1].to_owned());
        }
        self.add(sentences);
    }

    fn add(&mut self, sentences: Vec<String>) {
        for paragraph in sentences.chunks(SENTENCES_PER_PARAGRAPH) {
            let used: usize = paragraph.iter().map(|sentence| count(sentence)).sum();
            self.left = self.left.saturating_sub(used);
            self.blocks.push(Block::Paragraph(paragraph.to_vec()));
        }
    }

    fn sentence(&mut self) -> String {
        if self.deck.is_empty() {
            self.deck.extend(SENTENCES);
            self.rng.shuffle(&mut self.deck);
        }
        let phrase = self.deck.pop().unwrap_or(SENTENCES[0]);
        fill(phrase, self.topic, self.rng)
    }

    /// Spreads the sources evenly, then marks some of the sentences left without one.
    fn cite(&mut self, cited: &[String]) {
        let mut sentences: Vec<&mut String> = Vec::new();
        for block in &mut self.blocks {
            if let Block::Paragraph(paragraph) = block {
                sentences.extend(paragraph);
            }
        }
        if sentences.is_empty() || cited.is_empty() {
            return;
        }
        let total = sentences.len();
        let mut marked = vec![false; total];
        for (nth, marker) in cited.iter().enumerate() {
            let place = nth * total / cited.len();
            sentences[place].push_str(marker);
            marked[place] = true;
        }
        for (place, sentence) in sentences.into_iter().enumerate() {
            if !marked[place] && self.rng.u32(..2) == 0 {
                sentence.push_str(&cited[self.rng.usize(..cited.len())]);
            }
        }
    }

    fn text(self) -> String {
        let blocks: Vec<String> = self
            .blocks
            .into_iter()
            .map(|block| match block {
                Block::Line(line) => line,
                Block::Paragraph(sentences) => sentences.join(" "),
            })
            .collect();
        blocks.join("\n\n")
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
