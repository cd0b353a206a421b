//! A PDF as numbered objects. They are found by going through the file rather than by its table of contents: that is
//! as quick for files of our size, and a damaged table then costs nothing.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;

use super::Trouble;
use super::budget::{Budget, KEPT, STREAM};
use super::filter;
use super::object::{Dict, Object};
use super::reader::{Reader, is_blank};

/// References to references; longer chains are cycles.
const CHAIN: u32 = 16;
/// Objects of one file; each is remembered.
const OBJECTS: usize = 1_000_000;
/// Blanks between what a stream's length says and its end.
const BLANKS: usize = 16;
/// Of all that a trailer says, what a reader of text wants to know.
const KEYS: [&str; 3] = ["Root", "Info", "Encrypt"];

/// An open file.
pub(super) struct File<'a> {
    bytes: &'a [u8],
    pub(super) budget: &'a Budget<'a>,
    places: HashMap<u32, Place>,
    /// Unpacked, the streams that have objects in them.
    packs: Vec<Vec<u8>>,
    /// The bytes of all packs.
    kept: usize,
    pub(super) trailer: Dict,
}

/// Where an object begins.
#[derive(Clone, Debug)]
enum Place {
    /// In the file; with the bytes of its stream, if it is one.
    File(usize, Option<Range<usize>>),
    /// In a pack.
    Pack(usize, usize),
}

impl<'a> File<'a> {
    /// Goes through a file. A later object of the same number is the newer one.
    pub(super) fn open(bytes: &'a [u8], budget: &'a Budget<'a>) -> Result<Self, Trouble> {
        let mut file = Self {
            bytes,
            budget,
            places: HashMap::new(),
            packs: Vec::new(),
            kept: 0,
            trailer: Dict::default(),
        };
        let mut at = 0;
        while let Some(found) = find(bytes, at, b"obj") {
            budget.spend(found - at + 64)?;
            at = found + 3;
            let Some(number) = number_before(&bytes[..found]) else { continue };
            let mut reader = Reader::new(bytes, at);
            let object = reader.object();
            budget.spend(reader.at.saturating_sub(at))?;
            let dict = match object {
                Some(Object::Dict(dict)) => dict,
                Some(_) | None => {
                    file.remember(number, Place::File(at, None))?;
                    continue;
                }
            };
            // A comment may go on to the end of the file, and the next object may begin within it.
            let after = reader.at;
            reader.blanks();
            budget.spend(reader.at.saturating_sub(after))?;
            let stream = stream_at(bytes, &mut reader, &dict);
            file.remember(number, Place::File(at, stream.clone()))?;
            let Some(range) = stream else { continue };
            at = range.end;
            if dict.is("ObjStm") {
                file.unpack(&dict, range)?;
            } else if dict.is("XRef") {
                file.trailer(dict);
            }
        }
        let mut at = 0;
        while let Some(found) = find(bytes, at, b"trailer") {
            at = found + 7;
            let mut reader = Reader::new(bytes, at);
            let object = reader.object();
            budget.spend(reader.at.saturating_sub(at))?;
            if let Some(Object::Dict(dict)) = object {
                file.trailer(dict);
            }
        }
        budget.spend(bytes.len())?;
        Ok(file)
    }

    /// The numbers of the objects that say they are of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> Result<Vec<u32>, Trouble> {
        let mut numbers: Vec<_> = self.places.keys().copied().collect();
        numbers.sort_unstable();
        let mut found = Vec::new();
        for number in numbers {
            if self.object(number)?.dict().is_some_and(|dict| dict.is(kind)) {
                found.push(number);
            }
        }
        Ok(found)
    }

    /// The object of a number; null where there is none.
    pub(super) fn numbered(&self, number: u32) -> Result<Object, Trouble> {
        self.resolved(&Object::Ref(number)).map(Cow::into_owned)
    }

    /// What a value stands for.
    pub(super) fn resolved<'o>(&self, object: &'o Object) -> Result<Cow<'o, Object>, Trouble> {
        let Object::Ref(number) = object else { return Ok(Cow::Borrowed(object)) };
        let mut object = self.object(*number)?;
        for _ in 0..CHAIN {
            let Object::Ref(number) = object else { return Ok(Cow::Owned(object)) };
            object = self.object(number)?;
        }
        Ok(Cow::Owned(Object::Null))
    }

    /// What a key of a dictionary stands for.
    pub(super) fn get<'o>(&self, dict: &'o Dict, key: &str) -> Result<Cow<'o, Object>, Trouble> {
        self.resolved(dict.get(key))
    }

    /// The bytes of a stream, unpacked; none where there is no stream, or one that is damaged or a picture.
    pub(super) fn unpacked(&self, object: &Object) -> Result<Option<Vec<u8>>, Trouble> {
        let object = self.resolved(object)?;
        let Object::Stream(dict, range) = &*object else { return Ok(None) };
        match self.filtered(dict, range.clone()) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(Trouble::Damaged) => Ok(None),
            Err(trouble) => Err(trouble),
        }
    }

    fn object(&self, number: u32) -> Result<Object, Trouble> {
        let (bytes, at, stream) = match self.places.get(&number) {
            Some(Place::File(at, stream)) => (self.bytes, *at, stream.clone()),
            Some(Place::Pack(pack, at)) => {
                (self.packs.get(*pack).map_or(&[][..], Vec::as_slice), *at, None)
            }
            None => return Ok(Object::Null),
        };
        let mut reader = Reader::new(bytes, at);
        let object = reader.object().unwrap_or(Object::Null);
        self.budget.spend(reader.at.saturating_sub(at) + 64)?;
        Ok(match (object, stream) {
            (Object::Dict(dict), Some(range)) => Object::Stream(dict, range),
            (object, _) => object,
        })
    }

    fn filtered(&self, dict: &Dict, range: Range<usize>) -> Result<Vec<u8>, Trouble> {
        let filters = self.get(dict, "Filter")?;
        let parameters = self.get(dict, "DecodeParms")?;
        let names = match &*filters {
            Object::Array(names) => names.as_slice(),
            Object::Null => &[],
            name => std::slice::from_ref(name),
        };
        let mut bytes = Cow::Borrowed(self.bytes.get(range).ok_or(Trouble::Damaged)?);
        self.budget.spend(bytes.len())?;
        // More filters than anybody uses are there to cost time.
        for (at, name) in names.iter().enumerate().take(4) {
            let name = self.resolved(name)?;
            let own = match &*parameters {
                Object::Array(several) => {
                    self.resolved(several.get(at).unwrap_or(&Object::Null))?
                }
                one => Cow::Borrowed(one),
            };
            let none = Dict::default();
            let own = own.dict().unwrap_or(&none);
            let name = name.name().ok_or(Trouble::Damaged)?;
            bytes = Cow::Owned(filter::undo(name, own, &bytes, STREAM, self.budget)?);
        }
        Ok(bytes.into_owned())
    }

    /// Takes the objects in that a stream holds.
    fn unpack(&mut self, dict: &Dict, range: Range<usize>) -> Result<(), Trouble> {
        let bytes = match self.filtered(dict, range) {
            Ok(bytes) => bytes,
            Err(Trouble::Damaged) => return Ok(()),
            Err(trouble) => return Err(trouble),
        };
        self.kept = self.kept.saturating_add(bytes.len());
        if self.kept > KEPT {
            return Err(Trouble::TooMuch);
        }
        let first = self.get(dict, "First")?.count().unwrap_or(0);
        let pack = self.packs.len();
        let mut reader = Reader::new(bytes.get(..first).unwrap_or(&[]), 0);
        while let (Some(number), Some(offset)) = (reader.object(), reader.object()) {
            let (Some(number), Some(offset)) = (number.count(), offset.count()) else { break };
            let number = u32::try_from(number).unwrap_or(u32::MAX);
            self.budget.spend(64)?;
            self.remember(number, Place::Pack(pack, first.saturating_add(offset)))?;
        }
        self.packs.push(bytes);
        Ok(())
    }

    fn remember(&mut self, number: u32, place: Place) -> Result<(), Trouble> {
        self.places.insert(number, place);
        if self.places.len() > OBJECTS { Err(Trouble::TooMuch) } else { Ok(()) }
    }

    /// The last word counts, unless it says nothing of where the pages are.
    fn trailer(&mut self, dict: Dict) {
        let says = |dict: &Dict, key| *dict.get(key) != Object::Null;
        if says(&dict, "Encrypt") && !says(&self.trailer, "Encrypt") {
            self.trailer.0.push(("Encrypt".to_owned(), Object::Word("true".to_owned())));
        } else if says(&dict, "Root") && !says(&self.trailer, "Encrypt") {
            let wanted = |key| (key, dict.get(key));
            let said = KEYS.map(wanted).into_iter().filter(|(_, value)| **value != Object::Null);
            self.trailer = Dict(said.map(|(key, value)| (key.to_owned(), value.clone())).collect());
        }
    }
}

/// Where a word stands next.
fn find(bytes: &[u8], from: usize, word: &[u8]) -> Option<usize> {
    let first = *word.first()?;
    let mut at = from;
    loop {
        at += bytes.get(at..)?.iter().position(|byte| *byte == first)?;
        if bytes[at..].starts_with(word) {
            return Some(at);
        }
        at += 1;
    }
}

/// The number of `12 0 ` before `obj`.
fn number_before(bytes: &[u8]) -> Option<u32> {
    let blanks = |bytes: &[u8]| bytes.iter().rposition(|byte| !is_blank(*byte)).map(|at| at + 1);
    let digits = |bytes: &[u8]| {
        let start = bytes.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
        (start < bytes.len()).then_some(start)
    };
    let generation = digits(&bytes[..blanks(bytes)?])?;
    let end = blanks(&bytes[..generation]).filter(|end| *end < generation)?;
    let start = digits(&bytes[..end])?;
    std::str::from_utf8(&bytes[start..end]).ok()?.parse().ok()
}

/// The bytes of the stream that begins here, if one does; its dictionary was just read.
fn stream_at(bytes: &[u8], reader: &mut Reader<'_>, dict: &Dict) -> Option<Range<usize>> {
    if !reader.eat(b"stream") {
        return None;
    }
    reader.eat(b"\r");
    reader.eat(b"\n");
    let from = reader.at;
    // What the length says counts if the stream ends there.
    let said = dict.get("Length").count().and_then(|length| from.checked_add(length));
    if let Some(to) = said.filter(|to| *to <= bytes.len()) {
        let mut end = Reader::new(bytes, to);
        // Many streams may point at the same blanks.
        while end.at < to + BLANKS && end.peek().is_some_and(is_blank) {
            end.at += 1;
        }
        if end.eat(b"endstream") {
            return Some(from..to);
        }
    }
    Some(from..find(bytes, from, b"endstream").unwrap_or(bytes.len()))
}

#[cfg(test)]
mod tests;
