//! A font as far as a reader needs it: what its codes mean, and how wide its signs are.

use std::collections::BTreeMap;

use super::Trouble;
use super::cmap::{CMap, code};
use super::encoding::{Encoding, ligature, named};
use super::file::File;
use super::object::{Dict, Object};

/// The last code that has a width of its own: PDF has no later ones.
const LAST: u32 = 0xffff;

/// One font.
#[derive(Clone, Debug)]
pub(super) struct Font {
    codes: Codes,
    map: Option<CMap>,
    /// From where, up to where, and how wide in thousandths of the size.
    widths: BTreeMap<u32, (u32, f64)>,
    usual: f64,
    pub(super) is_bold: bool,
}

/// How the bytes of a text are taken apart where no map says so.
#[derive(Clone, Debug)]
enum Codes {
    /// One byte each, with what they mean.
    Single(Vec<Option<String>>),
    /// Two bytes each, which mean nothing by themselves.
    Double,
    /// Two bytes each, which are UTF-16.
    Unicode,
}

/// One sign of a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sign {
    /// None where nobody can say what it means.
    pub(super) text: Option<String>,
    /// Of the size.
    pub(super) width: f64,
    /// Whether it is the byte that the space between words is added to.
    pub(super) is_space: bool,
}

impl Font {
    pub(super) fn read(file: &File<'_>, dict: &Dict) -> Result<Self, Trouble> {
        // It is searched for each of its keys, and may be one that was read long ago.
        file.budget.spend(dict.0.len().saturating_mul(8))?;
        let name = file.get(dict, "BaseFont")?.name().unwrap_or("").to_owned();
        let map = file.unpacked(dict.get("ToUnicode"))?;
        // A map is dearer to take in than plain text.
        file.budget.spend(map.as_ref().map_or(0, Vec::len).saturating_mul(8))?;
        let map = map.map(|bytes| CMap::parse(&bytes));
        let kind = file.get(dict, "Subtype")?.name().unwrap_or("").to_owned();
        let mut font = if kind == "Type0" {
            Self::wide(file, dict)?
        } else {
            Self::narrow(file, dict, &kind, &name)?
        };
        font.map = map.filter(|map| map.len() > 0);
        let lower = name.to_ascii_lowercase();
        font.is_bold = ["bold", "black", "heavy", "demi", "cmbx", "-bd"]
            .iter()
            .any(|word| lower.contains(word));
        Ok(font)
    }

    /// How much memory it takes, more or less, in entries.
    pub(super) fn weight(&self) -> usize {
        256 + self.map.as_ref().map_or(0, CMap::len) + self.widths.len()
    }

    /// Takes a text apart.
    pub(super) fn signs(
        &self,
        text: &[u8],
        mut each: impl FnMut(Sign) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut rest = text;
        while !rest.is_empty() {
            let length = match self.codes {
                Codes::Single(_) => 1,
                Codes::Double => self.map.as_ref().and_then(|map| map.length(rest)).unwrap_or(2),
                Codes::Unicode => 2,
            };
            let (bytes, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            let code = code(bytes);
            let width = match self.widths.range(..=code).next_back() {
                Some((_, (to, width))) if code <= *to => *width,
                _ => self.usual,
            };
            each(Sign {
                text: self.text(code).map(|text| spelled(&text)),
                width: width / 1_000.0,
                is_space: bytes == b" ",
            })?;
        }
        Ok(())
    }

    fn text(&self, code: u32) -> Option<String> {
        let mapped = self.map.as_ref().and_then(|map| map.text(code));
        if let Some(text) = mapped.filter(|text| is_known(text)) {
            return Some(text);
        }
        match &self.codes {
            Codes::Single(table) => table.get(code as usize).cloned().flatten(),
            Codes::Double => None,
            Codes::Unicode => char::from_u32(code).map(String::from),
        }
    }

    fn wide(file: &File<'_>, dict: &Dict) -> Result<Self, Trouble> {
        let encoding = file.get(dict, "Encoding")?;
        let is_unicode = encoding.name().is_some_and(|name| {
            name.starts_with("Uni") && (name.contains("UCS2") || name.contains("UTF16"))
        });
        let below = file.get(dict, "DescendantFonts")?;
        let below = file.resolved(below.array().first().unwrap_or(&Object::Null))?;
        let none = Dict::default();
        let below = below.dict().unwrap_or(&none);
        let mut widths = BTreeMap::new();
        let list = file.get(below, "W")?;
        file.budget.spend(below.0.len().saturating_add(list.array().len().saturating_mul(8)))?;
        let mut list = list.array().iter();
        while let (Some(from), Some(next)) = (list.next().and_then(Object::count), list.next()) {
            let from = from as u32;
            let next = file.resolved(next)?;
            if let Object::Array(each) = &*next {
                file.budget.spend(each.len().saturating_mul(8))?;
                for (code, width) in (from..=LAST).zip(each) {
                    widths.insert(code, (code, width.number().unwrap_or(0.0)));
                }
            } else if let (Some(to), Some(width)) =
                (next.count(), list.next().and_then(Object::number))
                && from <= LAST
            {
                widths.insert(from, (to as u32, width));
            }
        }
        let codes = if is_unicode { Codes::Unicode } else { Codes::Double };
        let usual = file.get(below, "DW")?.number().unwrap_or(1_000.0);
        Ok(Self { codes, map: None, widths, usual, is_bold: false })
    }

    fn narrow(file: &File<'_>, dict: &Dict, kind: &str, name: &str) -> Result<Self, Trouble> {
        // The signs of this kind are drawings on a scale of their own.
        let scale = match kind {
            "Type3" => {
                file.get(dict, "FontMatrix")?
                    .array()
                    .first()
                    .and_then(Object::number)
                    .unwrap_or(0.001)
                    * 1_000.0
            }
            _ => 1.0,
        };
        let first = file.get(dict, "FirstChar")?.count().unwrap_or(0).min(255);
        let mut widths = BTreeMap::new();
        let list = file.get(dict, "Widths")?;
        for (code, width) in (first..256).zip(list.array()) {
            let width = file.resolved(width)?.number().unwrap_or(0.0) * scale;
            widths.insert(code as u32, (code as u32, width));
        }
        let table = table(file, dict, kind)?;
        if widths.is_empty() {
            usual_widths(name, &table, &mut widths);
        }
        let usual = if name.contains("Courier") { 600.0 } else { 500.0 };
        Ok(Self { codes: Codes::Single(table), map: None, widths, usual, is_bold: false })
    }
}

/// What the single bytes of a font mean.
fn table(file: &File<'_>, dict: &Dict, kind: &str) -> Result<Vec<Option<String>>, Trouble> {
    let encoding = file.get(dict, "Encoding")?;
    let none = Dict::default();
    let changes = encoding.dict().unwrap_or(&none);
    let base = match encoding.name() {
        Some(name) => Encoding::named(name),
        None => file.get(changes, "BaseEncoding")?.name().and_then(Encoding::named),
    };
    let own = match base {
        Some(_) => BTreeMap::new(),
        None => built_in(file, dict)?,
    };
    let usual = if kind == "TrueType" { Encoding::Windows } else { Encoding::Standard };
    let base = base.unwrap_or(usual);
    let mut table: Vec<Option<String>> = (0..=255)
        .map(|code| match own.get(&code) {
            Some(name) => named(name),
            None if !own.is_empty() => None,
            None => base.sign(code).map(String::from),
        })
        .collect();
    let differences = file.get(changes, "Differences")?;
    // Each name is looked for among all that are known.
    let cost = changes.0.len().saturating_add(differences.array().len().saturating_mul(64));
    file.budget.spend(cost)?;
    let mut code = 0;
    for change in differences.array() {
        match change {
            Object::Number(_) => code = change.count().unwrap_or(0),
            Object::Name(name) => {
                if let Some(meaning) = table.get_mut(code) {
                    *meaning = named(name);
                }
                code = code.saturating_add(1);
            }
            _ => {}
        }
    }
    Ok(table)
}

/// The names that a Type 1 font gives its own codes, from the part of it that is text: `dup 12 /fi put`.
fn built_in(file: &File<'_>, dict: &Dict) -> Result<BTreeMap<u8, String>, Trouble> {
    let mut names = BTreeMap::new();
    let descriptor = file.get(dict, "FontDescriptor")?;
    let none = Dict::default();
    let Some(bytes) = file.unpacked(descriptor.dict().unwrap_or(&none).get("FontFile"))? else {
        return Ok(names);
    };
    let head = String::from_utf8_lossy(bytes.get(..16_384).unwrap_or(&bytes));
    let Some((_, after)) = head.split_once("/Encoding") else { return Ok(names) };
    for entry in after.split("dup ").skip(1).take(512) {
        let mut words = entry.split_whitespace();
        let (code, name) = (words.next().and_then(|word| word.parse().ok()), words.next());
        let (Some(code), Some(name)) = (code, name.and_then(|name| name.strip_prefix('/'))) else {
            break;
        };
        names.insert(code, name.to_owned());
        // The last entry is followed by the end of the list.
        if words.any(|word| word == "def" || word == "readonly") {
            break;
        }
    }
    Ok(names)
}

/// The widths of the fonts that every reader has, near enough to tell words apart.
fn usual_widths(name: &str, table: &[Option<String>], widths: &mut BTreeMap<u32, (u32, f64)>) {
    let known = if name.contains("Helvetica") || name.contains("Arial") {
        HELVETICA
    } else if name.contains("Times") {
        TIMES
    } else {
        return;
    };
    for (code, text) in (0..).zip(table) {
        let ascii = text.as_ref().and_then(|text| text.chars().next()).map_or(0, u32::from);
        let width = ascii.checked_sub(32).and_then(|at| known.get(at as usize));
        widths.insert(code, (code, f64::from(width.copied().unwrap_or(530))));
    }
}

#[rustfmt::skip]
const HELVETICA: &[u16] = &[
    278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278, 556, 556, 556, 556, 556, 556, 556,
    556, 556, 556, 278, 278, 584, 584, 584, 556, 1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833,
    722, 778, 667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556, 333, 556, 556, 500, 556,
    556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556, 556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334,
    260, 334, 584,
];
#[rustfmt::skip]
const TIMES: &[u16] = &[
    250, 333, 408, 500, 500, 833, 778, 180, 333, 333, 500, 564, 250, 333, 250, 278, 500, 500, 500, 500, 500, 500, 500,
    500, 500, 500, 278, 278, 564, 564, 564, 444, 921, 722, 667, 667, 722, 611, 556, 722, 722, 333, 389, 722, 611, 889,
    722, 722, 556, 722, 667, 556, 611, 722, 722, 944, 722, 722, 611, 333, 278, 333, 469, 500, 333, 444, 500, 444, 500,
    444, 333, 500, 500, 278, 278, 500, 278, 778, 500, 500, 500, 500, 333, 389, 278, 500, 500, 722, 500, 500, 444, 480,
    200, 480, 541,
];

/// Whether a map's text says anything.
fn is_known(text: &str) -> bool {
    text.chars().all(|c| c != '\u{fffd}' && (!c.is_control() || c.is_whitespace()))
        && !text.is_empty()
}

/// Letters for the signs that stand for several, and the one sign for lists that Word draws from a font of its own.
fn spelled(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for sign in text.chars() {
        match (ligature(sign), sign) {
            (Some(letters), _) => spelled.push_str(letters),
            (None, '\u{f0b7}' | '\u{f0a7}' | '\u{25cf}' | '\u{25aa}') => spelled.push('•'),
            (None, _) => spelled.push(sign),
        }
    }
    spelled
}
