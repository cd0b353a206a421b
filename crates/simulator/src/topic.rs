//! What a question is about, as far as word lists can tell: enough to make a simulated report speak of it.

/// Words that carry no subject, among them the verbs that questions are asked with.
const EMPTY_WORDS: &str = "a about again against all an and any are as at be been between briefly but by can compare \
    could current deep describe detail did do does each examine explain explore find for from \
    give had has have how i if in into investigate is it its latest list make many may me more \
    most much my new not now of on or our over please report research review short should show \
    since so some state summarise summarize tell than that the their them then there these they \
    this those to under up us was we were what when where which who whose why will with would \
    write you your";

/// A term longer than this is not a term but a pasted line.
const MOST_CHARS: usize = 40;
const MOST_TERMS: usize = 6;
const TITLE_WORDS: usize = 12;

/// The subject of one question; never without terms.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) title: String,
    pub(crate) terms: Vec<String>,
}

impl Topic {
    pub(crate) fn of(question: &str) -> Self {
        let words: Vec<&str> = question.split_whitespace().map(bare).collect();
        let titled: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        let mut title = titled[..titled.len().min(TITLE_WORDS)].join(" ");
        if title.is_empty() {
            title.push_str("An open question");
        }
        let mut terms: Vec<String> = Vec::new();
        for run in words.split(|word| !is_subject(word)) {
            for term in run.chunks(2).map(|pair| pair.join(" ")) {
                if !terms.contains(&term) {
                    terms.push(term);
                }
            }
        }
        terms.truncate(MOST_TERMS);
        for stock in ["the subject", "the available data"] {
            if terms.len() < 2 {
                terms.push(stock.to_owned());
            }
        }
        Self { title: capitalised(&title), terms }
    }
}

/// The text with its first letter in upper case.
pub(crate) fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// The word without the marks around it; brackets would read as citations.
fn bare(word: &str) -> &str {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    let short = word.chars().count() <= MOST_CHARS && !word.contains(['[', ']', '`', '|']);
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
        assert_eq!(topic.terms, ["heat pumps", "perform", "cold climates"]);
    }

    #[test]
    fn a_question_without_a_subject_still_has_terms() {
        for question in ["", "?!", "what is it", "[1] [2]"] {
            let topic = Topic::of(question);
            assert!(topic.terms.len() >= 2, "{question:?}");
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
