//! From a question to what is looked for. Everything that reaches the index is made of quoted words, so no question
//! can say anything in its language.

use outlast_core::{ResearchAsk, Role};

use super::{clean, words};

/// More words than this add time and no sense.
const MOST_TERMS: usize = 48;
/// Of a question longer than this the rest is left out.
const LONGEST: usize = 4_000;

/// What to look for.
#[derive(Debug, Default)]
pub(super) struct Query {
    /// The question on one line.
    pub(super) question: String,
    pub(super) terms: Vec<Term>,
    /// Expressions that earn a bonus: words that stand together in the question.
    pub(super) together: Vec<String>,
    /// Names of several parts, their words with one blank between them.
    pub(super) names: Vec<String>,
}

/// One word to look for.
#[derive(Debug, PartialEq)]
pub(super) struct Term {
    pub(super) word: String,
    /// 1 for a word of the question, less for one of an earlier message.
    pub(super) weight: f64,
    /// The word and the next one as one: "back up" also finds "backup".
    joined: Option<String>,
}

impl Term {
    /// The word, and what it makes with the next one.
    pub(super) fn forms(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.word.as_str()).chain(self.joined.as_deref())
    }

    /// The same for the index.
    pub(super) fn expression(&self) -> String {
        self.forms().map(quoted).collect::<Vec<_>>().join(" OR ")
    }

    /// Words that may stand for it, for the index.
    pub(super) fn kin_expression(&self) -> Option<String> {
        let kin: Vec<_> = words::kin(&self.word).into_iter().map(quoted).collect();
        (!kin.is_empty()).then(|| kin.join(" OR "))
    }
}

impl Query {
    pub(super) fn new(ask: &ResearchAsk) -> Self {
        let question = clean::line(ask.question());
        let mut query = Self {
            together: together(cut(&question)),
            names: names(cut(&question)),
            ..Self::default()
        };
        query.add(cut(&question), 1.0);
        let mut earlier = ask.messages.iter().rev().filter(|message| message.role == Role::User);
        earlier.next();
        for message in earlier.take(4) {
            query.add(cut(&clean::line(&message.content)), 0.25);
        }
        query.question = question;
        query
    }

    fn add(&mut self, text: &str, weight: f64) {
        let mut all = words::of(text).peekable();
        while let Some(word) = all.next() {
            let is_new = self.terms.iter().all(|term| term.word != word);
            if is_new && self.terms.len() < MOST_TERMS && !words::is_stop(&word) {
                let joined = all.peek().map(|next| format!("{word}{next}"));
                self.terms.push(Term { word, weight, joined });
            }
        }
    }
}

fn cut(text: &str) -> &str {
    text.char_indices().nth(LONGEST).map_or(text, |(at, _)| &text[..at])
}

/// The words as one phrase of the index's language.
fn quoted(text: &str) -> String {
    format!("\"{}\"", words::of(text).collect::<Vec<_>>().join(" "))
}

/// Names of several parts (`A_B`, `x.toml`) and what stands in quotes.
fn names(question: &str) -> Vec<String> {
    let quoted = ['`', '"'].into_iter().flat_map(|sign| question.split(sign).skip(1).step_by(2));
    let parts = question.split_whitespace().chain(quoted);
    let mut names: Vec<_> = parts.map(|part| words::of(part).collect::<Vec<_>>()).collect();
    // "don't" and "doctor's" have two parts and are no names.
    names.retain(|name| {
        name.iter().filter(|word| word.chars().count() > 1 || word.parse::<u8>().is_ok()).count()
            > 1
    });
    let mut names: Vec<_> = names.into_iter().map(|name| name.join(" ")).collect();
    names.sort();
    names.dedup();
    names.truncate(MOST_TERMS);
    names
}

/// Names, and words that are neighbours.
fn together(question: &str) -> Vec<String> {
    let mut all: Vec<_> = names(question).iter().map(|name| quoted(name)).collect();
    let all_words: Vec<_> = words::of(question).collect();
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
    all.truncate(MOST_TERMS);
    all
}

#[cfg(test)]
mod tests {
    use outlast_core::Message;

    use super::*;

    fn ask(messages: &[(Role, &str)]) -> ResearchAsk {
        let messages = messages
            .iter()
            .map(|(role, content)| Message { role: *role, content: (*content).to_owned() })
            .collect();
        ResearchAsk { messages, ..ResearchAsk::default() }
    }

    fn words_of(query: &Query) -> Vec<(&str, f64)> {
        query.terms.iter().map(|term| (term.word.as_str(), term.weight)).collect()
    }

    #[test]
    fn names_are_taken_apart_and_also_kept_together() {
        let query = Query::new(&ask(&[(
            Role::User,
            "What does PERPLEXITY_TIMEOUT_MS limit after `kill -9`?",
        )]));
        let words: Vec<_> = words_of(&query).into_iter().map(|(word, _)| word).collect();
        assert_eq!(words, ["perplexity", "timeout", "ms", "limit", "kill", "9"]);
        assert_eq!(query.names, ["kill 9", "perplexity timeout ms"]);
        assert_eq!(query.together[..2], ["\"kill 9\"", "\"perplexity timeout ms\""]);
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
    fn a_question_cannot_speak_the_language_of_the_index() {
        let hostile = "\" OR body:x NEAR(a b) -c* ^d {e f} : ( ) AND NOT";
        for expression in Query::new(&ask(&[(Role::User, hostile)])).together {
            let bare = expression.replace("NEAR(\"", "\"").replace(", 6)", "");
            assert!(bare.chars().all(|c| c.is_alphanumeric() || matches!(c, '"' | ' ')), "{bare}");
        }
        let long = "word ".repeat(100_000);
        assert_eq!(Query::new(&ask(&[(Role::User, &long)])).terms.len(), 1);
        assert!(Query::new(&ask(&[(Role::User, "")])).terms.is_empty());
    }
}
