//! The facts of a sentence that can be compared: quotations, numbers with unit and scale, dates, proper names,
//! versions and identifiers.

mod quantity;

use std::collections::HashSet;

use super::text::{self, fold, is_cjk, is_function_word, stem};
use quantity::quantity;
pub(crate) use quantity::{Agreement, Quantity};

/// A word, number or sign of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Token {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// In lower case without accents.
    pub(crate) folded: String,
    pub(crate) kind: TokenKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenKind {
    Word,
    Capital,
    Number,
    Sign,
}

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

/// A date; parts that the text does not state are absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Date {
    pub(crate) year: Option<u16>,
    pub(crate) month: Option<u8>,
    pub(crate) day: Option<u8>,
}

impl Date {
    /// Returns true if every part that both state is equal, and the other states at least what this one does.
    pub(crate) fn is_stated_by(self, other: Self) -> bool {
        let fits = |own: Option<u16>, other: Option<u16>| own.is_none_or(|own| other == Some(own));
        fits(self.year, other.year)
            && fits(self.month.map(u16::from), other.month.map(u16::from))
            && fits(self.day.map(u16::from), other.day.map(u16::from))
    }

    fn is_year(self) -> bool {
        self.month.is_none()
    }
}

/// Words that were seen in lower case, or capitalised inside a sentence: they decide if the first word of a sentence
/// is a name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vocabulary {
    pub(crate) lower: HashSet<String>,
    pub(crate) inner_capitals: HashSet<String>,
}

impl Vocabulary {
    pub(crate) fn add(&mut self, text: &str) {
        for range in text::sentences(text) {
            let sentence = &text[range];
            let mut is_first = true;
            for token in tokens(sentence) {
                if token.kind == TokenKind::Word {
                    self.lower.insert(token.folded);
                } else if token.kind == TokenKind::Capital && !is_first {
                    self.inner_capitals.insert(token.folded);
                }
                // A cell or a label begins like a sentence.
                is_first = matches!(&sentence[token.start..token.end], "|" | ":" | "." | "\"");
            }
        }
    }
}

/// The way in which a text is read.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading<'a> {
    pub(crate) decimal_comma: bool,
    /// Nouns are capitalised, so that a capital alone does not make a name.
    pub(crate) capital_nouns: bool,
    pub(crate) vocabulary: Option<&'a Vocabulary>,
}

/// Splits a text into words, numbers and signs.
pub(crate) fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut signs = text.char_indices().peekable();
    while let Some((start, sign)) = signs.next() {
        if sign.is_whitespace() {
            continue;
        }
        let mut end = start + sign.len_utf8();
        let kind = if sign.is_numeric() && sign.is_ascii_digit() {
            while let Some((at, next)) = signs.peek().copied() {
                let after = text[at + next.len_utf8()..].chars().next();
                let joins =
                    matches!(next, '.' | ',' | '\'') && after.is_some_and(|c| c.is_ascii_digit());
                if !next.is_ascii_digit() && !joins {
                    break;
                }
                signs.next();
                end = at + next.len_utf8();
            }
            TokenKind::Number
        } else if is_cjk(sign) {
            let script = script(sign);
            while let Some((at, _)) =
                signs.next_if(|(_, c)| is_cjk(*c) && self::script(*c) == script)
            {
                end = at + text[at..].chars().next().map_or(1, char::len_utf8);
            }
            TokenKind::Word
        } else if sign.is_alphanumeric() || sign == '_' {
            while let Some((at, next)) = signs.peek().copied() {
                let after = text[at + next.len_utf8()..].chars().next();
                let joins = matches!(next, '\'' | '_') && after.is_some_and(char::is_alphanumeric);
                let is_mark = unicode_normalization::char::is_combining_mark(next);
                let is_letter = next.is_alphanumeric() && !is_cjk(next);
                if !is_letter && !joins && !is_mark {
                    break;
                }
                signs.next();
                end = at + next.len_utf8();
            }
            if sign.is_uppercase() { TokenKind::Capital } else { TokenKind::Word }
        } else {
            TokenKind::Sign
        };
        let mut word = &text[start..end];
        if kind != TokenKind::Sign {
            word = word.strip_suffix("'s").unwrap_or(word);
        }
        tokens.push(Token { start, end: start + word.len(), folded: fold(word), kind });
    }
    tokens
}

fn script(sign: char) -> u8 {
    match sign {
        '\u{3040}'..='\u{309f}' => 0,
        '\u{30a0}'..='\u{30ff}' => 1,
        _ => 2,
    }
}

/// Returns the stems of the words that mean something alone.
pub(crate) fn content_stems(tokens: &[Token]) -> Vec<String> {
    let words =
        tokens.iter().filter(|token| matches!(token.kind, TokenKind::Word | TokenKind::Capital));
    words
        .filter(|token| !is_function_word(&token.folded))
        .map(|token| stem(&token.folded))
        .collect()
}

/// Finds the facts of a sentence.
pub(crate) fn facts(text: &str, tokens: &[Token], reading: Reading<'_>) -> Vec<Fact> {
    let mut finder =
        Finder { text, tokens, reading, facts: Vec::new(), used: vec![false; tokens.len()] };
    finder.quotes_and_code();
    finder.dates();
    finder.quantities();
    finder.names();
    let mut facts = finder.facts;
    facts.sort_by_key(|fact| fact.start);
    facts.dedup_by(|a, b| a.kind == b.kind);
    facts
}

struct Finder<'a> {
    text: &'a str,
    tokens: &'a [Token],
    reading: Reading<'a>,
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

    fn date_with_dots(&self, raw: &str) -> Option<Date> {
        let mut parts = raw.split('.');
        let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
        let is_last = parts.next().is_none() && year.len() == 4;
        is_last.then(|| date(year.parse().ok(), month.parse().ok(), day.parse().ok())).flatten()
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

    fn number(&self, at: usize, longest: usize) -> Option<u16> {
        let token = self.tokens.get(at).filter(|token| token.kind == TokenKind::Number)?;
        let raw = &self.text[token.start..token.end];
        if raw.len() > longest { None } else { raw.parse().ok() }
    }

    fn year(&self, at: usize) -> Option<u16> {
        self.number(at, 4).filter(|year| (1000..2200).contains(year) && self.raw(at).len() == 4)
    }

    fn date_at(&self, at: usize) -> Option<(Date, usize)> {
        let is = |at: usize, sign: &str| self.raw(at) == sign;
        let month_at = |at: usize| {
            self.tokens.get(at).and_then(|token| {
                text::month(&token.folded).or_else(|| text::month(&self.raw(at).to_lowercase()))
            })
        };
        if let Some(found) = self.date_with_dots(self.raw(at)) {
            return Some((found, 1));
        }
        // 2024-03-12, 2024年3月12日
        if let Some(year) = self.year(at) {
            for (first, second) in [("-", "-"), ("/", "/"), ("年", "月")] {
                if is(at + 1, first)
                    && let Some(month) = self.number(at + 2, 2)
                {
                    if is(at + 3, second)
                        && let Some(day) = self.number(at + 4, 2)
                        && let Some(found) = date(Some(year), Some(month), Some(day))
                    {
                        return Some((
                            found,
                            if first == "年" && is(at + 5, "日") { 6 } else { 5 },
                        ));
                    }
                    if first == "年"
                        && let Some(found) = date(Some(year), Some(month), None)
                    {
                        return Some((found, 4));
                    }
                }
            }
        }
        // 12 March 2024, 12th of March, 12. März 2024
        if let Some(day) = self.number(at, 2) {
            let mut next = at + 1;
            for skipped in ["st", "nd", "rd", "th", ".", "of", "de"] {
                next += usize::from(is(next, skipped));
            }
            if let Some(month) = month_at(next)
                && let Some(found) = date(None, Some(month.into()), Some(day))
            {
                let mut after = next + 1;
                for skipped in [".", ",", "de", "of"] {
                    after += usize::from(is(after, skipped) && self.year(after + 1).is_some());
                }
                return Some(match self.year(after) {
                    Some(year) => (Date { year: Some(year), ..found }, after + 1 - at),
                    None => (found, next + 1 - at),
                });
            }
        }
        // March 12, 2024; March 2024
        if let Some(month) = month_at(at).filter(|_| self.tokens[at].kind == TokenKind::Capital) {
            let mut next = at + 1;
            next += usize::from(is(next, "."));
            if let Some(day) = self.number(next, 2) {
                let mut after = next + 1;
                for skipped in ["st", "nd", "rd", "th", ","] {
                    after += usize::from(is(after, skipped));
                }
                let found = date(self.year(after), Some(month.into()), Some(day))?;
                return Some((
                    found,
                    if found.year.is_some() { after + 1 - at } else { next + 1 - at },
                ));
            }
            next += usize::from(is(next, ",") || is(next, "of") || is(next, "de"));
            if let Some(year) = self.year(next) {
                return Some((date(Some(year), Some(month.into()), None)?, next + 1 - at));
            }
        }
        let year = self.year(at)?;
        // A counted thing follows a number, not a year.
        const BEFORE: &str =
            "in since by from until till during the early late mid before after between im seit en";
        let before = at.checked_sub(1).map_or("", |before| self.tokens[before].folded.as_str());
        let is_counting = self.tokens.get(at + 1).is_some_and(|next| {
            next.kind == TokenKind::Word
                && next.start > self.tokens[at].end
                && !is_function_word(&next.folded)
        });
        let is_marked =
            BEFORE.split(' ').any(|word| word == before) || matches!(before, "(" | "-" | "/");
        let has_unit = matches!(self.raw(at + 1), "%" | "°" | "$" | "€")
            || matches!(before, "$" | "€" | "£" | "¥");
        let is_counted_in_cjk = self.raw(at + 1).starts_with(is_cjk)
            && self.raw(at + 1) != "年"
            && self.tokens[at + 1].start == self.tokens[at].end;
        let is_year = !has_unit
            && !is_counted_in_cjk
            && !quantity::is_unit(self.text, self.tokens, at + 1)
            && (is_marked || !is_counting);
        is_year.then_some((Date { year: Some(year), month: None, day: None }, 1))
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
        is_subject && !vocabulary.lower.contains(word)
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

fn date(year: Option<u16>, month: Option<u16>, day: Option<u16>) -> Option<Date> {
    let month = month
        .and_then(|month| u8::try_from(month).ok())
        .filter(|month| (1..=12).contains(month))?;
    let day = match day {
        None => None,
        Some(day) => Some(u8::try_from(day).ok().filter(|day| (1..=31).contains(day))?),
    };
    Some(Date { year, month: Some(month), day })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Vec<String> {
        let mut vocabulary = Vocabulary::default();
        vocabulary.add(text);
        let reading = Reading { vocabulary: Some(&vocabulary), ..Reading::default() };
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
