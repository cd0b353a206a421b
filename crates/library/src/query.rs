//! Turns a question into search terms. Everything that reaches the index consists of quoted words, so a
//! question cannot use the query language.

use outlast_core::{ResearchRequest, Role};

use super::clean::{self, truncate};
use super::words;

/// More words than this take time and do not improve the result.
const MAX_TERMS: usize = 48;
/// More names than this do not either.
const MAX_NAMES: usize = 16;
/// The rest of a longer question is ignored.
const MAX_QUESTION_CHARS: usize = 4_000;

/// The terms to look for.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// The question on one line.
    pub(super) question: String,
    pub(super) terms: Vec<Term>,
    pub(super) names: Vec<Name>,
    /// True if the question is about what changed, or about a version.
    pub(super) is_about_changes: bool,
    /// Expressions that add a bonus: words that are next to each other in the question.
    pub(super) together: Vec<String>,
}

#[derive(Debug, PartialEq)]
pub(super) struct Term {
    pub(super) word: String,
    /// 1 for a word of the question, less for a word of an earlier message.
    pub(super) weight: f64,
    /// The word joined with the next one: "back up" also finds "backup".
    pub(super) joined: Option<String>,
    /// True if the question writes the word with a capital in the middle of a sentence, so that its other forms
    /// are other words: "Windows".
    pub(super) is_proper: bool,
}

/// Words that form one name: `OUTLAST_POLL_TIMEOUT`, `8.2.2`, `config.toml`, or quoted text.
#[derive(Debug, PartialEq)]
pub(super) struct Name {
    /// The spelling of the question.
    pub(super) written: String,
    /// Its words, separated by single spaces.
    pub(super) words: String,
}

impl Name {
    /// Returns true for the name of one thing, as opposed to hyphenated words.
    pub(super) fn is_identifier(&self) -> bool {
        self.written.contains(['_', '.']) || self.words.contains(|c: char| c.is_ascii_digit())
    }
}

impl Query {
    pub(super) fn new(ask: &ResearchRequest) -> Self {
        let question = clean::line(ask.question());
        let asked = truncate(&question, MAX_QUESTION_CHARS);
        let mut query = Self { together: together(asked), names: names(asked), ..Self::default() };
        query.add(asked, 1.0);
        query.is_about_changes = is_about_changes(asked);
        let mut earlier = ask.messages.iter().rev().filter(|message| message.role == Role::User);
        earlier.next();
        for message in earlier.take(4) {
            query.add(truncate(&clean::line(&message.content), MAX_QUESTION_CHARS), 0.25);
        }
        query.question = question;
        query
    }

    fn add(&mut self, text: &str, weight: f64) {
        let written: Vec<_> = words::surface_words(text).collect();
        // A question that consists only of "list" means the word.
        let is_said = |word: &str| written.len() == 1 || !words::is_stop(word);
        let capital =
            |word: &str| word.starts_with(char::is_uppercase) && word.contains(char::is_lowercase);
        let is_title = written.iter().filter(|word| capital(word)).count() * 2 > written.len();
        for (at, written_word) in written.iter().enumerate() {
            let word = written_word.to_lowercase();
            let is_new = self.terms.iter().all(|term| term.word != word);
            if is_new && self.terms.len() < MAX_TERMS && is_said(&word) {
                let next = written.get(at + 1);
                let joined = next.map(|next| format!("{word}{}", next.to_lowercase()));
                let is_proper = at > 0 && !is_title && capital(written_word);
                self.terms.push(Term { word, weight, joined, is_proper });
            }
        }
    }
}

fn is_about_changes(question: &str) -> bool {
    const CHANGES: &str = "release released releases changed changes changelog fix fixed fixes bug added introduced \
                           deprecated deprecation removed since upgrade upgrading";
    let is_number = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = |word: &str| {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric()).trim_start_matches('v');
        word.contains('.') && word.split('.').all(is_number)
    };
    question
        .split_whitespace()
        .any(|word| is_version(word) || word.starts_with('#') && word.len() > 1)
        || words::of(question).any(|word| CHANGES.split_whitespace().any(|change| change == word))
}

/// Quotes the words as one phrase of the query language.
pub(super) fn quote(text: &str) -> String {
    format!("\"{}\"", words::of(text).collect::<Vec<_>>().join(" "))
}

fn names(question: &str) -> Vec<Name> {
    let quoted = ['`', '"'].into_iter().flat_map(|sign| question.split(sign).skip(1).step_by(2));
    let mut names: Vec<Name> = Vec::new();
    for written in question.split_whitespace().chain(quoted) {
        let parts: Vec<_> = words::of(written).collect();
        // "don't" and "doctor's" have two parts but are not names.
        let is_part = |word: &&String| word.chars().count() > 1 || word.parse::<u8>().is_ok();
        let words = parts.join(" ");
        if parts.iter().filter(is_part).count() > 1
            && names.len() < MAX_NAMES
            && names.iter().all(|name| name.words != words)
        {
            let written = written.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
            names.push(Name { written: written.to_owned(), words });
        }
    }
    names
}

/// Builds expressions for adjacent words and for words near each other.
fn together(question: &str) -> Vec<String> {
    let all_words: Vec<_> = words::of(question).collect();
    let mut all = Vec::new();
    for pair in all_words.windows(2) {
        if let [a, b] = pair
            && !words::is_stop(a)
            && !words::is_stop(b)
        {
            all.push(format!("\"{a} {b}\""));
        }
    }
    let telling: Vec<_> = all_words.iter().filter(|word| !words::is_stop(word)).collect();
    for pair in telling.windows(2) {
        if let [a, b] = pair
            && a != b
        {
            all.push(format!("NEAR(\"{a}\" \"{b}\", 6)"));
        }
    }
    all.dedup();
    all.truncate(MAX_TERMS);
    all
}

#[cfg(test)]
mod tests {
    use outlast_core::Message;

    use super::*;

    fn ask(messages: &[(Role, &str)]) -> ResearchRequest {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() })
            .collect();
        ResearchRequest { messages, ..ResearchRequest::default() }
    }

    fn query(question: &str) -> Query {
        Query::new(&ask(&[(Role::User, question)]))
    }

    fn words_of(query: &Query) -> Vec<(&str, f64)> {
        query.terms.iter().map(|term| (term.word.as_str(), term.weight)).collect()
    }

    #[test]
    fn names_are_split_and_also_kept_together() {
        let query = query("What does PERPLEXITY_TIMEOUT_MS limit after `kill -9`, in 8.2.2?");
        let words: Vec<_> = words_of(&query).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["perplexity", "timeout", "ms", "limit", "kill", "9", "8", "2"]);
        let names: Vec<_> =
            query.names.iter().map(|name| (name.words.as_str(), name.is_identifier())).collect();
        assert_eq!(names, [("perplexity timeout ms", true), ("8 2 2", true), ("kill 9", true)]);
    }

    #[test]
    fn a_question_about_changes_is_recognised() {
        for question in [
            "When was 8.2.2 released?",
            "What does #3194 fix?",
            "Was it deprecated?",
            "what is in v2.1",
        ] {
            assert!(query(question).is_about_changes, "{question}");
        }
        for question in
            ["What is the minimum Rust version?", "How do I use a pager?", "Is e.g. 3 a number?"]
        {
            assert!(!query(question).is_about_changes, "{question}");
        }
    }

    #[test]
    fn only_a_meaningful_capital_makes_a_proper_name() {
        let proper = |question: &str| {
            let query = query(question);
            let proper = query.terms.into_iter().filter(|term| term.is_proper);
            proper.map(|term| term.word).collect::<Vec<_>>()
        };
        assert_eq!(proper("Install it on Windows?"), ["windows"]);
        assert!(proper("Windows?").is_empty());
        assert!(proper("Installing It On Windows Machines").is_empty());
        assert!(proper("Is HEAD sent?").is_empty());
    }

    #[test]
    fn a_common_word_is_searched_only_if_it_is_the_whole_question() {
        assert_eq!(words_of(&query("list?")), [("list", 1.0)]);
        assert_eq!(words_of(&query("How do I list all?")), []);
        assert_eq!(words_of(&query("How do I list jobs?")), [("jobs", 1.0)]);
    }

    #[test]
    fn earlier_questions_count_for_less() {
        let messages = [
            (Role::System, "be brief"),
            (Role::User, "Leases?"),
            (Role::Assistant, "An answer."),
            (Role::User, "And their length?"),
        ];
        assert_eq!(words_of(&Query::new(&ask(&messages))), [("length", 1.0), ("leases", 0.25)]);
    }

    #[test]
    fn a_question_cannot_use_the_query_language() {
        let hostile = "\" OR body:x NEAR(a b) -c* ^d {e f} : ( ) AND NOT";
        let hostile = query(hostile);
        let names = hostile.names.iter().map(|name| quote(&name.words));
        for expression in hostile.together.iter().cloned().chain(names) {
            let bare = expression.replace("NEAR(\"", "\"").replace(", 6)", "");
            assert!(bare.chars().all(|c| c.is_alphanumeric() || matches!(c, '"' | ' ')), "{bare}");
        }
        assert_eq!(query(&"word ".repeat(100_000)).terms.len(), 1);
        assert!(query("").terms.is_empty());
    }
}
