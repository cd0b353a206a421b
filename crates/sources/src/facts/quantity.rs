//! Numbers with sign, scale and unit, and their comparison at the precision of a sentence.

use super::{Token, TokenKind};
use crate::text::is_function_word;

/// Whole numbers up to this one are too common to decide anything.
const SMALL: f64 = 12.0;

/// A number of a text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Quantity {
    /// The value in the base unit of its dimension.
    pub(crate) value: f64,
    /// The unit of the last digit that is meant exactly.
    step: f64,
    pub(crate) unit: Option<&'static str>,
    /// The factor of the unit.
    factor: f64,
    bound: Precision,
    is_scaled: bool,
    digits: usize,
    /// True if it counts a thing that is not a unit, such as inhabitants or lines.
    is_count: bool,
    /// The first token.
    pub(super) first: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Precision {
    Exact,
    About,
    More,
    Less,
}

/// The way in which a number of a page supports a number of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Agreement {
    Equal,
    /// The page has more digits.
    Rounded,
    /// The value agrees, but only one of the two is a bound.
    BoundDiffers,
}

impl Quantity {
    /// Returns true for a number that is too common to decide anything.
    pub(super) fn is_weak(&self) -> bool {
        self.unit.is_none()
            && !self.is_scaled
            && self.value.fract() == 0.0
            && self.value.abs() <= SMALL
    }

    /// Returns true if the number alone identifies its statement.
    pub(crate) fn is_distinctive(&self) -> bool {
        self.digits >= 4
    }

    /// Compares with a number of a page.
    pub(crate) fn agrees(&self, page: &Self) -> Option<Agreement> {
        if let (Some(own), Some(other)) = (self.unit, page.unit)
            && own != other
        {
            return None;
        }
        // A number of two digits without a unit is near too many others.
        let is_telling = self.unit.is_some()
            || self.is_scaled
            || self.digits >= 3
            || self.is_count && page.is_count;
        match (self.bound, page.bound) {
            (Precision::More, Precision::Exact | Precision::About)
                if is_telling && page.value > self.value && page.value <= self.value * 1.5 =>
            {
                return Some(Agreement::Rounded);
            }
            (Precision::Less, Precision::Exact | Precision::About)
                if is_telling && page.value < self.value && page.value * 1.5 >= self.value =>
            {
                return Some(Agreement::Rounded);
            }
            _ => {}
        }
        let distance = (self.value - page.value).abs();
        let is_equal = distance <= 1e-9 * self.value.abs().max(page.value.abs()).max(1e-9);
        if !is_equal && distance > self.step / 2.0 * (1.0 + 1e-9) {
            return None;
        }
        let is_bound = |bound| matches!(bound, Precision::More | Precision::Less);
        if (is_bound(self.bound) || is_bound(page.bound)) && self.bound != page.bound {
            return Some(Agreement::BoundDiffers);
        }
        Some(if is_equal { Agreement::Equal } else { Agreement::Rounded })
    }

    /// Returns true if a number without a unit is this year: "1088" alone may be either.
    pub(crate) fn is_year(&self, year: u16) -> bool {
        self.unit.is_none() && self.value == f64::from(year)
    }

    /// Returns true if both count the same kind of thing, as far as their units show.
    pub(crate) fn is_same_kind(&self, other: &Self) -> bool {
        let (own, page) = (self.value / self.factor, other.value / other.factor);
        self.unit == other.unit || (own - page).abs() < 1e-9 * own.abs().max(1.0)
    }

    /// Returns the number in the unit of another one, if it has none itself: the head of its column may have it.
    pub(crate) fn in_unit_of(&self, other: &Self) -> Self {
        if self.unit.is_some() {
            return self.clone();
        }
        let factor = other.factor;
        Self {
            value: self.value * factor,
            step: self.step * factor,
            unit: other.unit,
            factor,
            ..self.clone()
        }
    }

    /// Compares with a number of a page that has a unit which this one does not state.
    pub(crate) fn agrees_in_unit_of(&self, page: &Self) -> Option<Agreement> {
        // Lines are not bytes.
        if self.is_count { None } else { self.in_unit_of(page).agrees(page) }
    }
}

/// A number being read: the text and its tokens.
struct QuantityReader<'a> {
    text: &'a str,
    tokens: &'a [Token],
}

/// Reads a number that begins at a token; returns it with the index after its last token.
pub(super) fn quantity(
    text: &str,
    tokens: &[Token],
    at: usize,
    decimal_comma: bool,
) -> Option<(Quantity, usize)> {
    let reader = QuantityReader { text, tokens };
    let token = &tokens[at];
    if reader.is_part_of_word(at) {
        return None;
    }
    let (mut value, decimals, digits, mut to) = match token.kind {
        TokenKind::Number => reader.digits(at, decimal_comma)?,
        TokenKind::Word | TokenKind::Capital | TokenKind::Sign => {
            (word_number(&token.folded)?, 0, 1, at + 1)
        }
    };
    let mut first = at;
    let mut unit = None;
    if let Some(before) = at.checked_sub(1)
        && let Some(currency) = currency(reader.raw(before))
    {
        unit = Some((currency, 1.0));
        let has_country = before > 0 && reader.touches(before) && reader.raw(before - 1) == "US";
        first = before - usize::from(has_country);
    }
    if reader.has_minus(first) {
        value = -value;
        first -= 1;
    }
    let mut step = 10_f64.powi(-i32::try_from(decimals).unwrap_or(0));
    let mut is_scaled = false;
    // Up to two words, as in "hundred thousand".
    for _ in 0..2 {
        let Some(factor) = reader.scale(to, unit.is_some()) else { break };
        value *= factor;
        step *= factor;
        is_scaled = true;
        to += 1;
    }
    if unit.is_none()
        && let Some((found, after)) = reader.unit_after(to)
    {
        unit = Some(found);
        to = after;
    }
    let factor = unit.map_or(1.0, |(_, factor)| factor);
    value *= factor;
    step *= factor;
    let is_small = value.abs() <= SMALL || value.fract() != 0.0;
    if token.kind != TokenKind::Number && unit.is_none() && !is_scaled && is_small {
        return None;
    }
    let (bound, bound_first) = reader.read_bound(first);
    if !is_scaled && decimals == 0 && token.kind == TokenKind::Number {
        let written = reader.raw(at).bytes().rev().filter(u8::is_ascii_digit);
        let zeros = written.take_while(|byte| *byte == b'0').count();
        let is_round = zeros >= 3 && digits >= zeros + 2;
        if bound == Precision::About || is_round {
            step *= 10_f64.powi(i32::try_from(zeros).unwrap_or(0));
        }
    }
    if bound == Precision::About {
        first = bound_first;
    }
    let unit = unit.map(|(name, _)| name);
    let is_count = unit.is_none() && reader.is_content_word(to);
    Some((Quantity { value, step, unit, factor, bound, is_scaled, digits, is_count, first }, to))
}

impl QuantityReader<'_> {
    fn raw(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| &self.text[token.start..token.end])
    }

    fn fold(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.folded.as_str())
    }

    fn is_content_word(&self, at: usize) -> bool {
        self.tokens
            .get(at)
            .is_some_and(|token| token.kind == TokenKind::Word && !is_function_word(&token.folded))
    }

    fn is_number(&self, at: usize) -> bool {
        self.tokens.get(at).is_some_and(|token| token.kind == TokenKind::Number)
    }

    /// Returns true if nothing separates a token from the one before it.
    fn touches(&self, at: usize) -> bool {
        at > 0 && self.tokens.get(at).is_some_and(|token| token.start == self.tokens[at - 1].end)
    }

    /// Returns true for a part of COVID-19 or A4.
    fn is_part_of_word(&self, at: usize) -> bool {
        if !self.touches(at) || self.text[..self.tokens[at].start].ends_with(crate::text::is_cjk) {
            return false;
        }
        let is_word =
            |at: usize| matches!(self.tokens[at].kind, TokenKind::Word | TokenKind::Capital);
        let is_money = |at: usize| currency(self.raw(at)).is_some();
        (is_word(at - 1) && !is_money(at - 1))
            || (self.raw(at - 1) == "-" && at > 1 && self.touches(at - 1) && is_word(at - 2))
    }

    /// Returns the value, the number of decimals and of digits, and the index after the number.
    fn digits(&self, at: usize, decimal_comma: bool) -> Option<(f64, usize, usize, usize)> {
        let mut written = self.raw(at).to_owned();
        let mut to = at + 1;
        // 1 234 567
        while (to > at + 1 || written.len() <= 3)
            && written.bytes().all(|byte| byte.is_ascii_digit())
            && self.is_number(to)
            && self.raw(to).len() == 3
            && self.text.get(self.tokens[to - 1].end..self.tokens[to].start) == Some(" ")
            && self.raw(to).bytes().all(|byte| byte.is_ascii_digit())
        {
            let group = self.raw(to).to_owned();
            written.push_str(&group);
            to += 1;
        }
        let (mut value, decimals) = parse(&written, decimal_comma)?;
        let digits = written.bytes().filter(u8::is_ascii_digit).count();
        if self.raw(to) == "^" && self.touches(to) && self.is_number(to + 1) {
            let power: i32 = self.raw(to + 1).parse().ok()?;
            value = value.powi(power.min(300));
            to += 2;
        }
        Some((value, decimals, digits, to))
    }

    fn has_minus(&self, first: usize) -> bool {
        first > 0
            && self.raw(first - 1) == "-"
            && self.touches(first)
            && (!self.touches(first - 1) || matches!(self.raw(first - 2), "(" | "|"))
    }

    fn scale(&self, at: usize, is_money: bool) -> Option<f64> {
        let touches = self.touches(at);
        // The counted thing follows in the same run of characters: 万人, 億円.
        let raw = match self.raw(at) {
            run if run.starts_with(['万', '萬', '億', '亿', '兆']) => &run[..'万'.len_utf8()],
            raw => raw,
        };
        Some(match (raw, self.fold(at)) {
            ("k" | "K", _) if touches => 1e3,
            ("M", _) if touches => 1e6,
            ("m", _) if touches && is_money => 1e6,
            ("B", _) if touches => 1e9,
            ("T", _) if touches && is_money => 1e12,
            ("万" | "萬", _) => 1e4,
            ("百万", _) => 1e6,
            ("億" | "亿", _) => 1e8,
            ("兆", _) => 1e12,
            (_, "hundred") => 1e2,
            (_, "thousand" | "tausend" | "mille" | "mil") => 1e3,
            (_, "lakh") => 1e5,
            (_, "million" | "millions" | "mn" | "mio" | "millionen" | "millones" | "milioni") => {
                1e6
            }
            (_, "crore") => 1e7,
            (
                _,
                "billion" | "billions" | "bn" | "milliarde" | "milliarden" | "milliard"
                | "milliards" | "mrd" | "miliardi",
            ) => 1e9,
            (_, "trillion" | "trillions" | "tn" | "billionen") => 1e12,
            _ => return None,
        })
    }

    /// Returns the unit after a number and the index after it.
    fn unit_after(&self, to: usize) -> Option<((&'static str, f64), usize)> {
        if let Some((unit, length)) = self.unit_at(to) {
            return Some((unit, to + length));
        }
        // "10-20 %" and "a 12-kilometre road"
        if self.raw(to) != "-" || !self.touches(to) {
            return None;
        }
        if self.is_number(to + 1) {
            return self.unit_at(to + 2).map(|(unit, _)| (unit, to));
        }
        self.unit_at(to + 1).map(|(unit, length)| (unit, to + 1 + length))
    }

    /// Returns the dimension and the factor of a unit, and the number of its tokens.
    fn unit_at(&self, at: usize) -> Option<((&'static str, f64), usize)> {
        let raw = self.raw(at);
        let two = match (self.fold(at), self.fold(at + 1)) {
            ("percentage", "point" | "points") => ("points", 1.0),
            ("per", "cent") => ("percent", 1.0),
            ("square", "kilometers" | "kilometres" | "kilometer" | "kilometre") => ("area", 1e6),
            ("sq", "km") => ("area", 1e6),
            ("square", "meters" | "metres" | "meter" | "metre") => ("area", 1.0),
            ("square" | "sq", "miles" | "mile" | "mi") => ("square mile", 1.0),
            ("light", "years") => ("light year", 1.0),
            ("°" | "degrees", "c" | "celsius") => ("temperature", 1.0),
            ("°" | "degrees", "f" | "fahrenheit") => ("fahrenheit", 1.0),
            ("us", "$" | "dollars") => ("dollar", 1.0),
            _ => ("", 1.0),
        };
        if !two.0.is_empty() {
            return Some((two, 2));
        }
        // "5 m" is a length, but "5 M" is not.
        if raw.len() == 1 && raw.starts_with(char::is_uppercase) && !matches!(raw, "K" | "W") {
            return None;
        }
        let word = self.fold(at);
        for (dimension, names) in UNITS {
            for name in names.split(' ') {
                let (name, factor) = name.split_once('=').unwrap_or((name, "1"));
                if name == word {
                    return Some(((dimension, factor.parse().ok()?), 1));
                }
            }
        }
        None
    }

    /// Returns the bound that is stated before a number, and its first token.
    fn read_bound(&self, first: usize) -> (Precision, usize) {
        let word = |back: usize| first.checked_sub(back).map_or("", |at| self.fold(at));
        match (word(2), word(1)) {
            ("more" | "greater" | "larger" | "higher" | "longer" | "older", "than")
            | ("at", "least")
            | (_, "over" | ">" | "exceeding" | "above" | "beyond" | "past" | "uber") => {
                (Precision::More, first)
            }
            ("less" | "fewer" | "lower" | "smaller" | "shorter", "than")
            | ("at", "most")
            | ("up", "to")
            | (_, "under" | "<" | "below" | "unter") => (Precision::Less, first),
            (
                _,
                "about" | "around" | "approximately" | "roughly" | "nearly" | "almost" | "some"
                | "circa" | "rund" | "etwa" | "environ" | "~" | "≈" | "约" | "約",
            ) => (Precision::About, first - 1),
            _ => (Precision::Exact, first),
        }
    }
}

/// Returns true if a unit begins at a token.
pub(super) fn is_unit(text: &str, tokens: &[Token], at: usize) -> bool {
    QuantityReader { text, tokens }.unit_at(at).is_some()
}

/// Parses digits with separators; returns the value and the number of decimals.
fn parse(written: &str, decimal_comma: bool) -> Option<(f64, usize)> {
    let plain = written.replace('\'', "");
    let (commas, dots) = (plain.matches(',').count(), plain.matches('.').count());
    let groups = |sign: char| {
        let mut parts = plain.split(sign);
        parts.next().is_some_and(|first| (1..=3).contains(&first.len()))
            && parts.all(|part| part.len() == 3)
    };
    let decimal = match (commas, dots) {
        (0, 0) => None,
        (0, 1) => (!(decimal_comma && groups('.'))).then_some('.'),
        (1, 0) => (decimal_comma || !groups(',')).then_some(','),
        (0, _) if groups('.') => None,
        (_, 0) => None,
        (_, 1) if plain.rfind('.') > plain.rfind(',') => Some('.'),
        (1, _) if plain.rfind(',') > plain.rfind('.') => Some(','),
        _ => return None,
    };
    let (whole, fraction) = match decimal {
        None => (plain.as_str(), ""),
        Some(sign) => plain.rsplit_once(sign)?,
    };
    let whole: String = whole.chars().filter(char::is_ascii_digit).collect();
    let value = format!("{whole}.{fraction}0").parse().ok()?;
    Some((value, fraction.len()))
}

fn word_number(word: &str) -> Option<f64> {
    const SMALL: &str = "zero one two three four five six seven eight nine ten eleven twelve \
         thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty";
    const TENS: [(&str, f64); 8] = [
        ("thirty", 30.0),
        ("forty", 40.0),
        ("fifty", 50.0),
        ("sixty", 60.0),
        ("seventy", 70.0),
        ("eighty", 80.0),
        ("ninety", 90.0),
        ("half", 0.5),
    ];
    let small = SMALL.split_whitespace().position(|small| small == word);
    small
        .map(|found| found as f64)
        .or_else(|| TENS.iter().find(|(tens, _)| *tens == word).map(|(_, value)| *value))
}

fn currency(sign: &str) -> Option<&'static str> {
    Some(match sign {
        "$" | "USD" => "dollar",
        "€" | "EUR" => "euro",
        "£" | "GBP" => "pound sterling",
        "¥" | "JPY" => "yen",
        "₹" | "INR" => "rupee",
        "CHF" => "franc",
        _ => return None,
    })
}

/// Each dimension with its units and their factors. Units of different customs are different dimensions, so that
/// miles never stand for kilometres.
const UNITS: &[(&str, &str)] = &[
    ("percent", "% percent prozent pct"),
    (
        "length",
        "km=1000 kilometre=1000 kilometer=1000 kilometres=1000 kilometers=1000 m metre meter metres meters \
         cm=0.01 centimetres=0.01 centimeters=0.01 mm=0.001 millimetres=0.001 millimeters=0.001",
    ),
    ("mile", "mile miles mi meilen"),
    ("foot", "foot feet ft"),
    ("inch", "inch inches"),
    ("area", "km2=1000000 m2 hectares=10000 hectare=10000 ha=10000"),
    ("square mile", "mi2"),
    ("acre", "acre acres"),
    (
        "mass",
        "kg=1000 kilogram=1000 kilograms=1000 g gram grams mg=0.001 tonne=1000000 tonnes=1000000",
    ),
    ("ton", "ton tons"),
    ("pound", "lb lbs pound pounds"),
    (
        "time",
        "s sec second seconds sekunden ms=0.001 msec=0.001 millisecond=0.001 milliseconds=0.001 \
         μs=0.000001 microseconds=0.000001 ns=0.000000001 nanosecond=0.000000001 nanoseconds=0.000000001 min=60 minute=60 minutes=60 \
         minuten=60 h=3600 hour=3600 hours=3600 stunden=3600",
    ),
    ("day", "day days tage week=7 weeks=7 wochen=7"),
    ("month", "year=12 years=12 jahre=12 month months monate"),
    ("temperature", "celsius"),
    ("fahrenheit", "fahrenheit"),
    ("kelvin", "kelvin k"),
    (
        "data",
        "byte bytes bit=0.125 bits=0.125 kb=1000 kbyte=1000 kbytes=1000 kilobyte=1000 kilobytes=1000 \
         mb=1000000 mbyte=1000000 mbytes=1000000 megabyte=1000000 megabytes=1000000 gb=1000000000 \
         gigabyte=1000000000 gigabytes=1000000000 tb=1000000000000 terabyte=1000000000000 terabytes=1000000000000",
    ),
    (
        "binary data",
        "kib kibibytes mib=1024 mebibytes=1024 gib=1048576 tib=1073741824 eib=1125899906842624",
    ),
    ("frequency", "hz khz=1000 mhz=1000000 ghz=1000000000"),
    ("power", "w watt watts kw=1000 mw=1000000 gw=1000000000"),
    ("energy", "kwh mwh=1000 gwh=1000000 twh=1000000000"),
    ("volume", "litre liter litres liters ml=0.001"),
    ("dollar", "dollar dollars usd $"),
    ("euro", "euro euros eur €"),
    ("pound sterling", "gbp sterling £"),
    ("yen", "yen jpy 円"),
    ("rupee", "rupee rupees inr"),
    ("franc", "franc francs chf"),
];

#[cfg(test)]
mod tests;
