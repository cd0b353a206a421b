//! Dates, as texts write them.

use super::Finder;
use super::quantity;
use crate::text;
use crate::text::{is_cjk, is_function_word};
use crate::tokens::TokenKind;

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

    pub(super) fn is_year(self) -> bool {
        self.month.is_none()
    }
}

impl Finder<'_> {
    pub(super) fn date_with_dots(&self, raw: &str) -> Option<Date> {
        let mut parts = raw.split('.');
        let (day, month, year) = (parts.next()?, parts.next()?, parts.next()?);
        let is_last = parts.next().is_none() && year.len() == 4;
        is_last.then(|| date(year.parse().ok(), month.parse().ok(), day.parse().ok())).flatten()
    }

    fn number(&self, at: usize, longest: usize) -> Option<u16> {
        let token = self.tokens.get(at).filter(|token| token.kind == TokenKind::Number)?;
        let raw = &self.text[token.start..token.end];
        if raw.len() > longest { None } else { raw.parse().ok() }
    }

    fn year(&self, at: usize) -> Option<u16> {
        self.number(at, 4).filter(|year| (1000..2200).contains(year) && self.raw(at).len() == 4)
    }

    pub(super) fn date_at(&self, at: usize) -> Option<(Date, usize)> {
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
}

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
