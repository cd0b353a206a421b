//! Finds a fact of a claim in a sentence or in the headings of a page.

use super::{Acronym, Headings, Match, PageFacts, Unit};
use crate::facts::{Agreement, Date, Fact, FactKind, Quantity, Token, TokenKind, tokens};
use crate::text::stem;

impl PageFacts {
    pub(super) fn find(&self, fact: &Fact, unit: &Unit) -> Option<Match> {
        let equal = |at| Match { at, agreement: Agreement::Equal };
        match &fact.kind {
            FactKind::Quote(words) => find_words(&unit.tokens, words).map(equal),
            FactKind::Name(words) => {
                let in_acronym = || {
                    let abbreviates =
                        |acronym: &&Acronym| words.iter().all(|word| acronym.words.contains(word));
                    unit.acronyms.iter().find(abbreviates).map(|acronym| acronym.at)
                };
                self.find_name(words, &fact.text, &unit.tokens).or_else(in_acronym).map(equal)
            }
            FactKind::Code(code) => find_identifier(&unit.text.to_lowercase(), code).map(equal),
            FactKind::Date(date) => {
                // "In 1911 it began on June 15."
                let states_year = |date: &Date| {
                    let year = Date { month: None, day: None, ..*date };
                    unit.facts.iter().any(|found| found.kind == FactKind::Date(year))
                };
                unit.facts.iter().find_map(|found| match &found.kind {
                    FactKind::Date(other) => {
                        let is_whole = date.is_stated_by(*other);
                        let in_year = Date { year: date.year, ..*other };
                        let is_split =
                            other.year.is_none() && date.is_stated_by(in_year) && states_year(date);
                        (is_whole || is_split).then(|| equal(found.start))
                    }
                    _ => None,
                })
            }
            FactKind::Quantity(quantity) => {
                let agreeing = unit.facts.iter().filter_map(|found| match &found.kind {
                    FactKind::Quantity(other) => {
                        let agreement = self.agreement(quantity, other, unit, fact)?;
                        Some(Match { at: found.start, agreement })
                    }
                    FactKind::Date(Date { year: Some(year), month: None, .. }) => {
                        quantity.is_year(*year).then(|| equal(found.start))
                    }
                    _ => None,
                });
                agreeing.min_by_key(|found| found.agreement)
            }
        }
    }

    /// Compares two numbers; the unit of a table's number may be in the head of its column.
    fn agreement(
        &self,
        own: &Quantity,
        page: &Quantity,
        unit: &Unit,
        fact: &Fact,
    ) -> Option<Agreement> {
        if own.unit.is_some() && page.unit.is_none() {
            let agreement = own.agrees(&page.in_unit_of(own))?;
            let of_fact = tokens(&fact.text);
            let is_named = of_fact.last().is_some_and(|name| {
                let is_name = |token: &Token| {
                    token.folded == name.folded || stem(&token.folded) == stem(&name.folded)
                };
                unit.tokens.iter().any(is_name)
                    || self.headings[unit.headings].tokens.iter().any(is_name)
            });
            return if is_named { Some(agreement) } else { Some(Agreement::BoundDiffers) };
        }
        if own.unit.is_none() && page.unit.is_some() {
            return own.agrees_in_unit_of(page);
        }
        own.agrees(page)
    }

    fn find_name(&self, words: &[String], written: &str, tokens: &[Token]) -> Option<usize> {
        if let Some(at) = find_words(tokens, words) {
            return Some(at);
        }
        // The last name of a person whose whole name the page has elsewhere.
        if let [_, .., last] = words
            && last.chars().count() > 3
            && words.iter().all(|word| self.words.contains(word))
            && let Some(token) = tokens.iter().find(|token| token.folded == *last)
        {
            return Some(token.start);
        }
        let is_capital = |token: &&Token| token.kind == TokenKind::Capital;
        if let [word] = words {
            let is_acronym =
                written.chars().count() >= 2 && written.chars().all(char::is_uppercase);
            if is_acronym {
                return initials(tokens, word);
            }
            return tokens
                .iter()
                .filter(is_capital)
                .find(|token| is_adjective(word, &token.folded))
                .map(|token| token.start);
        }
        let short: String = words
            .iter()
            .filter(|word| word.len() > 3 || words.len() < 3)
            .filter_map(|word| word.chars().next())
            .collect();
        let is_short = |token: &&Token| {
            short.chars().count() >= 2
                && token.folded.replace('.', "") == short
                && token.kind == TokenKind::Capital
        };
        tokens.iter().find(is_short).map(|token| token.start)
    }

    pub(super) fn find_in_headings(&self, fact: &Fact, headings: &Headings) -> Option<Match> {
        #[cfg(test)]
        super::work::count();
        let at = match &fact.kind {
            FactKind::Name(words) => self.find_name(words, &fact.text, &headings.tokens),
            FactKind::Code(code) => find_identifier(&headings.text.to_lowercase(), code),
            FactKind::Date(date) => headings.facts.iter().find_map(|found| match &found.kind {
                FactKind::Date(other) => date.is_stated_by(*other).then_some(0),
                _ => None,
            }),
            FactKind::Quantity(_) | FactKind::Quote(_) => None,
        };
        at.map(|at| Match { at, agreement: Agreement::Equal })
    }
}

/// Finds words in order, without other words between them; returns the byte at which they begin.
pub(super) fn find_words(tokens: &[Token], words: &[String]) -> Option<usize> {
    let plain: Vec<_> = tokens.iter().filter(|token| token.kind != TokenKind::Sign).collect();
    let mut windows = plain.windows(words.len().max(1));
    windows
        .find(|window| window.iter().zip(words).all(|(token, word)| token.folded == *word))
        .map(|window| window[0].start)
}

/// Finds an identifier; SHA-256 is also written as SHA256 and as SHA 256.
fn find_identifier(text: &str, code: &str) -> Option<usize> {
    find_code(text, code).or_else(|| {
        let (name, number) = code.split_once('-')?;
        let is_numbered = name.bytes().all(|byte| byte.is_ascii_lowercase())
            && number.bytes().all(|byte| byte.is_ascii_digit());
        let find = |sign: &str| find_code(text, &format!("{name}{sign}{number}"));
        if is_numbered { find("").or_else(|| find(" ")) } else { None }
    })
}

/// Finds an identifier that is not a part of a longer one.
fn find_code(text: &str, code: &str) -> Option<usize> {
    let joins = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(code).map(|(at, _)| at).find(|at| {
        let before = text[..*at].chars().next_back();
        let mut after = text[at + code.len()..].chars();
        let (next, second) = (after.next(), after.next());
        // 1.2.0 is also written as 1.2.
        let rest = text[at + code.len()..].trim_start_matches(".0");
        let is_same_version = next == Some('.')
            && second == Some('0')
            && !rest.starts_with(|c: char| c.is_alphanumeric())
            && !(rest.starts_with('.') && rest[1..].starts_with(|c: char| c.is_ascii_digit()));
        let is_longer_version = next == Some('.')
            && second.is_some_and(|c| c.is_ascii_digit())
            && code.ends_with(|c: char| c.is_ascii_digit())
            && !is_same_version;
        let begins_inside = before.is_some_and(|c| {
            joins(c) && c != 'v' || (c == '.' && code.starts_with(|d: char| d.is_ascii_digit()))
        });
        !begins_inside && !next.is_some_and(joins) && !is_longer_version
    })
}

/// Finds capitalised words whose first letters are an acronym.
fn initials(tokens: &[Token], acronym: &str) -> Option<usize> {
    let capitals: Vec<_> = tokens.iter().filter(|token| token.kind == TokenKind::Capital).collect();
    capitals
        .windows(acronym.chars().count().max(2))
        .find(|window| {
            window
                .iter()
                .map(|token| token.folded.chars().next().unwrap_or(' '))
                .eq(acronym.chars())
        })
        .map(|window| window[0].start)
}

/// Returns true for German and Germany, Italian and Italy, Austrian and Austria.
fn is_adjective(a: &str, b: &str) -> bool {
    const ENDINGS: [&str; 9] = ["s", "n", "an", "ian", "ese", "ish", "i", "y", "es"];
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    let is_long_enough = short.chars().count() >= 4;
    is_long_enough
        && (long.strip_prefix(short).is_some_and(|rest| ENDINGS.contains(&rest))
            || short
                .strip_suffix('y')
                .is_some_and(|base| long.strip_prefix(base).is_some_and(|rest| rest == "ian")))
}
