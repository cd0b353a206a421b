//! Guesses the subject of a question from word lists, well enough for a simulated report.

/// Words without a subject, including the verbs of questions.
const EMPTY_WORDS: &str = "a about affect again against age all an and any are as at be become been best better between \
    briefly but by can cause change compare cost costs could current deep describe detail did \
    differ do does each effect effects examine explain explore find for from get give good had \
    has have help how i if impact improve in into investigate is it its keep key latest like \
    list main make many matter may me mean more most much my need new not now of on or our over \
    perform please report research review role run short should show since so some start state \
    stop summarise summarize tell than that the their them then there these they this those to \
    under up us use used using was we were what when where which who whose why will with work \
    works would write you your";

/// A longer word was pasted and is not a term.
const MAX_CHARS: usize = 40;
const TERM_WORDS: usize = 3;
const MAX_TERMS: usize = 5;
const TITLE_WORDS: usize = 12;
const MARKS: [char; 6] = [',', ';', ':', '.', '?', '!'];

/// The subject of one question.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    /// The first clause of the question, without punctuation.
    pub(crate) title: String,
    /// Adjacent subject words; never empty.
    pub(crate) terms: Vec<String>,
}

impl Topic {
    pub(crate) fn of(question: &str) -> Self {
        // An empty word marks the end of a clause: "wind, sun" are two things.
        let mut words = Vec::new();
        for word in question.split_whitespace() {
            words.extend(Some(bare(word)).filter(|word| !word.is_empty()));
            words.extend(word.ends_with(MARKS).then_some(""));
        }
        let clause =
            words.iter().skip(3).position(|word| word.is_empty()).map_or(words.len(), |at| at + 3);
        let title = words[..clause].iter().copied().filter(|word| !word.is_empty());
        let title = title.take(TITLE_WORDS).collect::<Vec<_>>().join(" ");
        let runs = words.split(|word| !is_subject(word));
        let mut terms: Vec<String> =
            runs.flat_map(|run| run.chunks(TERM_WORDS)).map(|run| run.join(" ")).collect();
        // Phrases are more specific than single words.
        terms.sort_by_key(|term| !term.contains(' '));
        terms.dedup();
        terms.truncate(MAX_TERMS);
        if terms.is_empty() {
            terms.push("this subject".to_owned());
        }
        let title = if title.is_empty() { "An open question" } else { &title };
        Self { title: capitalised(title), terms }
    }
}

/// The text with its first letter in upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Strips punctuation around a word; brackets would look like citations.
fn bare(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let short = word.chars().count() <= MAX_CHARS && !word.contains(['[', ']', '`', '|']);
    if short { word } else { "" }
}

fn is_subject(word: &&str) -> bool {
    word.chars().any(char::is_alphabetic)
        && !EMPTY_WORDS.split(' ').any(|empty| word.eq_ignore_ascii_case(empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_the_subject_words_of_the_question() {
        let topic = Topic::of("how do heat pumps perform in cold climates since 2019?");
        assert_eq!(topic.title, "How do heat pumps perform in cold climates since 2019");
        assert_eq!(topic.terms, ["heat pumps", "cold climates"]);
    }

    #[test]
    fn marks_end_a_term() {
        assert_eq!(
            Topic::of("Offshore wind, solar power. Tides").terms,
            ["Offshore wind", "solar power", "Tides"]
        );
    }

    #[test]
    fn a_title_is_the_first_clause() {
        assert_eq!(
            Topic::of("Are heat pumps worth it, and what do they cost?").title,
            "Are heat pumps worth it"
        );
        let long = "word ".repeat(40);
        assert_eq!(Topic::of(&long).title.split(' ').count(), TITLE_WORDS);
    }

    #[test]
    fn a_question_without_a_subject_still_has_terms() {
        for question in ["", "?!", "what is it", "[1] [2]"] {
            let topic = Topic::of(question);
            assert!(!topic.terms.is_empty(), "{question:?}");
            assert!(!topic.title.is_empty(), "{question:?}");
        }
    }

    #[test]
    fn brackets_of_the_question_never_reach_the_report() {
        let topic = Topic::of("compare [x](http://a.example) with foo[3]bar and wind");
        assert!(!topic.title.contains(['[', ']']), "{}", topic.title);
        assert!(topic.terms.iter().all(|term| !term.contains(['[', ']'])), "{:?}", topic.terms);
    }
}
