//! The facts of a sentence that can be compared: quotations, numbers with unit and scale, dates, proper names,
//! versions and identifiers.

mod date;
mod quantity;

use quantity::quantity;

pub(crate) use self::date::Date;
pub(crate) use self::quantity::{Agreement, Quantity};
use super::text::{self, fold, is_cjk, is_function_word};
use super::tokens::script;
pub(crate) use super::tokens::{Token, TokenKind, Vocabulary, content_stems, tokens};

/// A fact of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Fact {
    /// The fact as the sentence writes it.
    pub(crate) text: String,
    pub(crate) start: usize,
    pub(crate) kind: FactKind,
    /// A weak fact never decides.
    pub(crate) weak: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FactKind {
    /// The folded words of a quotation.
    Quote(Vec<String>),
    Quantity(Quantity),
    Date(Date),
    /// The folded words of a name.
    Name(Vec<String>),
    /// A version or an identifier, in lower case.
    Code(String),
}

/// The way in which a text is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ReadingOptions<'a> {
    pub(crate) decimal_comma: bool,
    /// Nouns are capitalised, so that a capital alone does not make a name.
    pub(crate) capital_nouns: bool,
    pub(crate) vocabulary: Option<&'a Vocabulary>,
}

/// Finds the facts of a sentence.
pub(crate) fn facts(text: &str, tokens: &[Token], reading: ReadingOptions<'_>) -> Vec<Fact> {
    let mut finder =
        Finder { text, tokens, reading, facts: Vec::new(), used: vec![false; tokens.len()] };
    finder.quotes_and_code();
    finder.dates();
    finder.quantities();
    finder.values();
    finder.names();
    let mut facts = finder.facts;
    facts.sort_by_key(|fact| fact.start);
    facts.dedup_by(|a, b| a.kind == b.kind);
    facts
}

struct Finder<'a> {
    text: &'a str,
    tokens: &'a [Token],
    reading: ReadingOptions<'a>,
    facts: Vec<Fact>,
    used: Vec<bool>,
}

impl Finder<'_> {
    fn raw(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    fn push(&mut self, from: usize, to: usize, kind: FactKind, weak: bool) {
        let (start, end) = (self.tokens[from].start, self.tokens[to - 1].end);
        self.used[from..to].fill(true);
        self.facts.push(Fact { text: self.text[start..end].to_owned(), start, kind, weak });
    }

    /// Quotations of four words or more, code between backticks, and words that only programs have.
    fn quotes_and_code(&mut self) {
        for mark in ['"', '`'] {
            let places: Vec<_> = self.text.match_indices(mark).map(|(at, _)| at).collect();
            for pair in places.chunks_exact(2) {
                let (start, end) = (pair[0] + 1, pair[1]);
                let inner = self.text[start..end].trim();
                let within = |token: &Token| token.start >= start && token.end <= end;
                let words: Vec<_> =
                    self.tokens.iter().filter(|t| within(t) && t.kind != TokenKind::Sign).collect();
                let kind = match mark {
                    '`' if !inner.is_empty() && inner.len() <= 80 => {
                        FactKind::Code(inner.to_lowercase())
                    }
                    '"' if words.len() >= 4 => {
                        FactKind::Quote(words.iter().map(|token| token.folded.clone()).collect())
                    }
                    _ => continue,
                };
                for (at, token) in self.tokens.iter().enumerate() {
                    self.used[at] |= within(token);
                }
                self.facts.push(Fact { text: inner.to_owned(), start, kind, weak: false });
            }
        }
        for at in 0..self.tokens.len() {
            if self.used[at] {
                continue;
            }
            let raw = self.raw(at).to_owned();
            let dots = raw.matches('.').count();
            let groups_of_three = raw.split('.').skip(1).all(|group| group.len() == 3);
            let is_version = self.tokens[at].kind == TokenKind::Number
                && dots >= 2
                && !groups_of_three
                && self.date_with_dots(&raw).is_none();
            if let Some(to) = self.numbered_name(at) {
                let text = &self.text[self.tokens[at].start..self.tokens[to - 1].end];
                let code = text.to_lowercase();
                self.push(at, to, FactKind::Code(code), false);
                continue;
            }
            let next = self.raw(at + 1);
            let before = at.checked_sub(1).map_or("", |before| self.raw(before));
            let named = at > 0
                && dots == 1
                && self.tokens[at].kind == TokenKind::Number
                && (matches!(self.tokens[at - 1].folded.as_str(), "version" | "release" | "v")
                    || (self.tokens[at - 1].kind == TokenKind::Capital
                        && !is_function_word(&self.tokens[at - 1].folded)
                        && !matches!(next, "%" | "°" | "-")
                        && self.tokens.get(at + 1).is_none_or(|next| {
                            next.kind == TokenKind::Sign || is_function_word(&next.folded)
                        })
                        && !quantity::is_unit(self.text, self.tokens, at + 1)));
            let is_v = self.tokens[at].kind == TokenKind::Word
                && raw.starts_with('v')
                && raw.len() > 1
                && raw[1..].bytes().all(|byte| byte.is_ascii_digit());
            let mixed = raw.contains('_')
                || (raw.chars().skip(1).any(char::is_uppercase)
                    && raw.chars().any(char::is_lowercase)
                    && raw.chars().next().is_some_and(char::is_lowercase)
                    && raw.len() > 4);
            if is_version || named || is_v {
                let from = if before == "v" { at - 1 } else { at };
                // "v1.2" is read as v1 and .2 by the words' rule.
                let mut to = at + 1;
                let mut code = raw.trim_start_matches('v').to_owned();
                if is_v
                    && self.raw(at + 1) == "."
                    && self.tokens.get(at + 2).is_some_and(|t| t.kind == TokenKind::Number)
                {
                    code = format!("{code}.{}", self.raw(at + 2));
                    to = at + 3;
                }
                self.push(from, to, FactKind::Code(code), false);
            } else if mixed && self.tokens[at].kind != TokenKind::Number {
                self.push(at, at + 1, FactKind::Code(raw.to_lowercase()), false);
            }
        }
    }

    /// Returns the index after an acronym with its number, such as SHA-256, UTC+5 or CVE-2010-0405.
    fn numbered_name(&self, at: usize) -> Option<usize> {
        let touches = |at: usize| {
            self.tokens.get(at).is_some_and(|token| token.start == self.tokens[at - 1].end)
        };
        let is_acronym =
            self.raw(at).len() >= 2 && self.raw(at).bytes().all(|byte| byte.is_ascii_uppercase());
        let mut to = at + 1;
        while is_acronym
            && matches!(self.raw(to), "-" | "+")
            && touches(to)
            && touches(to + 1)
            && self.tokens[to + 1].kind == TokenKind::Number
        {
            to += 2;
        }
        (to > at + 1).then_some(to)
    }

    /// A small number that is the value of an identifier is a fact too: "`opt-level` is 2".
    fn values(&mut self) {
        let ends: Vec<_> = self
            .facts
            .iter()
            .filter(|fact| matches!(fact.kind, FactKind::Code(_)))
            .map(|fact| fact.start + fact.text.len())
            .collect();
        for fact in self.facts.iter_mut().filter(|fact| fact.weak) {
            if !matches!(fact.kind, FactKind::Quantity(_)) {
                continue;
            }
            let is_value = |end: &usize| {
                let between = self.text.get(*end..fact.start).unwrap_or("-");
                let link = between.trim_matches(['`', '"', ' ']);
                matches!(link, "is" | "of" | "=" | ":" | "to" | "defaults to" | "is set to")
            };
            fact.weak = !ends.iter().any(is_value);
        }
    }

    fn dates(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let found = if self.used[at] { None } else { self.date_at(at) };
            match found {
                Some((date, length)) => {
                    self.push(at, at + length, FactKind::Date(date), date.is_year());
                    at += length;
                }
                None => at += 1,
            }
        }
    }

    fn quantities(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            let found = if self.used[at] {
                None
            } else {
                quantity(self.text, self.tokens, at, self.reading.decimal_comma)
            };
            match found {
                Some((found, to)) => {
                    let weak = found.is_weak();
                    let from = found.first.min(at);
                    let to = to.min(self.tokens.len());
                    self.push(from, to, FactKind::Quantity(found), weak);
                    at = to;
                }
                None => at += 1,
            }
        }
    }

    fn names(&mut self) {
        let mut at = 0;
        while at < self.tokens.len() {
            if self.used[at] || !self.is_name_word(at) {
                self.cjk_name(at);
                at += 1;
                continue;
            }
            let mut to = at + 1;
            loop {
                // "University of Oxford", "Ludwig van Beethoven"
                let links = self.tokens.get(to).is_some_and(|token| {
                    matches!(
                        token.folded.as_str(),
                        "of" | "de"
                            | "van"
                            | "von"
                            | "der"
                            | "la"
                            | "du"
                            | "da"
                            | "del"
                            | "al"
                            | "&"
                    )
                });
                let hyphen =
                    self.raw(to) == "-" && self.tokens[to].start == self.tokens[to - 1].end;
                let skip = usize::from(links || hyphen);
                let next = to + skip;
                let adjacent =
                    next < self.tokens.len() && !self.used[next] && self.is_name_word(next);
                if !adjacent || (self.raw(to - 1).is_empty()) {
                    break;
                }
                to = next + 1;
            }
            let mut from = at;
            while from + 1 < to && is_function_word(&self.tokens[from].folded) {
                from += 1;
            }
            let words: Vec<_> = self.tokens[from..to]
                .iter()
                .filter(|t| t.kind != TokenKind::Sign)
                .map(|t| t.folded.clone())
                .collect();
            let raw = self.text[self.tokens[from].start..self.tokens[to - 1].end].to_owned();
            if self.is_name(from, &words, &raw) {
                let weak = raw.chars().count() < 2;
                self.push(from, to, FactKind::Name(words), weak);
            }
            at = to;
        }
    }

    fn is_name_word(&self, at: usize) -> bool {
        self.tokens[at].kind == TokenKind::Capital && self.raw(at) != "I"
    }

    fn is_name(&self, from: usize, words: &[String], raw: &str) -> bool {
        let is_first = self.tokens[..from].iter().all(|token| token.kind == TokenKind::Sign)
            || matches!(self.raw(from - 1), ":" | "|" | "\"" | "." | "(" | "*");
        let is_acronym = raw.chars().filter(|c| c.is_uppercase()).count() >= 2;
        if words.iter().all(|word| is_function_word(word)) {
            return false;
        }
        if words.len() > 1 || is_acronym {
            return true;
        }
        if self.reading.capital_nouns {
            return false;
        }
        let word = &words[0];
        if text::month(word).is_some() || WEEKDAYS.contains(&word.as_str()) {
            return false;
        }
        if !is_first {
            return true;
        }
        let Some(vocabulary) = self.reading.vocabulary else { return false };
        if vocabulary.inner_capitals.contains(word) {
            return true;
        }
        // "Germany has", but neither "Revenue rose" nor "Sales are".
        const VERBS: &str = "is was has had became won founded invented wrote lies borders belongs covers joined released announced acquired signed died";
        let next = self.tokens[from..].iter().find(|token| token.start > self.tokens[from].start);
        let is_subject = next.is_some_and(|next| {
            VERBS.split(' ').any(|verb| verb == next.folded)
                || self.text[..next.start].trim_end().ends_with("'s")
        });
        (is_subject || self.has_relative_clause(from)) && !vocabulary.lower.contains(word)
    }

    /// Returns true for a word with a relative clause, which a bare noun in the singular rarely has: "Kyoto, which", "Kyoto,
    /// with which".
    fn has_relative_clause(&self, at: usize) -> bool {
        let is_relative = |at: usize| matches!(self.raw(at), "which" | "who" | "whose" | "where");
        let is_preposition = |at: usize| {
            matches!(self.raw(at), "with" | "to" | "from" | "of" | "in" | "by" | "for" | "at")
        };
        let is_after = |at: usize| {
            is_relative(at)
                || (is_preposition(at) && matches!(self.raw(at + 1), "which" | "whom" | "whose"))
        };
        // "Visitors, who"
        let is_plural = self.tokens[at].folded.ends_with('s') && self.raw(at + 2) == "who";
        self.raw(at + 1) == "," && is_after(at + 2) && !is_plural
    }

    /// A run of katakana, or Chinese characters between kana, is a name or a term.
    fn cjk_name(&mut self, at: usize) {
        let raw = self.raw(at).to_owned();
        let Some(first) = raw.chars().next().filter(|sign| is_cjk(*sign)) else { return };
        let length = raw.chars().count();
        let is_next_to_kana =
            |at: usize| self.raw(at).starts_with(|c: char| is_cjk(c) && script(c) == 0);
        let is_name = match script(first) {
            1 => length >= 3,
            2 => {
                (2..=6).contains(&length)
                    && (is_next_to_kana(at + 1) || at.checked_sub(1).is_some_and(is_next_to_kana))
            }
            _ => false,
        };
        if is_name && !self.used[at] {
            // Chinese characters between kana are as often a common word.
            self.push(at, at + 1, FactKind::Name(vec![fold(&raw)]), script(first) == 2);
        }
    }
}

const WEEKDAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add(text);
        let reading = ReadingOptions { vocabulary: Some(&vocabulary), ..ReadingOptions::default() };
        facts(text, &tokens(text), reading)
            .iter()
            .map(|fact| {
                let kind = match &fact.kind {
                    FactKind::Quote(_) => "quote",
                    FactKind::Quantity(_) => "number",
                    FactKind::Date(_) => "date",
                    FactKind::Name(_) => "name",
                    FactKind::Code(_) => "code",
                };
                format!("{kind}{} {}", if fact.weak { "?" } else { "" }, fact.text)
            })
            .collect()
    }

    /// J2
    #[test]
    fn a_sentence_has_these_facts() {
        let cases: &[(&str, &[&str])] = &[
            ("In 2023 the city had 3,878,100 residents.", &["date? 2023", "number 3,878,100"]),
            (
                "The bill passed on 12 March 2024 with 52 % of votes.",
                &["date 12 March 2024", "number 52 %"],
            ),
            (
                "It cost $1.2 billion (March 5, 2019).",
                &["number $1.2 billion", "date March 5, 2019"],
            ),
            ("Germany has a population of 83 million.", &["name Germany", "number 83 million"]),
            (
                "He met Marie Curie at the University of Paris.",
                &["name Marie Curie", "name University of Paris"],
            ),
            (
                "Since Python 3.12, `sys.monitoring` exists.",
                &["name Python", "code 3.12", "code sys.monitoring"],
            ),
            ("Version 1.2.3 fixed max_size.", &["code 1.2.3", "code max_size"]),
            ("He said \"we will never give up\" there.", &["quote we will never give up"]),
            ("Three of 5 people agreed.", &["number? 5"]),
            ("Revenue rose strongly.", &[]),
            ("Kyoto, to which it lost its rank, grew.", &["name Kyoto"]),
            ("Kumasi, where trams run, grew.", &["name Kumasi"]),
            ("Visitors, who came by train, stayed.", &[]),
            ("Later, in which case it grew, it fell.", &[]),
            ("It was released on 2024-05-01.", &["date 2024-05-01"]),
            ("The lake is 12.5 km long and -3 °C cold.", &["number 12.5 km", "number -3 °C"]),
            ("人口は1.2億人です。", &["name? 人口", "number 1.2億人"]),
            ("About 1500 people came.", &["number About 1500"]),
        ];
        for (text, expected) in cases {
            assert_eq!(of(text), *expected, "{text}");
        }
    }
}
